// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// masterRefusals are of macvlans and ipvlans.
func masterRefusals() []kindRefusal {
	return []kindRefusal{
		{onMaster, refusal{
			"kind of link not allowed", func(_ changeConf, n changeNode, _ changeFact) { n.Allow.Kinds = []netconf.Kind{netconf.KindVF} },
			netconf.CodeInvalid, "use a kind of attachment that allow.kinds", "link", `"macvlan"`, "",
		}},
		{onMaster, refusal{
			"master gone", func(_ changeConf, _ changeNode, f changeFact) { f.Master = nil },
			netconf.CodeTryLater, "make the link that the interface is to sit on", "master", "none: it is not there any more", "",
		}},
		{onMaster, refusal{
			"master not allowed", func(_ changeConf, n changeNode, _ changeFact) { n.Allow.Masters = []string{"ens2f0", "ens3f0"} },
			netconf.CodeDevice, "use a link that allow.masters of /etc/podfabric/node.json lists", "master", "ens1f0", "one of ens2f0, ens3f0",
		}},
		{onMaster, refusal{
			"IPoIB", func(_ changeConf, _ changeNode, f changeFact) { f.Master.Name, f.Master.Type = "ib0", "infiniband" },
			netconf.CodeDevice, "use ipoib-cni or ib-sriov-cni on InfiniBand", "master", "ib0, an IPoIB link", "an Ethernet link",
		}},
		{onMaster, refusal{
			"no subsystem", func(_ changeConf, _ changeNode, f changeFact) {
				f.Mode, f.RDMA, f.Master.RDMA = attach.NoRDMA, nil, nil
			},
			netconf.CodeNoRDMA, "load ib_core", "rdma.mode", `"auto" on a node without an RDMA subsystem`, "",
		}},
		{onMaster, refusal{
			"moving what is everybody's", func(c changeConf, _ changeNode, _ changeFact) { c.RDMA.Mode = netconf.RDMAMove },
			netconf.CodeInvalid, "set rdma.mode to auto, or use a VF", "rdma.mode", `"move" for an interface on master ens1f0`, "",
		}},
		{onMaster, refusal{
			"soft RoCE above a device", func(c changeConf, _ changeNode, f changeFact) { c.RDMA.SoftRoCE, f.Mode = true, attach.Exclusive },
			netconf.CodeDevice, "remove rdma.softRoCE: there is a real RDMA device below the interface", "rdma.softRoCE",
			"true on master ens1f0, behind which is mlx5_0", "",
		}},
		{onMaster, refusal{
			"a bond of two devices", func(_ changeConf, _ changeNode, f changeFact) {
				f.Master.Name, f.Master.Kind, f.Master.RDMA = "bond0", "bond", []string{"mlx5_0", "mlx5_1"}
			},
			netconf.CodeDevice, "use a master with one RDMA device behind it, or set rdma.mode to off", "master",
			"bond0, behind which is mlx5_0 and mlx5_1", "one RDMA device",
		}},
		{onMaster, refusal{
			"an exclusive node", func(_ changeConf, _ changeNode, f changeFact) { f.Mode = attach.Exclusive },
			netconf.CodeMode, "use a VF, or run podfabricctl mode set shared on the node, or set rdma.mode to off", "rdma.mode",
			`"auto" on a node in exclusive mode, on master ens1f0, behind which is mlx5_0`, "shared mode",
		}},
		{onMaster, refusal{
			"sharing nothing in an exclusive node", func(c changeConf, _ changeNode, f changeFact) {
				c.RDMA.Mode, f.Mode, f.RDMA, f.Master.RDMA = netconf.RDMAShare, attach.Exclusive, nil, nil
			},
			netconf.CodeMode, "run podfabricctl mode set shared on the node, or set rdma.mode to off", "rdma.mode",
			`"share" on a node in exclusive mode`, "shared mode",
		}},
		{onMaster, refusal{
			"RDMA required and none below", func(c changeConf, _ changeNode, f changeFact) {
				c.RDMA.Require, f.RDMA, f.Master.RDMA = netconf.RequireActive, nil, nil
			},
			netconf.CodeDevice, "load the RDMA driver of the device", "rdma.require", `"active" for master ens1f0, which has no RDMA device`, "",
		}},
		{onMaster, refusal{
			"RDMA device below is away", func(_ changeConf, _ changeNode, f changeFact) { f.RDMA.NS = attach.Elsewhere },
			netconf.CodeTryLater, "wait for the RDMA device to come home", "RDMA device mlx5_0 of master ens1f0",
			"in another network namespace", "at home",
		}},
		{onMaster, refusal{
			"MTU above the master's", func(c changeConf, _ changeNode, _ changeFact) { c.MTU.Bytes = 9001 },
			netconf.CodeInvalid, "raise the MTU of master ens1f0 on the node, or lower mtu", "mtu", "9001", "at most 9000, which is the master's",
		}},
		{onMaster, refusal{
			"a name in the pod already", func(_ changeConf, _ changeNode, f changeFact) { f.PodLinks = []string{"eth0", "lo", "net1"} },
			netconf.CodeNameTaken, "give this attachment another interface name", "CNI_IFNAME", "net1, which the pod has already", "eth0, lo, net1",
		}},
	}
}

// chainRefusals are of what another plugin made.
func chainRefusals() []kindRefusal {
	const there = "chain podfabric behind a plugin that gives a device, a macvlan or an ipvlan to the pod, or set rdma.mode to off"
	return []kindRefusal{
		{behindVF, refusal{
			"no interface", func(_ changeConf, _ changeNode, f changeFact) { f.Link, f.PodLinks = nil, []string{"eth0", "lo"} },
			netconf.CodeInvalid, "put podfabric behind the plugin that makes the interface", "CNI_IFNAME", "net1, which is not in the pod",
			"one of eth0, lo",
		}},
		{behindMacvlan, refusal{
			"no macvlan", func(_ changeConf, _ changeNode, f changeFact) { f.Link, f.PodLinks = nil, []string{"eth0", "lo"} },
			netconf.CodeInvalid, "put podfabric behind the plugin that makes the interface", "CNI_IFNAME", "net1, which is not in the pod",
			"one of eth0, lo",
		}},
		{behindVF, refusal{
			"a representor", func(_ changeConf, _ changeNode, f changeFact) {
				f.Function.VF, f.Link.Place = false, attach.Place{NS: attach.Host, Name: "ens1f0"}
			},
			netconf.CodeDevice, "put podfabric behind a plugin that gives the device's own interface to the pod", "CNI_IFNAME",
			"net1, which is not the netdev of 0000:3b:10.0", "",
		}},
		{behindVF, refusal{
			"another link of the device in the pod", func(_ changeConf, _ changeNode, f changeFact) { f.Link.Name = "net2" },
			netconf.CodeDevice, "put podfabric behind a plugin that gives the device's own interface to the pod", "CNI_IFNAME",
			"net1, which is not the netdev of 0000:3b:10.0", "",
		}},
		{behindVeth, refusal{
			"nothing behind", func(c changeConf, _ changeNode, _ changeFact) { c.RDMA.Mode = netconf.RDMAAuto },
			netconf.CodeDevice, there, "CNI_IFNAME", "net1, a veth", "",
		}},
		{behindVeth, refusal{
			"nothing that can be seen behind", func(c changeConf, _ changeNode, f changeFact) { c.RDMA.Mode, f.Link = netconf.RDMAAuto, nil },
			netconf.CodeDevice, there, "CNI_IFNAME", "net1", "",
		}},
		{behindVF, refusal{
			"another device than named", func(c changeConf, _ changeNode, _ changeFact) { c.Device = otherVF() },
			netconf.CodeInvalid, "remove deviceID, or give it to the plugin before podfabric too", "deviceID",
			"0000:3b:10.1, and interface net1 is of 0000:3b:10.0", "",
		}},
		{behindMacvlan, refusal{
			"another master than named", func(c changeConf, _ changeNode, _ changeFact) { c.Device = vf() },
			netconf.CodeInvalid, "remove deviceID, or give it to the plugin before podfabric too", "deviceID",
			"0000:3b:10.0, and interface net1 is of 0000:3b:00.0", "",
		}},
		{behindVF, refusal{
			"a PF that is not allowed, chained", func(_ changeConf, n changeNode, _ changeFact) { n.Allow.PFs = []pci.Addr{} },
			netconf.CodeDevice, "use a device of a PF that allow.pfs", "deviceID", "0000:3b:10.0, a virtual function of 0000:3b:00.0", "",
		}},
		{behindVF, refusal{
			"InfiniBand, chained", func(_ changeConf, _ changeNode, f changeFact) { f.RDMA.LinkLayer = "InfiniBand" },
			netconf.CodeDevice, "set rdma.mode to off behind a plugin for InfiniBand", "link layer of 0000:3b:10.0", "InfiniBand", "Ethernet",
		}},
		{behindMacvlan, refusal{
			"an ipoib interface", func(_ changeConf, _ changeNode, f changeFact) { f.Link.Type = "infiniband" },
			netconf.CodeDevice, "set rdma.mode to off behind a plugin for InfiniBand", "link layer of master ens1f0", "InfiniBand", "Ethernet",
		}},
		{behindMacvlan, refusal{
			"an exclusive node, chained", func(_ changeConf, _ changeNode, f changeFact) { f.Mode = attach.Exclusive },
			netconf.CodeMode, "use a VF, or run podfabricctl mode set shared", "rdma.mode",
			`"auto" on a node in exclusive mode, on master ens1f0, behind which is mlx5_0`, "shared mode",
		}},
		{behindVF, refusal{
			"moved by rdma-cni", func(_ changeConf, _ changeNode, f changeFact) { f.RDMA.NS = attach.Pod },
			netconf.CodeDevice, "take the plugin that moves the RDMA device, rdma-cni perhaps, out of the chain", "RDMA device mlx5_4 of 0000:3b:10.0",
			"in the pod already", "at home until podfabric moves it",
		}},
		{behindVF, refusal{
			"sharing in an exclusive node, chained", func(c changeConf, _ changeNode, _ changeFact) { c.RDMA.Mode = netconf.RDMAShare },
			netconf.CodeMode, "set rdma.mode to auto or move", "rdma.mode", `"share" on a node in exclusive mode`, "shared mode",
		}},
		{behindVF, refusal{
			"uverbs would shift, chained", func(_ changeConf, _ changeNode, f changeFact) { f.Uverbs = []int{0, 2} },
			netconf.CodeUverbs, "delete the pod, then run podfabricctl repair", "RDMA device mlx5_4 of 0000:3b:10.0",
			"uverbs2, which would become uverbs1 while the container was given /dev/infiniband/uverbs2", "free number below",
		}},
		{behindVeth, refusal{
			"soft RoCE behind a veth in a shared node", func(c changeConf, _ changeNode, f changeFact) {
				c.RDMA.Mode, c.RDMA.SoftRoCE, f.Mode = netconf.RDMAAuto, true, attach.Shared
			},
			netconf.CodeMode, "run podfabricctl mode set exclusive on the node, or remove rdma.softRoCE", "rdma.softRoCE",
			"true on a node in shared mode", "exclusive mode",
		}},
	}
}
