// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/podfabric/podfabric/netconf"
)

// Ready tells whether as much of RDMA works as rdma.require asks for, and if not, what is missing, as a sentence. before are the
// facts before the attachment, addrs its addresses, and ports the ports of its RDMA device as the pod's sysfs shows them.
//
// A GID is there when a RoCE v2 entry equals the address and belongs to the attachment's interface; the kernel writes it from
// a work queue. A port without carrier has all its GIDs, which is why "active" also looks at its state [review.md lab 6].
func Ready(c netconf.Conf, before Facts, addrs []netip.Prefix, ports []Port) (string, bool) {
	require := required(c, before, len(addrs) > 0)
	if require == netconf.RequireNo {
		return "", true
	}
	if len(ports) == 0 {
		return "the pod has no RDMA device", false
	}
	var missing []string
	for _, p := range ports {
		for _, a := range addrs {
			if _, ok := findGID(p, a.Addr(), c.Request.IfName); !ok {
				missing = append(missing, noGID(p, a.Addr()))
			}
		}
		if require == netconf.RequireActive && p.State != stateActive {
			missing = append(missing, fmt.Sprintf("port %d of %s is %s", p.Number, p.Device, p.State))
		}
	}
	return strings.Join(missing, "; "), len(missing) == 0
}

// stateActive is the state of a port that carries traffic, as sysfs words it.
const stateActive = "ACTIVE"

// required settles rdma.require: by default, what has an RDMA device and an address must work.
func required(c netconf.Conf, before Facts, addressed bool) netconf.Require {
	switch {
	case c.RDMA.Mode == netconf.RDMAOff:
		return netconf.RequireNo
	case c.RDMA.Require != netconf.RequireDefault:
		return c.RDMA.Require
	case addressed && (before.RDMA != nil || wantsSoft(c)):
		return netconf.RequireActive
	}
	return netconf.RequireNo
}

// findGID gives the RoCE v2 entry of addr that belongs to the interface. An entry of another netdev with the same address, a
// VLAN's perhaps, is not it; one whose netdev the kernel does not tell may be.
func findGID(p Port, addr netip.Addr, ifname string) (GID, bool) {
	var untold *GID
	for i, g := range p.GIDs {
		if g.Type != RoCEv2 || g.Addr.Unmap() != addr.Unmap() {
			continue
		}
		if g.Netdev == ifname {
			return g, true
		}
		if g.Netdev == "" && untold == nil {
			untold = &p.GIDs[i]
		}
	}
	if untold == nil {
		return GID{}, false
	}
	return *untold, true
}

// noGID says which GID is missing, and why if the table tells: a full table gets no entry, and only the kernel's log says so.
func noGID(p Port, addr netip.Addr) string {
	text := fmt.Sprintf("port %d of %s has no RoCE v2 GID of %s", p.Number, p.Device, addr)
	if full(p) {
		text += fmt.Sprintf(": GID table of %s is full (%d)", p.Device, p.TableSize)
	}
	return text
}
