// SPDX-License-Identifier: Apache-2.0

package statedir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// ErrKind is wrapped by Read when what stands at a name is no regular file, or one too large to be ours.
var ErrKind = errors.New("not a regular file of sensible size")

// Read reads a regular file below root of at most most bytes. It waits for nothing: a fifo in the file's place would have no
// end. A symbolic link in the last place is refused, since nothing of ours is one; for a missing file the error wraps
// fs.ErrNotExist.
func Read(root *os.Root, name string, most int64) ([]byte, error) {
	named, err := root.Lstat(name)
	if err == nil && !named.Mode().IsRegular() {
		err = fmt.Errorf("%s is of kind %s: %w", name, named.Mode().Type(), ErrKind)
	}
	if err != nil {
		return nil, err
	}
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err //nolint:wrapcheck // names the file
	}
	defer file.Close()
	// Between the two looks another may have been put there.
	opened, err := file.Stat()
	if err != nil || !os.SameFile(named, opened) {
		return nil, fmt.Errorf("%s changed while it was opened: %w", name, errors.Join(ErrKind, err))
	}
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, err //nolint:wrapcheck // names the file
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s is larger than %d bytes: %w", name, most, ErrKind)
	}
	return data, nil
}
