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
	"strings"
	"syscall"
)

// leases reads every lease of every subnet.
func (f folder) leases() ([]Lease, []error) {
	pools, err := f.names(".")
	if err != nil {
		return nil, []error{err}
	}
	var leases []Lease
	var errs []error
	for _, pool := range pools {
		subnet, err := parsePool(pool)
		if err != nil {
			errs = append(errs, fmt.Errorf("read %s: %w", f.path(pool), err))
			continue
		}
		names, err := f.names(pool)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, name := range names {
			if name == freedName || name == cursorName {
				continue
			}
			switch l, err := f.read(subnet, pool, name); {
			case err == nil:
				leases = append(leases, l)
			case !errors.Is(err, fs.ErrNotExist): // else released while we read
				errs = append(errs, err)
			}
		}
	}
	return leases, errs
}

func (f folder) read(subnet netip.Prefix, pool, name string) (Lease, error) {
	path := filepath.Join(pool, name)
	owner, err := f.root.Readlink(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Lease{}, fs.ErrNotExist
	case errors.Is(err, syscall.EINVAL):
		return Lease{}, fmt.Errorf("read %s: not a symbolic link: %w", f.path(path), ErrForeign)
	case err != nil:
		return Lease{}, fmt.Errorf("read %s: %w", f.path(path), errnoOf(err))
	}
	l, err := parseLease(subnet, name, owner)
	if err != nil {
		return Lease{}, fmt.Errorf("read %s: %w", f.path(path), err)
	}
	stat, err := f.root.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Lease{}, fs.ErrNotExist
	}
	if err != nil {
		return Lease{}, fmt.Errorf("read %s: %w", f.path(path), errnoOf(err))
	}
	l.Since = stat.ModTime()
	return l, nil
}

// names lists a folder, sorted; one that is not there has none.
func (f folder) names(dir string) ([]string, error) {
	d, err := f.root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0) // not waiting for the other end of a fifo
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("read %s: not a folder: %w", f.path(dir), ErrForeign)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.path(dir), errnoOf(err))
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.path(dir), errnoOf(err))
	}
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, ".") }), nil
}
