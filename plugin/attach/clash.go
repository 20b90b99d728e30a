// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"net/netip"

	"github.com/podfabric/podfabric/netconf"
)

// Clash refuses addresses on ports whose GID tables hold them already: two equal entries cannot be told apart, and peers reach
// whichever pod answers first [review.md 37]. most is how many entries of each address may be there: 0 before the addresses are
// put on an interface, 1 after that, when a second one is of an ADD that ran at the same time. With 0 a table without a free
// slot is refused too, since the kernel would leave the GID out and say so in its log alone.
func Clash(c netconf.Conf, addrs []netip.Prefix, ports []Port, most int) error {
	if c.RDMA.Mode == netconf.RDMAOff || len(addrs) == 0 {
		return nil
	}
	for _, p := range ports {
		for _, a := range addrs {
			if err := twice(p, a.Addr(), most); err != nil {
				return err
			}
		}
		if most == 0 && c.RDMA.Require != netconf.RequireNo && full(p) {
			return &netconf.Problem{
				Code:   netconf.CodeNotReady,
				Remedy: "use another device, or delete pods on this one, for each takes entries of its GID table",
				Field:  fmt.Sprintf("port %d of %s", p.Number, p.Device),
				Found:  fmt.Sprintf("GID table of %s is full (%d)", p.Device, p.TableSize),
			}
		}
	}
	return nil
}

// twice looks for more entries of addr than there may be. The last one is named: the others were there before it.
func twice(p Port, addr netip.Addr, most int) error {
	last, n := GID{}, 0
	for _, g := range p.GIDs {
		if g.Type == RoCEv2 && g.Addr.Unmap() == addr.Unmap() {
			last, n = g, n+1
		}
	}
	if n <= most {
		return nil
	}
	return &netconf.Problem{
		Code:   netconf.CodeTryLater,
		Remedy: fmt.Sprintf("give this pod an address of its own, or delete whatever else has %s on this device", addr.Unmap()),
		Field:  fmt.Sprintf("port %d of %s", p.Number, p.Device),
		Found:  fmt.Sprintf("a RoCE v2 GID of %s at index %d already", addr.Unmap(), last.Index),
		Right:  "each address once on a port",
	}
}

// full tells whether a port's GID table has no slot left.
func full(p Port) bool { return p.TableSize > 0 && len(p.GIDs) >= p.TableSize }
