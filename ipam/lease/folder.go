// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/podfabric/podfabric/ipam"
)

// folder is the store's folder, opened.
type folder struct{ root *os.Root }

// The folders beside the leases of a subnet. No address is called so.
const (
	freedName  = "freed"
	cursorName = "cursor"
)

// restMax is how many addresses at rest a subnet remembers beyond ipam.Rest, so that an IPv6 /64 does not remember all it
// ever gave.
const restMax = 1024

func open(dir string) (folder, error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		if stat, statErr := os.Stat(dir); statErr != nil || !stat.IsDir() {
			return folder{}, unwritable(dir, err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return folder{}, unwritable(dir, err)
	}
	return folder{root}, nil
}

// look opens a folder that may not be there; then the error is fs.ErrNotExist.
func look(dir string) (folder, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return folder{}, fs.ErrNotExist
	}
	if err != nil {
		return folder{}, unwritable(dir, err)
	}
	return folder{root}, nil
}

func (f folder) close() { _ = f.root.Close() }

// unwritable wraps ErrUnwritable and says what to do. The text of ENOENT is left out: callers of a CNI plugin take it as
// "already gone".
func unwritable(path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("write %s: make the folder %s, it is missing: %w", path, filepath.Dir(path), ErrUnwritable)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("write %s: free space or inodes on its file system: %w: %w", path, ErrUnwritable, errnoOf(err))
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("write %s: mount its file system read-write: %w: %w", path, ErrUnwritable, errnoOf(err))
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("write %s: remove the file that stands where a folder must be: %w: %w", path, ErrUnwritable, errnoOf(err))
	}
	return fmt.Errorf("write %s: %w: %w", path, ErrUnwritable, errnoOf(err))
}

// errnoOf cuts the operation and path that os puts around an errno.
func errnoOf(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}

func (f folder) path(name string) string { return filepath.Join(f.root.Name(), name) }

// lease makes the lease; the error wraps fs.ErrExist when the address has one.
func (f folder) lease(l Lease) error {
	pool := poolName(l.Subnet)
	if err := f.mkdir(pool); err != nil {
		return err
	}
	name := filepath.Join(pool, addrName(l.Addr))
	err := f.root.Symlink(l.Owner, name)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("lease %s: %w", l.Addr, fs.ErrExist)
	}
	return unwritable(f.path(name), err)
}

// free puts the address to rest, then drops the lease. A crash between the two leaves a lease whose address is also
// remembered as freed; the lease counts.
func (f folder) free(l Lease, now time.Time) error {
	pool := poolName(l.Subnet)
	err := f.replace(filepath.Join(pool, freedName), addrName(l.Addr), now.UTC().Format(time.RFC3339Nano))
	return errors.Join(unlessFull(err), f.drop(l), f.prune(l.Subnet, now))
}

// unlessFull forgives a full disk where what could not be written only makes the next choice a less good one: it must not
// keep an address from being given or freed.
func unlessFull(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return nil
	}
	return err
}

// drop removes the lease; one that is gone is dropped.
func (f folder) drop(l Lease) error {
	return f.remove(filepath.Join(poolName(l.Subnet), addrName(l.Addr)))
}

// wake ends the rest of an address.
func (f folder) wake(l Lease) error {
	return f.remove(filepath.Join(poolName(l.Subnet), freedName, addrName(l.Addr)))
}

func (f folder) remove(name string) error {
	if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unwritable(f.path(name), err)
	}
	return nil
}

func (f folder) mkdir(name string) error {
	if err := f.root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return unwritable(f.path(name), err)
	}
	return nil
}

// replace makes or replaces a link. The temporary name is the same for all: whoever finds one left by a crash removes it,
// and the lock keeps two from meeting there.
func (f folder) replace(dir, name, target string) error {
	if err := f.mkdir(dir); err != nil {
		return err
	}
	temporary, final := filepath.Join(dir, ".new"), filepath.Join(dir, name)
	if err := f.remove(temporary); err != nil {
		return err
	}
	if err := f.root.Symlink(target, temporary); err != nil {
		return unwritable(f.path(temporary), err)
	}
	return unwritable(f.path(final), f.root.Rename(temporary, final))
}

func (f folder) setCursor(r ipam.Range, addr netip.Addr) error {
	return unlessFull(f.replace(filepath.Join(poolName(r.Subnet), cursorName), cursorFile(r), addr.String()))
}

// cursor gives the address last given from r, or the zero address. What cannot be read as one is none: the worst that
// follows is a start at a random place.
func (f folder) cursor(r ipam.Range) (netip.Addr, error) {
	name := filepath.Join(poolName(r.Subnet), cursorName, cursorFile(r))
	target, err := f.root.Readlink(name)
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.EINVAL): // EINVAL: not a link
		return netip.Addr{}, nil
	default:
		return netip.Addr{}, fmt.Errorf("read %s: %w", f.path(name), errnoOf(err))
	}
	addr, err := netip.ParseAddr(target)
	if err != nil || !r.Subnet.Contains(addr) {
		return netip.Addr{}, nil //nolint:nilerr // see above
	}
	return addr, nil
}

// cursorFile names a range within its subnet by where it begins.
func cursorFile(r ipam.Range) string {
	if r.First.IsValid() {
		return addrName(r.First)
	}
	return addrName(r.Subnet.Addr())
}

// freed gives the addresses at rest. What is none is passed over.
func (f folder) freed(subnet netip.Prefix) (map[netip.Addr]time.Time, error) {
	dir := filepath.Join(poolName(subnet), freedName)
	names, err := f.names(dir)
	if err != nil {
		return nil, err
	}
	freed := map[netip.Addr]time.Time{}
	for _, name := range names {
		target, err := f.root.Readlink(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		if addr, since, ok := parseFreed(subnet, name, target); ok {
			freed[addr] = since
		}
	}
	return freed, nil
}

// prune forgets the longest-freed addresses beyond restMax.
func (f folder) prune(subnet netip.Prefix, now time.Time) error {
	freed, err := f.freed(subnet)
	if err != nil || len(freed) <= restMax {
		return err
	}
	old := make([]netip.Addr, 0, len(freed))
	for addr, since := range freed {
		if now.Sub(since) >= ipam.Rest {
			old = append(old, addr)
		}
	}
	slices.SortFunc(old, func(a, b netip.Addr) int { return freed[a].Compare(freed[b]) })
	for _, addr := range old[:min(len(old), len(freed)-restMax)] {
		if err := f.wake(Lease{Subnet: subnet, Addr: addr}); err != nil {
			return err
		}
	}
	return nil
}
