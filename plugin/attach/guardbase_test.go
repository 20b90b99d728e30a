// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/bus"
)

type (
	changeConf = *netconf.Conf
	changeNode = *netconf.Node
	changeFact = *attach.Facts
)

// base is an attachment of one kind that nothing can be said against.
type base func() (netconf.Conf, attach.Facts)

// asking is a VF whose PF is asked for something.
func asking() (netconf.Conf, attach.Facts) {
	c, f := conf(func(c *netconf.Conf) { c.VF.VLAN = new(100) }), good()
	f.Function.ESwitch, f.Function.Resets = "legacy", true
	f.VF = &attach.VFState{MAC: "00:00:00:00:00:00", Proto: "802.1q", Spoofchk: true, LinkState: "auto"}
	f.Siblings = map[int]string{0: "00:00:00:00:00:00", 3: "02:00:00:00:cc:03"}
	return c, f
}

// program is a VF that a program drives.
func program() (netconf.Conf, attach.Facts) {
	c, f := asking()
	f.Function.Driver, f.Link, f.RDMA, f.Mode = "vfio-pci", nil, nil, attach.NoRDMA
	return c, f
}

// whole is a PF.
func whole() (netconf.Conf, attach.Facts) {
	c, f := conf(func(c *netconf.Conf) { c.Kind, c.Device = netconf.KindDevice, pfID() }), good()
	f.Function = attach.Function{ID: pfID(), Exists: true, Driver: "mlx5_core", Number: -1}
	f.Link.Name, f.RDMA.Name = "ens1f0", "mlx5_0"
	return c, f
}

// sub is a sub-function.
func sub() (netconf.Conf, attach.Facts) {
	c, f := whole()
	c.Device, f.Function.ID, f.Function.PF = sf(), sf(), pf()
	return c, f
}

// onMaster is a macvlan in a shared node.
func onMaster() (netconf.Conf, attach.Facts) {
	c, f := whole()
	c.Kind, c.Device, f.Mode, f.Link = netconf.KindMacvlan, bus.ID{}, attach.Shared, nil
	f.Master = &attach.Master{
		Name: "ens1f0", Index: 2, Type: "ether", Kind: "device", MAC: "02:54:00:3b:00:00", MTU: 9000, Up: true, RDMA: []string{"mlx5_0"},
	}
	return c, f
}

// behindVF is chained behind a plugin that moved a VF.
func behindVF() (netconf.Conf, attach.Facts) {
	c, f := conf(func(c *netconf.Conf) { c.Kind, c.Device = netconf.KindChained, bus.ID{} }), good()
	f.Link.Place, f.Link.Kind = attach.Place{NS: attach.Pod, Name: "net1"}, "device"
	f.PodLinks = []string{"eth0", "lo", "net1"}
	return c, f
}

// behindMacvlan is chained behind a macvlan.
func behindMacvlan() (netconf.Conf, attach.Facts) {
	c, f := onMaster()
	_, in := behindVF()
	c.Kind, f.Link, f.PodLinks = netconf.KindChained, in.Link, in.PodLinks
	f.Link.Kind = "macvlan"
	return c, f
}

// behindVeth is chained behind an interface with no device.
func behindVeth() (netconf.Conf, attach.Facts) {
	c, f := behindVF()
	c.RDMA.Mode = netconf.RDMAOff
	f.Function, f.RDMA, f.Link.Kind = attach.Function{}, nil, "veth"
	return c, f
}

func bases() map[string]base {
	return map[string]base{
		"asking": asking, "program": program, "whole": whole, "sub": sub, "onMaster": onMaster, "behindVF": behindVF,
		"behindMacvlan": behindMacvlan, "behindVeth": behindVeth,
	}
}
