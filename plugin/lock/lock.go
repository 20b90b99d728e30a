// SPDX-License-Identifier: Apache-2.0

// Package lock serialises processes of this node by flock(2) on files of one folder. The kernel lets go of a lock when its
// holder dies, and the file says who holds it. It does not say which locks there are, nor in which order they are taken:
// that is plugin's.
package lock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// Most locks are held for a millisecond or two. So a waiter looks again and again at first, after a quarter of the time that it has
// waited each time, within the first two bounds. After the third it lines up in the kernel: where sixty pods start at once, those
// who look take the processor from the one that they all wait for, until nobody gets on any more.
const (
	shortLook = time.Millisecond
	longLook  = 40 * time.Millisecond
	lookFor   = 100 * time.Millisecond
)

// Dir is a folder of lock files. A lock is not re-entrant, not even within one process.
type Dir struct {
	path   string
	common common
}

// New gives the locks of the folder path. Acquire makes it, and the state folder that it lies in, when they are missing: a
// lock is the first thing that any verb writes after a boot. The state folder's parent must exist.
func New(path string) *Dir { return &Dir{path: path} }

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
	flags := os.O_CREATE | os.O_RDWR
	for begin := time.Now(); ; {
		release, err := d.acquire(ctx, name, path, flags, holder)
		switch {
		case errors.Is(err, errMoved):
			continue
		case errors.Is(err, errAgain):
		case errors.Is(err, syscall.EROFS) && flags != os.O_RDONLY:
			flags = os.O_RDONLY // a lock that is there can be taken, and is its holder's as ever
			continue
		case roomless(err) || flags == os.O_RDONLY && errors.Is(err, fs.ErrNotExist):
			if release, err = d.acquireCommon(ctx, name, path); release != nil || err != nil {
				return release, err
			}
		case err != nil:
			return nil, fmt.Errorf("take lock %s: %w", name, statedir.Explain(d.path, path, err))
		case release != nil:
			return release, nil
		}
		if release == nil && ctx.Err() != nil || pause(ctx, begin) != nil {
			return nil, &HeldError{Lock: name, Holder: readHolder(path), Err: ctx.Err()}
		}
	}
}

// Why acquire is to be called again.
var (
	errMoved = errors.New("what was locked is not what others find")
	errAgain = errors.New("the folder is another's")
)

// acquire takes the lock of a file, or gives nil when ctx ended.
func (d *Dir) acquire(ctx context.Context, name, path string, flags int, holder string) (func(), error) {
	file := flock.New(path, flock.SetFlag(flags|syscall.O_NOFOLLOW|syscall.O_CLOEXEC))
	locked, err := wait(ctx, file)
	if !locked {
		return nil, err
	}
	if !current(file) {
		_ = file.Unlock()
		return nil, errMoved
	}
	release := sync.OnceFunc(func() { letGo(file) })
	held, err := d.commonHeld(name)
	if held {
		err = errAgain
	}
	if err != nil {
		release()
		return nil, err
	}
	// The text is for messages; a full disk must not keep anyone from the lock that may free it.
	_ = writeHolder(path, fmt.Sprintf("%s, pid %d", holder, os.Getpid()))
	return release, nil
}

// wait tries until the lock is taken or ctx ends.
func wait(ctx context.Context, file *flock.Flock) (bool, error) {
	end, bounded := ctx.Deadline()
	for begin := time.Now(); ; {
		locked, err := file.TryLock()
		if locked || err != nil {
			return locked, err //nolint:wrapcheck // the caller knows the name of the lock
		}
		if time.Since(begin) > lookFor && (!bounded || time.Until(end) > lookFor) {
			return lineUp(ctx, file)
		}
		if pause(ctx, begin) != nil {
			return false, nil //nolint:nilerr // the caller asks the context
		}
	}
}

// lineUp waits in the kernel's queue. Nothing can call a thread back from there: when ctx ends it stays until its turn comes, and
// passes it on.
func lineUp(ctx context.Context, file *flock.Flock) (bool, error) {
	taken := make(chan error)
	go func() {
		err := file.Lock()
		for errors.Is(err, syscall.EINTR) {
			err = file.Lock()
		}
		select {
		case taken <- err:
		case <-ctx.Done():
			if err == nil {
				letGo(file)
			}
		}
	}()
	select {
	case err := <-taken:
		return err == nil, err
	case <-ctx.Done():
		return false, nil
	}
}

// letGo ends a lock, and removes its file if it is the one that others find: another may have made a new one, when somebody has
// removed ours by hand.
func letGo(file *flock.Flock) {
	if current(file) {
		_ = os.Remove(file.Path())
	}
	_ = file.Unlock()
}

// pause waits before another look, the longer the longer it was waited for, or until ctx ends.
func pause(ctx context.Context, begin time.Time) error {
	again := time.NewTimer(min(max(time.Since(begin)/4, shortLook), longLook))
	defer again.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-again.C:
		return nil
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
