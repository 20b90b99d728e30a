// SPDX-License-Identifier: Apache-2.0

package hint_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/hint"
)

// node is a store with a kubelet that has one pod.
type node struct {
	store  *hint.Store
	volume string // folder of the pod's emptyDir
}

// locks is what plugin/lock gives the store, within one process.
type locks struct {
	mu   sync.Mutex
	held map[string]bool
}

var errHeld = errors.New("held by somebody")

func (l *locks) acquire(_ context.Context, name, _ string) (func(), error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[name] {
		return nil, errHeld
	}
	l.held[name] = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.held, name)
	}, nil
}

func newNode(t *testing.T, volumes ...string) node {
	t.Helper()
	dir := t.TempDir()
	l := &locks{held: map[string]bool{}}
	n := node{store: &hint.Store{
		Root: filepath.Join(dir, "run"), KubeletRoot: filepath.Join(dir, "kubelet"), Lock: l.acquire,
	}}
	for _, v := range volumes {
		n.volume = filepath.Join(n.store.KubeletRoot, "pods", uid, "volumes", "kubernetes.io~empty-dir", v)
		if err := os.MkdirAll(n.volume, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// put adds a part and demands that nothing but the decision's own words comes back.
func (n node) put(t *testing.T, f hint.Fragment) []string {
	t.Helper()
	warnings, err := n.store.Put(t.Context(), f.Pod.UID, f)
	if err != nil {
		t.Fatal(err)
	}
	return warnings
}

func (n node) drop(t *testing.T, f hint.Fragment) {
	t.Helper()
	if err := n.store.Drop(t.Context(), f.Pod.UID, f.Owner); err != nil {
		t.Fatal(err)
	}
}

func (n node) host(t *testing.T, name string) []byte {
	t.Helper()
	return read(t, filepath.Join(n.store.Root, "pods", uid, name))
}

func (n node) pod(t *testing.T, name string) string {
	t.Helper()
	return string(read(t, filepath.Join(n.volume, name)))
}

// tree lists everything under the store's root with its mode.
func (n node) tree(t *testing.T) []string {
	t.Helper()
	list := []string{}
	err := filepath.WalkDir(n.store.Root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == n.store.Root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		list = append(list, info.Mode().String()+" "+strings.TrimPrefix(path, n.store.Root+"/"))
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return list
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestPutAndDrop(t *testing.T) {
	t.Parallel()
	n := newNode(t, "podfabric")
	one, two := attachment(1, "10.1.0.5/24"), attachment(2, "10.2.0.5/24")
	n.put(t, one)
	first := n.pod(t, "nccl.conf")
	n.put(t, two)
	want := []string{
		"drwx------ fragments",
		"drwx------ fragments/" + uid,
		"drwx------ fragments/" + uid + "/c1",
		"-rw------- fragments/" + uid + "/c1/net1.json",
		"-rw------- fragments/" + uid + "/c1/net2.json",
		"drwxr-xr-x pods",
		"drwxr-xr-x pods/" + uid,
		"-rw-r--r-- pods/" + uid + "/fabric.json",
		"-rw-r--r-- pods/" + uid + "/nccl.conf",
	}
	if diff := cmp.Diff(want, n.tree(t)); diff != "" {
		t.Errorf("on disk (-want +got):\n%s", diff)
	}
	if !strings.Contains(n.pod(t, "nccl.conf"), "\nNCCL_IB_HCA==mlx5_1:1,mlx5_2:1\n") {
		t.Errorf("the pod does not see both rails:\n%s", n.pod(t, "nccl.conf"))
	}
	for _, name := range []string{"nccl.conf", "fabric.json"} {
		if diff := cmp.Diff(string(n.host(t, name)), n.pod(t, name)); diff != "" {
			t.Errorf("%s on the host and in the pod differ:\n%s", name, diff)
		}
		info, err := os.Stat(filepath.Join(n.volume, name))
		if err != nil || info.Mode() != 0o644 {
			t.Errorf("%s in the pod: %v %v, want 0644", name, info.Mode(), err)
		}
	}

	n.drop(t, two)
	if diff := cmp.Diff(first, n.pod(t, "nccl.conf")); diff != "" {
		t.Errorf("after the second rail went (-before +after):\n%s", diff)
	}
	n.drop(t, two) // twice is once
	n.drop(t, one)
	if diff := cmp.Diff([]string{"drwx------ fragments", "drwxr-xr-x pods"}, n.tree(t)); diff != "" {
		t.Errorf("after the last rail went (-want +got):\n%s", diff)
	}
	if left, err := os.ReadDir(n.volume); err != nil || len(left) != 0 {
		t.Errorf("after the last rail went the pod's volume holds %v, %v", left, err)
	}
	n.drop(t, one)
}

// The same attachment put again replaces its part.
func TestPutReplaces(t *testing.T) {
	t.Parallel()
	n := newNode(t, "podfabric")
	n.put(t, attachment(1, "2001:db8::5/64"))
	n.put(t, attachment(1, "10.1.0.5/24"))
	if text := n.pod(t, "nccl.conf"); strings.Contains(text, "AF_INET6") {
		t.Errorf("the old part is still there:\n%s", text)
	}
}

// A DEL of the old sandbox that comes after the ADD of the new one changes nothing.
func TestLateDelOfAnOldSandbox(t *testing.T) {
	t.Parallel()
	n := newNode(t, "podfabric")
	old := attachment(1, "10.1.0.5/24")
	old2 := attachment(2, "10.2.0.5/24")
	n.put(t, old)
	n.put(t, old2)
	fresh := attachment(1, "10.1.0.6/24")
	fresh.Owner.ContainerID = "c2"
	n.put(t, fresh)
	if text := n.pod(t, "nccl.conf"); strings.Contains(text, "mlx5_2") {
		t.Errorf("a rail of the old sandbox is in the hint:\n%s", text)
	}
	before := n.tree(t)
	ours := filepath.Join(n.volume, "nccl.conf")
	if err := os.WriteFile(ours, []byte("untouched"), 0o644); err != nil {
		t.Fatal(err)
	}
	n.drop(t, old)
	n.drop(t, old2)
	if diff := cmp.Diff(before, n.tree(t)); diff != "" {
		t.Errorf("on disk (-before +after):\n%s", diff)
	}
	if text := n.pod(t, "nccl.conf"); text != "untouched" {
		t.Errorf("the late DEL has rendered:\n%s", text)
	}
}

func TestWithoutUID(t *testing.T) {
	t.Parallel()
	n := newNode(t, "podfabric")
	f := attachment(1, "10.1.0.5/24")
	f.Pod.UID = ""
	n.put(t, f)
	if _, err := os.Stat(filepath.Join(n.store.Root, "pods", sandbox, "nccl.conf")); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(n.volume); err != nil || len(entries) > 0 {
		t.Errorf("in the volume: %v, %v", entries, err)
	}
	if err := n.store.Drop(t.Context(), sandbox, f.Owner); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"drwx------ fragments", "drwxr-xr-x pods"}, n.tree(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDropWhatNeverWas(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.drop(t, attachment(1))
	if got := n.tree(t); len(got) > 0 {
		t.Errorf("made %v", got)
	}
}

func TestLockHeld(t *testing.T) {
	t.Parallel()
	n := newNode(t, "podfabric")
	f := attachment(1, "10.1.0.5/24")
	n.put(t, f)
	release, err := n.store.Lock(t.Context(), "hint-"+uid, "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.store.Put(t.Context(), uid, f); !errors.Is(err, errHeld) {
		t.Errorf("Put: %v", err)
	}
	if err := n.store.Drop(t.Context(), uid, f.Owner); !errors.Is(err, errHeld) {
		t.Errorf("Drop: %v", err)
	}
	dead := func(attach.Owner) bool { return false }
	if err := n.store.Prune(t.Context(), dead); err != nil {
		t.Errorf("Prune: %v", err)
	}
	n.host(t, "nccl.conf") // a pod at work is left alone
	release()
	if err := n.store.Prune(t.Context(), dead); err != nil {
		t.Errorf("Prune: %v", err)
	}
	if diff := cmp.Diff([]string{"drwx------ fragments", "drwxr-xr-x pods"}, n.tree(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	dead := func(attach.Owner) bool { return false }
	if err := n.store.Prune(t.Context(), dead); err != nil {
		t.Errorf("before there is anything: %v", err)
	}
	gone := attachment(1, "10.1.0.5/24")
	gone.Pod.UID, gone.Owner.ContainerID = "dead", "c9"
	n.put(t, gone)
	lives := attachment(1, "10.1.0.5/24")
	n.put(t, lives)
	n.put(t, attachment(2, "10.2.0.5/24"))
	if err := os.MkdirAll(filepath.Join(n.store.Root, "pods", "left-over"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := n.store.Prune(t.Context(), func(o attach.Owner) bool { return o == lives.Owner }); err != nil {
		t.Fatal(err)
	}
	for _, line := range n.tree(t) {
		if strings.Contains(line, "dead") || strings.Contains(line, "left-over") {
			t.Errorf("still there: %s", line)
		}
	}
	if !slices.ContainsFunc(n.tree(t), func(s string) bool { return strings.HasSuffix(s, "c1/net2.json") }) {
		t.Error("a part of a living pod is gone")
	}
}

// A writer killed between its temporary file and the rename keeps no pod from being cleared.
func TestKilledWriter(t *testing.T) {
	t.Parallel()
	n := newNode(t, "podfabric")
	f := attachment(1, "10.1.0.5/24")
	n.put(t, f)
	for _, dir := range []string{"fragments/" + uid + "/c1/.podfabric-net1.json", "pods/" + uid + "/.podfabric-nccl.conf"} {
		if err := os.WriteFile(filepath.Join(n.store.Root, dir), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n.put(t, f)
	if err := os.WriteFile(filepath.Join(n.store.Root, "fragments", uid, sandbox, ".podfabric-net9.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n.drop(t, f)
	if diff := cmp.Diff([]string{"drwx------ fragments", "drwxr-xr-x pods"}, n.tree(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
