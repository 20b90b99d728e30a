// SPDX-License-Identifier: Apache-2.0

// Package lock serialises processes of this node by flock(2) on files of one folder. The kernel lets go of a lock when its
// holder dies, and the file says who holds it. It does not say which locks there are, nor in which order they are taken:
// that is plugin's.
package lock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/podfabric/podfabric/plugin/statedir"
)

// The errors of Acquire.
var (
	// ErrHeld: the lock was still held when the context ended. The error is a *HeldError.
	ErrHeld = errors.New("the lock is held")
	// ErrUnwritable: the folder cannot be written; see statedir.
	ErrUnwritable = statedir.ErrUnwritable
)

// HeldError is ErrHeld with who holds it.
type HeldError struct {
	Lock   string
	Holder string // what the holder gave to Acquire and its pid; "an unknown process" when it wrote nothing yet
	Err    error  // why waiting ended: the context's error
}

// Error names lock and holder.
func (e *HeldError) Error() string {
	return fmt.Sprintf("take lock %s: held by %s: %v", e.Lock, e.Holder, e.Err)
}

// Unwrap gives ErrHeld and the context's error.
func (e *HeldError) Unwrap() []error { return []error{ErrHeld, e.Err} }

// A waiter looks again after a quarter of the time that it has waited, within these bounds: most locks are held for a
// millisecond or two, and where sixty pods start at once and wait for the same one they must leave the holder a processor. The
// longer bound is how long a free lock can stay unnoticed.
const (
	shortLook = time.Millisecond
	longLook  = 40 * time.Millisecond
)

// Dir is a folder of lock files. A lock is not re-entrant, not even within one process.
type Dir struct{ path string }

// New gives the locks of the folder path. Acquire makes it, and the state folder that it lies in, when they are missing: a
// lock is the first thing that any verb writes after a boot. The state folder's parent must exist.
func New(path string) *Dir { return &Dir{path} }

// Acquire takes the lock of that name, or waits for it until ctx ends. holder is for the message that others get:
// "ADD team-a/pod-0 (container 4c8e…)". release may be called more than once and from any goroutine.
//
// The holder removes the file before it lets go, so that locks of attachments long gone do not fill a tmpfs. Whoever locks
// a file that is no longer the one in the folder starts again, so two processes never hold two files of one name.
func (d *Dir) Acquire(ctx context.Context, name, holder string) (release func(), err error) { //nolint:nonamedreturns // says what the function returned is
	if err = ctx.Err(); err != nil {
		return nil, fmt.Errorf("take lock %s: %w", name, err)
	}
	if err = d.ensure(); err != nil {
		return nil, fmt.Errorf("take lock %s: %w", name, err)
	}
	path := filepath.Join(d.path, escape(name))
	for {
		file := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_CLOEXEC))
		locked, err := wait(ctx, file)
		if ctxErr := ctx.Err(); !locked && ctxErr != nil {
			return nil, &HeldError{Lock: name, Holder: readHolder(path), Err: ctxErr}
		}
		if err != nil {
			return nil, fmt.Errorf("take lock %s: %w", name, statedir.Explain(d.path, path, err))
		}
		if !current(file) {
			_ = file.Unlock()
			continue
		}
		// The text is for messages; a full disk must not keep anyone from the lock that may free it.
		_ = writeHolder(path, fmt.Sprintf("%s, pid %d", holder, os.Getpid()))
		return sync.OnceFunc(func() {
			_ = os.Remove(path)
			_ = file.Unlock()
		}), nil
	}
}

// wait tries until the lock is taken or ctx ends.
func wait(ctx context.Context, file *flock.Flock) (bool, error) {
	begin := time.Now()
	for {
		locked, err := file.TryLock()
		if locked || err != nil {
			return locked, err //nolint:wrapcheck // the caller knows the name of the lock
		}
		again := time.NewTimer(min(max(time.Since(begin)/4, shortLook), longLook))
		select {
		case <-ctx.Done():
			again.Stop()
			return false, nil
		case <-again.C:
		}
	}
}

func (d *Dir) ensure() error {
	root, err := statedir.Open(filepath.Dir(d.path), 0o755)
	if err != nil {
		return err
	}
	defer root.Close()
	return statedir.Make(root, filepath.Base(d.path))
}

// current tells whether the locked file is still the one that others find under its path.
func current(file *flock.Flock) bool {
	locked, err := file.Stat()
	if err != nil {
		return false
	}
	found, err := os.Lstat(file.Path())
	return err == nil && os.SameFile(locked, found)
}

func writeHolder(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("write holder: %w", err)
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

// holderSize bounds what is read of a holder's text; it ends in an event that kubelet cuts anyway.
const holderSize = 512

func readHolder(path string) string {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "an unknown process"
	}
	defer file.Close()
	text := make([]byte, holderSize)
	n, _ := file.Read(text)
	if n == 0 {
		return "an unknown process"
	}
	return strings.ToValidUTF8(string(text[:n]), "?")
}

// escape makes a file name of any text, and different ones of different texts: all but letters, digits and -.:@ become
// %XX, and what would be too long for a file keeps its beginning and gets a sum of all.
func escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		plain := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("-:@", c) >= 0 || c == '.' && i > 0
		if plain {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return shorten(b.String(), name)
}
