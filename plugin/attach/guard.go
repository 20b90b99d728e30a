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
	for _, check := range []func() *netconf.Problem{
		g.kind, g.function, g.driver, g.infiniband, g.link, g.inUse, g.subsystem, g.mode, g.rdma, g.mtu, g.name,
	} {
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

// function refuses what is no VF. One that does not exist may still come: after a boot kubelet is faster than the drivers and
// whoever creates VFs.
func (g guard) function() *netconf.Problem {
	fn := g.facts.Function
	p := &netconf.Problem{Code: netconf.CodeDevice, Field: "deviceID", Found: fn.ID.String()}
	switch {
	case !fn.Exists:
		p.Code = netconf.CodeTryLater
		p.Remedy = "create the virtual function, or ask for one that exists; the runtime tries again by itself"
		p.Found += ", which does not exist"
		p.Right = "a function below /sys/bus/pci/devices"
	case !fn.VF:
		p.Remedy = "give the address of a virtual function in deviceID"
		p.Found += ", which is no virtual function but a whole device, perhaps a PF"
		p.Right = "one of the addresses below /sys/bus/pci/devices/" + fn.ID.String() + "/virtfn*"
	case !g.node.AllowsPF(fn.PF):
		p.Remedy = "use a device of a PF that allow.pfs of " + netconf.NodePath + " lists, or add its PF there"
		p.Found += ", a virtual function of " + fn.PF.String()
	default:
		return nil
	}
	return p
}

func (g guard) driver() *netconf.Problem {
	fn := g.facts.Function
	p := &netconf.Problem{Code: netconf.CodeDevice, Field: "driver of " + fn.ID.String(), Found: fn.Driver}
	switch {
	case fn.Driver == "":
		p.Code = netconf.CodeTryLater
		p.Remedy = "bind the virtual function to its network driver; if the node has just booted, the runtime tries again by itself"
		p.Found = "none bound"
		p.Right = "the vendor's network driver, such as mlx5_core"
	case strings.Contains(fn.Driver, "vfio") || strings.Contains(fn.Driver, "uio") || fn.Driver == "pci-stub":
		p.Remedy = "bind the virtual function to its network driver: one bound to " + fn.Driver + " has no interface to give to a pod"
		p.Right = "the vendor's network driver, such as mlx5_core"
	default:
		return nil
	}
	return p
}

// infiniband comes before link, since an InfiniBand VF may have no netdev at all.
func (g guard) infiniband() *netconf.Problem {
	link, dev := g.facts.Link, g.facts.RDMA
	if (link == nil || link.Type != "infiniband") && (dev == nil || dev.LinkLayer != "InfiniBand") {
		return nil
	}
	return &netconf.Problem{
		Code:   netconf.CodeDevice,
		Remedy: "use ib-sriov-cni for InfiniBand: its order of GUID, rebind and IPoIB is another, and podfabric does RoCE only",
		Field:  "link layer of " + g.pci(), Found: "InfiniBand", Right: "Ethernet",
	}
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
