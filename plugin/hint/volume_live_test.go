// SPDX-License-Identifier: Apache-2.0

package hint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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
