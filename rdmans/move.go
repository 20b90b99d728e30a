// SPDX-License-Identifier: Apache-2.0

package rdmans

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// SoftRemedy says what soft RoCE in a pod needs, for messages.
const SoftRemedy = "soft RoCE in a pod needs kernel 7.1 or newer with the module rdma_rxe"

// Move moves a device of this namespace to another. The kernel cuts off whoever has the device open, and may give it
// another uverbs number; the index stays. ErrNotFound: it is not here. ErrShared: the node is in shared mode.
// ErrUnsupported: its driver cannot. ErrNameTaken: the target has a device of that name (kernels with names per namespace).
func (c *Conn) Move(index uint32, to *NS) error {
	what := fmt.Sprintf("move RDMA device %d", index)
	err := to.WithFD(func(fd int) error {
		return c.with(func(h *netlink.Handle) error { return h.RdmaLinkSetNsFd(link(index), uint32(fd)) })
	})
	if errors.Is(err, unix.EOPNOTSUPP) {
		if mode, modeErr := c.Mode(); modeErr == nil && mode == Shared {
			return fmt.Errorf("%s: %w", what, ErrShared)
		}
	}
	return translate(what, c.missing(index, err))
}

// Rename renames a device of this namespace. ErrNotFound, ErrNameTaken.
func (c *Conn) Rename(index uint32, name string) error {
	err := c.with(func(h *netlink.Handle) error { return h.RdmaLinkSetName(link(index), name) })
	return translate(fmt.Sprintf("rename RDMA device %d to %s", index, name), c.missing(index, err))
}

// AddSoft makes a soft RoCE (rxe) device on a netdev of this namespace. The kernel loads rdma_rxe by itself, and it puts the
// new device into the initial namespace, not into this one. ErrNotFound: no such netdev. ErrNameTaken: the name is taken,
// or the netdev has such a device already. ErrUnsupported: this kernel has no rxe, or none that works outside the
// initial namespace; the text holds the remedy.
func (c *Conn) AddSoft(name, netdev string) error {
	what := fmt.Sprintf("make soft RoCE device %s on %s", name, netdev)
	err := c.with(func(h *netlink.Handle) error { return h.RdmaLinkAdd(name, "rxe", netdev) })
	switch {
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
		// EINVAL is what the kernel says when there is no module for the type (nldev_newlink).
		return fmt.Errorf("%s: %w: %s", what, ErrUnsupported, SoftRemedy)
	case errors.Is(err, unix.EEXIST):
		return fmt.Errorf("%s: %w, or %s has one already", what, ErrNameTaken, netdev)
	}
	return translate(what, err)
}

// DelSoft removes a device of this namespace that was made by AddSoft. ErrNotFound: it is not here. ErrUnsupported: it is
// a device that was not made over netlink.
func (c *Conn) DelSoft(name string) error {
	what := "remove soft RoCE device " + name
	if _, err := c.ByName(name); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	err := c.with(func(h *netlink.Handle) error { return h.RdmaLinkDel(name) })
	if errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("%s: %w", what, ErrUnsupported)
	}
	return translate(what, err)
}

func link(index uint32) *netlink.RdmaLink {
	return &netlink.RdmaLink{Attrs: netlink.RdmaLinkAttrs{Index: index}}
}
