// SPDX-License-Identifier: Apache-2.0

package lock_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/plugin/lock"
	"github.com/podfabric/podfabric/plugin/statedir/proctest"
)

// small mounts a file system of few inodes on a folder, for this thread and the processes that it starts; it needs root.
func small(t *testing.T) string {
	t.Helper()
	runtime.LockOSThread() // never unlocked: the thread ends with the test, and the mount with it
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		t.Fatalf("make a mount namespace, which needs root: %v", err)
	}
	dir := t.TempDir()
	if err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k,nr_inodes=12")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	if err := os.Mkdir(filepath.Join(dir, "locks"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// crowded fills a folder's file system with empty files.
func crowded(dir string) error {
	for n := 0; ; n++ {
		f, err := os.Create(fmt.Sprintf("%s/filler%d", dir, n))
		if errors.Is(err, unix.ENOSPC) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
}

// tide fills the file system and makes room again, until the file stop is gone.
func tide(args []string) error {
	for {
		if _, err := os.Stat(args[1]); errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err := crowded(args[0]); err != nil {
			return err
		}
		runtime.Gosched()
		for n := range 3 {
			_ = os.Remove(fmt.Sprintf("%s/filler%d", args[0], n))
		}
	}
}

// counted lets processes count under one lock.
func counted(t *testing.T, locks, when string) {
	t.Helper()
	const processes = 4
	file := filepath.Join(t.TempDir(), "counter")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var running []func() error
	for range processes {
		cmd := proctest.Command(t, "count", locks, file)
		var said strings.Builder
		cmd.Stderr = &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, sync.OnceValue(func() error {
			if err := cmd.Wait(); err != nil {
				return fmt.Errorf("%w: %s", err, said.String())
			}
			return nil
		}))
	}
	for _, wait := range running {
		if err := wait(); err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || len(text) != processes*50 {
		t.Errorf("%s: %d increments survived, want %d; %v", when, len(text), processes*50, err)
	}
}

// TestNoRoom: a disk without room for a lock's file, now and then or always, or read-only, is no reason to be without the lock.
func TestNoRoom(t *testing.T) {
	t.Parallel()
	dir := small(t)
	locks := filepath.Join(dir, "locks")
	if err := crowded(dir); err != nil {
		t.Fatal(err)
	}
	counted(t, locks, "full")

	stop := filepath.Join(t.TempDir(), "stop")
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := proctest.Command(t, "tide", dir, stop)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	counted(t, locks, "full now and then")
	if err := errors.Join(os.Remove(stop), cmd.Wait(), crowded(dir)); err != nil {
		t.Fatal(err)
	}

	const left = "left"
	if err := errors.Join(os.Remove(filepath.Join(dir, "filler0")), os.WriteFile(filepath.Join(locks, left), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	counted(t, locks, "read-only")
	for _, name := range []string{"a", left} {
		others(t, locks, name)
	}
}

// others wants a lock that another process has to be held, and others of this process to be free.
func others(t *testing.T, locks, name string) {
	t.Helper()
	cmd := proctest.Command(t, "hold", locks, name)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, readErr := bufio.NewReader(stdout).ReadString('\n'); readErr != nil {
		t.Fatal(line, readErr)
	}
	if _, err = lock.New(locks).Acquire(soon(t), name, "DEL"); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("%s: %v, wanted it to be held", name, err)
	}
	if err = errors.Join(stdin.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	d := lock.New(locks)
	var releases []func()
	for _, n := range []string{name, "b", "c"} {
		release, acquireErr := d.Acquire(t.Context(), n, "DEL")
		if acquireErr != nil {
			t.Fatalf("%s: %v", n, acquireErr)
		}
		releases = append(releases, release)
	}
	if _, err = d.Acquire(soon(t), name, "DEL"); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("%s of one's own: %v, wanted it to be held", name, err)
	}
	for _, release := range releases {
		release()
	}
	release, err := lock.New(locks).Acquire(t.Context(), name, "DEL")
	if err != nil {
		t.Fatal(err)
	}
	release()
}
