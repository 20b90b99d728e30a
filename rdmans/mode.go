// SPDX-License-Identifier: Apache-2.0

package rdmans

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// Mode says whether network namespaces separate RDMA devices (rdma-system(8)). It is one setting for the whole kernel.
type Mode string

// The modes.
const (
	Exclusive Mode = "exclusive" // each device is in one namespace and only that one sees it
	Shared    Mode = "shared"    // every namespace sees every device, and none can be moved
)

// Mode reads the mode. ErrNoRDMA when the subsystem is not loaded.
func (c *Conn) Mode() (Mode, error) {
	mode, err := ask(c, (*netlink.Handle).RdmaSystemGetNetnsMode)
	if err != nil {
		return "", translate("read the RDMA namespace mode", err)
	}
	switch m := Mode(mode); m {
	case Exclusive, Shared:
		return m, nil
	}
	return "", fmt.Errorf("read the RDMA namespace mode: the kernel answers %q", mode)
}

// SetMode sets the mode. The kernel takes it only while no network namespace exists but the first, whoever made it and
// whatever is in it: ErrBusy otherwise, and Scan says which they are.
func (c *Conn) SetMode(m Mode) error {
	err := c.with(func(h *netlink.Handle) error { return h.RdmaSystemSetNetnsMode(string(m)) })
	return translate("set the RDMA namespace mode to "+string(m), err)
}
