// SPDX-License-Identifier: Apache-2.0

//go:build lab

// Package cni plays the container runtime for tests in the guest: it calls the built podfabric as a process, with nothing but
// environment and standard input, and holds the node against what it was before.
package cni

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/e2e/guest/node"
	"github.com/podfabric/podfabric/plugin/hint"
	"github.com/podfabric/podfabric/plugin/kernel"
)

// StateDir is the plugin's state folder in the guest.
const StateDir = "/run/podfabric"

// Call is one attachment as the runtime names it.
type Call struct {
	Conf        string
	ContainerID string
	IfName      string // empty: net1
	NetNS       string // path; may be empty on DEL
	UID         string // of the pod; empty: outside Kubernetes
	Args        string // more CNI_ARGS
	Path        string // CNI_PATH; empty: node.Bin
	Plugin      string // the binary in node.Bin; empty: podfabric
	Env         []string
}

// Failure is a CNI error as the plugin prints it.
type Failure struct {
	Code    uint   `json:"code"`
	Msg     string `json:"msg"`
	Details string `json:"details"`
}

// Text is all that a person reads of a failure.
func (f Failure) Text() string { return f.Msg + "; " + f.Details }

// Add calls ADD and wants it to succeed.
func (c Call) Add(t testing.TB) *types100.Result {
	t.Helper()
	out, failure := c.Run(t, "ADD")
	if failure != nil {
		t.Fatalf("ADD of %s: code %d: %s", c.ContainerID, failure.Code, failure.Text())
	}
	var r types100.Result
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("ADD of %s printed %q: %v", c.ContainerID, out, err)
	}
	return &r
}

// AddFails calls ADD, wants code and the texts in the answer, and wants the node unchanged.
func (c Call) AddFails(t testing.TB, code uint, texts ...string) {
	t.Helper()
	before := Look(t)
	c.Refused(t, code, texts...)
	before.Unchanged(t)
}

// Refused is AddFails for a test that looks at the node itself, once for many.
func (c Call) Refused(t testing.TB, code uint, texts ...string) {
	t.Helper()
	_, failure := c.Run(t, "ADD")
	failure.is(t, c.ContainerID, code, texts)
}

// is wants a failure of ADD to be this one.
func (f *Failure) is(t testing.TB, id string, code uint, texts []string) {
	t.Helper()
	if f == nil {
		t.Fatalf("ADD of %s succeeded; wanted code %d", id, code)
	}
	if f.Code != code {
		t.Errorf("ADD of %s: code %d: %s; wanted code %d", id, f.Code, f.Text(), code)
	}
	for _, text := range texts {
		if !strings.Contains(f.Text(), text) {
			t.Errorf("ADD of %s: %s\nwanted %q in it", id, f.Text(), text)
		}
	}
	if strings.Contains(f.Text(), "no such file or directory") {
		t.Errorf("Multus would take this failure as done: %s", f.Text())
	}
}

// Del calls DEL and wants it to succeed.
func (c Call) Del(t testing.TB) {
	t.Helper()
	if _, failure := c.Run(t, "DEL"); failure != nil {
		t.Fatalf("DEL of %s: code %d: %s", c.ContainerID, failure.Code, failure.Text())
	}
}

// Check calls CHECK and gives its failure, nil when there is none.
func (c Call) Check(t testing.TB) *Failure {
	t.Helper()
	_, failure := c.Run(t, "CHECK")
	return failure
}

// Command is the process of a verb, not yet started.
func (c Call) Command(verb string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(node.Bin, cmp.Or(c.Plugin, "podfabric")))
	cmd.Stdin = strings.NewReader(c.Conf)
	args := "IgnoreUnknown=1;K8S_POD_NAMESPACE=tests;K8S_POD_NAME=" + c.ContainerID
	if c.UID != "" {
		args += ";K8S_POD_UID=" + c.UID
	}
	if c.Args != "" {
		args += ";" + c.Args
	}
	cmd.Env = slices.Concat(os.Environ(), c.Env, []string{
		"CNI_COMMAND=" + verb, "CNI_CONTAINERID=" + c.ContainerID, "CNI_IFNAME=" + c.ifname(), "CNI_NETNS=" + c.NetNS,
		"CNI_PATH=" + cmp.Or(c.Path, node.Bin), "CNI_ARGS=" + args,
	})
	return cmd
}

func (c Call) ifname() string { return cmp.Or(c.IfName, "net1") }

// Run calls a verb. What the plugin logs goes to the test's log.
func (c Call) Run(t testing.TB, verb string) ([]byte, *Failure) {
	t.Helper()
	cmd := c.Command(verb)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	t.Logf("%s %s/%s: %v\n%s%s", verb, c.ContainerID, c.ifname(), err, stdout.Bytes(), stderr.Bytes())
	if err == nil {
		return stdout.Bytes(), nil
	}
	var failure Failure
	if jsonErr := json.Unmarshal(stdout.Bytes(), &failure); jsonErr != nil {
		t.Fatalf("%s of %s ended with %v and printed no CNI error: %q", verb, c.ContainerID, err, stdout.Bytes())
	}
	return nil, &failure
}

// Hint reads fabric.json of the pod, and nccl.conf's settings without comments.
func (c Call) Hint(t testing.TB) (hint.Document, []string) {
	t.Helper()
	key := c.UID
	if key == "" {
		key = c.ContainerID
	}
	dir := filepath.Join(StateDir, "pods", key)
	text, err := os.ReadFile(filepath.Join(dir, "fabric.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc hint.Document
	if err = json.Unmarshal(text, &doc); err != nil {
		t.Fatalf("read the hint %s: %v", text, err)
	}
	conf, err := os.ReadFile(filepath.Join(dir, "nccl.conf"))
	if err != nil {
		t.Fatal(err)
	}
	var settings []string
	for line := range strings.Lines(string(conf)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			settings = append(settings, line)
		}
	}
	return doc, settings
}

// Volume makes the emptyDir of a pod, as kubelet does, and gives its path.
func (c Call) Volume(t testing.TB, name string) string {
	t.Helper()
	pod := filepath.Join("/var/lib/kubelet/pods", c.UID)
	dir := filepath.Join(pod, "volumes/kubernetes.io~empty-dir", name)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(pod) })
	return dir
}

// Node is what a node was at one moment: devices and files.
type Node struct {
	devices kernel.Snapshot
	files   []string
}

// Look takes everything down.
func Look(t testing.TB) Node {
	t.Helper()
	s, err := kernel.New().Snapshot(context.Background())
	if err != nil {
		t.Fatalf("look at the node: %v", err)
	}
	return Node{s, Files(t)}
}

// Unchanged fails the test for everything that is not as it was.
func (n Node) Unchanged(t testing.TB) {
	t.Helper()
	n.SameDevices(t)
	n.SameFiles(t)
}

// Permuted is Unchanged, but that verbs devices may have swapped their numbers, as those do that the kernel sends home at once.
func (n Node) Permuted(t testing.TB) {
	t.Helper()
	n.diff(t, inOrder)
	n.SameFiles(t)
}

// inOrder numbers verbs devices by their names, with the numbers that there are.
func inOrder(numbers map[string]string) map[string]string {
	devices := slices.Sorted(maps.Values(numbers))
	out := map[string]string{}
	for i, number := range slices.Sorted(maps.Keys(numbers)) {
		out[number] = devices[i]
	}
	return out
}

// SameDevices fails the test for every device that is not as it was.
func (n Node) SameDevices(t testing.TB) {
	t.Helper()
	n.diff(t, func(numbers map[string]string) map[string]string { return numbers })
}

// diff compares the devices, with their numbers as that function has them.
func (n Node) diff(t testing.TB, numbered func(map[string]string) map[string]string) {
	t.Helper()
	now := Look(t)
	// A pod's namespace that came to be since is the test's own doing.
	maps.DeleteFunc(now.devices.NetNS, func(name string, _ kernel.NetNSState) bool {
		_, known := n.devices.NetNS[name]
		return !known
	})
	n.devices.Uverbs, now.devices.Uverbs = numbered(n.devices.Uverbs), numbered(now.devices.Uverbs)
	for _, line := range kernel.Diff(n.devices, now.devices) {
		t.Errorf("the node changed: %s", line)
	}
}

// SameFiles fails the test for every file of the plugin that came or went.
func (n Node) SameFiles(t testing.TB) {
	t.Helper()
	if diff := gocmp.Diff(n.files, Files(t)); diff != "" {
		t.Errorf("the state folder changed (-before +now):\n%s", diff)
	}
}

// Files lists what the plugin keeps of attachments, below StateDir. Locks and home names stay for the boot and say nothing of one.
func Files(t testing.TB) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(StateDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(StateDir, path)
		if d.IsDir() && (rel == "locks" || rel == "names") {
			return fs.SkipDir
		}
		// Which address comes next outlives an attachment; who holds one does not.
		if of := filepath.Base(filepath.Dir(rel)); !d.IsDir() && of != "cursor" && of != "freed" {
			out = append(out, rel)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}
