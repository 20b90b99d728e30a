// SPDX-License-Identifier: Apache-2.0

package nccl_test

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/podfabric/podfabric/nccl"
)

// For the shapes that design §9.22 names, the stated outcome comes out whatever the addresses and the neighbours are, and
// the pod's own entry is what NCCL then picks, also after other pods have come. "Cannot be said" is a failure.
func TestDecideOnRandomTables(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // tables, not secrets
	random := func(six bool) netip.Addr {
		if six {
			return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 14: byte(rng.IntN(4)), 15: byte(rng.IntN(250) + 1)})
		}
		return netip.AddrFrom4([4]byte{10, 0, byte(rng.IntN(2)), byte(rng.IntN(250) + 1)})
	}
	for round := range 300 {
		six, onPF := rng.IntN(2) == 0, rng.IntN(2) == 0
		own := random(six)
		r := rail(1, nccl.Table{Size: 64}, own.String())
		r.Shared = onPF
		slots := rng.Perm(31)
		add := func(a netip.Addr) {
			for i, kind := range []string{nccl.RoCEv1, nccl.RoCEv2} {
				r.Table.List = append(r.Table.List, nccl.GID{Index: 2*slots[0] + 2 + i, Addr: a, Type: kind})
			}
			slots = slots[1:]
		}
		r.Table.List = []nccl.GID{gid(0, "fe80::1", nccl.RoCEv1), gid(1, "fe80::1", nccl.RoCEv2)}
		add(own)
		var others []netip.Addr
		for range rng.IntN(12) {
			if a := random(rng.IntN(2) == 0); a != own {
				others = append(others, a)
			}
		}
		want := "NCCL_IB_HCA==mlx5_1:1"
		switch {
		case onPF && six:
			want += " NCCL_IB_ADDR_RANGE=" + own.String() + "/128 NCCL_IB_ADDR_FAMILY=AF_INET6"
		case onPF:
			want += " NCCL_IB_ADDR_RANGE=" + own.String() + "/32"
		case six:
			want += " NCCL_IB_ADDR_FAMILY=AF_INET6"
		}
		before := len(others)
		if onPF {
			before = rng.IntN(len(others) + 1)
			for _, a := range others[:before] {
				add(a)
			}
		}
		d := nccl.Decide([]nccl.Rail{r}, nccl.Options{})
		if got := pairs(d); got != want {
			t.Fatalf("round %d: got %q (%s), want %q over %v", round, got, d.NoRight, want, r.Table.List)
		}
		if onPF {
			for _, a := range others[before:] {
				add(a)
			}
		}
		picksOwn(t, r.Table, d, own)
	}
}

func picksOwn(t *testing.T, table nccl.Table, d nccl.Decision, own netip.Addr) {
	t.Helper()
	env := map[string]string{}
	for _, s := range d.Settings {
		env[s.Name] = s.Value
	}
	for _, v := range nccl.From(version(t, "2.21")) {
		got := nccl.Simulate(table, v, env)
		i := -1
		for j, g := range table.List {
			if g.Index == got.Index {
				i = j
			}
		}
		if got.Kind != nccl.OK || i < 0 || table.List[i].Addr != own || table.List[i].Type != nccl.RoCEv2 {
			t.Fatalf("NCCL %s: %s with %v over %v", v, got, env, table.List)
		}
	}
}
