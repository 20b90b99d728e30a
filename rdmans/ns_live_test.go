// SPDX-License-Identifier: Apache-2.0

package rdmans_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/containernetworking/plugins/pkg/ns"
	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/rdmans"
)

// The main thread stays where it is: a thread that was sent elsewhere and not brought back must not be the process's own.
func init() { runtime.LockOSThread() }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bound makes a network namespace that only a bind mount keeps alive, and gives the mount's folder and path.
func bound(t *testing.T) (string, string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes network namespaces: run it as root")
	}
	n, err := ns.TempNetNS()
	must(t, err)
	dir := t.TempDir()
	path := filepath.Join(dir, "pod")
	must(t, os.WriteFile(path, nil, 0o600))
	must(t, unix.Mount(fmt.Sprintf("/proc/self/fd/%d", n.Fd()), path, "", unix.MS_BIND, ""))
	t.Cleanup(func() {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			t.Error(err)
		}
	})
	must(t, n.Close())
	return dir, path
}

func TestOpenNS(t *testing.T) {
	t.Parallel()
	_, path := bound(t)
	n, err := rdmans.OpenNS(path)
	must(t, err)
	self, err := rdmans.Self()
	must(t, err)
	if n.ID() == self.ID() || n.ID().Ino == 0 {
		t.Errorf("identity %v, own %v", n.ID(), self.ID())
	}
	interfaces := func(n *rdmans.NS) int {
		count := 0
		must(t, n.Do(func() error {
			text, err := os.ReadFile("/proc/thread-self/net/dev")
			count = strings.Count(string(text), ":")
			return err
		}))
		return count
	}
	if got := interfaces(n); got != 1 {
		t.Errorf("a fresh namespace has %d interfaces, want lo", got)
	}
	if got := interfaces(self); got < 2 {
		t.Errorf("the own namespace has %d interfaces", got)
	}
	inner := errors.New("inner")
	if err := n.Do(func() error { return inner }); !errors.Is(err, inner) {
		t.Errorf("Do: %v", err)
	}
	must(t, n.Close())
	must(t, n.Close())
}

func TestOpenNSOfSomethingElse(t *testing.T) {
	t.Parallel()
	_, path := bound(t)
	must(t, unix.Unmount(path, unix.MNT_DETACH)) // leaves the plain file behind, as a dead runtime does
	fifo := filepath.Join(t.TempDir(), "fifo")
	must(t, unix.Mkfifo(fifo, 0o600))
	loop := filepath.Join(t.TempDir(), "loop")
	must(t, os.Symlink(loop, loop))
	long := "/" + strings.Repeat("a", 256)
	for _, path := range []string{path, fifo, "/run/netns/none", path + "/below", "/proc/self/ns/mnt", "/proc/0/ns/net", "/", loop, long} {
		n, err := rdmans.OpenNS(path)
		if !errors.Is(err, rdmans.ErrNoNamespace) || n != nil {
			t.Errorf("%s: %v, %v", path, n, err)
		}
		if err != nil && strings.Contains(err.Error(), "no such file or directory") {
			t.Errorf("%s: text that Multus takes for done: %v", path, err)
		}
	}
}

func TestScanFindsHolders(t *testing.T) {
	t.Parallel()
	dir, path := bound(t)
	n, err := rdmans.OpenNS(path)
	must(t, err)
	id := n.ID()
	find := func(deep bool) *rdmans.Namespace {
		all, scanErr := rdmans.Scan{Proc: "/proc", Run: dir, Deep: deep}.Namespaces(t.Context())
		must(t, scanErr)
		i := slices.IndexFunc(all, func(n rdmans.Namespace) bool { return n.ID == id })
		if i < 0 {
			return nil
		}
		return &all[i]
	}
	if got := find(false); got == nil || got.Name() != path || len(got.Holders) != 1 {
		t.Fatalf("by its mount: %+v", got)
	}
	var sleeper *exec.Cmd
	must(t, n.Do(func() error {
		sleeper = exec.CommandContext(t.Context(), "sleep", "60")
		return sleeper.Start()
	}))
	if got := find(false); got == nil || len(got.Holders) != 2 || got.Holders[1].PID != sleeper.Process.Pid {
		t.Errorf("with a process: %+v", got)
	}
	must(t, unix.Unmount(path, unix.MNT_DETACH))
	if alive, aliveErr := rdmans.Alive(path, id); alive || aliveErr != nil {
		t.Errorf("alive without its mount: %v, %v", alive, aliveErr)
	}
	got := find(false)
	if got == nil || got.Name() != id.String() {
		t.Fatalf("by its process alone: %+v", got)
	}
	again, err := got.Open()
	must(t, err)
	must(t, again.Close())
	must(t, sleeper.Process.Kill())
	_ = sleeper.Wait()
	if got := find(false); got != nil {
		t.Errorf("without mount and process: %+v", got)
	}
	if got := find(true); got == nil || !slices.ContainsFunc(got.Holders, func(h rdmans.Holder) bool { return h.PID == os.Getpid() }) {
		t.Errorf("by a descriptor: %+v, want this process", got)
	}
	must(t, n.Close())
	if got := find(true); got != nil {
		t.Errorf("after its death: %+v", got)
	}
}

func TestWithoutRDMA(t *testing.T) {
	t.Parallel()
	self, err := rdmans.Self()
	must(t, err)
	_, err = os.Stat("/sys/module/ib_core")
	want := rdmans.ErrNoRDMA
	if err == nil {
		want = nil
	}
	conn := rdmans.In(self)
	_, modeErr := conn.Mode()
	_, listErr := conn.Devices()
	for _, got := range []error{modeErr, listErr} {
		if !errors.Is(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// TestScanBehindLongMount: a mount with a line longer than any buffer, as an overlay of very many layers has, hides no mount
// behind it.
func TestScanBehindLongMount(t *testing.T) {
	t.Parallel()
	path, end, err := rdmans.Scratch()
	must(t, err)
	defer end()
	proc := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(proc, "self/ns"), 0o700))
	must(t, os.Symlink("/proc/self/ns/net", filepath.Join(proc, "self/ns/net")))
	table := "30 1 0:27 / /lower rw - overlay overlay rw,lowerdir=" + strings.Repeat("/layer:", 20_000) + "\n" +
		"31 1 0:4 net:[1] " + path + " rw - nsfs nsfs rw\n"
	must(t, os.WriteFile(filepath.Join(proc, "self/mountinfo"), []byte(table), 0o600))
	all, err := rdmans.Scan{Proc: proc}.Namespaces(t.Context())
	must(t, err)
	if len(all) != 1 || all[0].Name() != path {
		t.Errorf("found %+v, want %s", all, path)
	}
}

// TestCookie: a namespace has one cookie by whatever path it is opened, and no other has it.
func TestCookie(t *testing.T) {
	t.Parallel()
	cookies := map[uint64]bool{}
	_, first := bound(t)
	_, second := bound(t)
	for _, path := range []string{first, second, first, "/proc/self/ns/net"} {
		n, err := rdmans.OpenNS(path)
		must(t, err)
		cookies[n.Cookie()] = true
		must(t, n.Close())
	}
	self, err := rdmans.Self()
	must(t, err)
	cookies[self.Cookie()] = true
	if len(cookies) != 3 || cookies[0] {
		t.Errorf("cookies of three namespaces: %v", cookies)
	}
}
