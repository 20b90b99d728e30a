// SPDX-License-Identifier: Apache-2.0

//go:build lab

// Package crowd_test lets many pods come and go at once on a real kernel, with runtimes that do not wait for each other, GC and
// repair at work meanwhile, and processes that stop or die while they hold a lock. Whatever happens, no two pods have one device, no
// pod has a number of a verbs device that is not its own device's, and in the end the node is as it was.
package crowd_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
	"github.com/podfabric/podfabric/ipam/lease"
)

//lab:boot pfs=2 vfs=7 mode=exclusive rdmasim=all memory=3072 seconds=1800 bin=./e2e/guest/fakeipam

func init() { node.Main() }

func TestMain(m *testing.M) { cni.Main(m) }

// patient is a deadline that no verb reaches, however many are at work: the emulated machine's speed is not under test.
const patient = 5 * time.Minute

// deadline sets that of the node until the test ends.
func deadline(t *testing.T, d time.Duration) {
	t.Helper()
	const file = "/etc/podfabric/node.json"
	old, err := os.ReadFile(file)
	must(t, err)
	must(t, os.WriteFile(file, fmt.Appendf(nil, `{"version":1,"deadline":%q}`, d), 0o600))
	t.Cleanup(func() { must(t, os.WriteFile(file, old, 0o600)) })
}

// await waits for what must come. Unlike node.Wait it may be called from any goroutine.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patient); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Errorf("still not after %v: %s", patient, what)
			return
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// vfs are all VFs of the machine.
func vfs(t *testing.T) []string {
	t.Helper()
	all := append(node.VFs(t, node.PF(t, 1)), node.VFs(t, node.PF(t, 2))...)
	if len(all) != 14 {
		t.Fatalf("the machine has the VFs %v, this test wants 14", all)
	}
	return all
}

// pod is a network namespace as a runtime makes it, called as its container. Nothing else holds it.
type pod struct{ *node.NS }

// newPod may be called from any goroutine.
func newPod(t *testing.T, id string) pod {
	t.Helper()
	p := pod{&node.NS{Name: id, Path: filepath.Join("/run/netns", id)}}
	err := errors.Join(os.MkdirAll("/run/netns", 0o755), os.WriteFile(p.Path, nil, 0o600))
	if err == nil {
		made := make(chan error)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
			failed := unix.Unshare(unix.CLONE_NEWNET)
			if failed == nil {
				failed = unix.Mount(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()), p.Path, "", unix.MS_BIND, "")
			}
			made <- failed
		}()
		err = <-made
	}
	if err != nil {
		t.Errorf("make pod %s: %v", id, err)
	}
	return p
}

// end takes the namespace away; the kernel sends home what is in it.
func (p pod) end(t *testing.T) {
	t.Helper()
	if err := errors.Join(unix.Unmount(p.Path, unix.MNT_DETACH), os.Remove(p.Path)); err != nil {
		t.Errorf("end pod %s: %v", p.Name, err)
	}
}

// Sections of ipam.
const (
	ranged    = `{"type":"range","subnet":"10.1.0.0/22","scope":"node"}`
	delegated = `{"type":"fakeipam"}`
)

// ofVF is a network of a VF with its RDMA device. It does not wait for the carrier: an emulated VF whose mailbox was too slow once has
// none until it is reset.
func ofVF(vf, ipam string) string {
	return fmt.Sprintf(`{"cniVersion":"1.1.0","name":"crowd","type":"podfabric","deviceID":%q,"ipam":%s,"rdma":{"require":"gid","wait":"2m"}}`, vf, ipam)
}

// onPF is a network of a macvlan on the first NIC. In exclusive mode it has no RDMA device.
func onPF(t *testing.T, ipam string) string {
	t.Helper()
	return fmt.Sprintf(`{"cniVersion":"1.1.0","name":"crowd","type":"podfabric","link":"macvlan","master":%q,"ipam":%s,"rdma":{"mode":"off"}}`,
		node.Netdev(node.PF(t, 1)), ipam)
}

// call is one attachment as a runtime names it.
type call struct {
	conf, id, netns string
	uid             string // of the pod; empty: not told
}

// podUID makes a UID as Kubernetes writes it of anything.
func podUID(of string) string {
	h := sha256.Sum256([]byte(of))
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// hint is the folder of its pod's hint.
func (c call) hint() string { return filepath.Join(cni.StateDir, "pods", cmp.Or(c.uid, c.id)) }

// process is a verb at work.
type process struct {
	cmd            *exec.Cmd
	what           string
	stdout, stderr bytes.Buffer
}

// start begins a verb.
func (c call) start(t *testing.T, verb string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(filepath.Join(node.Bin, "podfabric")), what: verb + " of " + c.id}
	args := "IgnoreUnknown=1;K8S_POD_NAMESPACE=tests;K8S_POD_NAME=" + c.id
	if c.uid != "" {
		args += ";K8S_POD_UID=" + c.uid
	}
	p.cmd.Env = append(os.Environ(), "CNI_COMMAND="+verb, "CNI_CONTAINERID="+c.id, "CNI_IFNAME=net1", "CNI_NETNS="+c.netns,
		"CNI_PATH="+node.Bin, "CNI_ARGS="+args)
	p.cmd.Stdin = strings.NewReader(c.conf)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Errorf("%s: %v", p.what, err)
	}
	return p
}

// wait waits for the end of the verb and gives its failure, nil when there is none.
func (p *process) wait(t *testing.T) *cni.Failure {
	t.Helper()
	if p.cmd.Process == nil {
		return &cni.Failure{Msg: "not started"}
	}
	err := p.cmd.Wait()
	if err == nil {
		return nil
	}
	var failure cni.Failure
	if jsonErr := json.Unmarshal(p.stdout.Bytes(), &failure); jsonErr != nil {
		t.Errorf("%s ended with %v and printed no CNI error: %q\n%s", p.what, err, p.stdout.Bytes(), p.stderr.Bytes())
		return &cni.Failure{Msg: err.Error()}
	}
	if strings.Contains(failure.Text(), "no such file or directory") {
		t.Errorf("%s: Multus would take this failure as done: %s", p.what, failure.Text())
	}
	return &failure
}

// ok calls a verb, wants it to succeed, and tells whether it has.
func (c call) ok(t *testing.T, verb string) bool {
	t.Helper()
	p := c.start(t, verb)
	f := p.wait(t)
	if f != nil {
		t.Errorf("%s: code %d: %s\n%s", p.what, f.Code, f.Text(), p.stderr.Bytes())
	}
	return f == nil
}

// is wants the verb to have failed with a code and with texts in its answer.
func (p *process) is(t *testing.T, f *cni.Failure, code uint, texts ...string) {
	t.Helper()
	if f == nil {
		t.Errorf("%s succeeded, wanted code %d", p.what, code)
		return
	}
	if f.Code != code {
		t.Errorf("%s: code %d, wanted %d: %s\n%s", p.what, f.Code, code, f.Text(), p.stderr.Bytes())
	}
	for _, text := range texts {
		if !strings.Contains(f.Text(), text) {
			t.Errorf("%s: %s\nwanted %q in it\n%s", p.what, f.Text(), text, p.stderr.Bytes())
		}
	}
}

// refused calls a verb and wants it to fail with code 11, after which a runtime tries again.
func (c call) refused(t *testing.T, verb string, texts ...string) {
	t.Helper()
	p := c.start(t, verb)
	p.is(t, p.wait(t), 11, texts...)
}

// nothingLeft wants what attachments leave on disk to be gone: locks, records, claims, addresses of both kinds, hints.
func nothingLeft(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{
		cni.StateDir + "/locks/*", cni.StateDir + "/attachments/*", cni.StateDir + "/claims/*", cni.StateDir + "/pods/*",
		cni.StateDir + "/fragments/*", "/var/lib/fakeipam/*", "/run/netns/*",
	} {
		left, err := filepath.Glob(pattern)
		must(t, err)
		for _, file := range left {
			text, _ := os.ReadFile(file)
			t.Errorf("left behind: %s: %s", file, text)
		}
	}
	leases, errs := lease.Store{Dir: cni.StateDir + "/leases"}.List()
	for _, l := range leases {
		t.Errorf("left behind: address %s, leased to %s", l.Addr, l.Owner)
	}
	must(t, errors.Join(errs...))
}
