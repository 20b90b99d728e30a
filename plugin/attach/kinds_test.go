// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"testing"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

func sf() bus.ID        { return bus.ID{Aux: "mlx5_core.sf.4"} }
func wholePF() pci.Addr { return pci.Addr{Bus: 0x5e} }

// ownMAC is echo -n c1/net1 | sha256sum, and 02 before it.
const ownMAC = "02:ca:3e:d8:3f:20"

// ask is how an attachment is looked at: what plugin finds out once, by name, before it begins.
func ask(t *testing.T, s *attachtest.Session, p planned) attach.Query {
	t.Helper()
	q := attach.Query{Device: p.conf.Device, Soft: p.soft, VF: p.conf.AsksPF()}
	switch p.conf.Kind {
	case netconf.KindMacvlan, netconf.KindIPVlan:
		links, err := s.Links(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		master, err := attach.Pick(p.conf.Master, netconf.Node{}, links)
		if err != nil {
			t.Fatal(err)
		}
		q.Device, q.Master = bus.ID{}, attach.Lower{Name: master.Name, Index: master.Index}
		q.Own = attach.OwnLink{Kind: string(p.conf.Kind), Name: "net1"}
		if p.conf.Kind == netconf.KindMacvlan && p.conf.Macvlan.Mode != netconf.MacvlanPassthru {
			if q.Own.MAC = p.conf.MAC; q.Own.MAC == "" {
				q.Own.MAC = ownMAC
			}
		}
	case netconf.KindChained:
		behind, err := s.Behind(t.Context(), "net1")
		if err != nil {
			t.Fatal(err)
		}
		q.Device, q.Master, q.Own = behind.Device, behind.Master, attach.OwnLink{Kind: behind.Kind, Name: "net1", MAC: behind.MAC}
		if !q.Device.IsZero() {
			q.Master, q.Own = attach.Lower{}, attach.OwnLink{}
		}
	case netconf.KindVF, netconf.KindDevice:
	}
	return q
}

func (sc *scene) observe(t *testing.T, s *attachtest.Session) attach.Facts {
	t.Helper()
	f, err := s.Observe(t.Context(), sc.query)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// everything is a configuration of every VF setting.
func everything(c *netconf.Conf) {
	c.MAC = "02:00:00:00:aa:01"
	c.VF = netconf.VFSettings{
		VLAN: new(100), QoS: new(3), Proto: netconf.Proto8021AD, Spoofchk: new(false), Trust: new(true),
		LinkState: netconf.LinkEnable, MinTxRate: new(100), MaxTxRate: new(1000),
	}
}

// leftover is what an earlier tool left.
func leftover() attach.VFState {
	return attach.VFState{
		MAC: "02:00:00:00:bb:01", VLAN: 7, QoS: 1, Proto: "802.1ad", Spoofchk: false, Trust: true, LinkState: "disable", MinTxRate: 5, MaxTxRate: 50,
	}
}

// settings are the plans of VFs whose PF is asked for something, and of whole devices.
func settings() []planned {
	v4, _, _ := addressed()
	device := func(id bus.ID, more ...func(*netconf.Conf)) netconf.Conf {
		return conf(append(more, func(c *netconf.Conf) { c.Kind, c.Device = netconf.KindDevice, id })...)
	}
	return []planned{
		{name: "vf-settings", mode: attach.Exclusive, conf: conf(everything), addrs: v4, moves: true},
		{
			name: "vf-one-setting", mode: attach.Shared, conf: conf(func(c *netconf.Conf) { c.VF.VLAN = new(0) }), addrs: v4,
			setup: func(k *attachtest.Kernel) { k.SetVFState(vf(), leftover()) },
		},
		{
			name: "vf-baseline-reset", mode: attach.Exclusive, addrs: v4, moves: true,
			conf:  conf(func(c *netconf.Conf) { c.VF.Baseline, c.VF.MaxTxRate = netconf.BaselineReset, new(10) }),
			setup: func(k *attachtest.Kernel) { k.SetVFState(vf(), leftover()); k.SetLink(vf(), "", 0, true) },
		},
		{
			name: "vf-userspace", mode: attach.Exclusive, addrs: v4,
			conf:  conf(everything, func(c *netconf.Conf) { c.Device = plainVF() }),
			setup: func(k *attachtest.Kernel) { k.Rebind(plainVF(), "vfio-pci") },
		},
		{
			name: "device-pf", mode: attach.Exclusive, addrs: v4, moves: true,
			conf: device(bus.PCI(wholePF()), func(c *netconf.Conf) { c.MAC, c.MTU.Bytes = "02:00:00:00:aa:02", 9000 }),
			setup: func(k *attachtest.Kernel) {
				k.AddPF(attachtest.PF{PCI: wholePF(), Link: "ens2f0", RDMA: "mlx5_3"})
				k.SetAltNames(bus.PCI(wholePF()), "enp94s0f0")
			},
		},
		{
			name: "device-sf", mode: attach.Exclusive, addrs: v4, moves: true, conf: device(sf()),
			setup: func(k *attachtest.Kernel) {
				k.AddSF(attachtest.SF{ID: sf(), PF: pf(), Link: "en3f0pf0sf88", RDMA: "mlx5_3"})
			},
		},
		{name: "device-shared", mode: attach.Shared, addrs: v4, conf: device(vf())},
	}
}

// upper are the plans of links on a master.
func upper() []planned {
	v4, v6, dual := addressed()
	on := func(kind netconf.Kind, master string, more ...func(*netconf.Conf)) netconf.Conf {
		return conf(append([]func(*netconf.Conf){func(c *netconf.Conf) {
			c.Kind, c.Device, c.Master = kind, bus.ID{}, netconf.Selector{Key: "master", Name: master}
		}}, more...)...)
	}
	off := func(c *netconf.Conf) { c.RDMA.Mode = netconf.RDMAOff }
	soft := attach.SoftName(attach.Owner{ContainerID: "c1", IfName: "net1"})
	const mac, ip = netconf.KindMacvlan, netconf.KindIPVlan
	return []planned{
		{name: "macvlan", mode: attach.Shared, conf: on(mac, "ens1f0"), addrs: v4},
		{name: "macvlan-ipv6", mode: attach.Shared, conf: on(mac, "ens1f0"), addrs: v6},
		{name: "macvlan-no-address", mode: attach.Shared, conf: on(mac, "ens1f0", func(c *netconf.Conf) { c.MTU.FromPF = true })},
		{name: "macvlan-exclusive-off", mode: attach.Exclusive, conf: on(mac, "ens1f0", off), addrs: v4},
		{
			name: "macvlan-everything", mode: attach.Shared, addrs: dual, conf: on(mac, "ens1f0", func(c *netconf.Conf) {
				c.Macvlan = netconf.Macvlan{Mode: netconf.MacvlanPrivate, BCQueueLen: new(4000)}
				c.MAC, c.MTU.Bytes, c.RDMA.Mode = "02:00:00:00:aa:03", 4200, netconf.RDMAShare
			}),
		},
		{
			name: "macvlan-passthru", mode: attach.Shared, addrs: v4,
			conf:  on(mac, "ens1f0v2", func(c *netconf.Conf) { c.Macvlan.Mode = netconf.MacvlanPassthru }),
			setup: func(k *attachtest.Kernel) { k.SetLink(plainVF(), "", 0, true) },
		},
		{
			name: "macvlan-vlan", mode: attach.Shared, addrs: v4, conf: on(mac, "ens1f0.100"),
			setup: func(k *attachtest.Kernel) { k.AddVLAN("ens1f0", "ens1f0.100", 100) },
		},
		{
			name: "macvlan-soft-roce", mode: attach.Exclusive, addrs: v4, soft: soft,
			conf:  on(mac, "ens1f0v2", func(c *netconf.Conf) { c.RDMA.SoftRoCE = true }),
			setup: func(k *attachtest.Kernel) { k.SetLink(plainVF(), "", 0, true) },
		},
		{name: "ipvlan", mode: attach.Shared, conf: on(ip, "ens1f0"), addrs: v4},
		{
			name: "ipvlan-bond", mode: attach.Shared, addrs: v4, conf: on(ip, "bond0"),
			setup: func(k *attachtest.Kernel) { k.AddBond("bond0", "ens1f0v1", "ens1f0v2") },
		},
	}
}

// chains are the plans behind other plugins.
func chains() []planned {
	v4, _, _ := addressed()
	behind := func(more ...func(*netconf.Conf)) netconf.Conf {
		return conf(append([]func(*netconf.Conf){func(c *netconf.Conf) { c.Kind, c.Device = netconf.KindChained, bus.ID{} }}, more...)...)
	}
	sriov := func(k *attachtest.Kernel) {
		k.Give(vf(), podPath, "net1")
		k.PutAddr(podPath, "net1", v4.Addrs[0].Prefix)
	}
	soft := attach.SoftName(attach.Owner{ContainerID: "c1", IfName: "net1"})
	return []planned{
		{name: "chained-vf", mode: attach.Exclusive, conf: behind(), addrs: v4, setup: sriov, moves: true},
		{
			name: "chained-vf-named", mode: attach.Exclusive, addrs: v4, setup: sriov, moves: true,
			conf: behind(func(c *netconf.Conf) { c.Device, c.RDMA.Mode = vf(), netconf.RDMAMove }),
		},
		{name: "chained-vf-shared", mode: attach.Shared, conf: behind(), addrs: v4, setup: sriov},
		{name: "chained-vf-off", mode: attach.Exclusive, conf: behind(func(c *netconf.Conf) { c.RDMA.Mode = netconf.RDMAOff }), setup: sriov},
		{
			name: "chained-macvlan", mode: attach.Shared, conf: behind(), addrs: v4,
			setup: func(k *attachtest.Kernel) {
				k.MakeMacvlan(podPath, "net1", "ens1f0")
				k.PutAddr(podPath, "net1", v4.Addrs[0].Prefix)
			},
		},
		{
			name: "chained-ipvlan", mode: attach.Shared, conf: behind(), addrs: v4,
			setup: func(k *attachtest.Kernel) {
				k.MakeIpvlan(podPath, "net1", "ens1f0")
				k.PutAddr(podPath, "net1", v4.Addrs[0].Prefix)
			},
		},
		{
			name: "chained-soft-roce", mode: attach.Exclusive, soft: soft, conf: behind(func(c *netconf.Conf) { c.RDMA.SoftRoCE = true }),
			setup: func(k *attachtest.Kernel) { k.AddVeth(podPath, "net1") },
		},
	}
}

func pfID() bus.ID { return bus.PCI(pf()) }
