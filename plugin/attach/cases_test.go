// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"encoding/json"
	"net/netip"
	"slices"
	"testing"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

const podPath = "/run/netns/pod-a"

func vf() bus.ID      { return bus.PCI(pci.Addr{Bus: 0x3b, Device: 0x10}) }
func otherVF() bus.ID { return bus.PCI(pci.Addr{Bus: 0x3b, Device: 0x10, Function: 1}) }
func plainVF() bus.ID { return bus.PCI(pci.Addr{Bus: 0x3b, Device: 0x10, Function: 2}) }
func pf() pci.Addr    { return pci.Addr{Bus: 0x3b} }

// node is a machine with a PF, a VF with an RDMA device, its neighbour, a VF without one, and a pod.
func node(mode attach.Mode) *attachtest.Kernel {
	k := attachtest.New(mode)
	k.AddPF(attachtest.PF{PCI: pf(), Link: "ens1f0", MTU: 9000, RDMA: "mlx5_0"})
	k.AddVF(attachtest.VF{ID: vf(), PF: pf(), Number: 0, Link: "ens1f0v0", RDMA: "mlx5_1"})
	k.AddVF(attachtest.VF{ID: otherVF(), PF: pf(), Number: 1, Link: "ens1f0v1", RDMA: "mlx5_2"})
	k.AddVF(attachtest.VF{ID: plainVF(), PF: pf(), Number: 2, Link: "ens1f0v2"})
	k.AddNetNS(podPath)
	return k
}

// planned is one kind of plan.
type planned struct {
	name  string
	mode  attach.Mode
	conf  netconf.Conf
	addrs attach.Addresses
	soft  string
	setup func(*attachtest.Kernel)
	moves bool // the function's own RDMA device goes into the pod
}

func conf(change ...func(*netconf.Conf)) netconf.Conf {
	c := netconf.Conf{
		Name: "rail0", Kind: netconf.KindVF, Device: vf(), RDMA: netconf.RDMA{Mode: netconf.RDMAAuto},
		Request: netconf.Request{ContainerID: "c1", IfName: "net1", NetNS: podPath},
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func address(prefix string) netconf.Address {
	return netconf.Address{Prefix: netip.MustParsePrefix(prefix)}
}

func toRoute(dst, via string) netconf.Route {
	r := netconf.Route{Dst: netip.MustParsePrefix(dst)}
	if via != "" {
		r.Via = netip.MustParseAddr(via)
	}
	return r
}

// addressed are one IPv4 address, one IPv6 address, and both with routes.
func addressed() (v4, v6, dual attach.Addresses) { //nolint:nonamedreturns // tells the three apart
	v4 = attach.Addresses{Addrs: []netconf.Address{address("10.1.0.5/24")}}
	v6 = attach.Addresses{Addrs: []netconf.Address{address("fd00:1::5/64")}}
	dual = attach.Addresses{
		Addrs: []netconf.Address{address("10.1.0.5/24"), address("fd00:1::5/64")},
		Routes: []netconf.Route{
			toRoute("10.2.0.0/16", "10.1.0.1"), toRoute("10.3.0.0/24", ""), toRoute("fd00:2::/64", "fd00:1::1"), toRoute("fd00:3::/64", "fe80::1"),
		},
	}
	return v4, v6, dual
}

func plans() []planned { return slices.Concat(moved(), settings(), upper()) }

// moved are the plans of what goes into a pod whole, with nothing set through the PF.
func moved() []planned {
	v4, v6, dual := addressed()
	soft := func(c *netconf.Conf) { c.RDMA.SoftRoCE, c.Device = true, plainVF() }
	name := attach.SoftName(attach.Owner{ContainerID: "c1", IfName: "net1"})
	return []planned{
		{name: "exclusive", mode: attach.Exclusive, conf: conf(), addrs: v4, moves: true},
		{name: "exclusive-move", mode: attach.Exclusive, conf: conf(func(c *netconf.Conf) { c.RDMA.Mode = netconf.RDMAMove }), addrs: v4, moves: true},
		{name: "exclusive-off", mode: attach.Exclusive, conf: conf(func(c *netconf.Conf) { c.RDMA.Mode = netconf.RDMAOff }), addrs: v4},
		{name: "exclusive-ipv6", mode: attach.Exclusive, conf: conf(), addrs: v6, moves: true, setup: func(k *attachtest.Kernel) { k.DisableIPv6(podPath) }},
		{name: "exclusive-dual-routes", mode: attach.Exclusive, conf: conf(), addrs: dual, moves: true},
		{name: "exclusive-no-address", mode: attach.Exclusive, conf: conf(), moves: true},
		{
			name: "exclusive-mtu-pf-up", mode: attach.Exclusive, addrs: v4, moves: true,
			conf:  conf(func(c *netconf.Conf) { c.MTU.FromPF = true }),
			setup: func(k *attachtest.Kernel) { k.SetLink(vf(), "", 0, true) },
		},
		{name: "exclusive-mtu-number", mode: attach.Exclusive, addrs: v4, moves: true, conf: conf(func(c *netconf.Conf) { c.MTU.Bytes = 4200 })},
		{name: "shared", mode: attach.Shared, conf: conf(), addrs: v4},
		{name: "shared-share", mode: attach.Shared, conf: conf(func(c *netconf.Conf) { c.RDMA.Mode = netconf.RDMAShare }), addrs: dual},
		{name: "no-rdma-device", mode: attach.Exclusive, conf: conf(func(c *netconf.Conf) { c.Device = plainVF() }), addrs: v4},
		{name: "soft-roce", mode: attach.Exclusive, conf: conf(soft), addrs: v4, soft: name},
		{
			name: "soft-roce-dual-mtu-up", mode: attach.Exclusive, addrs: dual, soft: name,
			conf:  conf(soft, func(c *netconf.Conf) { c.MTU.FromPF = true }),
			setup: func(k *attachtest.Kernel) { k.SetLink(plainVF(), "", 0, true) },
		},
	}
}

// scene is a plan on its machine, not run yet.
type scene struct {
	planned
	query  attach.Query
	k      *attachtest.Kernel
	s      *attachtest.Session
	before attach.Facts
	start  string
	steps  []attach.Step
}

func play(t *testing.T, p planned) *scene {
	t.Helper()
	sc := &scene{planned: p, k: node(p.mode)}
	if p.setup != nil {
		p.setup(sc.k)
	}
	sc.s = open(t, sc.k, podPath)
	sc.query = ask(t, sc.s, p)
	sc.before = sc.observe(t, sc.s)
	if err := attach.Guard(p.conf, netconf.Node{}, p.conf.Request.IfName, sc.before); err != nil {
		t.Fatalf("Guard: %v", err)
	}
	sc.start = sc.k.Dump()
	sc.steps = attach.Plan(p.conf, sc.before, p.addrs, p.soft)
	return sc
}

func open(t *testing.T, k *attachtest.Kernel, path string) *attachtest.Session {
	t.Helper()
	s, err := k.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func observe(t *testing.T, s *attachtest.Session, dev bus.ID, soft string) attach.Facts {
	t.Helper()
	f, err := s.Observe(t.Context(), attach.Query{Device: dev, Soft: soft})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// recorded is f as a record gives it back.
func recorded(t *testing.T, f attach.Facts) attach.Facts {
	t.Helper()
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var out attach.Facts
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// home observes and restores from what a record holds, as DEL does.
func (sc *scene) home(t *testing.T, s *attachtest.Session) error {
	t.Helper()
	now := sc.observe(t, s)
	return attach.RunAll(t.Context(), s, attach.Restore(recorded(t, sc.before), now))
}
