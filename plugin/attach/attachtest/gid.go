// SPDX-License-Identifier: Apache-2.0

package attachtest

import (
	"net/netip"
	"slices"

	"github.com/podfabric/podfabric/plugin/attach"
)

// gidTable is one port's table. Entries take the first free slot and keep it; a full table takes no more and says nothing.
type gidTable struct {
	size    int
	slots   []slot
	foreign int // slots held by others' addresses, from the front
	reads   int // calls of Ports so far
}

type slot struct {
	gid   attach.GID
	on    *link // netdev whose address it is
	since int   // reads when it was asked for; readers see it gidDelay reads later
}

func (t *gidTable) clear() { t.slots = nil }

// SetGIDDelay makes every GID that comes from now on visible only after so many calls of Ports: the kernel writes GIDs from a
// work queue, some time after the address was acknowledged.
func (k *Kernel) SetGIDDelay(calls int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.gidDelay = calls
}

// FillGIDs lets others' addresses hold the first n slots of a device's table, which has size slots in all.
func (k *Kernel) FillGIDs(rdma string, n, size int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, d := range k.rdma {
		if d.name == rdma {
			d.table = gidTable{size: size, foreign: n, reads: d.table.reads}
		}
	}
	k.syncGIDs()
}

// syncGIDs brings every table in line with the addresses of its netdev and of all that is on it.
func (k *Kernel) syncGIDs() {
	for _, d := range k.rdma {
		d.table.sync(k.wantedGIDs(d))
	}
}

// wantedGIDs are the entries a netdev gives: default ones from its MAC, then two for each of its addresses and of those of the
// VLANs, macvlans, ipvlans and bonds on it, in any namespace (roce_gid_mgmt.c; review.md lab 1 and 10), and v2 alone on soft
// RoCE. On a bond they stand on every port's device, active or not [lab 10].
func (k *Kernel) wantedGIDs(d *device) []slot {
	if d.link == nil {
		return nil
	}
	var out []slot
	add := func(l *link, a netip.Addr) {
		if !d.soft {
			out = append(out, slot{on: l, gid: attach.GID{Addr: a, Type: "IB/RoCE v1", Netdev: l.name}})
		}
		out = append(out, slot{on: l, gid: attach.GID{Addr: a, Type: attach.RoCEv2, Netdev: l.name}})
	}
	add(d.link, linkLocal(d.link.address()))
	for _, l := range k.tree(d.link) {
		for _, p := range l.addrs {
			add(l, netip.AddrFrom16(p.Addr().As16()))
		}
		if l != d.link && l.local.IsValid() { // the netdev's own has the value of its default entries
			add(l, l.local)
		}
	}
	return out
}

func linkLocal(mac string) netip.Addr {
	b := octets(mac)
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: b[0] ^ 2, 9: b[1], 10: b[2], 11: 0xff, 12: 0xfe, 13: b[3], 14: b[4], 15: b[5]})
}

// sync keeps what is still wanted where it is: an entry is known by its value, its type and its netdev (ib_gid_table find_gid).
func (t *gidTable) sync(want []slot) {
	same := func(a slot) func(slot) bool {
		return func(b slot) bool { return a.gid.Addr == b.gid.Addr && a.gid.Type == b.gid.Type && a.on == b.on }
	}
	t.slots = slices.DeleteFunc(t.slots, func(s slot) bool { return !slices.ContainsFunc(want, same(s)) })
	for _, w := range want {
		i := slices.IndexFunc(t.slots, same(w))
		if i >= 0 {
			t.slots[i].gid.Netdev = w.gid.Netdev
			continue
		}
		if w.gid.Index = t.free(); w.gid.Index >= 0 {
			w.since = t.reads
			t.slots = append(t.slots, w)
		}
	}
	slices.SortFunc(t.slots, func(a, b slot) int { return a.gid.Index - b.gid.Index })
}

// free is the first free slot, or -1.
func (t *gidTable) free() int {
	for i := t.foreign; i < t.size; i++ {
		if !slices.ContainsFunc(t.slots, func(s slot) bool { return s.gid.Index == i }) {
			return i
		}
	}
	return -1
}

// read gives what a reader of sysfs sees now.
func (t *gidTable) read(delay int) []attach.GID {
	t.reads++
	var out []attach.GID
	for i := range t.foreign {
		a := netip.AddrFrom4([4]byte{203, 0, 113, byte(i)})
		out = append(out, attach.GID{Index: i, Addr: netip.AddrFrom16(a.As16()), Type: attach.RoCEv2, Netdev: "other"})
	}
	for _, s := range t.slots {
		if t.reads > s.since+delay {
			out = append(out, s.gid)
		}
	}
	return out
}
