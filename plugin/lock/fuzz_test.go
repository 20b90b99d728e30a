// SPDX-License-Identifier: Apache-2.0

package lock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/podfabric/podfabric/plugin/lock"
)

// FuzzHolder: of any name is made one file in the folder, held once; whatever stands in the file, who waits is told in time, in a
// text of limited length.
func FuzzHolder(f *testing.F) {
	for _, name := range []string{"", ".", "..", "../../x", "a/b", "\x00", "\x1b[2J", "device 0000:3b:00.2", strings.Repeat("\u202e", 200), "%2F", "+empty"} {
		for _, text := range []string{"", "ADD a/b, pid 7", "\x1b]0;x\a\n\u202e", "\xff\xfe", strings.Repeat("x", 5000)} {
			f.Add(name, []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		base := t.TempDir()
		d := lock.New(filepath.Join(base, "locks"))
		release, err := d.Acquire(t.Context(), name, "first")
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		files, err := os.ReadDir(filepath.Join(base, "locks"))
		if err != nil || len(files) != 1 || !files[0].Type().IsRegular() {
			t.Fatalf("%q made %v, %v", name, files, err)
		}
		if above, aboveErr := os.ReadDir(base); aboveErr != nil || len(above) != 1 {
			t.Errorf("%q made %v beside the folder", name, above)
		}
		// Not by rename: the lock is on the file.
		if err = os.WriteFile(filepath.Join(base, "locks", files[0].Name()), text, 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err = d.Acquire(ctx, name, "second")
		var held *lock.HeldError
		if errors.As(err, &held) && (len(held.Holder) > 4*512 || !utf8.ValidString(held.Holder)) {
			t.Errorf("holder %q", held.Holder)
		}
		if err == nil || strings.Contains(err.Error(), syscall.ENOENT.Error()) {
			t.Errorf("the second one got %v", err)
		}
		release()
		if left, err := os.ReadDir(filepath.Join(base, "locks")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
}
