// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"fmt"
	"net/netip"
	"slices"
)

// disagreement tries settings by simulation and gives the first rail and version for which they come out wrong, in words.
func disagreement(rails []Rail, oldest Version, settings []Setting) string {
	env := map[string]string{}
	for _, s := range settings {
		env[s.Name] = s.Value
	}
	for _, r := range rails {
		for _, table := range r.reachable() {
			slots := table.slots()
			for _, v := range From(oldest) {
				if got := simulate(slots, v, env); got.Kind != OK || !r.right(got.Index) {
					return fmt.Sprintf("NCCL %s would not pick the pod's GID on %s but %s", v, r.HCA, got)
				}
			}
		}
	}
	return ""
}

// reachable lists the rail's table as it is and, on a shared port, as it becomes when other pods fill its free slots: each
// kind of entry in the first free slot, where the scan meets it earliest, and in all of them.
func (r Rail) reachable() []Table {
	tables := []Table{r.Table}
	if !r.Shared {
		return tables
	}
	var free []int
	for i, s := range r.Table.slots() {
		if s.raw == [16]byte{} {
			free = append(free, i)
		}
	}
	if len(free) == 0 {
		return tables
	}
	for _, foreign := range r.foreign() {
		for _, slots := range [][]int{free[:1], free} {
			t := Table{List: slices.Clone(r.Table.List), Size: r.Table.Size}
			for _, i := range slots {
				foreign.Index = i
				t.List = append(t.List, foreign)
			}
			tables = append(tables, t)
		}
	}
	return tables
}

// foreign lists one entry of each kind that another pod can bring: both families and types, and types that the driver hides
// from this pod. Among the addresses are neighbours of the pod's own, the nearest that a range could catch.
func (r Rail) foreign() []GID {
	addrs := []netip.Addr{
		netip.AddrFrom4([4]byte{192, 0, 2, 1}),
		netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 15: 1}),
	}
	for _, w := range r.Want {
		addrs = append(addrs, w.Unmap().Next(), w.Unmap().Prev())
	}
	var list []GID
	for _, addr := range addrs {
		if !addr.IsValid() || slices.Contains(r.Want, addr) {
			continue
		}
		for _, text := range []string{RoCEv1, RoCEv2, ""} {
			list = append(list, GID{Addr: addr, Type: text})
		}
	}
	return list
}
