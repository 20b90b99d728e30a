// SPDX-License-Identifier: Apache-2.0

package proctest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/statedir/proctest"
)

func TestMain(m *testing.M) {
	os.Exit(proctest.Main(m, map[string]func([]string) error{
		"echo":    func(args []string) error { _, err := fmt.Print(args); return err },
		"changes": changes,
		"steps": func(args []string) error {
			for _, name := range args {
				proctest.Step()
				if err := os.Mkdir(name, 0o700); err != nil {
					return err
				}
			}
			return nil
		},
	}))
}

// changes makes seven changes of seven kinds.
func changes(args []string) error {
	if err := os.Chdir(args[0]); err != nil {
		return err
	}
	for _, do := range []func() error{
		func() error { return os.Mkdir("folder", 0o700) },
		func() error { return os.WriteFile("file", []byte("more than eight bytes"), 0o600) },
		func() error { return os.Chmod("file", 0o640) },
		func() error { return os.Symlink("file", "link") },
		func() error { return os.Rename("file", "renamed") },
		func() error { return os.Remove("renamed") },
	} {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

func TestRun(t *testing.T) {
	t.Parallel()
	if got := proctest.Run(t, "echo", "a b", ""); got != "[a b ]" {
		t.Errorf("got %q", got)
	}
}

// TestCut: the n-th change is the first that is not made.
func TestCut(t *testing.T) {
	t.Parallel()
	for i, want := range []struct {
		call string
		left []string
	}{
		{"mkdirat", nil},
		{"openat", []string{"folder"}},
		{"write", []string{"file of 0 bytes", "folder"}},
		{"fchmod", []string{"file of 21 bytes", "folder"}},
		{"symlinkat", []string{"file of 21 bytes", "folder"}},
		{"renameat", []string{"file of 21 bytes", "folder", "link"}},
		{"unlinkat", []string{"folder", "link", "renamed of 21 bytes"}},
		{"", []string{"folder", "link"}},
	} {
		dir := t.TempDir()
		call := proctest.Cut(t, i+1, "changes", dir)
		var left []string
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			name := filepath.Base(file)
			if stat, err := os.Lstat(file); err == nil && stat.Mode().IsRegular() {
				name = fmt.Sprintf("%s of %d bytes", name, stat.Size())
			}
			left = append(left, name)
		}
		if call != want.call || !cmp.Equal(left, want.left) {
			t.Errorf("cut %d: before %q with %v, want before %q with %v", i+1, call, left, want.call, want.left)
		}
	}
}

// TestWatch: what a step changes is seen before it is done, and with the number of the step.
func TestWatch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var seen []string
	proctest.Watch(t, func(call string, steps int) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Error(err)
		}
		seen = append(seen, fmt.Sprintf("%s in step %d with %d folders", call, steps, len(entries)))
	}, "steps", filepath.Join(dir, "a"), filepath.Join(dir, "b"))
	want := []string{"mkdirat in step 1 with 0 folders", "mkdirat in step 2 with 1 folders"}
	if !cmp.Equal(seen, want) {
		t.Errorf("saw %q, want %q", seen, want)
	}
}
