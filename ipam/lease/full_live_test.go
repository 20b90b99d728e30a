// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/podfabric/podfabric/ipam/lease"
	"github.com/podfabric/podfabric/plugin/statedir/proctest"
)

// TestFull needs root for a tmpfs of its own: one without inodes left, then a read-only one.
func TestFull(t *testing.T) {
	proctest.RunInMounts(t, "full", t.TempDir())
}

func full(args []string) error {
	if err := syscall.Mount("tmpfs", args[0], "tmpfs", 0, "size=64k,nr_inodes=12"); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	dir := filepath.Join(args[0], "leases")
	s := lease.Store{Dir: dir, Lock: func(context.Context, string) (func(), error) { return func() {}, nil }}
	ctx := context.Background()
	if _, err := s.Allocate(ctx, sets("10.1.0.0/24"), "a", nil); err != nil {
		return fmt.Errorf("with room: %w", err)
	}
	for i := 0; ; i++ {
		if os.WriteFile(filepath.Join(args[0], fmt.Sprint("filler", i)), nil, 0o600) != nil {
			break
		}
	}
	if _, err := s.Allocate(ctx, sets("10.2.0.0/24", "10.1.0.0/24"), "b", nil); !errors.Is(err, lease.ErrUnwritable) || !strings.Contains(err.Error(), "free space") {
		return fmt.Errorf("allocate on a full disk: %w", err)
	}
	if err := s.Release(ctx, "a"); err != nil {
		return fmt.Errorf("release on a full disk: %w", err)
	}
	if leases, errs := s.List(); len(leases) != 0 || len(errs) != 0 {
		return fmt.Errorf("after release: %v %v", leases, errs)
	}
	if _, err := s.Allocate(ctx, sets("10.1.0.0/24"), "c", nil); err != nil {
		return fmt.Errorf("after release: %w", err)
	}
	if err := syscall.Mount("", args[0], "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("remount: %w", err)
	}
	if err := s.Release(ctx, "c"); !errors.Is(err, lease.ErrUnwritable) || !strings.Contains(err.Error(), "read-write") {
		return fmt.Errorf("release on a read-only disk: %w", err)
	}
	if err := s.Release(ctx, "nobody"); err != nil {
		return fmt.Errorf("release of nothing on a read-only disk: %w", err)
	}
	return nil
}
