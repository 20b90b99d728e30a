// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"testing"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
)

// walled are settings of a VF by which its PF keeps a pod in its place.
const walled = `,"vlan":100,"spoofchk":"on","trust":"off"`

// TestWallWhileAway: a pod with CAP_NET_ADMIN may keep its devices over its DEL, in a namespace of its own making or by a process that
// outlives it. What the PF enforces stays until they are home, and then goes.
func TestWallWhileAway(t *testing.T) {
	t.Parallel()
	link := attach.Place{NS: attach.NS(netnsOf("pod1")), Name: "net1"}
	rdma := attach.Place{NS: attach.NS(netnsOf("pod1")), Name: "mlx5_3"}
	const within = "/within"
	ways := map[string]func(m *machine){
		"netdev":      func(m *machine) { m.Send(within, link) },
		"RDMA device": func(m *machine) { m.Send(within, rdma) },
		"both":        func(m *machine) { m.Send(within, link, rdma) },
		"namespace":   func(m *machine) { m.HoldNetNS(netnsOf("pod1"), -1) },
	}
	verbs := map[string]func(t *testing.T, m *machine, r request){
		"DEL": func(t *testing.T, m *machine, r request) { t.Helper(); m.mustDel(t, r) },
		"GC":  func(t *testing.T, m *machine, _ request) { t.Helper(); must(t, m.gc(t)) },
		"healing": func(t *testing.T, m *machine, _ request) {
			t.Helper()
			answered(t, m.add(t, request{pod: "pod2", dev: 3}), 11)
		},
		"repair": func(t *testing.T, m *machine, _ request) { t.Helper(); m.repair(t) },
	}
	for way, keep := range ways {
		for verb, do := range verbs {
			t.Run(way+", "+verb, func(t *testing.T) {
				t.Parallel()
				m := newMachine(t, attach.Exclusive)
				m.pod("pod1")
				m.pod("pod2")
				m.AddNetNS(within)
				before := m.VFState(vfAddr(3))
				r := request{pod: "pod1", dev: 3, more: walled}
				m.mustAdd(t, r)
				given := m.VFState(vfAddr(3))
				keep(m)
				m.HoldNetNS(within, -1)
				if verb != "DEL" && way != "namespace" {
					m.KillNetNS(netnsOf("pod1"))
				}
				do(t, m, r)
				if got := m.VFState(vfAddr(3)); got != given {
					t.Errorf("while it is away the VF has %+v, not %+v", got, given)
				}
				m.KillNetNS(within)
				m.KillNetNS(netnsOf("pod1"))
				m.repair(t)
				if got := m.VFState(vfAddr(3)); got != before {
					t.Errorf("at home the VF has %+v, not %+v", got, before)
				}
			})
		}
	}
}

// TestWallWhileItStays: a pod may run at its DEL, and keep the kernel from taking its netdev away: none moves that has a name which is taken
// where it goes, and a pod may give names faster than they can be taken off.
func TestWallWhileItStays(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	before := m.state(t)
	r := request{pod: "pod1", dev: 3, more: walled}
	m.mustAdd(t, r)
	given := m.VFState(vfAddr(3))
	opened := m.plugin.Open
	m.plugin.Open = func(ctx context.Context, path string) (plugin.Session, error) {
		s, err := opened(ctx, path)
		return &fighting{s, func() { m.SetAltNames(vfAddr(3), "ens1f0") }}, err
	}
	if err := m.del(t, r); err == nil {
		t.Error("DEL succeeded")
	}
	if got := m.VFState(vfAddr(3)); !inside("pod1", m.where(3)[0]) || got != given {
		t.Errorf("the netdev is at %s and the VF has %+v, not %+v", m.where(3)[0], got, given)
	}
	m.plugin.Open = opened
	m.mustDel(t, r)
	m.same(t, "DEL", before)
}

// TestWallOfAnother: what another program has set of a VF that it gave to a pod is not touched by what is left of an attachment whose DEL
// never came.
func TestWallOfAnother(t *testing.T) {
	t.Parallel()
	for verb, do := range map[string]func(m *machine, r request) error{
		"DEL":    func(m *machine, r request) error { return m.del(t, r) },
		"GC":     func(m *machine, _ request) error { return m.gc(t) },
		"repair": func(m *machine, _ request) error { m.repair(t); return nil },
	} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			m.pod("pod1")
			m.pod("pod2")
			r := request{pod: "pod1", dev: 3, more: walled}
			m.mustAdd(t, r)
			m.KillNetNS(netnsOf("pod1"))
			others := m.VFState(vfAddr(3))
			others.VLAN = 200
			m.SetVFState(vfAddr(3), others)
			m.Give(vfAddr(3), netnsOf("pod2"), "net1")
			must(t, do(m, r))
			if got := m.VFState(vfAddr(3)); got != others {
				t.Errorf("the other pod's VF has %+v, not %+v", got, others)
			}
		})
	}
}
