// SPDX-License-Identifier: Apache-2.0

package outsidetest_test

import (
	"errors"
	"os"
	"testing"

	"github.com/podfabric/podfabric/plugin/hint/outsidetest"
)

// TestOutsideNotices: each way to touch the tree is seen. Without it the tests below would prove nothing.
func TestOutsideNotices(t *testing.T) {
	t.Parallel()
	for name, touch := range map[string]func(o *outsidetest.Tree) error{
		"read":   func(o *outsidetest.Tree) error { _, err := os.ReadFile(o.File("file")); return err },
		"list":   func(o *outsidetest.Tree) error { _, err := os.ReadDir(o.File("folder")); return err },
		"write":  func(o *outsidetest.Tree) error { return os.WriteFile(o.File("file"), []byte("x"), 0) },
		"chmod":  func(o *outsidetest.Tree) error { return os.Chmod(o.File("file"), 0o600) },
		"make":   func(o *outsidetest.Tree) error { return os.WriteFile(o.File("folder/new"), nil, 0o600) },
		"remove": func(o *outsidetest.Tree) error { return os.Remove(o.File("folder/nccl.conf")) },
		"link":   func(o *outsidetest.Tree) error { return os.Link(o.File("file"), o.File("../link")) },
		"rename": func(o *outsidetest.Tree) error { return os.Rename(o.File("file"), o.File("secret")) },
		"make and remove": func(o *outsidetest.Tree) error {
			return errors.Join(os.Mkdir(o.File("folder/new"), 0o700), os.Remove(o.File("folder/new")))
		},
	} {
		o := outsidetest.New(t, t.TempDir())
		o.Look(t)
		if !o.Same(t) {
			t.Fatal("a look changes the tree")
		}
		if err := touch(o); err != nil {
			t.Fatal(err)
		}
		if o.Same(t) {
			t.Errorf("%s goes unnoticed", name)
		}
	}
}
