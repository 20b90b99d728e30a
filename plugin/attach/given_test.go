// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// TestOwed has what is put back of a device without a record, and what is left because somebody else may have set it. Expected steps are
// worked out by hand from the words of attach.Owed.
func TestOwed(t *testing.T) {
	t.Parallel()
	id := bus.PCI(pci.Addr{Bus: 0x3b, Function: 3})
	start := func() attach.Facts {
		return attach.Facts{
			Mode:     attach.Exclusive,
			Function: attach.Function{ID: id, Exists: true, Driver: "mlx5_core", VF: true, Number: 1, PF: pci.Addr{Bus: 0x3b}, Inode: 5},
			Link: &attach.Link{
				Place: attach.Place{NS: attach.Host, Name: "eth3"}, Type: "ether", MAC: "02:00:00:00:00:03", MTU: 1500, Up: true,
			},
			RDMA: &attach.RDMA{Index: 3, Name: "mlx5_3", NS: attach.Host, NodeGUID: "0200:00ff:fe00:0003"},
			VF:   &attach.VFState{MAC: "00:00:00:00:00:00", Proto: "802.1q", Spoofchk: true, LinkState: "auto"},
		}
	}
	given := attach.Given{
		Name: "net1", MAC: "02:00:00:00:00:99", MTU: 9000, Moved: true,
		VF: &attach.VFState{MAC: "00:00:00:00:00:00", VLAN: 100, Proto: "802.1q", Spoofchk: true, Trust: true, LinkState: "auto"},
	}
	// left is what a dead pod left, and the kernel brought home.
	left := func() attach.Facts {
		now := start()
		now.Link.Name, now.Link.MAC, now.Link.MTU, now.Link.Up = "net1", given.MAC, given.MTU, false
		state := *given.VF
		now.VF = &state
		now.HostLinks, now.HostRDMA = []string{"net1"}, []string{"mlx5_3"}
		return now
	}
	tests := []struct {
		name string
		do   func(now *attach.Facts)
		want []string
	}{
		{"as the pod left it", func(*attach.Facts) {}, []string{
			"move link 0000:3b:00.3 host/net1 -> host/eth3, mtu 9000 -> 1500",
			"set vlan of vf 1 of 0000:3b:00.0: 100 qos 0 proto 802.1q -> 0 qos 0 proto 802.1q",
			"set trust of vf 1 of 0000:3b:00.0: on -> off",
			"set mac of host/eth3 02:00:00:00:00:99 -> 02:00:00:00:00:03",
			"set host/eth3 up",
		}},
		{"another VLAN since", func(now *attach.Facts) { now.VF.VLAN = 7 }, []string{
			"move link 0000:3b:00.3 host/net1 -> host/eth3, mtu 9000 -> 1500",
			"set trust of vf 1 of 0000:3b:00.0: on -> off",
			"set mac of host/eth3 02:00:00:00:00:99 -> 02:00:00:00:00:03",
			"set host/eth3 up",
		}},
		{"its own name back, another MTU since", func(now *attach.Facts) { now.Link.Name, now.Link.MTU = "eth3", 4000 }, []string{
			"set vlan of vf 1 of 0000:3b:00.0: 100 qos 0 proto 802.1q -> 0 qos 0 proto 802.1q",
			"set trust of vf 1 of 0000:3b:00.0: on -> off",
			"set mac of host/eth3 02:00:00:00:00:99 -> 02:00:00:00:00:03",
		}},
		{"driver bound again: what the PF keeps alone", func(now *attach.Facts) {
			now.RDMA.Index, now.Link.Name, now.Link.MAC, now.Link.MTU = 9, "eth3", "02:00:00:00:00:03", 1500
		}, []string{
			"set vlan of vf 1 of 0000:3b:00.0: 100 qos 0 proto 802.1q -> 0 qos 0 proto 802.1q",
			"set trust of vf 1 of 0000:3b:00.0: on -> off",
		}},
		{"another function", func(now *attach.Facts) { now.Function.Inode = 6 }, nil},
		{"all as before", func(now *attach.Facts) { *now = start() }, nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			now := left()
			tc.do(&now)
			var got []string
			for _, s := range attach.Owed(start(), given, now) {
				got = append(got, s.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHoldingWords: many holders are counted, and a namespace is named by its inode, since a path may be another's by then.
func TestHoldingWords(t *testing.T) {
	t.Parallel()
	in := attach.NetNS{Path: "/proc/71/ns/net", Dev: 4, Ino: 4026532246}
	one := attach.Holding{What: "netdev net1", NS: in, By: []string{"sleep (pid 71)"}}
	two := attach.Holding{What: "RDMA device mlx5_3", NS: in, By: []string{"sleep (pid 71)"}}
	many := attach.Holding{What: "netdev net1", NS: in, By: []string{"a (pid 1)", "b (pid 2)", "c (pid 3)", "d (pid 4)", "e (pid 5)", "f (pid 6)"}}
	none := attach.Holding{What: "netdev of 0000:3b:00.3"}
	for got, want := range map[string]string{
		attach.HeldBy([]attach.Holding{one, two}):  "held by sleep (pid 71) in net:[4026532246]",
		attach.HeldBy([]attach.Holding{many}):      "held by a (pid 1), b (pid 2), c (pid 3), d (pid 4) and 2 more in net:[4026532246]",
		attach.HeldBy([]attach.Holding{none}):      "held in no namespace that can be seen",
		attach.HeldBy(nil):                         "",
		attach.Holders([]attach.Holding{one, two}): "sleep (pid 71)",
		attach.Holders([]attach.Holding{none}):     "",
		one.String():                               "netdev net1 is in net:[4026532246], held by sleep (pid 71)",
		none.String():                              "netdev of 0000:3b:00.3 is in no namespace that can be seen",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
