// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"slices"
	"strings"

	"github.com/podfabric/podfabric/netconf"
)

// subsystem asks for RDMA modules unless RDMA is off: without them nobody can tell whether the function has a device.
func (g guard) subsystem() *netconf.Problem {
	if g.facts.Mode != NoRDMA || g.conf.RDMA.Mode == netconf.RDMAOff {
		return nil
	}
	return &netconf.Problem{
		Code:   netconf.CodeNoRDMA,
		Remedy: "load ib_core and the device's RDMA driver on the node, or set rdma.mode to off",
		Field:  "rdma.mode", Found: fmt.Sprintf("%q on a node without an RDMA subsystem", g.conf.RDMA.Mode),
	}
}

// mode explains and never sets: the kernel lets the mode change only while no other network namespace exists.
func (g guard) mode() *netconf.Problem {
	want, is := g.conf.RDMA.Mode, g.facts.Mode
	p := &netconf.Problem{Code: netconf.CodeMode, Field: "rdma.mode", Found: fmt.Sprintf("%q on a node in %s mode", want, is)}
	switch {
	case want == netconf.RDMAMove && is == Shared:
		p.Remedy = "run podfabricctl mode set exclusive on the node, or set rdma.mode to auto or share"
		p.Right = "exclusive mode to move an RDMA device"
	case want == netconf.RDMAShare && is == Exclusive:
		p.Remedy = "set rdma.mode to auto or move, or run podfabricctl mode set shared on the node"
		p.Right = "shared mode: in an exclusive node the pod would not see an RDMA device that stays at home"
		if g.facts.Master != nil {
			p.Remedy = "run podfabricctl mode set shared on the node, or set rdma.mode to off"
		}
	case wantsSoft(g.conf) && is == Shared:
		p.Remedy = "run podfabricctl mode set exclusive on the node, or remove rdma.softRoCE"
		p.Field, p.Found = "rdma.softRoCE", "true on a node in shared mode"
		p.Right = "exclusive mode to move the soft RoCE device into the pod"
	default:
		return nil
	}
	return p
}

// rdma looks at the function's RDMA device.
func (g guard) rdma() *netconf.Problem {
	if g.conf.RDMA.Mode == netconf.RDMAOff {
		return nil
	}
	dev := g.facts.RDMA
	switch {
	case wantsSoft(g.conf) && dev != nil:
		return &netconf.Problem{
			Code: netconf.CodeDevice, Remedy: "remove rdma.softRoCE: the function has an RDMA device of its own, " + dev.Name,
			Field: "rdma.softRoCE", Found: "true for " + g.what(),
		}
	case dev == nil:
		return g.noDevice()
	}
	if p := g.device(*dev); p != nil {
		return p
	}
	if !moves(g.conf, g.facts) {
		return nil
	}
	return g.movable(*dev)
}

// noDevice is no fault of an attachment that does not ask for RDMA.
func (g guard) noDevice() *netconf.Problem {
	r := g.conf.RDMA
	required := r.Require == netconf.RequireActive || r.Require == netconf.RequireGID
	if wantsSoft(g.conf) || r.Mode != netconf.RDMAMove && !required {
		return nil
	}
	p := &netconf.Problem{
		Code:   netconf.CodeDevice,
		Remedy: "load the RDMA driver of the device, use a device that does RDMA, or remove rdma.mode and rdma.require",
		Field:  "rdma.mode", Found: fmt.Sprintf("%q for %s, which has no RDMA device", r.Mode, g.what()),
	}
	if required {
		p.Field, p.Found = "rdma.require", fmt.Sprintf("%q for %s, which has no RDMA device", r.Require, g.what())
	}
	return p
}

// device holds in both modes.
func (g guard) device(dev RDMA) *netconf.Problem {
	p := &netconf.Problem{Code: netconf.CodeDevice, Field: "RDMA device " + dev.Name + " of " + g.what()}
	switch {
	case dev.NS == Pod && g.conf.Kind == netconf.KindChained:
		p.Remedy = "take the plugin that moves the RDMA device, rdma-cni perhaps, out of the chain: podfabric moves it"
		p.Found, p.Right = "in the pod already", "at home until podfabric moves it"
	case dev.NS != Host:
		p.Code = netconf.CodeTryLater
		p.Remedy = "wait for the RDMA device to come home, or bring it home; podfabricctl show tells which namespace has it"
		p.Found, p.Right = "in another network namespace", "at home, in the node's own network namespace"
		if dev.NS == Pod {
			p.Found = "in this very pod"
		}
	case len(dev.Beside) > 0:
		p.Remedy = "use a device with one RDMA device, or set rdma.mode to off"
		p.Found, p.Right = "beside it "+strings.Join(dev.Beside, ", "), "1: which of them belongs to the netdev cannot be told"
	case dev.Ports > 1:
		p.Remedy = "use a device with one RDMA port, or set rdma.mode to off"
		p.Found, p.Right = fmt.Sprintf("%d ports", dev.Ports), "1: which port is the netdev's cannot be told to the pod"
	case dev.NodeGUID == ZeroGUID:
		g.noGUID(p)
	default:
		return nil
	}
	return p
}

// noGUID says how a device gets a node GUID: its driver makes one of the MAC that it finds when it is bound.
func (g guard) noGUID(p *netconf.Problem) {
	fn := g.facts.Function
	p.Found = "node GUID " + ZeroGUID
	switch {
	case !fn.VF:
		p.Remedy = "give the device a MAC, then unbind and bind its driver: it has no node GUID"
	default:
		p.Remedy = "give the virtual function an administrative MAC on its PF, then unbind and bind its driver: it has no node GUID"
		if fn.PFLink != "" {
			p.Right = fmt.Sprintf("ip link set %s vf %d mac ADDRESS, before the driver is bound", fn.PFLink, fn.Number)
		}
	}
}

// movable holds for a device that is to be moved. In shared mode others may well have it open.
func (g guard) movable(dev RDMA) *netconf.Problem {
	if len(dev.Users) > 0 && !g.node.Overrides(g.facts.Function.ID) {
		return &netconf.Problem{
			Code:   netconf.CodeInUse,
			Remedy: "end the processes that have the RDMA device open: moving it would break their connections",
			Field:  "RDMA device " + dev.Name + " of " + g.pci(),
			Found:  "open in " + strings.Join(dev.Users, ", "), Right: "opened by nobody",
		}
	}
	if g.node.Uverbs == netconf.UverbsAgent {
		return nil
	}
	return uverbsShift(g.facts)
}

// Steady refuses when moving the RDMA device of f now would change the number of its uverbs device: the container's device node
// was chosen by the number it has at home. Guard asks the same earlier; whoever moves asks again while nobody else can.
func Steady(f Facts) error {
	if p := uverbsShift(f); p != nil {
		return p
	}
	return nil
}

// Promised gives the uverbs number by which a container was given the RDMA device that is to be moved, when f are the facts of the first
// look; -1: none is at stake.
func Promised(c netconf.Conf, n netconf.Node, f Facts) int {
	if n.Uverbs == netconf.UverbsAgent || !moves(c, f) {
		return -1
	}
	return f.RDMA.Uverbs
}

// Kept refuses when an RDMA device has another uverbs number than it had: in its move, since a lower one became free between the look
// and the move, as when somebody else takes the driver off a device; or between two tries to make a pod, since a move undone gives the
// device the lowest free number too.
func Kept(was int, now Facts) error {
	is := now.RDMA
	if was < 0 || is == nil || was == is.Uverbs {
		return nil
	}
	return &netconf.Problem{
		Code: netconf.CodeUverbs,
		Remedy: "delete the pod: the number of its device changed while the pod was made; if it is refused again, " +
			"run podfabricctl repair on the node",
		Field: "RDMA device " + is.Name + " of " + now.Function.ID.String(),
		Found: fmt.Sprintf("uverbs%d, while the container was given /dev/infiniband/uverbs%d", is.Uverbs, was),
		Right: "the number that it had before",
	}
}

func uverbsShift(f Facts) *netconf.Problem {
	if f.RDMA == nil || f.RDMA.NS != Host || f.RDMA.Uverbs < 0 {
		return nil
	}
	next := NextUverbs(f.Uverbs, f.RDMA.Uverbs)
	if next == f.RDMA.Uverbs {
		return nil
	}
	return &netconf.Problem{
		Code: netconf.CodeUverbs,
		Remedy: "delete the pod, then run podfabricctl repair on the node, which closes the hole in the uverbs numbers; " +
			"if the hole closes by itself, the runtime's next try succeeds",
		Field: "RDMA device " + f.RDMA.Name + " of " + f.Function.ID.String(),
		Found: fmt.Sprintf("uverbs%d, which would become uverbs%d while the container was given /dev/infiniband/uverbs%d",
			f.RDMA.Uverbs, next, f.RDMA.Uverbs),
		Right: "no free number below its own",
	}
}

// NextUverbs is the number that a device numbered own has after a move, when inUse are the numbers on the node: the kernel
// frees own and then takes the lowest that is free (cni-anchors.md §4.3, review.md lab 3).
func NextUverbs(inUse []int, own int) int {
	for n := range own {
		if !slices.Contains(inUse, n) {
			return n
		}
	}
	return own
}
