// SPDX-License-Identifier: Apache-2.0

package statedir_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/podfabric/podfabric/plugin/statedir"
)

// TestExplain: every errno leads to a remedy, the errno stays known, and ENOENT's words do not get out.
func TestExplain(t *testing.T) {
	t.Parallel()
	for errno, remedy := range map[syscall.Errno]string{
		syscall.ENOENT: "make the folder /run/podfabric/x", syscall.ENOTDIR: "wrong kind", syscall.EROFS: "read-write",
		syscall.EACCES: "run as root", syscall.ENOSPC: "free space", syscall.EMFILE: "open files",
		syscall.ENAMETOOLONG: "shorter", syscall.EIO: "look at the file system",
	} {
		err := statedir.Explain("/run/podfabric", "/run/podfabric/x/y", &fs.PathError{Op: "openat", Path: "y", Err: errno})
		if !errors.Is(err, statedir.ErrUnwritable) || !strings.Contains(err.Error(), remedy) || !strings.Contains(err.Error(), "/run/podfabric/x/y") {
			t.Errorf("%v: %v", errno, err)
		}
		if got := errors.Is(err, errno); got != (errno != syscall.ENOENT) {
			t.Errorf("%v: errors.Is says %v", errno, got)
		}
		if strings.Contains(err.Error(), "no such file") {
			t.Errorf("text %q", err)
		}
	}
	if err := statedir.Explain("/a", "/a/b", nil); err != nil {
		t.Errorf("no error became %v", err)
	}
	if err := statedir.Explain("/a", "/a/b", errors.New("path escapes from parent")); !errors.Is(err, statedir.ErrUnwritable) {
		t.Errorf("an error of package os: %v", err)
	}
}

func TestOpenAndWrite(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	for range 2 {
		root, err := statedir.Open(dir, 0o777) // wider than any umask leaves
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		if stat, err := os.Stat(dir); err != nil || stat.Mode().Perm() != 0o777 {
			t.Errorf("mode %v, %v", stat.Mode(), err)
		}
		for range 2 {
			if err := statedir.Make(root, "a"); err != nil {
				t.Fatal(err)
			}
		}
		for _, text := range []string{"one", "two"} {
			if err := statedir.Write(root, "a/b", []byte(text)); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(dir, "a/b")); err != nil || string(got) != text {
				t.Errorf("read %q, %v", got, err)
			}
		}
	}
	root, err := statedir.Open(dir, 0o777)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for what, err := range map[string]error{
		"make over a file":      statedir.Make(root, "a/b"),
		"make without parent":   statedir.Make(root, "x/y"),
		"make outside":          statedir.Make(root, "../out"),
		"write without folder":  statedir.Write(root, "x/y", nil),
		"write below a file":    statedir.Write(root, "a/b/c", nil),
		"write outside":         statedir.Write(root, "../out", nil),
		"write over the folder": statedir.Write(root, "a", nil),
	} {
		if !errors.Is(err, statedir.ErrUnwritable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestIsTemporary(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		".net1.json8674665223082153551": true, ".net1.json": false, "net1.json1": false, ".net1.json1x": false, ".net10.json1": false,
	} {
		if got := statedir.IsTemporary(name, "net1.json"); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
