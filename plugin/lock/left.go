// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/podfabric/podfabric/plugin/statedir"
)

// Left lists the files of locks that nobody holds and that were last written before that moment: their holders were killed. They
// are in nobody's way, since the kernel has let go of the locks, but stay.
func (d *Dir) Left(before time.Time) ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", d.path, err)
	}
	var left []string
	for _, e := range entries {
		stat, err := e.Info()
		if err != nil || !stat.Mode().IsRegular() || !stat.ModTime().Before(before) {
			continue
		}
		path := filepath.Join(d.path, e.Name())
		if file, locked := try(path); locked {
			left = append(left, path)
			_ = file.Unlock()
		}
	}
	return left, nil
}

// Clear removes a file that Left listed, unless somebody holds its lock by now.
func (d *Dir) Clear(path string) error {
	file, locked := try(path)
	if !locked {
		return nil
	}
	defer func() { _ = file.Unlock() }()
	if !current(file) {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return statedir.Explain(d.path, path, err)
	}
	return nil
}

// try takes the lock of a file that is there, if it is free.
func try(path string) (*flock.Flock, bool) {
	file := flock.New(path, flock.SetFlag(os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_CLOEXEC|syscall.O_NONBLOCK))
	locked, err := file.TryLock()
	if err != nil || !locked {
		_ = file.Close()
		return nil, false
	}
	return file, true
}
