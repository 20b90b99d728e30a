// SPDX-License-Identifier: Apache-2.0

//go:build lab

// Package kernelshared_test is what plugin/kernel and rdmans do on a real kernel in shared mode.
package kernelshared_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/e2e/guest/node"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/kernel"
	"github.com/podfabric/podfabric/rdmans"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

//lab:boot pfs=1 vfs=2 mode=shared

func init() { node.Main() }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSharedModeMovesNothing(t *testing.T) {
	ns := node.NewNS(t)
	s, err := kernel.New().Open(t.Context(), ns.Path)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	a, err := pci.Parse(node.VF(t, 1, 0))
	must(t, err)
	before, err := s.Observe(t.Context(), attach.Query{Device: bus.PCI(a)})
	must(t, err)
	if before.Mode != attach.Shared || before.RDMA == nil || before.RDMA.NS != attach.Host {
		t.Fatalf("%+v, RDMA %+v", before, before.RDMA)
	}
	machine, err := kernel.New().Snapshot(t.Context())
	must(t, err)
	move := attach.MoveRDMA{Index: before.RDMA.Index, GUID: before.RDMA.NodeGUID, Name: before.RDMA.Name, From: attach.Host, To: attach.Pod}
	if got := s.Apply(t.Context(), move); !errors.Is(got, rdmans.ErrShared) {
		t.Errorf("step: %v, want %v", got, rdmans.ErrShared)
	}
	must(t, s.Apply(t.Context(), move.Reverse())) // home is where it is

	// The kernel's own refusal, without our looking at the mode first.
	self, err := rdmans.Self()
	must(t, err)
	pod, err := rdmans.OpenNS(ns.Path)
	must(t, err)
	if got := rdmans.In(self).Move(before.RDMA.Index, pod); !errors.Is(got, rdmans.ErrShared) {
		t.Errorf("kernel: %v, want %v", got, rdmans.ErrShared)
	}
	must(t, pod.Close())
	after, err := kernel.New().Snapshot(t.Context())
	must(t, err)
	if diff := cmp.Diff([]string(nil), kernel.Diff(machine, after)); diff != "" {
		t.Errorf("changed:\n%s", diff)
	}

	link := attach.MoveLink{Device: bus.PCI(a), From: before.Link.Place, To: attach.Place{NS: attach.Pod, Name: "net1"}}
	for _, step := range []attach.Step{
		link, attach.AddAddr{Link: link.To, Addr: netip.MustParsePrefix("10.9.0.7/24")}, attach.SetUp{Link: link.To, To: true},
	} {
		must(t, s.Apply(t.Context(), step))
	}
	for _, from := range []attach.NS{attach.Host, attach.Pod} {
		node.Wait(t, "the address' GID in the view of "+string(from), func() bool {
			ports, portsErr := s.Ports(t.Context(), from, before.RDMA.Name)
			must(t, portsErr)
			return slices.ContainsFunc(ports[0].GIDs, func(g attach.GID) bool {
				return g.Addr == netip.MustParseAddr("::ffff:10.9.0.7") && g.Type == attach.RoCEv2
			})
		})
	}
	there, err := s.Observe(t.Context(), attach.Query{Device: bus.PCI(a)})
	must(t, err)
	if there.RDMA == nil || there.RDMA.NS != attach.Host || there.Link.NS != attach.Pod {
		t.Errorf("link %+v, RDMA %+v", there.Link, there.RDMA)
	}
	must(t, s.Apply(t.Context(), link.Reverse()))
}

// Two macvlans of two pods on one PF: both look at the PF's RDMA device, which stays at home, and each finds its own GID there.
func TestTwoLinksOnOneMaster(t *testing.T) {
	name := node.Netdev(node.PF(t, 1))
	device := node.IBDev(node.PF(t, 1))
	used := map[int]string{}
	for i, ip := range []string{"10.9.0.21", "10.9.0.22"} {
		ns := node.NewNS(t)
		s, err := kernel.New().Open(t.Context(), ns.Path)
		must(t, err)
		t.Cleanup(func() { must(t, s.Close()) })
		links, err := s.Links(t.Context())
		must(t, err)
		at := slices.IndexFunc(links, func(l attach.Candidate) bool { return l.Name == name })
		if at < 0 {
			t.Fatalf("no link %s", name)
		}
		add := attach.AddLink{
			Kind: "macvlan", Mode: "bridge", MAC: []string{"02:00:00:00:0f:01", "02:00:00:00:0f:02"}[i],
			Master: attach.Lower{Name: name, Index: links[at].Index}, Link: attach.Place{NS: attach.Pod, Name: "net1"},
		}
		for _, step := range []attach.Step{
			add,
			attach.SetSysctl{NS: attach.Pod, Key: "net/ipv6/conf/net1/addr_gen_mode", To: "1"},
			attach.AddAddr{Link: add.Link, Addr: netip.PrefixFrom(netip.MustParseAddr(ip), 24)},
			attach.SetUp{Link: add.Link, To: true},
		} {
			must(t, s.Apply(t.Context(), step))
		}
		f, err := s.Observe(t.Context(), attach.Query{
			Master: add.Master, Own: attach.OwnLink{Kind: add.Kind, Name: add.Link.Name, MAC: add.MAC},
		})
		must(t, err)
		if f.RDMA == nil || f.RDMA.Name != device || f.RDMA.NS != attach.Host || f.Link == nil || len(f.Link.Addrs) != 1 || f.Mode != attach.Shared {
			t.Errorf("RDMA device %+v, link %+v", f.RDMA, f.Link)
		}
		index := -1
		node.Wait(t, "the GID of "+ip, func() bool {
			ports, err := s.Ports(t.Context(), attach.Pod, device)
			must(t, err)
			for _, g := range ports[0].GIDs {
				if g.Addr == netip.MustParseAddr("::ffff:"+ip) && g.Type == attach.RoCEv2 && g.Netdev == "net1" {
					index = g.Index
				}
			}
			return index >= 0
		})
		t.Logf("%s has index %d", ip, index)
		if other, taken := used[index]; taken {
			t.Errorf("%s has index %d, as %s", ip, index, other)
		}
		used[index] = ip
		t.Cleanup(func() { must(t, s.Apply(context.WithoutCancel(t.Context()), add.Reverse())) })
	}
}
