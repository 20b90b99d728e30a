// SPDX-License-Identifier: Apache-2.0

package record

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/podfabric/podfabric/plugin/statedir"
)

const (
	// roomBytes is what the files of an ADD need, each a page or two.
	roomBytes = 64 << 10
	// roomFiles is their number, with the folders that they are in.
	roomFiles = 16
	// readOnly is ST_RDONLY of statvfs(3).
	readOnly = 1
)

// Room tells whether the file system of the state folder can take what an ADD writes. Unlike Probe it writes nothing; where the folder is
// not there yet it says nothing. Its error wraps ErrUnwritable.
func (s *Store) Room() error {
	root, err := s.read()
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	closeRoot(root)
	var fs syscall.Statfs_t
	if err = syscall.Statfs(s.dir, &fs); err != nil {
		return fmt.Errorf("look at the file system of %s: %w", s.dir, err)
	}
	// A file system without a limit tells of no blocks or no files at all. What is kept back for root (Bavail leaves it out) is ours to use.
	full := fs.Blocks > 0 && fs.Bfree*uint64(fs.Bsize) < roomBytes || fs.Files > 0 && fs.Ffree < roomFiles
	switch {
	case fs.Flags&readOnly != 0:
		return statedir.Explain(s.dir, s.dir, syscall.EROFS)
	case full:
		return statedir.Explain(s.dir, s.dir, syscall.ENOSPC)
	}
	return nil
}
