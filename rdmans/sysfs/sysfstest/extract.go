// SPDX-License-Identifier: Apache-2.0

// Package sysfstest makes trees of files for tests out of txtar archives. Such an archive holds no symbolic links, of which
// sysfs mostly consists; the archive's file "symlinks" lists them, one "name -> target" a line.
package sysfstest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// Extract unpacks an archive into a folder of the test's own and returns the folder.
func Extract(t testing.TB, archive string) string {
	t.Helper()
	a, err := txtar.ParseFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range a.Files {
		if f.Name == "symlinks" {
			continue
		}
		write(t, filepath.Join(dir, f.Name), f.Data)
	}
	for _, f := range a.Files {
		if f.Name != "symlinks" {
			continue
		}
		for line := range strings.Lines(string(f.Data)) {
			name, target, ok := strings.Cut(strings.TrimSpace(line), " -> ")
			if !ok {
				continue
			}
			link := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(target, link); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// write makes a file and the folders above it.
func write(t testing.TB, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
