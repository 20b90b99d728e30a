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

// What is no file of ours is refused and not waited for: this test would hang.
func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside")
	for _, err := range []error{
		os.WriteFile(filepath.Join(dir, "good"), []byte("12345678"), 0o600),
		os.WriteFile(filepath.Join(dir, "large"), []byte("123456789"), 0o600),
		os.WriteFile(outside, []byte("out"), 0o600),
		syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600),
		os.Mkdir(filepath.Join(dir, "folder"), 0o700),
		os.Symlink("good", filepath.Join(dir, "link")),
		os.Symlink(outside, filepath.Join(dir, "out")),
		os.Symlink("fifo", filepath.Join(dir, "to fifo")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if text, err := statedir.Read(root, "good", 8); err != nil || string(text) != "12345678" {
		t.Errorf("good: %q, %v", text, err)
	}
	for _, name := range []string{"large", "fifo", "folder", "link", "out", "to fifo"} {
		if text, err := statedir.Read(root, name, 8); !errors.Is(err, statedir.ErrKind) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if _, err := statedir.Read(root, "none", 8); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
}
