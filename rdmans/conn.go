// SPDX-License-Identifier: Apache-2.0

package rdmans

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Conn speaks with the kernel's RDMA subsystem (nldev, drivers/infiniband/core/nldev.c) as seen from one network namespace.
// It holds no socket: each call opens its own on a thread inside the namespace, because the kernel compares a moving
// device with the namespace of the calling thread, not of the socket (ENODEV otherwise).
type Conn struct {
	ns *NS
}

// In gives a Conn for a namespace, which stays the caller's to close.
func In(n *NS) *Conn { return &Conn{ns: n} }

// Device is an RDMA device.
type Device struct {
	Index    uint32 `json:"index"` // kept for the device's life, over moves and renames
	Name     string `json:"name"`
	NodeGUID string `json:"nodeGUID"` // 0254:00ff:fe12:3456, as sysfs prints it
	Ports    int    `json:"ports"`
}

// tries bounds the repetitions of a dump that the kernel says was disturbed by changes.
const tries = 10

// with runs f with a fresh handle on a thread in the namespace.
func (c *Conn) with(f func(h *netlink.Handle) error) error {
	return c.ns.Do(func() error {
		h, err := netlink.NewHandle(unix.NETLINK_RDMA)
		if err != nil {
			if errors.Is(err, unix.EPROTONOSUPPORT) {
				return ErrNoRDMA
			}
			return fmt.Errorf("open RDMA netlink socket: %w", err)
		}
		return errors.Join(f(h), h.Close())
	})
}

// ask is with for a question that has an answer, asked again while the kernel says that changes disturbed it.
func ask[T any](c *Conn, f func(h *netlink.Handle) (T, error)) (T, error) {
	var answer T
	err := c.with(func(h *netlink.Handle) error {
		var err error
		for range tries {
			if answer, err = f(h); !errors.Is(err, netlink.ErrDumpInterrupted) {
				break
			}
		}
		return err
	})
	return answer, err
}

// Devices lists the RDMA devices that the namespace sees, by index: its own in exclusive mode, all of the node in shared
// mode. ErrNoRDMA when the subsystem is not loaded.
func (c *Conn) Devices() ([]Device, error) {
	links, err := ask(c, (*netlink.Handle).RdmaLinkList)
	if err != nil {
		return nil, translate("list RDMA devices", err)
	}
	devices := make([]Device, 0, len(links))
	for _, l := range links {
		devices = append(devices, Device{
			Index: l.Attrs.Index, Name: l.Attrs.Name, NodeGUID: guid(l.Attrs.NodeGuid), Ports: int(l.Attrs.NumPorts),
		})
	}
	slices.SortFunc(devices, func(a, b Device) int { return int(a.Index) - int(b.Index) })
	return devices, nil
}

// ByName finds a device by its name in the namespace, or ErrNotFound.
func (c *Conn) ByName(name string) (Device, error) {
	devices, err := c.Devices()
	if err != nil {
		return Device{}, err
	}
	for _, d := range devices {
		if d.Name == name {
			return d, nil
		}
	}
	return Device{}, fmt.Errorf("RDMA device %s: %w", name, ErrNotFound)
}

// present gives ErrNotFound when the namespace has no device of that index.
func (c *Conn) present(index uint32) error {
	devices, err := c.Devices()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(devices, func(d Device) bool { return d.Index == index }) {
		return fmt.Errorf("RDMA device %d: %w", index, ErrNotFound)
	}
	return nil
}

// missing turns EINVAL, the kernel's answer to the index of a device that the namespace does not have, into ErrNotFound.
func (c *Conn) missing(index uint32, err error) error {
	if errors.Is(err, unix.EINVAL) {
		if missing := c.present(index); errors.Is(missing, ErrNotFound) {
			return missing
		}
	}
	return err
}

// guid turns the library's form, eight bytes with the lowest first, into that of sysfs.
func guid(s string) string {
	b, err := net.ParseMAC(s)
	if err != nil || len(b) != 8 {
		return ""
	}
	return fmt.Sprintf("%02x%02x:%02x%02x:%02x%02x:%02x%02x", b[7], b[6], b[5], b[4], b[3], b[2], b[1], b[0])
}

// translate gives errno that a caller tells apart their sentinel; the errno's text stays where it says more.
func translate(what string, err error) error {
	if err == nil {
		return nil
	}
	known := []struct {
		errno    unix.Errno
		sentinel error
	}{
		{unix.ENODEV, ErrNotFound},
		{unix.ENOENT, ErrNotFound},
		{unix.EEXIST, ErrNameTaken},
		{unix.EBUSY, ErrBusy},
		{unix.EOPNOTSUPP, ErrUnsupported},
		{unix.EPERM, ErrPermission},
		{unix.EACCES, ErrPermission},
	}
	for _, k := range known {
		if errors.Is(err, k.errno) {
			return fmt.Errorf("%s: %w", what, k.sentinel)
		}
	}
	return fmt.Errorf("%s: %w", what, err)
}
