// SPDX-License-Identifier: Apache-2.0

package nccl_test

import (
	"net/netip"
	"testing"

	"github.com/podfabric/podfabric/nccl"
)

func gid(index int, addr, kind string) nccl.GID {
	return nccl.GID{Index: index, Addr: netip.MustParseAddr(addr), Type: kind}
}

// vf is the table of a VF in a namespace of its own: link-local and one address, each as v1 and v2.
func vf(addr string) nccl.Table {
	return nccl.Table{Size: 256, List: []nccl.GID{
		gid(0, "fe80::ff:fe00:1", nccl.RoCEv1), gid(1, "fe80::ff:fe00:1", nccl.RoCEv2),
		gid(2, addr, nccl.RoCEv1), gid(3, addr, nccl.RoCEv2),
	}}
}

// shared is the table of a PF with an address of its own at 2 and 3, another pod's macvlan at 4 to 7, ours at 8 to 11.
// With hide, all but ours have types that cannot be read, as MLNX_OFED has it.
func shared(host, other, ours string, hide bool) nccl.Table {
	t := nccl.Table{Size: 256}
	for i, addr := range []string{"fe80::ff:fe00:1", host, "fe80::ff:fe00:2", other, "fe80::ff:fe00:3", ours} {
		for j, kind := range []string{nccl.RoCEv1, nccl.RoCEv2} {
			if hide && i < 4 {
				kind = ""
			}
			t.List = append(t.List, gid(2*i+j, addr, kind))
		}
	}
	return t
}

// The expected values are those that NCCL's own functions gave, compiled out of each release: reference/nccl.md §3.2. The
// one that hangs on an uninitialised variable came out as 11 and as 2 in two calls with equal arguments.
func TestSimulateAgreesWithNCCL(t *testing.T) {
	t.Parallel()
	own4, own6 := vf("::ffff:10.0.0.5"), vf("2001:db8::5")
	plain := shared("::ffff:10.0.0.1", "::ffff:10.0.0.4", "::ffff:10.0.0.5", false)
	ofed := shared("::ffff:10.0.0.1", "::ffff:10.0.0.4", "::ffff:10.0.0.5", true)
	podRange := map[string]string{"NCCL_IB_ADDR_RANGE": "10.0.0.5/32"}
	ok := func(index int) [4]string { return same(nccl.Outcome{Kind: nccl.OK, Index: index}.String()) }
	tests := []struct {
		name  string
		table nccl.Table
		env   map[string]string
		want  [4]string // 2.21.5, 2.23.4, 2.26.2, 2.30.7: "index N" or the kind
	}{
		{"VF", own4, nil, ok(3)},
		{"VF, IPv6 only", own6, nil, ok(0)},
		{"VF, IPv6 only, family", own6, map[string]string{"NCCL_IB_ADDR_FAMILY": "AF_INET6"}, ok(3)},
		{"shared", plain, nil, ok(3)},
		{"shared, range of a subnet that other pods are in", plain, map[string]string{"NCCL_IB_ADDR_RANGE": "10.0.0.4/30"}, ok(7)},
		{"shared, range of the pod", plain, podRange, ok(11)},
		{"shared, types hidden", ofed, nil, [4]string{"abort", "abort", "undefined", "undefined"}},
		{"shared, types hidden, range of the pod", ofed, podRange, ok(11)},
		{"VF, range that matches nothing", own4, map[string]string{"NCCL_IB_ADDR_RANGE": "10.9.0.0/16"}, ok(0)},
		{
			"VF, range without a length", own4,
			map[string]string{"NCCL_IB_ADDR_RANGE": "10.9.0.0"},
			[4]string{"abort", "index 3", "index 3", "index 3"},
		},
		{"VF, empty index", own4, map[string]string{"NCCL_IB_GID_INDEX": ""}, ok(3)},
		{"index beats the scan", own4, map[string]string{"NCCL_IB_GID_INDEX": "1"}, ok(1)},
		{"index beats a range", plain, map[string]string{"NCCL_IB_GID_INDEX": "0", "NCCL_IB_ADDR_RANGE": "10.0.0.5/32"}, ok(0)},
		{"index of an empty slot", own4, map[string]string{"NCCL_IB_GID_INDEX": "9"}, ok(9)},
		{"index outside the table", own4, map[string]string{"NCCL_IB_GID_INDEX": "256"}, same("abort")},
		{"negative index", own4, map[string]string{"NCCL_IB_GID_INDEX": "-7"}, ok(3)},
		{"index as C reads it", own4, map[string]string{"NCCL_IB_GID_INDEX": " 0x2 # why"}, ok(2)},
		{"octal", own4, map[string]string{"NCCL_IB_GID_INDEX": "010"}, ok(8)},
		{"no number at all", own4, map[string]string{"NCCL_IB_GID_INDEX": "auto"}, ok(0)},
		{"number that does not fit", own4, map[string]string{"NCCL_IB_GID_INDEX": "99999999999999999999"}, ok(3)},
		{"RoCE v1 asked for", own4, map[string]string{"NCCL_IB_ROCE_VERSION_NUM": "1"}, ok(2)},
		{"unknown family is IPv4", own4, map[string]string{"NCCL_IB_ADDR_FAMILY": "inet6"}, ok(3)},
		{"range of the other family counts as none", own4, map[string]string{"NCCL_IB_ADDR_RANGE": "2001:db8::/64"}, ok(3)},
		{"range that is no address counts as none", own4, map[string]string{"NCCL_IB_ADDR_RANGE": "ens1/24"}, ok(3)},
		{"length too great counts as none", own4, map[string]string{"NCCL_IB_ADDR_RANGE": "10.9.0.0/33"}, ok(3)},
		{"length below zero matches nothing", own4, map[string]string{"NCCL_IB_ADDR_RANGE": "10.0.0.5/-1"}, ok(0)},
		{"length 0 matches all", own4, map[string]string{"NCCL_IB_ADDR_RANGE": "10.9.0.0/0"}, ok(3)},
		{"odd length", own4, map[string]string{"NCCL_IB_ADDR_RANGE": "10.0.0.4/31"}, ok(3)},
		{
			"range of IPv6", own6,
			map[string]string{"NCCL_IB_ADDR_RANGE": "2001:db8::4/127", "NCCL_IB_ADDR_FAMILY": "AF_INET6"},
			ok(3),
		},
		{"empty table", nccl.Table{}, nil, ok(0)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for i, v := range []string{"2.21.5", "2.23.4", "2.26.2", "2.30.7"} {
				got := nccl.Simulate(tt.table, version(t, v), tt.env)
				text := string(got.Kind)
				if got.Kind == nccl.OK {
					text = got.String()
				}
				if text != tt.want[i] {
					t.Errorf("NCCL %s: got %s, want %s", v, got, tt.want[i])
				}
			}
		})
	}
}

// Up to 2.20 there is no scan: NCCL_IB_GID_INDEX, by default 0 (nccl.md §3.1).
func TestSimulateBeforeTheScan(t *testing.T) {
	t.Parallel()
	tests := []struct{ index, want string }{
		{"", "index 0"}, {"3", "index 3"}, {"-1", "abort: ibv_query_gid has no index -1"},
	}
	for _, tt := range tests {
		env := map[string]string{"NCCL_IB_GID_INDEX": tt.index, "NCCL_IB_ADDR_RANGE": "10.0.0.5/32"}
		if got := nccl.Simulate(vf("10.0.0.5"), version(t, "2.20.5"), env).String(); got != tt.want {
			t.Errorf("index %q: got %s, want %s", tt.index, got, tt.want)
		}
	}
}

// NCCL takes an empty slot for an IPv6 entry when the family changes (path (a) of nccl.md §3.2 looks at no validity).
func TestSimulateTakesAnEmptySlot(t *testing.T) {
	t.Parallel()
	table := nccl.Table{Size: 4, List: []nccl.GID{gid(0, "10.0.0.5", nccl.RoCEv2)}}
	got := nccl.Simulate(table, version(t, "2.30.7"), map[string]string{"NCCL_IB_ADDR_FAMILY": "AF_INET6"})
	if want := (nccl.Outcome{Kind: nccl.OK, Index: 1}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func FuzzSimulate(f *testing.F) {
	f.Add("10.0.0.5/32", "3", "AF_INET6", 3, "RoCE v2")
	f.Add("::/", "-", "", 1<<40, "")
	f.Fuzz(func(t *testing.T, addrRange, index, family string, slot int, kind string) {
		table := vf("10.0.0.5")
		table.List = append(table.List, nccl.GID{Index: slot, Addr: netip.IPv6Loopback(), Type: kind})
		env := map[string]string{
			"NCCL_IB_ADDR_RANGE": addrRange, "NCCL_IB_GID_INDEX": index, "NCCL_IB_ADDR_FAMILY": family,
		}
		for _, v := range nccl.Generations() {
			if got := nccl.Simulate(table, v, env); (got.Kind == nccl.OK) != (got.Index >= 0) {
				t.Errorf("NCCL %s: %+v", v, got)
			}
		}
	})
}

func same(s string) [4]string { return [4]string{s, s, s, s} }

func version(tb testing.TB, text string) nccl.Version {
	tb.Helper()
	v, err := nccl.ParseVersion(text)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}
