// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"slices"
	"strings"

	"github.com/podfabric/podfabric/netconf"
)

// master refuses a link that is gone since it was picked, or that the node's owner keeps.
func (g guard) master() *netconf.Problem {
	m := g.facts.Master
	switch {
	case m == nil:
		return &netconf.Problem{
			Code: netconf.CodeTryLater, Remedy: "make the link that the interface is to sit on; the runtime tries again by itself",
			Field: "master", Found: "none: it is not there any more",
		}
	case !g.node.AllowsMaster(m.Name):
		return &netconf.Problem{
			Code: netconf.CodeDevice, Remedy: "use a link that allow.masters of " + netconf.NodePath + " lists, or add it there",
			Field: "master", Found: m.Name, Right: "one of " + strings.Join(g.node.Allow.Masters, ", "),
		}
	}
	return nil
}

// ipoib refuses a master on which the kernel answers EINVAL to a macvlan.
func (g guard) ipoib() *netconf.Problem {
	m := g.facts.Master
	if m.Type != infiniband {
		return nil
	}
	return &netconf.Problem{
		Code:   netconf.CodeDevice,
		Remedy: "use ipoib-cni or ib-sriov-cni on InfiniBand: its links take no macvlan or ipvlan, and podfabric does RoCE only",
		Field:  "master", Found: m.Name + ", an IPoIB link", Right: "an Ethernet link",
	}
}

// below holds for RDMA devices below a master. They are everybody's: none of them moves, whatever the mode [review.md 1].
func (g guard) below() *netconf.Problem {
	m, r := g.facts.Master, g.conf.RDMA
	if m == nil || r.Mode == netconf.RDMAOff {
		return nil
	}
	has := m.Name + ", behind which is " + strings.Join(m.RDMA, " and ")
	switch {
	case r.Mode == netconf.RDMAMove:
		return &netconf.Problem{
			Code:   netconf.CodeInvalid,
			Remedy: "set rdma.mode to auto, or use a VF: the RDMA device below a master is everybody's on the node and never moves",
			Field:  "rdma.mode", Found: fmt.Sprintf("%q for an interface on master %s", r.Mode, m.Name),
		}
	case len(m.RDMA) == 0:
		return nil
	case wantsSoft(g.conf):
		return &netconf.Problem{
			Code: netconf.CodeDevice, Remedy: "remove rdma.softRoCE: there is a real RDMA device below the interface",
			Field: "rdma.softRoCE", Found: "true on master " + has,
		}
	case len(m.RDMA) > 1:
		return &netconf.Problem{
			Code: netconf.CodeDevice,
			Remedy: "use a master with one RDMA device behind it, or set rdma.mode to off: " +
				"the address is a GID on all of them, and which one is live cannot be told",
			Field: "master", Found: has, Right: "one RDMA device",
		}
	case g.facts.Mode == Exclusive:
		return &netconf.Problem{
			Code: netconf.CodeMode,
			Remedy: "use a VF, or run podfabricctl mode set shared on the node, or set rdma.mode to off: " +
				"in exclusive mode no pod sees an RDMA device that stays at home, and one below a master stays",
			Field: "rdma.mode", Found: fmt.Sprintf("%q on a node in exclusive mode, on master %s", r.Mode, has), Right: "shared mode",
		}
	}
	return nil
}

func (g guard) masterMTU() *netconf.Problem {
	want, m := g.conf.MTU, g.facts.Master
	if want.FromPF || want.Bytes <= m.MTU {
		return nil
	}
	return &netconf.Problem{
		Code: netconf.CodeInvalid, Remedy: fmt.Sprintf("raise the MTU of master %s on the node, or lower mtu", m.Name),
		Field: "mtu", Found: fmt.Sprint(want.Bytes), Right: fmt.Sprintf("at most %d, which is the master's", m.MTU),
	}
}

// interfaceThere asks for the interface of the plugin before.
func (g guard) interfaceThere() *netconf.Problem {
	link := g.facts.Link
	switch there := link != nil && link.NS == Pod; {
	case g.facts.Master == nil && !g.facts.Function.ID.IsZero() && slices.Contains(g.facts.PodLinks, g.ifname) && (!there || link.Name != g.ifname):
		return &netconf.Problem{
			Code: netconf.CodeDevice,
			Remedy: "put podfabric behind a plugin that gives the device's own interface to the pod: this one is another link of the " +
				"device, a representor perhaps, and the device serves more than the pod",
			Field: "CNI_IFNAME", Found: g.ifname + ", which is not the netdev of " + g.pci(),
		}
	case there || slices.Contains(g.facts.PodLinks, g.ifname):
		return nil
	}
	return &netconf.Problem{
		Code:   netconf.CodeInvalid,
		Remedy: "put podfabric behind the plugin that makes the interface, under the name that the runtime gives it",
		Field:  "CNI_IFNAME", Found: g.ifname + ", which is not in the pod", Right: "one of " + strings.Join(g.facts.PodLinks, ", "),
	}
}

// behind asks for a device behind a chained interface, unless nobody needs one.
func (g guard) behind() *netconf.Problem {
	if !g.facts.Function.ID.IsZero() || g.conf.RDMA.Mode == netconf.RDMAOff || g.conf.RDMA.SoftRoCE {
		return nil
	}
	p := &netconf.Problem{
		Code: netconf.CodeDevice,
		Remedy: "chain podfabric behind a plugin that gives a device, a macvlan or an ipvlan to the pod, or set rdma.mode to off: " +
			"no RDMA device can be behind this interface",
		Field: "CNI_IFNAME", Found: g.ifname,
	}
	if link := g.facts.Link; link != nil && link.Kind != "" {
		p.Found += ", a " + link.Kind
	}
	return p
}

// confirmed holds the device that was found behind a chained interface against the one that the configuration names.
func (g guard) confirmed() *netconf.Problem {
	named, found := g.conf.Device, g.facts.Function.ID
	if named.IsZero() || found.IsZero() || named == found {
		return nil
	}
	return &netconf.Problem{
		Code:   netconf.CodeInvalid,
		Remedy: "remove deviceID, or give it to the plugin before podfabric too: its interface is of another device",
		Field:  "deviceID", Found: fmt.Sprintf("%s, and interface %s is of %s", named, g.ifname, found),
	}
}
