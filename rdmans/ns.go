// SPDX-License-Identifier: Apache-2.0

package rdmans

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/containernetworking/plugins/pkg/ns"
	"golang.org/x/sys/unix"
)

// ID identifies a network namespace for as long as it lives, whatever paths lead to it: device and inode in nsfs.
type ID struct {
	Dev uint64 `json:"dev"`
	Ino uint64 `json:"ino"`
}

// String gives the form of readlink(/proc/PID/ns/net).
func (id ID) String() string { return fmt.Sprintf("net:[%d]", id.Ino) }

// NS is an open network namespace. The descriptor keeps the namespace alive, and devices in it from going home, so it must
// be closed as soon as the work is done.
type NS struct {
	handle ns.NetNS // nil: the process's own namespace
	id     ID
	path   string
}

// Self gives the namespace of the process, in which all threads are that this package did not send elsewhere. The main
// package must pin its main thread (runtime.LockOSThread in init), or a thread could be left in another namespace.
func Self() (*NS, error) {
	const path = "/proc/self/ns/net"
	id, err := stat(path)
	if err != nil {
		return nil, err
	}
	return &NS{id: id, path: path}, nil
}

// OpenNS opens the namespace at a path: a bind mount like /run/netns/x, or /proc/PID/ns/net. A path that does not exist, or
// is no network namespace (the file that a dead bind mount leaves behind), gives ErrNoNamespace.
func OpenNS(path string) (*NS, error) {
	if _, err := stat(path); err != nil {
		return nil, err
	}
	held, err := pin(path)
	if err != nil {
		return nil, err
	}
	handle, err := ns.GetNS(pinned(held))
	_ = unix.Close(held)
	if err != nil {
		// The library's texts hold the kernel's; a path that was a namespace a moment ago has only one way to fail.
		return nil, fmt.Errorf("open %s: %w", path, ErrNoNamespace)
	}
	n := &NS{handle: handle, path: path}
	if n.id, err = netNS(int(handle.Fd()), path); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// stat looks without opening: opening a fifo would hang, and an open descriptor would keep a namespace alive.
func stat(path string) (ID, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return ID{}, gone(path, err)
	}
	if s.Type != unix.NSFS_MAGIC {
		return ID{}, fmt.Errorf("%s: %w", path, ErrNoNamespace)
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return ID{}, gone(path, err)
	}
	return ID{Dev: st.Dev, Ino: st.Ino}, nil
}

// netNS checks that the descriptor is of a network namespace and no other kind, and gives its identity.
func netNS(fd int, path string) (ID, error) {
	kind, err := unix.IoctlRetInt(fd, unix.NS_GET_NSTYPE)
	if err != nil || kind != unix.CLONE_NEWNET {
		return ID{}, fmt.Errorf("%s: %w", path, ErrNoNamespace)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return ID{}, fmt.Errorf("stat %s: %w", path, err)
	}
	return ID{Dev: st.Dev, Ino: st.Ino}, nil
}

// gone keeps the kernel's words for a missing path out of messages: a caller of ours takes them for "already done".
func gone(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ELOOP) ||
		errors.Is(err, unix.ENAMETOOLONG) {
		return fmt.Errorf("%s does not exist: %w", path, ErrNoNamespace)
	}
	return fmt.Errorf("look at %s: %w", path, err)
}

// ID gives the namespace's identity.
func (n *NS) ID() ID { return n.id }

// Cookie gives a number that no other namespace has until the node boots again, while the kernel uses an inode again at once; 0 where
// the kernel, before 5.14, has none.
func (n *NS) Cookie() uint64 {
	var cookie uint64
	err := n.Do(func() error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open a socket: %w", err)
		}
		defer func() { _ = unix.Close(fd) }()
		cookie, err = unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
		if err != nil {
			return fmt.Errorf("ask for the namespace's cookie: %w", err)
		}
		return nil
	})
	if err != nil {
		return 0
	}
	return cookie
}

// Path gives the path it was opened by.
func (n *NS) Path() string { return n.path }

// Do runs f on a thread that is in the namespace and in no other business. In the process's own namespace that is any
// thread. f must not start goroutines that rely on the namespace.
func (n *NS) Do(f func() error) error {
	if n.handle == nil {
		return f()
	}
	var inner error
	err := n.handle.Do(func(ns.NetNS) error {
		inner = f()
		return nil
	})
	if err != nil {
		// Entering failed; texts of the library may hold the kernel's for a missing path.
		return fmt.Errorf("enter network namespace %s: %w", n.path, ErrNoNamespace)
	}
	return inner
}

// WithFD calls f with a descriptor of the namespace that is valid until f returns, as netlink messages that name a target
// namespace need it.
func (n *NS) WithFD(f func(fd int) error) error {
	if n.handle != nil {
		return f(int(n.handle.Fd()))
	}
	file, err := os.Open(n.path)
	if err != nil {
		return gone(n.path, err)
	}
	return errors.Join(f(int(file.Fd())), file.Close())
}

// Close lets go of the namespace. A second call does nothing.
func (n *NS) Close() error {
	if n.handle == nil {
		return nil
	}
	handle := n.handle
	n.handle = nil
	n.path += " (closed)"
	if err := handle.Close(); err != nil {
		return fmt.Errorf("close network namespace: %w", err)
	}
	return nil
}
