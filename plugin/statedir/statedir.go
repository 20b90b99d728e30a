// SPDX-License-Identifier: Apache-2.0

// Package statedir makes and writes the folders below /run/podfabric for the packages that keep something there. It turns
// what can go wrong with a disk into one error that names the path and what to do. It knows nothing of what is kept.
package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"
)

// ErrUnwritable is wrapped by every error that a person mends by mending the state folder or its file system.
var ErrUnwritable = errors.New("the state folder cannot be written")

// UnwritableError is ErrUnwritable with what a message needs.
type UnwritableError struct {
	Path   string // of the file or folder that could not be made, written or removed
	Remedy string // imperative clause: "free space on the file system of /run/podfabric"
	Err    error  // the errno; nil where its text would read as "already gone" to Multus
}

// Error gives path, remedy and errno.
func (e *UnwritableError) Error() string {
	text := fmt.Sprintf("write %s: %s", e.Path, e.Remedy)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap gives ErrUnwritable and the errno.
func (e *UnwritableError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrUnwritable}
	}
	return []error{ErrUnwritable, e.Err}
}

// Explain turns the error of a change of path, which lies in the state folder dir, into one that says what to do. It never
// holds the text of ENOENT. A nil error stays nil.
func Explain(dir, path string, err error) error {
	if err == nil {
		return nil
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return &UnwritableError{Path: path, Remedy: "look at what stands there", Err: err}
	}
	e := &UnwritableError{Path: path, Err: errno}
	switch errno {
	case syscall.ENOENT:
		e.Remedy, e.Err = "make the folder "+filepath.Dir(path)+", it is missing", nil
	case syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.ENOTEMPTY:
		e.Remedy = "remove what stands there, it is of the wrong kind"
	case syscall.EROFS:
		e.Remedy = "mount the file system of " + dir + " read-write"
	case syscall.EACCES, syscall.EPERM:
		e.Remedy = "run as root and let root write " + dir
	case syscall.ENOSPC, syscall.EDQUOT:
		e.Remedy = "free space or inodes on the file system of " + dir
	case syscall.EMFILE, syscall.ENFILE:
		e.Remedy = "raise the limit of open files"
	case syscall.ENAMETOOLONG:
		e.Remedy = "use a shorter name"
	default:
		e.Remedy = "look at the file system of " + dir
	}
	return e
}

// Open opens dir, and makes it when it is missing; its parent must exist, since a /run that is not there is a node that is
// not what we think it is. perm holds for a new folder whatever the umask.
func Open(dir string, perm fs.FileMode) (*os.Root, error) {
	err := os.Mkdir(dir, perm)
	if err == nil {
		err = os.Chmod(dir, perm)
	} else if stat, statErr := os.Stat(dir); statErr == nil && stat.IsDir() {
		err = nil // a read-only file system answers EROFS for a folder that is there, and one that is there can be read
	} else if statErr == nil {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, Explain(dir, dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, Explain(dir, dir, err)
	}
	return root, nil
}

// Make makes the folder name below root with mode 0700, and is content when it exists. A symbolic link in its place is
// refused: nothing of ours is one.
func Make(root *os.Root, name string) error {
	path := filepath.Join(root.Name(), name)
	err := root.Mkdir(name, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return Explain(root.Name(), path, err)
	}
	stat, err := root.Lstat(name)
	if err != nil {
		return Explain(root.Name(), path, err)
	}
	if !stat.IsDir() {
		return Explain(root.Name(), path, syscall.ENOTDIR)
	}
	return nil
}

// Write replaces the file name below root by data with mode 0600, by way of a temporary file in the same folder, so that
// a reader or a crash sees the old file or the new one.
func Write(root *os.Root, name string, data []byte) error {
	path := filepath.Join(root.Name(), name)
	folder, err := root.OpenRoot(filepath.Dir(name))
	if err != nil {
		return Explain(root.Name(), path, err)
	}
	defer folder.Close()
	file, err := renameio.NewPendingFile(filepath.Base(name), renameio.WithRoot(folder), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return Explain(root.Name(), path, err)
	}
	defer file.Cleanup() //nolint:errcheck // after success there is nothing to clean, after a failure that is the error
	if _, err := file.Write(data); err != nil {
		return Explain(root.Name(), path, err)
	}
	return Explain(root.Name(), path, file.CloseAtomicallyReplace())
}

// IsTemporary tells whether a crash of Write may have left a file of this name behind for the file target; both are names
// in one folder.
func IsTemporary(name, target string) bool {
	number, ok := strings.CutPrefix(name, "."+target)
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}
