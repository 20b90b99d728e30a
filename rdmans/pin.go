// SPDX-License-Identifier: Apache-2.0

package rdmans

import (
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// pin gets hold of what a path leads to without opening it (O_PATH), if that is a namespace of some kind. What is opened by descriptor
// afterwards is what was looked at: a path below a container's root can lead elsewhere a moment later, and the mere open of some
// devices does something (a watchdog resets the node), that of a fifo has no end.
func pin(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, gone(path, err)
	}
	var s unix.Statfs_t
	if err := unix.Fstatfs(fd, &s); err != nil || s.Type != unix.NSFS_MAGIC {
		_ = unix.Close(fd)
		return -1, fmt.Errorf("%s: %w", path, ErrNoNamespace)
	}
	return fd, nil
}

// pinned gives a path to what pin holds.
func pinned(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// isNetNS tells network namespaces from other kinds, whose bind mounts look the same.
func isNetNS(path string) bool {
	held, err := pin(path)
	if err != nil {
		return false
	}
	fd, err := unix.Open(pinned(held), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if unix.Close(held) != nil || err != nil {
		return false
	}
	kind, err := unix.IoctlRetInt(fd, unix.NS_GET_NSTYPE)
	return unix.Close(fd) == nil && err == nil && kind == unix.CLONE_NEWNET
}

// Bounds on the wait for file systems that a container has mounted and that do not answer, one such mount and all together. Who
// hides a namespace behind one stays unnamed.
const (
	silentWait = time.Second
	silentMax  = 3
)

// answers is namespaceOf for a path that a container has laid out. The thread of one that does not answer ends with the process.
func (l looking) answers(path string) (ID, bool) {
	if *l.silent >= silentMax {
		return ID{}, false
	}
	type answer struct {
		id ID
		ok bool
	}
	done := make(chan answer, 1)
	go func() {
		id, ok := namespaceOf(path, l.dev)
		done <- answer{id, ok}
	}()
	select {
	case a := <-done:
		return a.id, a.ok
	case <-time.After(silentWait):
		*l.silent++
		return ID{}, false
	}
}
