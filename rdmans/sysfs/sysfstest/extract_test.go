// SPDX-License-Identifier: Apache-2.0

package sysfstest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/podfabric/podfabric/rdmans/sysfs/sysfstest"
)

func TestExtract(t *testing.T) {
	t.Parallel()
	archive := filepath.Join(t.TempDir(), "tree.txtar")
	text := "About it.\n-- symlinks --\nclass/a -> ../devices/a\n-- devices/a/name --\nalpha\n"
	if err := os.WriteFile(archive, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(sysfstest.Extract(t, archive), "class/a/name"))
	if err != nil || string(got) != "alpha\n" {
		t.Errorf("through the link: %q, %v", got, err)
	}
}
