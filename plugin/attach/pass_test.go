// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"testing"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

func TestGuardLetsPass(t *testing.T) {
	t.Parallel()
	type (
		C = netconf.Conf
		N = netconf.Node
		F = attach.Facts
	)
	tests := []struct {
		name   string
		change func(*C, *N, *F)
	}{
		{"what is good", func(*C, *N, *F) {}},
		{"move in an exclusive node", func(c *C, _ *N, _ *F) { c.RDMA.Mode = netconf.RDMAMove }},
		{"share in a shared node", func(c *C, _ *N, f *F) { c.RDMA.Mode, f.Mode = netconf.RDMAShare, attach.Shared }},
		{"RDMA off without modules", func(c *C, _ *N, f *F) { c.RDMA.Mode, f.Mode, f.RDMA = netconf.RDMAOff, attach.NoRDMA, nil }},
		{"RDMA off and a device that is everything wrong", func(c *C, _ *N, f *F) {
			c.RDMA.Mode = netconf.RDMAOff
			f.RDMA = &attach.RDMA{Name: "x", NS: attach.Elsewhere, Ports: 2, NodeGUID: attach.ZeroGUID, Users: []string{"a"}, Uverbs: 9}
		}},
		{"a VF without RDMA", func(_ *C, _ *N, f *F) { f.RDMA = nil }},
		{"soft RoCE on a VF without RDMA", func(c *C, _ *N, f *F) { c.RDMA.SoftRoCE, f.RDMA = true, nil }},
		{"soft RoCE that is required", func(c *C, _ *N, f *F) {
			c.RDMA.SoftRoCE, c.RDMA.Require, f.RDMA = true, netconf.RequireActive, nil
		}},
		{"in use, and the node's owner says so", func(_ *C, n *N, f *F) {
			n.OverrideGuards = []bus.ID{vf()}
			f.Link.InUse, f.RDMA.Users = []string{"it carries the default route"}, []string{"a (pid 1)"}
		}},
		{"open in shared mode, where every pod may open all", func(_ *C, _ *N, f *F) { f.Mode, f.RDMA.Users = attach.Shared, []string{"a (pid 1)"} }},
		{"a hole in the numbers, and the agent delivers nodes", func(_ *C, n *N, f *F) { n.Uverbs, f.Uverbs = netconf.UverbsAgent, []int{2} }},
		{"a hole in the numbers in shared mode", func(_ *C, _ *N, f *F) { f.Mode, f.Uverbs = attach.Shared, []int{2} }},
		{"the PF's MTU", func(c *C, _ *N, _ *F) { c.MTU.FromPF = true }},
		{"an MTU that equals the PF's", func(c *C, _ *N, _ *F) { c.MTU.Bytes = 4200 }},
		{"an MTU with the PF away", func(c *C, _ *N, f *F) { c.MTU.Bytes, f.Function.PFMTU = 9000, 0 }},
		{"lists that hold it", func(_ *C, n *N, _ *F) { n.Allow.PFs, n.Allow.Kinds = []pci.Addr{pf()}, []netconf.Kind{netconf.KindVF} }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, n, f := conf(), netconf.Node{}, good()
			tt.change(&c, &n, &f)
			if err := attach.Guard(c, n, "net1", f); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNextUverbs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		inUse []int
		own   int
		want  int
	}{
		{[]int{0}, 0, 0},
		{[]int{0, 1, 2}, 2, 2},
		{[]int{0, 1, 2}, 0, 0},
		{[]int{1, 2}, 2, 0},
		{[]int{0, 2, 3}, 3, 1},
		{[]int{0, 1, 3, 4}, 1, 1}, // the hole is above
		{[]int{0, 1, 2, 3, 4, 5, 15}, 15, 6},
		{[]int{0, 1, 2, 4, 5, 6}, 6, 3},
		{nil, 3, 0}, // numbers that are not known are taken for free
	}
	for _, tt := range tests {
		if got := attach.NextUverbs(tt.inUse, tt.own); got != tt.want {
			t.Errorf("uverbs%d among %v becomes uverbs%d, want %d", tt.own, tt.inUse, got, tt.want)
		}
	}
}

func TestSteady(t *testing.T) {
	t.Parallel()
	f := good()
	if err := attach.Steady(f); err != nil {
		t.Error(err)
	}
	f.Uverbs = []int{1, 2}
	if p := problem(t, attach.Steady(f)); p.Code != netconf.CodeUverbs {
		t.Errorf("code %d", p.Code)
	}
	for name, change := range map[string]func(*attach.RDMA){
		"moved already": func(d *attach.RDMA) { d.NS = attach.Pod }, "no uverbs": func(d *attach.RDMA) { d.Uverbs = -1 },
	} {
		g := good()
		g.Uverbs = []int{1, 2}
		change(g.RDMA)
		if err := attach.Steady(g); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := attach.Steady(attach.Facts{}); err != nil {
		t.Errorf("no device: %v", err)
	}
}

// TestPromised: a number is at stake where podfabric moves an RDMA device of which the container has the device node.
func TestPromised(t *testing.T) {
	t.Parallel()
	shared, none := good(), good()
	shared.Mode, none.RDMA = attach.Shared, nil
	for name, tt := range map[string]struct {
		conf netconf.Conf
		node netconf.Node
		f    attach.Facts
		want int
	}{
		"moves":             {conf(), netconf.Node{}, good(), 2},
		"an agent delivers": {conf(), netconf.Node{Uverbs: netconf.UverbsAgent}, good(), -1},
		"stays at home":     {conf(), netconf.Node{}, shared, -1},
		"no device":         {conf(), netconf.Node{}, none, -1},
		"RDMA is off":       {conf(func(c *netconf.Conf) { c.RDMA.Mode = netconf.RDMAOff }), netconf.Node{}, good(), -1},
	} {
		if got := attach.Promised(tt.conf, tt.node, tt.f); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
	now := good()
	now.RDMA.Uverbs = 15
	for was, refused := range map[int]bool{-1: false, 15: false, 2: true} {
		if err := attach.Kept(was, now); (err != nil) != refused {
			t.Errorf("uverbs15 that was %d: %v", was, err)
		}
	}
	if err := attach.Kept(2, attach.Facts{}); err != nil {
		t.Errorf("no device: %v", err)
	}
}
