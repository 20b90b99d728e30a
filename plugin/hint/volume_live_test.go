// SPDX-License-Identifier: Apache-2.0

package hint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/plugin/hint/outsidetest"
)

// mountNS gives this test's thread a mount namespace of its own, which ends with the test, and has the node look into it from
// every thread. It needs root.
func (n *node) mountNS(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // never unlocked: the thread ends with the test, and the mounts with it
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		t.Fatalf("make a mount namespace, which needs root: %v", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	n.store.KubeletRoot = fmt.Sprintf("/proc/%d/task/%d/root%s", os.Getpid(), unix.Gettid(), n.store.KubeletRoot)
}

// mount mounts something for this test's thread alone.
func (n *node) mount(t *testing.T, source, target, kind string, flags uintptr, data string) {
	t.Helper()
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		t.Fatalf("mount %s: %v", target, err)
	}
	t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) })
}

// A full volume costs the pod its hint and nothing else.
func TestFullVolume(t *testing.T) {
	t.Parallel()
	n := newNode(t, "podfabric")
	n.mountNS(t)
	n.mount(t, "tmpfs", n.volume, "tmpfs", 0, "size=4k,nr_inodes=16")
	if err := os.WriteFile(filepath.Join(n.volume, "filler"), make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	warnings := n.put(t, attachment(1, "10.1.0.5/24"))
	if len(warnings) != 1 || !strings.Contains(warnings[0], unix.ENOSPC.Error()) {
		t.Errorf("warnings: %q", warnings)
	}
	entries, err := os.ReadDir(n.volume)
	if err != nil || len(entries) != 1 {
		t.Errorf("left in the volume: %v, %v", entries, err)
	}
	strict := attachment(1, "10.1.0.5/24")
	strict.Settings.Require = true
	_, err = n.store.Put(t.Context(), uid, strict)
	undelivered(t, err, false)
}

// TestHostileVolumeItself: of volumes that are not as kubelet makes them.
func TestHostileVolumeItself(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		do      func(t *testing.T, n *node)
		arrives bool
	}{
		"without permissions": {func(t *testing.T, n *node) { t.Helper(); must(t, os.Chmod(n.volume, 0)) }, true},
		"sticky, another user's, with a group for new files": {func(t *testing.T, n *node) {
			t.Helper()
			must(t, os.Chmod(n.volume, 0o777|os.ModeSticky|os.ModeSetgid))
			must(t, os.Chown(n.volume, 1000, 2000))
		}, true},
		"immutable": {func(t *testing.T, n *node) { t.Helper(); pin(t, n.volume) }, false},
		"read-only": {func(t *testing.T, n *node) {
			t.Helper()
			n.mountNS(t)
			n.mount(t, n.volume, n.volume, "", unix.MS_BIND, "")
			n.mount(t, "", n.volume, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
		}, false},
		"another file system": {func(t *testing.T, n *node) {
			t.Helper()
			n.mountNS(t)
			n.mount(t, "tmpfs", n.volume, "tmpfs", 0, "size=1m")
		}, true},
		"without inodes": {func(t *testing.T, n *node) {
			t.Helper()
			n.mountNS(t)
			n.mount(t, "tmpfs", n.volume, "tmpfs", 0, "nr_inodes=1")
		}, false},
		"with a file mounted in it, in a container's namespace": {func(t *testing.T, n *node) {
			t.Helper()
			n.mountNS(t)
			must(t, os.WriteFile(filepath.Join(n.volume, "nccl.conf"), nil, 0o644))
			n.mount(t, filepath.Join(filepath.Dir(n.store.Root), "outside/file"), filepath.Join(n.volume, "nccl.conf"), "", unix.MS_BIND, "")
		}, true},
		"with a folder mounted in it, in a container's namespace": {func(t *testing.T, n *node) {
			t.Helper()
			n.mountNS(t)
			must(t, os.Mkdir(filepath.Join(n.volume, ".podfabric-nccl.conf"), 0o755))
			n.mount(t, filepath.Join(filepath.Dir(n.store.Root), "outside/folder"), filepath.Join(n.volume, ".podfabric-nccl.conf"), "", unix.MS_BIND, "")
		}, true},
		"a file system that does not answer": {func(t *testing.T, n *node) {
			t.Helper()
			n.mountNS(t)
			n.mountSilent(t, n.volume)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, "podfabric")
			o := outsidetest.New(t, filepath.Dir(n.store.Root))
			host := n.store.Root
			test.do(t, &n)
			o.Look(t)
			begun := time.Now()
			warnings := n.put(t, attachment(1, "10.1.0.5/24"))
			if (len(warnings) == 0) != test.arrives {
				t.Errorf("warnings %q", warnings)
			}
			strict := attachment(1, "10.1.0.5/24")
			strict.Settings.Require = true
			_, err := n.store.Put(t.Context(), uid, strict)
			undelivered(t, err, test.arrives)
			if test.arrives && err != nil {
				t.Errorf("with hint.require: %v", err)
			}
			n.drop(t, attachment(1))
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			if left, _ := os.ReadDir(filepath.Join(host, "pods")); len(left) > 0 {
				t.Errorf("the node keeps %v", left)
			}
			o.Unchanged(t)
		})
	}
}

// mountSilent mounts a file system whose server never answers (fuse(4)).
func (n *node) mountSilent(t *testing.T, at string) {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) }) // before the unmount, which would ask the server; whoever waits gets ENOTCONN
	n.mount(t, "silent", at, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40755,user_id=0,group_id=0", fd))
}
