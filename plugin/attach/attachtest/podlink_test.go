// SPDX-License-Identifier: Apache-2.0

package attachtest_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
)

// A pod with CAP_NET_ADMIN may do all this. The step to delete finds the link by its MAC under any name; what is looked for by
// name alone is the reader's risk, so that a step that knows a MAC never takes another's link of its name.
func TestPodsChangeTheirLinks(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		do   func(*attachtest.Kernel)
		seen string // name of the link that Observe finds
		left bool   // a link under the name that ours had, after the reverse
	}{
		{"renamed", func(k *attachtest.Kernel) { k.RenamePodLink(podA, "net1", "data") }, "data", false},
		{"renamed, and another put in its place", func(k *attachtest.Kernel) {
			k.RenamePodLink(podA, "net1", "data")
			k.MakeMacvlan(podA, "net1", "ens1f0")
		}, "data", true},
		{"another MAC", func(k *attachtest.Kernel) { k.SetPodMAC(podA, "net1", "02:00:00:00:00:07") }, "net1", true},
		{"deleted", func(k *attachtest.Kernel) { k.DelPodLink(podA, "net1") }, "", false},
		{"deleted, and another of its MAC made", func(k *attachtest.Kernel) {
			k.DelPodLink(podA, "net1")
			k.MakeMacvlan(podA, "twin", "ens1f0")
			k.SetPodMAC(podA, "twin", ownMAC)
		}, "twin", false},
		{"a twin of its MAC beside it", func(k *attachtest.Kernel) {
			k.MakeMacvlan(podA, "a", "ens1f0")
			k.SetPodMAC(podA, "a", ownMAC)
		}, "net1", false},
		{"two twins, and none of its name", func(k *attachtest.Kernel) {
			k.MakeMacvlan(podA, "a", "ens1f0")
			k.SetPodMAC(podA, "a", ownMAC)
			k.RenamePodLink(podA, "net1", "b")
		}, "", false},
		{"another in its place on another master", func(k *attachtest.Kernel) {
			k.DelPodLink(podA, "net1")
			k.MakeMacvlan(podA, "net1", "ens1f1")
		}, "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k, s := masters(t, attach.Shared)
			step := addMacvlan(t, s, "ens1f0", "net1", ownMAC)
			must(t, s, step)
			tt.do(k)
			f, seen := own(t, s, step), ""
			if f.Link != nil {
				seen = f.Link.Name
			}
			if seen != tt.seen {
				t.Errorf("found %q, want %q", seen, tt.seen)
			}
			must(t, s, step.Reverse())
			if got := strings.Contains(k.Dump(), "link "+podA+"/net1 pci"); got != tt.left {
				t.Errorf("net1 left: %t\n%s", got, k.Dump())
			}
		})
	}
}

// cni-anchors.md §4.4: virtual links die with their namespace, never to be seen at home; and with their master (NETDEV_UNREGISTER
// in macvlan.c, ipvlan_main.c, 8021q/vlan.c), but not when it moves.
func TestEndsOfLinks(t *testing.T) {
	t.Parallel()
	made := func(t *testing.T) (*attachtest.Kernel, *attachtest.Session) {
		t.Helper()
		k, s := masters(t, attach.Shared)
		k.AddVLAN("ens1f1", "ens1f1.5", 5)
		must(t, s, addMacvlan(t, s, "ens1f0.100", "net1", ownMAC), addIpvlan(t, s, "ens1f1", "net2"))
		return k, s
	}
	count := func(k *attachtest.Kernel) int {
		return strings.Count(k.Dump(), " kind macvlan ") + strings.Count(k.Dump(), " kind ipvlan ")
	}
	tests := []struct {
		name string
		do   func(*attachtest.Kernel)
		want int
	}{
		{"namespace", func(k *attachtest.Kernel) { k.KillNetNS(podA) }, 0},
		{"driver of one PF", func(k *attachtest.Kernel) { k.Rebind(busOf(0), "") }, 1},
		{"other PF", func(k *attachtest.Kernel) { k.RemoveFunction(busOf(1)) }, 1},
		{"VLAN", func(k *attachtest.Kernel) { k.DelPodLink("", "ens1f0.100") }, 1},
		{"master moved and home again", func(k *attachtest.Kernel) { k.Give(busOf(0), podB, "x"); k.KillNetNS(podB) }, 2},
		{"master and links in one namespace", func(k *attachtest.Kernel) { k.Give(busOf(1), podA, "x"); k.KillNetNS(podA) }, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k, _ := made(t)
			tt.do(k)
			if got := count(k); got != tt.want {
				t.Errorf("%d left, want %d:\n%s", got, tt.want, k.Dump())
			}
		})
	}
	k, s := made(t)
	step := addMacvlan(t, s, "ens1f0.100", "net1", ownMAC)
	k.KillNetNS(podA)
	if err := s.Apply(t.Context(), step.Reverse()); !errors.Is(err, attach.ErrConflict) {
		t.Errorf("delete in a dead namespace: %v", err)
	}
	if f := own(t, s, step); f.Link != nil || f.Master == nil {
		t.Errorf("facts %+v", f)
	}
}

// Seen on Linux 6.18: the second of two macvlans with one MAC does not come up, nor does one take another's MAC while up. An
// ipvlan has no MAC to set, and an address but once on a master (ipvlan_main.c).
func TestAddressesOfUppers(t *testing.T) {
	t.Parallel()
	k, s := masters(t, attach.Shared)
	net1, net2 := at(attach.Pod, "net1"), at(attach.Pod, "net2")
	must(t, s, addMacvlan(t, s, "ens1f0", "net1", ownMAC), addMacvlan(t, s, "ens1f0", "net2", ownMAC), attach.SetUp{Link: net1, To: true})
	if err := s.Apply(t.Context(), attach.SetUp{Link: net2, To: true}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("up with the MAC of another: %v", err)
	}
	must(t, s, attach.SetMAC{Link: net2, To: "02:00:00:00:00:07"}, attach.SetUp{Link: net2, To: true})
	if err := s.Apply(t.Context(), attach.SetMAC{Link: net2, To: ownMAC}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("MAC of another: %v", err)
	}
	must(t, s, addIpvlan(t, s, "ens1f1", "i1"), addIpvlan(t, s, "ens1f1", "i2"))
	i1, i2 := at(attach.Pod, "i1"), at(attach.Pod, "i2")
	if err := s.Apply(t.Context(), attach.SetMAC{Link: i1, To: ownMAC}); !errors.Is(err, syscall.EOPNOTSUPP) {
		t.Errorf("MAC of an ipvlan: %v", err)
	}
	must(t, s, attach.AddAddr{Link: i1, Addr: prefix("10.0.0.1/24")})
	if err := s.Apply(t.Context(), attach.AddAddr{Link: i2, Addr: prefix("10.0.0.1/24")}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("address of another ipvlan: %v", err)
	}
	k.SetHostMTU("ens1f0", 1400)
	if f := own(t, s, addMacvlan(t, s, "ens1f0", "net1", ownMAC)); f.Link.MTU != 1400 {
		t.Errorf("MTU %d above the master's", f.Link.MTU)
	}
}
