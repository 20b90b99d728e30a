// SPDX-License-Identifier: Apache-2.0

package hint_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A full volume costs the pod its hint and nothing else. It needs root, for a small tmpfs in a mount namespace of this
// thread's own.
func TestFullVolume(t *testing.T) {
	t.Parallel()
	n := newNode(t, "podfabric")
	runtime.LockOSThread() // never unlocked: the thread ends with the test, and the mount with it
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		t.Fatalf("make a mount namespace, which needs root: %v", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", n.volume, "tmpfs", 0, "size=4k,nr_inodes=16"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(n.volume, unix.MNT_DETACH) })
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
