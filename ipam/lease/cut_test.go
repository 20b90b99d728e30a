// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"path/filepath"
	"testing"

	"github.com/podfabric/podfabric/plugin/statedir/proctest"
)

// cutMax is more changes than any call makes.
const cutMax = 60

// TestCut kills Allocate and Release before each of their changes of the file system. Afterwards a release by the owner's
// key leaves nothing, and until then nobody else gets what may still be the owner's.
func TestCut(t *testing.T) {
	t.Parallel()
	pools := []string{"10.1.0.0/29", "fd00:1::/64"}
	for _, name := range []string{"allocate", "release"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				dir := filepath.Join(t.TempDir(), "leases")
				s := store(dir)
				mustAllocate(t, s, "other", pools...)
				args := append([]string{dir, "victim"}, pools...)
				if name == "release" {
					mustAllocate(t, s, "victim", pools...)
					args = args[:2]
				}
				call := proctest.Cut(t, n, name, args...)
				if n > cutMax {
					t.Fatalf("still not at its end after %d changes", cutMax)
				}
				before := owned(t, s, "victim")
				for _, a := range mustAllocate(t, s, "third", pools...).Addrs {
					if before[a.Prefix.Addr()] {
						t.Errorf("cut before change %d (%s): %s was given twice", n, call, a.Prefix)
					}
				}
				if err := s.Release(t.Context(), "victim"); err != nil {
					t.Errorf("cut before change %d (%s): release: %v", n, call, err)
				}
				if left := owned(t, s, "victim"); len(left) != 0 {
					t.Errorf("cut before change %d (%s): still leased after release: %v", n, call, left)
				}
				if got := len(owned(t, s, "other")); got != 2 {
					t.Errorf("cut before change %d (%s): other has %d addresses, want 2", n, call, got)
				}
				if call == "" {
					if n < 3 {
						t.Errorf("only %d changes were seen, the test proves nothing", n-1)
					}
					t.Logf("%d changes", n-1)
					return
				}
			}
		})
	}
}
