// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"slices"
	"strings"

	"github.com/podfabric/podfabric/netconf"
)

// Guard refuses what facts can tell to be impossible or harmful, before anything is changed: an *netconf.Problem, or nil. When
// several refusals hold, the one that the others depend on is given: a device that is not there before one that is in use.
func Guard(c netconf.Conf, n netconf.Node, ifname string, f Facts) error {
	g := guard{conf: c, node: n, ifname: ifname, facts: f}
	for _, check := range g.checks() {
		if p := check(); p != nil {
			return p
		}
	}
	return nil
}

type guard struct {
	conf   netconf.Conf
	node   netconf.Node
	ifname string
	facts  Facts
}

type check = func() *netconf.Problem

// checks are those of the kind, in the order in which they depend on each other.
func (g guard) checks() []check {
	rdma := []check{g.subsystem, g.below, g.mode, g.rdma}
	switch {
	case g.conf.Kind == netconf.KindChained && g.facts.Master != nil:
		return slices.Concat([]check{g.kind, g.interfaceThere, g.confirmed, g.infiniband}, rdma)
	case g.conf.Kind == netconf.KindChained:
		return slices.Concat([]check{g.kind, g.interfaceThere, g.behind, g.confirmed, g.allowed, g.infiniband}, rdma)
	case shares(g.conf.Kind):
		return slices.Concat([]check{g.kind, g.master, g.ipoib}, rdma, []check{g.masterMTU, g.name})
	case g.conf.Kind == netconf.KindDevice:
		return slices.Concat([]check{g.kind, g.function, g.allowed, g.driver, g.infiniband, g.link, g.inUse, g.hasVFs},
			rdma, []check{g.mtu, g.name})
	case g.facts.Function.Userspace():
		return []check{g.kind, g.function, g.virtual, g.allowed, g.userspace, g.pf, g.sibling, g.resets, g.name}
	}
	return slices.Concat(
		[]check{g.kind, g.function, g.virtual, g.allowed, g.driver, g.infiniband, g.link, g.inUse, g.pf, g.sibling, g.resets},
		rdma, []check{g.mtu, g.name})
}

func (g guard) kind() *netconf.Problem {
	if g.node.AllowsKind(g.conf.Kind) {
		return nil
	}
	return &netconf.Problem{
		Code:   netconf.CodeInvalid,
		Remedy: "use a kind of attachment that allow.kinds of " + netconf.NodePath + " lists, or add it there",
		Field:  "link", Found: fmt.Sprintf("%q", g.conf.Kind),
	}
}

// mtu is checked here because the kernel answers a bad one with a link that has moved all the same.
func (g guard) mtu() *netconf.Problem {
	want, fn := g.conf.MTU, g.facts.Function
	switch {
	case want.FromPF && fn.PFMTU == 0:
		return &netconf.Problem{
			Code: netconf.CodeInvalid, Remedy: "give mtu as a number, or bring the PF's netdev home",
			Field: "mtu", Found: fmt.Sprintf(`"pf", and the netdev of PF %s is not in the node's network namespace`, fn.PF),
		}
	case !want.FromPF && fn.PFMTU != 0 && want.Bytes > fn.PFMTU:
		return &netconf.Problem{
			Code: netconf.CodeInvalid, Remedy: fmt.Sprintf("raise the MTU of PF %s on the node, or lower mtu", fn.PFLink),
			Field: "mtu", Found: fmt.Sprint(want.Bytes), Right: fmt.Sprintf("at most %d, which is the PF's", fn.PFMTU),
		}
	}
	return nil
}

func (g guard) name() *netconf.Problem {
	if !slices.Contains(g.facts.PodLinks, g.ifname) {
		return nil
	}
	return &netconf.Problem{
		Code:   netconf.CodeNameTaken,
		Remedy: "give this attachment another interface name, or remove the interface that has it from the pod",
		Field:  "CNI_IFNAME", Found: g.ifname + ", which the pod has already",
		Right: "a name that is not one of " + strings.Join(g.facts.PodLinks, ", "),
	}
}

func (g guard) pci() string { return g.facts.Function.ID.String() }

// what names what the attachment is made of, in a message.
func (g guard) what() string {
	switch {
	case g.facts.Master != nil:
		return "master " + g.facts.Master.Name
	case g.facts.Function.ID.IsZero():
		return "interface " + g.ifname
	}
	return g.pci()
}

// noun is what the device is called in a message.
func (g guard) noun() string {
	switch {
	case g.conf.Kind == netconf.KindVF || g.facts.Function.VF:
		return "virtual function"
	case g.facts.Function.ID.SF():
		return "sub-function"
	}
	return "device"
}
