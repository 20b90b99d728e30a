// SPDX-License-Identifier: Apache-2.0

package nccl_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/nccl"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// rail N is net<N> on mlx5_<N>, a VF of a PF of its own.
func rail(n int, table nccl.Table, want ...string) nccl.Rail {
	r := nccl.Rail{
		Name: fmt.Sprintf("net%d", n), HCA: nccl.HCA{Device: fmt.Sprintf("mlx5_%d", n), Port: 1},
		LinkLayer: nccl.EthernetLink, Table: table, PF: pci.Addr{Bus: uint8(0x10 * n)},
	}
	for _, w := range want {
		r.Want = append(r.Want, netip.MustParseAddr(w))
	}
	return r
}

func onShared(r nccl.Rail) nccl.Rail {
	r.Shared, r.PF = true, pci.Addr{}
	return r
}

// moved gives a table with every index raised by n, as a table has it after addresses came and went.
func moved(t nccl.Table, n int) nccl.Table {
	list := []nccl.GID{gid(0, "fe80::ff:fe00:9", nccl.RoCEv1)}
	for _, g := range t.List {
		g.Index += n
		list = append(list, g)
	}
	return nccl.Table{Size: t.Size, List: list}
}

// The results that design §9.6 and reference/nccl.md §3.4 state for each shape.
func TestDecide(t *testing.T) {
	t.Parallel()
	v4 := rail(1, vf("::ffff:10.1.0.5"), "10.1.0.5")
	second := rail(2, vf("::ffff:10.2.0.5"), "10.2.0.5")
	v6 := rail(1, vf("2001:db8::5"), "2001:db8::5")
	dual := rail(1, nccl.Table{Size: 256, List: append(vf("2001:db8::5").List,
		gid(4, "::ffff:10.1.0.5", nccl.RoCEv1), gid(5, "::ffff:10.1.0.5", nccl.RoCEv2))}, "10.1.0.5", "2001:db8::5")
	infiniband := nccl.Rail{Name: "net1", HCA: nccl.HCA{Device: "mlx5_1", Port: 1}, LinkLayer: "InfiniBand"}
	macvlan := func(hide bool) nccl.Rail {
		return onShared(rail(1, shared("::ffff:10.0.0.1", "::ffff:10.0.0.4", "::ffff:10.0.0.5", hide), "10.0.0.5"))
	}
	macvlan6 := func(hide bool) nccl.Rail {
		return onShared(rail(1, shared("2001:db8::1", "2001:db8::4", "2001:db8::5", hide), "2001:db8::5"))
	}
	taken := macvlan(false)
	taken.Table.List = append([]nccl.GID{}, taken.Table.List...)
	taken.Table.List[0] = gid(0, "::ffff:10.0.0.9", nccl.RoCEv2)
	free := macvlan(false)
	free.Table.List = free.Table.List[1:]
	samePF := rail(2, vf("::ffff:10.1.0.6"), "10.1.0.6")
	samePF.PF = v4.PF
	hostile := v4
	hostile.HCA.Device = "mlx5_0,mlx5_1"
	tc := 106

	tests := []struct {
		name    string
		rails   []nccl.Rail
		opts    nccl.Options
		want    string // NAME=VALUE, blank-separated
		noRight string // a part of the reason
	}{
		{name: "VF, IPv4", rails: []nccl.Rail{v4}, want: "NCCL_IB_HCA==mlx5_1:1"},
		{name: "two VFs, in rail order", rails: []nccl.Rail{second, v4}, want: "NCCL_IB_HCA==mlx5_2:1,mlx5_1:1"},
		{
			name: "two VFs with different indices", rails: []nccl.Rail{v4, rail(2, moved(vf("10.2.0.5"), 4), "10.2.0.5")},
			want: "NCCL_IB_HCA==mlx5_1:1,mlx5_2:1",
		},
		{name: "VF, IPv6 only", rails: []nccl.Rail{v6}, want: "NCCL_IB_HCA==mlx5_1:1 NCCL_IB_ADDR_FAMILY=AF_INET6"},
		{name: "VF, dual stack", rails: []nccl.Rail{dual}, want: "NCCL_IB_HCA==mlx5_1:1"},
		{
			name: "IPv6 only beside dual stack", rails: []nccl.Rail{dual, rail(2, vf("2001:db8:2::5"), "2001:db8:2::5")},
			want: "NCCL_IB_HCA==mlx5_1:1,mlx5_2:1 NCCL_IB_ADDR_FAMILY=AF_INET6",
		},
		{
			name: "families differ, index equal", rails: []nccl.Rail{v4, rail(2, vf("2001:db8::5"), "2001:db8::5")},
			want: "NCCL_IB_HCA==mlx5_1:1,mlx5_2:1 NCCL_IB_GID_INDEX=3",
		},
		{
			name:  "families differ, index too",
			rails: []nccl.Rail{v4, rail(2, moved(vf("2001:db8::5"), 2), "2001:db8::5")},
			want:  "NCCL_IB_HCA==mlx5_1:1,mlx5_2:1", noRight: "mlx5_1:1 [3], mlx5_2:1 [5]",
		},
		{
			name: "old NCCL, index equal", rails: []nccl.Rail{v4, second}, opts: nccl.Options{Oldest: version(t, "2.18.3")},
			want: "NCCL_IB_HCA==mlx5_1:1,mlx5_2:1 NCCL_IB_GID_INDEX=3",
		},
		{
			name:  "old NCCL, index differs",
			rails: []nccl.Rail{v4, rail(2, moved(vf("10.2.0.5"), 4), "10.2.0.5")}, opts: nccl.Options{Oldest: version(t, "2.20.5")},
			want: "NCCL_IB_HCA==mlx5_1:1,mlx5_2:1", noRight: "NCCL 2.20.5 knows only one index for all devices",
		},
		{
			name: "old NCCL, IPv6 only", rails: []nccl.Rail{v6}, opts: nccl.Options{Oldest: version(t, "2.12")},
			want: "NCCL_IB_HCA==mlx5_1:1 NCCL_IB_GID_INDEX=3",
		},
		{name: "one shared rail", rails: []nccl.Rail{macvlan(false)}, want: "NCCL_IB_HCA==mlx5_1:1 NCCL_IB_ADDR_RANGE=10.0.0.5/32"},
		{name: "one shared rail, types hidden", rails: []nccl.Rail{macvlan(true)}, want: "NCCL_IB_HCA==mlx5_1:1 NCCL_IB_ADDR_RANGE=10.0.0.5/32"},
		{
			name: "one shared rail, IPv6", rails: []nccl.Rail{macvlan6(false)},
			want: "NCCL_IB_HCA==mlx5_1:1 NCCL_IB_ADDR_RANGE=2001:db8::5/128 NCCL_IB_ADDR_FAMILY=AF_INET6",
		},
		{
			name: "one shared rail, IPv6, types hidden", rails: []nccl.Rail{macvlan6(true)},
			want: "NCCL_IB_HCA==mlx5_1:1", noRight: "NCCL 2.21 would not pick the pod's GID on mlx5_1:1 but abort: the type of index 0",
		},
		{
			name: "the same for versions that pass over it", rails: []nccl.Rail{macvlan6(true)}, opts: nccl.Options{Oldest: version(t, "2.26")},
			want: "NCCL_IB_HCA==mlx5_1:1 NCCL_IB_ADDR_RANGE=2001:db8::5/128 NCCL_IB_ADDR_FAMILY=AF_INET6",
		},
		{
			name: "one shared rail, old NCCL", rails: []nccl.Rail{macvlan(false)}, opts: nccl.Options{Oldest: version(t, "2.20.5")},
			want: "NCCL_IB_HCA==mlx5_1:1 NCCL_IB_GID_INDEX=11",
		},
		{
			name: "another pod at index 0, which no range gets past", rails: []nccl.Rail{taken},
			want: "NCCL_IB_HCA==mlx5_1:1", noRight: "but index 0",
		},
		{
			name: "another pod can come to index 0", rails: []nccl.Rail{free},
			want: "NCCL_IB_HCA==mlx5_1:1", noRight: "would not pick the pod's GID",
		},
		{
			name: "several shared rails", rails: []nccl.Rail{macvlan(false), second},
			want: "NCCL_IB_HCA==mlx5_1:1,mlx5_2:1", noRight: "mlx5_1:1 shared by pods",
		},
		{
			name: "a stale entry before the pod's own", rails: []nccl.Rail{rail(1, nccl.Table{List: append(vf("10.1.0.9").List,
				gid(4, "10.1.0.5", nccl.RoCEv1), gid(5, "10.1.0.5", nccl.RoCEv2))}, "10.1.0.5")},
			want: "NCCL_IB_HCA==mlx5_1:1", noRight: "but index 3",
		},
		{
			name: "soft RoCE has version 2 alone",
			rails: []nccl.Rail{rail(1, nccl.Table{Size: 1024, List: []nccl.GID{
				gid(0, "fe80::1", nccl.RoCEv2), gid(1, "::ffff:10.1.0.5", nccl.RoCEv2),
			}}, "10.1.0.5")},
			want: "NCCL_IB_HCA==mlx5_1:1",
		},
		{name: "no address", rails: []nccl.Rail{rail(1, nccl.Table{List: vf("10.1.0.5").List[:2]})}, want: "NCCL_IB_HCA==mlx5_1:1"},
		{
			name: "address without a GID", rails: []nccl.Rail{rail(1, nccl.Table{List: vf("10.1.0.5").List[:3]}, "10.1.0.5")},
			want: "NCCL_IB_HCA==mlx5_1:1", noRight: "net1 has no RoCE v2 GID",
		},
		{name: "InfiniBand", rails: []nccl.Rail{infiniband}, want: "NCCL_IB_HCA==mlx5_1:1"},
		{
			name: "all options", rails: []nccl.Rail{v4}, opts: nccl.Options{FailClosed: true, TrafficClass: &tc},
			want: "NCCL_IB_HCA==mlx5_1:1 NCCL_NET=IB NCCL_IB_TC=106",
		},
		{
			name: "two VFs of one PF", rails: []nccl.Rail{v4, samePF},
			want: "NCCL_IB_HCA==mlx5_1:1,mlx5_2:1 NCCL_NET_MERGE_LEVEL=LOC NCCL_IB_MERGE_NICS=0",
		},
		{name: "no rail"},
		{name: "name that would change the list", rails: []nccl.Rail{hostile}, noRight: "cannot be named"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := nccl.Decide(tt.rails, tt.opts)
			if diff := cmp.Diff(tt.want, pairs(d)); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
			if tt.noRight == "" && d.NoRight != "" || !strings.Contains(d.NoRight, tt.noRight) {
				t.Errorf("noRight = %q, want %q in it", d.NoRight, tt.noRight)
			}
			if d.NoRight != "" && len(d.Warnings) == 0 {
				t.Error("nothing is warned of")
			}
			roundTrip(t, d)
		})
	}
}

func pairs(d nccl.Decision) string {
	var list []string
	for _, s := range d.Settings {
		list = append(list, s.Name+"="+s.Value)
	}
	return strings.Join(list, " ")
}

// roundTrip: every generation reads from the rendered text what was decided, and every setting has a reason.
func roundTrip(t *testing.T, d nccl.Decision) {
	t.Helper()
	text, err := nccl.Render(d.Comments, d.Settings)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range nccl.Generations() {
		var read []string
		for _, p := range nccl.ParseConf(v, text) {
			read = append(read, p.Name+"="+p.Value)
		}
		if diff := cmp.Diff(pairs(d), strings.Join(read, " ")); diff != "" {
			t.Errorf("NCCL %s reads (-want +got):\n%s", v, diff)
		}
	}
	for _, s := range d.Settings {
		if s.Reason == "" {
			t.Errorf("%s has no reason", s.Name)
		}
	}
	if len(d.Settings)+len(d.Comments) == 0 {
		t.Error("an empty file says nothing")
	}
}
