// SPDX-License-Identifier: Apache-2.0

package sysfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// FS is one mount of sysfs. It is read through os.Root: links inside it are followed, and no name that a device or a
// configuration gives leads out of it.
type FS struct {
	root  *os.Root
	mount int // descriptor of a mount of its own; -1: none
}

// Open reads sysfs at a directory: "/sys", or a tree recorded from a machine.
func Open(dir string) (*FS, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, clean("open "+dir, err)
	}
	return &FS{root: root, mount: -1}, nil
}

// View mounts a sysfs that shows one network namespace, attached to no directory, and gone with Close. enter runs a function
// on a thread in that namespace. The view does not keep the namespace alive.
func View(enter func(func() error) error) (*FS, error) {
	mount := -1
	err := enter(func() error {
		fd, err := mountDetached()
		mount = fd
		return err
	})
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot("/proc/self/fd/" + strconv.Itoa(mount))
	if err != nil {
		return nil, errors.Join(clean("open a view of sysfs", err), unix.Close(mount))
	}
	return &FS{root: root, mount: mount}, nil
}

// mountDetached makes a sysfs mount for the namespace of the calling thread (fsopen(2), fsmount(2)).
func mountDetached() (int, error) {
	fsfd, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("open a new sysfs: %w", err)
	}
	mount := -1
	err = unix.FsconfigCreate(fsfd)
	if err == nil {
		mount, err = unix.Fsmount(fsfd, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_RDONLY)
	}
	err = errors.Join(err, unix.Close(fsfd))
	if err != nil {
		return -1, fmt.Errorf("mount a view of sysfs: %w", err)
	}
	return mount, nil
}

// Close lets go of the tree, and of the mount if it is a View's.
func (f *FS) Close() error {
	err := f.root.Close()
	if f.mount >= 0 {
		err = errors.Join(err, unix.Close(f.mount))
		f.mount = -1
	}
	if err != nil {
		return fmt.Errorf("close sysfs: %w", err)
	}
	return nil
}

// clean keeps the kernel's words for a missing file out of messages, since a caller of ours takes them for "already done".
// ENODEV is what an attribute gives whose device goes away during the read.
func clean(what string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOTDIR) {
		return fmt.Errorf("%s: %w", what, ErrNotExist)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// attrSize is the most that one attribute can hold (a page).
const attrSize = 4096

// read gives the text of an attribute without its final newline. It waits for nothing: in a tree that is no kernel's, a fifo
// may stand where an attribute is looked for.
func read(root *os.Root, name string) (string, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", clean("read "+name, err)
	}
	if stat, statErr := file.Stat(); statErr != nil || !stat.Mode().IsRegular() {
		return "", clean("read "+name, errors.Join(ErrSyntax, statErr, file.Close()))
	}
	text, err := io.ReadAll(io.LimitReader(file, attrSize))
	if err = errors.Join(err, file.Close()); err != nil {
		return "", clean("read "+name, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// readInt reads a decimal attribute.
func readInt(root *os.Root, name string) (int, error) {
	text, err := read(root, name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", name, err)
	}
	return n, nil
}

// enter opens a directory below root. It looks first: os.Root opens what stands there like a file, and the open of a fifo has
// no end.
func enter(root *os.Root, dir string) (*os.Root, error) {
	stat, err := root.Stat(dir)
	if err != nil {
		return nil, err //nolint:wrapcheck // callers say what it was to be
	}
	if !stat.IsDir() {
		return nil, unix.ENOTDIR
	}
	return root.OpenRoot(dir) //nolint:wrapcheck // as above
}

// listMax is more entries than any directory of sysfs that this package lists has: GID tables have up to some thousand.
const listMax = 1 << 17

// list gives the names in a directory, sorted; none when it does not exist.
func list(root *os.Root, dir string) ([]string, error) {
	file, err := root.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, clean("list "+dir, err)
	}
	names, err := file.Readdirnames(listMax)
	if errors.Is(err, io.EOF) {
		err = nil // it is empty
	}
	if err == nil && len(names) == listMax {
		err = fmt.Errorf("%d entries or more: %w", listMax, ErrSyntax)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, clean("list "+dir, err)
	}
	slices.Sort(names)
	return names, nil
}

// target gives the last element of a link's target, which in sysfs is the name of the thing linked to; empty when there is
// no such link.
func target(root *os.Root, name string) (string, error) {
	text, err := root.Readlink(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", clean("read link "+name, err)
	}
	return path.Base(text), nil
}
