// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/plugin/statedir/proctest"
)

// TestClaimThatCannotBeRead: it may be the owner's, so that nobody says that there is none, or that it was taken back. The disk is
// strace's, which answers EIO for each link in the claims' folder.
func TestClaimThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	o := owner("a")
	proctest.Run(t, "add", dir, o.ContainerID, dev2)
	look := proctest.Command(t, "lost", dir, o.ContainerID)
	cmd := exec.CommandContext(t.Context(), "strace", "-f", "-qq", "-o", filepath.Join(t.TempDir(), "trace"),
		"-P", filepath.Join(dir, "claims"), "-e", "trace=readlinkat", "-e", "inject=readlinkat:error=EIO", "--", look.Path)
	cmd.Env = look.Env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if dev, err := s.ClaimedBy(o); err != nil || dev != device(dev2) {
		t.Errorf("the claim in the end: %v, %v", dev, err)
	}
	if r, err := s.Load(o); err != nil || r.State != record.Done {
		t.Errorf("the record in the end: %v, %v", r.State, err)
	}
}
