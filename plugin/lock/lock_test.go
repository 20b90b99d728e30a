// SPDX-License-Identifier: Apache-2.0

package lock_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podfabric/podfabric/plugin/lock"
	"github.com/podfabric/podfabric/plugin/statedir/proctest"
)

func TestMain(m *testing.M) {
	os.Exit(proctest.Main(m, map[string]func([]string) error{
		"hold": func(args []string) error {
			if _, err := lock.New(args[0]).Acquire(context.Background(), args[1], "ADD team-a/pod-0 (container 4c8e)"); err != nil {
				return err
			}
			fmt.Println("held")
			_, err := io.Copy(io.Discard, os.Stdin) // until the test kills us
			return err
		},
		"tide": tide,
		"count": func(args []string) error {
			for range 50 {
				if err := count(lock.New(args[0]), args[1]); err != nil {
					return err
				}
			}
			return nil
		},
	}))
}

// count adds a byte to a file in two steps that only a lock keeps together.
func count(d *lock.Dir, file string) error {
	release, err := d.Acquire(context.Background(), "counter", "a counter")
	if err != nil {
		return err
	}
	defer release()
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, 'x'), 0o600)
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestExclusion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "counter")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	locks := filepath.Join(dir, "locks")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { proctest.Run(t, "count", locks, file) })
	}
	for range 64 {
		wg.Go(func() {
			if err := count(lock.New(locks), file); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	text, err := os.ReadFile(file)
	if err != nil || len(text) != 4*50+64 {
		t.Errorf("%d increments survived, want 264; %v", len(text), err)
	}
	if left, err := os.ReadDir(locks); err != nil || len(left) != 0 {
		t.Errorf("released locks left files: %v, %v", left, err)
	}
}

// TestHeld: another process holds the lock; the error names it, and its death ends the lock.
func TestHeld(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "locks")
	const name = "device 0000:3b:00.2"
	cmd := proctest.Command(t, "hold", dir, name)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
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
	_, err = lock.New(dir).Acquire(soon(t), name, "DEL")
	var held *lock.HeldError
	want := fmt.Sprintf("ADD team-a/pod-0 (container 4c8e), pid %d", cmd.Process.Pid)
	if !errors.Is(err, lock.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &held) || held.Holder != want {
		t.Errorf("got %v, want it to name %s", err, want)
	}
	if !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), want) {
		t.Errorf("text %q", err)
	}
	release, err := lock.New(dir).Acquire(t.Context(), "device 0000:3b:00.3", "another device")
	if err != nil {
		t.Errorf("a lock of another name: %v", err)
	} else {
		release()
	}
	if err = cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // says "killed"
	release, err = lock.New(dir).Acquire(t.Context(), name, "DEL")
	if err != nil {
		t.Fatalf("after the holder died: %v", err)
	}
	release()
	release()
	if _, err := lock.New(dir).Acquire(t.Context(), name, "DEL"); err != nil {
		t.Errorf("after two releases: %v", err)
	}
}

// TestReleaseTwice: the second release of one holder must not take the lock from the next.
func TestReleaseTwice(t *testing.T) {
	t.Parallel()
	d := lock.New(filepath.Join(t.TempDir(), "locks"))
	first, err := d.Acquire(t.Context(), "a", "first")
	if err != nil {
		t.Fatal(err)
	}
	first()
	second, err := d.Acquire(t.Context(), "a", "second")
	if err != nil {
		t.Fatal(err)
	}
	first()
	if _, err := d.Acquire(soon(t), "a", "third"); !errors.Is(err, lock.ErrHeld) || !strings.Contains(err.Error(), "second") {
		t.Errorf("third got %v", err)
	}
	second()
}

func TestEndedContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := lock.New(filepath.Join(t.TempDir(), "locks")).Acquire(ctx, "a", "x")
	if !errors.Is(err, context.Canceled) || errors.Is(err, lock.ErrHeld) {
		t.Errorf("nobody holds it: %v", err)
	}
}

// TestWaitersLeaveNothing: who gave up waiting leaves no goroutine and no descriptor.
func TestWaitersLeaveNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "locks")
	release, err := lock.New(dir).Acquire(t.Context(), "a", "x")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	before, files := runtime.NumGoroutine(), open(t)
	for range 3 {
		if _, err := lock.New(dir).Acquire(soon(t), "a", "y"); !errors.Is(err, lock.ErrHeld) {
			t.Error(err)
		}
	}
	// A context that ended may still be telling its children, for a moment.
	after := runtime.NumGoroutine()
	for deadline := time.Now().Add(5 * time.Second); after > before && time.Now().Before(deadline); after = runtime.NumGoroutine() {
		runtime.Gosched()
	}
	if after > before {
		t.Errorf("%d goroutines, %d before", after, before)
	}
	if now := open(t); now > files {
		t.Errorf("%d descriptors, %d before", now, files)
	}
}

// TestLongWaitersLeaveNothing: who waits longer than a moment waits in the kernel, also when it has given up. When the holder lets go
// nothing is left of them, and they keep nobody from the lock.
func TestLongWaitersLeaveNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "locks")
	d := lock.New(dir)
	before, files := runtime.NumGoroutine(), open(t)
	release, err := d.Acquire(t.Context(), "a", "x")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var waiters sync.WaitGroup
	for range 5 {
		waiters.Go(func() {
			_, gaveUp := d.Acquire(ctx, "a", "y")
			if !errors.Is(gaveUp, lock.ErrHeld) || !errors.Is(gaveUp, context.DeadlineExceeded) {
				t.Error(gaveUp)
			}
		})
	}
	waiters.Wait()
	release()
	if release, err = d.Acquire(t.Context(), "a", "z"); err != nil {
		t.Fatal(err)
	}
	release()
	left := func() bool {
		names, err := os.ReadDir(dir)
		return err != nil || len(names) > 0 || runtime.NumGoroutine() > before || open(t) > files
	}
	for deadline := time.Now().Add(10 * time.Second); left(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before; %d descriptors, %d before", runtime.NumGoroutine(), before, open(t), files)
		}
	}
}

func open(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestNames: whatever the name, its file lies in the folder, and different names do not meet.
func TestNames(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "locks")
	long := strings.Repeat("x", 300)
	names := []string{
		"", ".", "..", "a", "A", "../a", "/a", "a/b", "a%2Fb", "a\x00b", "attachment 4c8e/net1", ".hidden", "ü",
		long, long + "y", "+empty", strings.Repeat("/", 300), "device 0000:3b:00.2",
	}
	d := lock.New(dir)
	for _, name := range names {
		release, err := d.Acquire(t.Context(), name, "x")
		if err != nil {
			t.Fatalf("%.20q: %v", name, err)
		}
		defer release()
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != len(names) {
		t.Errorf("%d files of %d names; %v", len(files), len(names), err)
	}
}

func TestBadFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "locks"), filepath.Join(dir, "no", "state", "locks")} {
		_, err := lock.New(path).Acquire(t.Context(), "a", "x")
		if !errors.Is(err, lock.ErrUnwritable) || !strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "no such file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestFirstAfterBoot: the state folder is made on the way, for all to look into, the locks in it for root alone.
func TestFirstAfterBoot(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "podfabric")
	release, err := lock.New(filepath.Join(dir, "locks")).Acquire(t.Context(), "a", "x")
	if err != nil {
		t.Fatal(err)
	}
	release()
	for path, want := range map[string]os.FileMode{dir: 0o755, filepath.Join(dir, "locks"): 0o700} {
		if stat, err := os.Stat(path); err != nil || stat.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, stat.Mode(), err, want)
		}
	}
}

// TestPlantedLink: a symbolic link in a lock's place is not followed.
func TestPlantedLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if _, err := lock.New(dir).Acquire(soon(t), "a", "x"); !errors.Is(err, lock.ErrUnwritable) {
		t.Errorf("got %v", err)
	}
	if text, err := os.ReadFile(victim); string(text) != "precious" {
		t.Errorf("victim holds %q, %v", text, err)
	}
}

// TestFileRemovedByHand: whoever removes the file of a held lock lets the next one in beside its holder. That holder's release must
// not go on from there, and take the file of the next.
func TestFileRemovedByHand(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "locks")
	d := lock.New(dir)
	first, err := d.Acquire(t.Context(), "a", "first")
	if err != nil {
		t.Fatal(err)
	}
	if err = os.Remove(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	second, err := d.Acquire(t.Context(), "a", "second")
	if err != nil {
		t.Fatal(err)
	}
	first()
	if _, err := d.Acquire(soon(t), "a", "third"); !errors.Is(err, lock.ErrHeld) || !strings.Contains(err.Error(), "second") {
		t.Errorf("third got %v", err)
	}
	second()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("released locks left files: %v, %v", left, err)
	}
}

// TestFileOfTheDead: a file that its holder could not remove says nothing, even if it names a process that lives: its number may have
// been given again. The kernel knows who holds a lock.
func TestFileOfTheDead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, pid := range []int{os.Getpid(), os.Getppid(), 1} {
		if err := os.WriteFile(filepath.Join(dir, "a"), fmt.Appendf(nil, "ADD cid/net1, pid %d", pid), 0o600); err != nil {
			t.Fatal(err)
		}
		release, err := lock.New(dir).Acquire(soon(t), "a", "x")
		if err != nil {
			t.Fatal(err)
		}
		release()
	}
}
