// SPDX-License-Identifier: Apache-2.0

package link

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/rdmans/pci"
)

// ESwitch gives the mode of a PF's embedded switch, "legacy" or "switchdev" (devlink dev eswitch show). Empty: it has none, or its
// driver or the kernel has no devlink.
func (c *Conn) ESwitch(pf pci.Addr) (string, error) {
	var mode string
	err := c.enter(func() error {
		h, err := netlink.NewHandle(unix.NETLINK_GENERIC)
		if err != nil {
			return fmt.Errorf("open generic netlink socket: %w", err)
		}
		// Every failure means that nobody says: that there is no devlink is no error, and it has many an errno.
		if dev, err := h.DevLinkGetDeviceByName("pci", pf.String()); err == nil && dev.Attrs.Eswitch.Mode != "unknown" {
			mode = dev.Attrs.Eswitch.Mode
		}
		if err := h.Close(); err != nil {
			return fmt.Errorf("close generic netlink socket: %w", err)
		}
		return nil
	})
	return mode, err
}
