// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/link"
)

// sniffing is what a pod made of its interface.
func sniffing(x attach.Traits) attach.Traits {
	x.Flags, x.Alias, x.Group, x.LinkMode, x.XDP = "allmulti noarp promisc", "mine", 42, "dormant", "generic"
	return x
}

// TestTraitsOfAPod: what a pod did to its interface is undone before the next pod has it, whoever brings it home: DEL, the kernel and DEL, or
// the next ADD. What the node's owner did comes back.
func TestTraitsOfAPod(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]func(t *testing.T, m *machine, r request){
		"DEL": func(t *testing.T, m *machine, r request) { t.Helper(); m.mustDel(t, r) },
		"the namespace dies, then DEL": func(t *testing.T, m *machine, r request) {
			t.Helper()
			m.KillNetNS(netnsOf(r.pod))
			m.mustDel(t, r)
		},
		"the namespace dies": func(t *testing.T, m *machine, r request) { t.Helper(); m.KillNetNS(netnsOf(r.pod)) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			owners := m.Traits(vfAddr(3))
			owners.Alias, owners.Group = "rail 3", 7
			m.SetTraits(vfAddr(3), owners)
			m.pod("pod1")
			m.pod("pod2")
			before := m.state(t)
			r, next := request{pod: "pod1", dev: 3}, request{pod: "pod2", dev: 3}
			m.mustAdd(t, r)
			m.SetTraits(vfAddr(3), sniffing(owners))
			end(t, m, r)
			m.mustAdd(t, next)
			if got := m.Traits(vfAddr(3)); got != owners {
				t.Errorf("in the next pod: %s", owners.Changes(got))
			}
			m.mustDel(t, next)
			m.same(t, "DEL of the next", before)
		})
	}
}

// TestProgramThatIsHeld: a device that has a BPF program of its last pod on it, which something on the node holds, is nobody's until that lets
// go. DEL ends all the same, and all else is put right.
func TestProgramThatIsHeld(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	m.pod("pod2")
	before := m.state(t)
	r, next := request{pod: "pod1", dev: 3}, request{pod: "pod2", dev: 3}
	m.mustAdd(t, r)
	fresh := m.Traits(vfAddr(3))
	m.SetTraits(vfAddr(3), sniffing(fresh))
	m.HoldXDP(vfAddr(3), fmt.Errorf("%w: %w", link.ErrRefused, syscall.EBUSY))
	for range 2 {
		m.mustDel(t, r)
		left := fresh
		left.XDP = "generic"
		if got := m.Traits(vfAddr(3)); got != left {
			t.Errorf("after DEL: %s", left.Changes(got))
		}
		answered(t, m.add(t, next), 11, "XDP")
	}
	m.HoldXDP(vfAddr(3), nil)
	m.mustAdd(t, next)
	m.mustDel(t, next)
	m.mustDel(t, r)
	m.same(t, "in the end", before)
}

// TestRepairLeavesTraits: a wrong name is put right, and what the node's owner has set since stays.
func TestRepairLeavesTraits(t *testing.T) {
	t.Parallel()
	d := newDamaged(t)
	must(t, d.plugin.Del(t.Context(), d.add(t, vfAddr(3), "")))
	d.RenameLink(vfAddr(3), "dev5")
	owners := sniffing(d.Traits(vfAddr(3)))
	d.SetTraits(vfAddr(3), owners)
	d.repair(t, false)
	if at := d.Where(vfAddr(3))[0]; at != "host/ens1f0v1" {
		t.Errorf("the netdev is %s", at)
	}
	if got := d.Traits(vfAddr(3)); got != owners {
		t.Errorf("traits: %s", owners.Changes(got))
	}
}

// fighting is a session beside which the pod still runs: right before its netdev leaves, it does what it can.
type fighting struct {
	plugin.Session
	fight func()
}

func (s *fighting) Apply(ctx context.Context, step attach.Step) error {
	if move, ok := step.(attach.MoveLink); ok && move.From.NS == attach.Pod {
		s.fight()
	}
	return s.Session.Apply(ctx, step)
}

// TestPodThatRunsAtDel: a pod may run while its interface is taken from it, as it does when one is unplugged. What it does between
// the look and the move is undone too: once the netdev is home it cannot do any more.
func TestPodThatRunsAtDel(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	m.pod("pod2")
	before := m.state(t)
	r, next := request{pod: "pod1", dev: 3}, request{pod: "pod2", dev: 3}
	m.mustAdd(t, r)
	opened := m.plugin.Open
	m.plugin.Open = func(ctx context.Context, path string) (plugin.Session, error) {
		s, err := opened(ctx, path)
		return &fighting{s, func() {
			m.SetTraits(vfAddr(3), sniffing(m.Traits(vfAddr(3))))
			m.SetLink(vfAddr(3), "02:de:ad:be:ef:00", 1400, false)
			m.SetAltNames(vfAddr(3), "mine")
			m.Stack(netnsOf("pod1"), "net1", "macvlan", "mv0")
		}}, err
	}
	m.mustDel(t, r)
	m.plugin.Open = opened
	m.same(t, "DEL", before)
	m.mustAdd(t, next)
	m.mustDel(t, next)
	m.same(t, "DEL of the next", before)
}
