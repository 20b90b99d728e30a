// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Conn speaks rtnetlink with one network namespace, and keeps that namespace alive until it is closed.
type Conn struct {
	enter func(func() error) error
	h     *netlink.Handle
	// raw is for the messages that the library has no function for, or one that drops the kernel's own words.
	raw map[int]*nl.SocketHandle
}

// tries bounds the repetitions of a dump that the kernel says was disturbed by changes.
const tries = 10

// Open opens the sockets. enter runs a function on a thread in the namespace, as rdmans.NS.Do does.
func Open(enter func(func() error) error) (*Conn, error) {
	c := &Conn{enter: enter}
	err := enter(func() error {
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return fmt.Errorf("open netlink socket: %w", err)
		}
		s, err := nl.GetNetlinkSocketAt(netns.None(), netns.None(), unix.NETLINK_ROUTE)
		if err != nil {
			return errors.Join(fmt.Errorf("open netlink socket: %w", err), h.Close())
		}
		c.h, c.raw = h, map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Socket: s}}
		// The kernel's own words are worth having; one too old to send them works all the same.
		if err := s.SetExtAck(true); err != nil && !errors.Is(err, unix.ENOPROTOOPT) {
			return errors.Join(fmt.Errorf("set up netlink socket: %w", err), c.Close())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Close closes the sockets.
func (c *Conn) Close() error {
	err := c.h.Close()
	for _, s := range c.raw {
		err = errors.Join(err, s.Close())
	}
	if err != nil {
		return fmt.Errorf("close netlink socket: %w", err)
	}
	return nil
}

// dump repeats a dump until the kernel says that nothing changed during it. After that many tries the namespace changes all
// the time, and what was read is not returned as if it were true.
func dump[T any](f func() (T, error)) (T, error) {
	var result T
	var err error
	for range tries {
		result, err = f()
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			return result, err
		}
	}
	return result, err
}

// request makes a message for the raw socket.
func (c *Conn) request(kind, flags int) *nl.NetlinkRequest {
	req := nl.NewNetlinkRequest(kind, flags)
	req.Sockets = c.raw
	return req
}

// translate gives errno that a caller tells apart their sentinel. The errno's text, with the kernel's own words after it,
// stays but for that of a missing file, which a caller of ours takes for "already done".
func translate(what string, err error) error {
	if err == nil {
		return nil
	}
	known := []struct {
		cause    error
		sentinel error
	}{
		{unix.ENODEV, ErrNotFound},
		{fs.ErrNotExist, ErrNotFound},
		{unix.ESRCH, ErrNotFound},
		{unix.EADDRNOTAVAIL, ErrNotFound},
		{unix.EEXIST, ErrExists},
		{unix.EPERM, ErrPermission},
		{unix.EACCES, ErrPermission},
		{unix.EOPNOTSUPP, ErrUnsupported},
		{unix.EPROTONOSUPPORT, ErrUnsupported},
	}
	for _, k := range known {
		if errors.Is(err, k.cause) {
			return fmt.Errorf("%s: %w", what, k.sentinel)
		}
	}
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("%s: %w: %w", what, ErrBusy, err)
	}
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ERANGE) {
		return fmt.Errorf("%s: %w: %w", what, ErrRefused, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
