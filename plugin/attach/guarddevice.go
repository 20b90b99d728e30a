// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"strings"

	"github.com/podfabric/podfabric/netconf"
)

// function refuses a device that does not exist. It may still come: after a boot kubelet is faster than the drivers and whoever
// creates VFs.
func (g guard) function() *netconf.Problem {
	fn := g.facts.Function
	if fn.Exists {
		return nil
	}
	right := "a function below /sys/bus/pci/devices"
	if fn.ID.SF() {
		right = "a sub-function below /sys/bus/auxiliary/devices"
	}
	return &netconf.Problem{
		Code:   netconf.CodeTryLater,
		Remedy: "create the " + g.noun() + ", or ask for one that exists; the runtime tries again by itself",
		Field:  "deviceID", Found: fn.ID.String() + ", which does not exist", Right: right,
	}
}

// virtual refuses what is no VF.
func (g guard) virtual() *netconf.Problem {
	fn := g.facts.Function
	if fn.VF {
		return nil
	}
	return &netconf.Problem{
		Code:   netconf.CodeDevice,
		Remedy: `give the address of a virtual function in deviceID, or set "link": "device" to give the whole device to the pod`,
		Field:  "deviceID", Found: fn.ID.String() + ", which is no virtual function but a whole device, perhaps a PF",
		Right: "one of the addresses below /sys/bus/pci/devices/" + fn.ID.String() + "/virtfn*",
	}
}

// allowed holds the PF against the node's list: that of a VF or sub-function, or the device itself. What is behind a chained
// interface may be no device at all.
func (g guard) allowed() *netconf.Problem {
	fn := g.facts.Function
	if fn.ID.IsZero() {
		return nil
	}
	pf, text := fn.PF, "a "+g.noun()+" of "+fn.PF.String()
	if pf.IsZero() {
		pf, text = fn.ID.PCI, "a whole device"
	}
	if g.node.AllowsPF(pf) {
		return nil
	}
	return &netconf.Problem{
		Code:   netconf.CodeDevice,
		Remedy: "use a device of a PF that allow.pfs of " + netconf.NodePath + " lists, or add its PF there",
		Field:  "deviceID", Found: fn.ID.String() + ", " + text,
	}
}

func (g guard) driver() *netconf.Problem {
	fn := g.facts.Function
	p := &netconf.Problem{Code: netconf.CodeDevice, Field: "driver of " + fn.ID.String(), Found: fn.Driver}
	switch {
	case fn.Driver == "":
		p.Code = netconf.CodeTryLater
		p.Remedy = "bind the " + g.noun() + " to its network driver; if the node has just booted, the runtime tries again by itself"
		p.Found = "none bound"
		p.Right = "the vendor's network driver, such as mlx5_core"
	case fn.Userspace() || fn.Driver == "pci-stub":
		p.Remedy = "bind the " + g.noun() + " to its network driver: one bound to " + fn.Driver + " has no interface to give to a pod"
		p.Right = "the vendor's network driver, such as mlx5_core"
	default:
		return nil
	}
	return p
}

// infiniband is the type of an IPoIB link, as ip(8) prints it.
const infiniband = "infiniband"

// infiniband comes before link, since an InfiniBand VF may have no netdev at all. What another plugin made is left to it as long
// as RDMA is not asked for.
func (g guard) infiniband() *netconf.Problem {
	link, dev := g.facts.Link, g.facts.RDMA
	if (link == nil || link.Type != infiniband) && (dev == nil || dev.LinkLayer != "InfiniBand") {
		return nil
	}
	p := &netconf.Problem{
		Code:   netconf.CodeDevice,
		Remedy: "use ib-sriov-cni for InfiniBand: its order of GUID, rebind and IPoIB is another, and podfabric does RoCE only",
		Field:  "link layer of " + g.what(), Found: "InfiniBand", Right: "Ethernet",
	}
	if g.conf.Kind == netconf.KindChained {
		if g.conf.RDMA.Mode == netconf.RDMAOff {
			return nil
		}
		p.Remedy = "set rdma.mode to off behind a plugin for InfiniBand: podfabric does RoCE only"
	}
	return p
}

func (g guard) link() *netconf.Problem {
	p := &netconf.Problem{
		Code: netconf.CodeTryLater, Field: "netdev of " + g.pci(), Right: "at home, in the node's own network namespace",
	}
	link := g.facts.Link
	switch {
	case link == nil:
		p.Remedy = "wait for the device's netdev: its driver may still be making it, or a pod that ended may still hold it; " +
			"podfabricctl show tells"
		p.Found = "none in any namespace that can be seen"
	case link.NS == Pod:
		p.Remedy = "delete the pod that has the device already, or ask for another device"
		p.Found = link.Name + " in this very pod"
	case link.NS != Host:
		p.Remedy = "wait for the device to come home, or bring it home; podfabricctl show tells which namespace has it"
		p.Found = link.Name + " in another network namespace"
	default:
		return nil
	}
	return p
}

func (g guard) inUse() *netconf.Problem {
	if len(g.facts.Link.InUse) == 0 || g.node.Overrides(g.facts.Function.ID) {
		return nil
	}
	return &netconf.Problem{
		Code:   netconf.CodeInUse,
		Remedy: "use a device that the node itself does not use, or list this one in overrideGuards of " + netconf.NodePath,
		Field:  "netdev " + g.facts.Link.Name + " of " + g.pci(), Found: strings.Join(g.facts.Link.InUse, ", "), Right: "idle",
	}
}

// hasVFs refuses a PF with VFs: while its netdev is in a pod nobody can set or reset anything of a VF [review.md 13, lab 8].
func (g guard) hasVFs() *netconf.Problem {
	fn := g.facts.Function
	if fn.NumVFs == 0 || g.node.Overrides(fn.ID) {
		return nil
	}
	return &netconf.Problem{
		Code: netconf.CodeInUse,
		Remedy: "use one of its virtual functions, or remove them, or list the device in overrideGuards of " + netconf.NodePath +
			": without its netdev at home no VF can be set up or put back",
		Field: "VFs of " + g.pci(), Found: fmt.Sprint(fn.NumVFs), Right: "0",
	}
}
