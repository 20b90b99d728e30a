// SPDX-License-Identifier: Apache-2.0

package attachtest_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
	"github.com/podfabric/podfabric/rdmans/pci"
)

func pf(n uint8) pci.Addr { return pci.Addr{Bus: 1, Device: n} }

// masters has two PFs, ens1f0 with mlx5_0 and ens1f1 with mlx5_1, VLAN ens1f0.100, a dummy, and two pods.
func masters(t *testing.T, mode attach.Mode) (*attachtest.Kernel, *attachtest.Session) {
	t.Helper()
	k := attachtest.New(mode)
	k.AddPF(attachtest.PF{PCI: pf(0), Link: "ens1f0", MTU: 9000, RDMA: "mlx5_0"})
	k.AddPF(attachtest.PF{PCI: pf(1), Link: "ens1f1", RDMA: "mlx5_1"})
	k.AddVLAN("ens1f0", "ens1f0.100", 100)
	k.AddLink("", "dummy0")
	k.AddNetNS(podA)
	k.AddNetNS(podB)
	return k, open(t, k, podA)
}

// lower finds a link at home as a selector does.
func lower(t *testing.T, s *attachtest.Session, name string) attach.Lower {
	t.Helper()
	links, err := s.Links(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if l.Name == name {
			return attach.Lower{Name: name, Index: l.Index}
		}
	}
	t.Fatalf("no link %s in %+v", name, links)
	return attach.Lower{}
}

const ownMAC = "02:11:22:33:44:55"

func addMacvlan(t *testing.T, s *attachtest.Session, master, name, mac string) attach.AddLink {
	t.Helper()
	return attach.AddLink{
		Kind: "macvlan", Master: lower(t, s, master), Link: at(attach.Pod, name), Mode: "bridge", MAC: mac,
	}
}

func addIpvlan(t *testing.T, s *attachtest.Session, master, name string) attach.AddLink {
	t.Helper()
	return attach.AddLink{Kind: "ipvlan", Master: lower(t, s, master), Link: at(attach.Pod, name), Mode: "l2"}
}

// own looks at an attachment on a master.
func own(t *testing.T, s *attachtest.Session, step attach.AddLink) attach.Facts {
	t.Helper()
	f, err := s.Observe(t.Context(), attach.Query{
		Master: step.Master, Own: attach.OwnLink{Kind: step.Kind, Name: step.Link.Name, MAC: step.MAC},
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The errnos of macvlan and the names were seen on Linux 6.18 (ip link add ... in a fresh namespace), those of ipvlan are of
// drivers/net/ipvlan/ipvlan_main.c, ipvlan_link_new. Nothing is made of what is refused, unlike a move (style.md M4).
func TestAddLinkRefusals(t *testing.T) {
	t.Parallel()
	type world = func(*testing.T, *attachtest.Kernel, *attachtest.Session)
	tests := []struct {
		name    string
		setup   world
		change  func(*attach.AddLink)
		want    error
		noCalls bool
	}{
		{name: "name taken", want: syscall.EEXIST, setup: func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.AddLink(podA, "net1") }},
		{name: "name taken by another macvlan", want: syscall.EEXIST, setup: func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) {
			k.MakeMacvlan(podA, "net1", "ens1f0")
		}},
		{name: "name taken by an alternative one", want: syscall.EEXIST, setup: func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) {
			k.AddVF(attachtest.VF{ID: fn(0), Link: "vf0"})
			k.Give(fn(0), podA, "eth7")
			k.SetAltNames(fn(0), "net1")
		}},
		{name: "MTU above the master's", want: syscall.EINVAL, change: func(s *attach.AddLink) { s.MTU = 9001 }},
		{name: "unknown mode", want: syscall.EINVAL, change: func(s *attach.AddLink) { s.Mode = "brige" }},
		{name: "ipvlan mode of another kind", want: syscall.EINVAL, change: func(s *attach.AddLink) { s.Kind = "ipvlan" }},
		{name: "unknown kind", want: syscall.EOPNOTSUPP, change: func(s *attach.AddLink) { s.Kind = "macvtap" }},
		{name: "group MAC", want: syscall.EADDRNOTAVAIL, change: func(s *attach.AddLink) { s.MAC = "01:00:00:00:00:11" }},
		{name: "IPoIB master", want: syscall.EINVAL, setup: func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) {
			k.SetType("ens1f0", "infiniband")
		}},
		{name: "passthru on a master in use", want: syscall.EINVAL, change: func(s *attach.AddLink) { s.Mode = "passthru" }, setup: func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) {
			k.MakeMacvlan(podB, "net1", "ens1f0")
		}},
		{name: "beside a passthru", want: syscall.EINVAL, setup: func(t *testing.T, k *attachtest.Kernel, _ *attachtest.Session) {
			t.Helper()
			b := open(t, k, podB)
			must(t, b, attach.AddLink{Kind: "macvlan", Master: lower(t, b, "ens1f0"), Link: at(attach.Pod, "net1"), Mode: "passthru"})
		}},
		{name: "beside an ipvlan", want: syscall.EBUSY, setup: func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) {
			k.MakeIpvlan(podB, "net1", "ens1f0")
		}},
		{name: "on a port of a bond", want: syscall.EBUSY, setup: func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) {
			k.AddBond("bond0", "ens1f0", "ens1f1")
		}},
		{name: "pod dead", want: attach.ErrConflict, noCalls: true, setup: func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) {
			k.KillNetNS(podA)
		}},
		{name: "master away", want: attach.ErrConflict, noCalls: true, setup: func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) {
			k.Give(busOf(0), podB, "eth0")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k, s := masters(t, attach.Shared)
			step := addMacvlan(t, s, "ens1f0", "net1", ownMAC)
			if tt.change != nil {
				tt.change(&step)
			}
			if tt.setup != nil {
				tt.setup(t, k, s)
			}
			before, calls := k.Dump(), k.Changes()
			if err := s.Apply(t.Context(), step); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if diff := cmp.Diff(before, k.Dump()); diff != "" {
				t.Errorf("something was left (-before +after):\n%s", diff)
			}
			if got := k.Changes() - calls; got == 0 != tt.noCalls {
				t.Errorf("%d calls", got)
			}
		})
	}
}

// Every kind of master; a step makes one call, none when its state holds, and its reverse leaves what was before.
func TestAddLink(t *testing.T) {
	t.Parallel()
	for _, master := range []string{"ens1f0", "ens1f0.100", "bond0", "dummy0"} {
		for _, kind := range []string{"macvlan", "ipvlan"} {
			t.Run(kind+" on "+master, func(t *testing.T) {
				t.Parallel()
				k, s := masters(t, attach.Shared)
				k.AddPF(attachtest.PF{PCI: pf(2), Link: "ens1f2", MTU: 4200})
				k.AddBond("bond0", "ens1f2", "ens1f1")
				step := addMacvlan(t, s, master, "net1", ownMAC)
				if kind == "ipvlan" {
					step = addIpvlan(t, s, master, "net1")
				}
				before, calls := k.Dump(), k.Changes()
				must(t, s, step, step)
				f := own(t, s, step)
				if f.Master == nil || f.Link == nil || f.Master.Name != master {
					t.Fatalf("facts %+v", f)
				}
				want := attach.Link{
					Place: at(attach.Pod, "net1"), Index: f.Link.Index, Type: "ether", Kind: kind, MAC: ownMAC, MTU: f.Master.MTU,
				}
				if kind == "ipvlan" {
					want.MAC = f.Master.MAC
				}
				if diff := cmp.Diff(&want, f.Link); diff != "" {
					t.Errorf("link (-want +got):\n%s", diff)
				}
				must(t, s, step.Reverse(), step.Reverse())
				if got := k.Changes() - calls; got != 2 {
					t.Errorf("%d calls", got)
				}
				if diff := cmp.Diff(before, k.Dump()); diff != "" {
					t.Errorf("after the reverse (-before +after):\n%s", diff)
				}
			})
		}
	}
}

// macvlan_dev_real_dev: one on another sits on that one's master.
func TestMacvlanOnMacvlan(t *testing.T) {
	t.Parallel()
	k, s := masters(t, attach.Shared)
	k.MakeMacvlan("", "mv0", "ens1f0")
	step := addMacvlan(t, s, "mv0", "net1", ownMAC)
	must(t, s, step, step)
	if got := behind(t, s, "net1").Master.Name; got != "ens1f0" || k.Changes() != 1 {
		t.Errorf("on %s, %d calls", got, k.Changes())
	}
}

// macvlan_common_newlink: a passthru has its master's MAC whatever was asked for, and setting it sets the master's.
func TestPassthru(t *testing.T) {
	t.Parallel()
	_, s := masters(t, attach.Shared)
	step := addMacvlan(t, s, "ens1f0", "net1", "")
	step.Mode = "passthru"
	must(t, s, step, step)
	f := own(t, s, step)
	if f.Link == nil || f.Link.MAC != f.Master.MAC {
		t.Fatalf("link %+v on %+v", f.Link, f.Master)
	}
	must(t, s, attach.SetMAC{Link: step.Link, From: f.Link.MAC, To: ownMAC})
	if f = own(t, s, step); f.Link.MAC != ownMAC || f.Master.MAC != ownMAC {
		t.Errorf("link %+v on %+v", f.Link, f.Master)
	}
}
