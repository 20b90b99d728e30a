// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/podfabric/podfabric/plugin/statedir"
)

// A disk that is full or read-only has no room for the file of a lock, and yet a device must come home. Then the folder itself is
// the lock, of everything that has no file: one process holds it at a time, for as many names as it needs. Whoever locks a file
// looks whether another process holds the folder, and lets go of the file if so: it may hold the same name. Both orders of two who
// need both, a file and the folder, meet at the deadline; that is the price, and it is paid only on a full disk.

// common is the folder's lock as this process holds it. The zero value is free.
type common struct {
	mu     sync.Mutex
	folder *flock.Flock // nil: not held
	names  map[string]bool
}

// roomless tells whether an error means that no file can be made.
func roomless(err error) bool {
	return errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func (d *Dir) folder() *flock.Flock {
	return flock.New(d.path, flock.SetFlag(os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC))
}

// acquireCommon takes the folder's lock for a name that has no file. release is nil when there is a file after all.
func (d *Dir) acquireCommon(ctx context.Context, name, path string) (release func(), err error) { //nolint:nonamedreturns // as Acquire
	for begin := time.Now(); ; {
		release, again, err := d.tryCommon(name, path)
		if err != nil || !again {
			return release, err
		}
		if pause(ctx, begin) != nil {
			return nil, &HeldError{Lock: name, Holder: "a process for which the disk had no room to write its name", Err: ctx.Err()}
		}
	}
}

// tryCommon is one try; again says that somebody holds the folder, or this process the name.
func (d *Dir) tryCommon(name, path string) (release func(), again bool, err error) { //nolint:nonamedreturns // as Acquire
	d.common.mu.Lock()
	defer d.common.mu.Unlock()
	if d.common.names[name] {
		return nil, true, nil
	}
	folder := d.common.folder
	if folder == nil {
		folder = d.folder()
		locked, err := folder.TryLock()
		if err != nil {
			return nil, false, fmt.Errorf("take lock %s: %w", name, statedir.Explain(d.path, d.path, err))
		}
		if !locked {
			return nil, true, nil
		}
	}
	// One who made the file before we had the folder has the name.
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		if d.common.folder == nil {
			_ = folder.Unlock()
		}
		return nil, false, nil
	}
	if d.common.folder == nil {
		d.common.folder, d.common.names = folder, map[string]bool{}
	}
	d.common.names[name] = true
	return sync.OnceFunc(func() { d.releaseCommon(name) }), false, nil
}

func (d *Dir) releaseCommon(name string) {
	d.common.mu.Lock()
	defer d.common.mu.Unlock()
	delete(d.common.names, name)
	if len(d.common.names) == 0 {
		_ = d.common.folder.Unlock()
		d.common.folder = nil
	}
}

// commonHeld tells whether another process holds the folder, or this one holds the name by it.
func (d *Dir) commonHeld(name string) (bool, error) {
	d.common.mu.Lock()
	defer d.common.mu.Unlock()
	if d.common.folder != nil {
		return d.common.names[name], nil
	}
	folder := d.folder()
	free, err := folder.TryRLock()
	if err != nil {
		return false, statedir.Explain(d.path, d.path, err)
	}
	_ = folder.Unlock()
	return !free, nil
}
