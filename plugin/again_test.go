// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"testing"

	"github.com/podfabric/podfabric/plugin/attach"
)

// TestMACRefusedOnce: a DEL that could not give a VF its own MAC back goes on with the rest, and gives it the administrative one that it
// had. From then on an igb lets the VF set none of its own, so that the next DEL must take the administrative one away first.
func TestMACRefusedOnce(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.LikeIGB(vfAddr(0))
	m.pod("pod1")
	r := request{pod: "pod1", dev: 3, more: `,"mac":"02:11:22:33:44:55"`}
	m.mustAdd(t, r)
	n := m.callsOf(t, func() error { return m.del(t, r) })
	before := m.state(t)
	struck := false
	for at := range n {
		m.mustAdd(t, r)
		m.trap.set(at, refused)
		err := m.del(t, r)
		step := m.trap.step
		m.trap.clear()
		if err != nil {
			m.mustDel(t, r)
		}
		m.same(t, "DEL after one that was refused "+step, before)
		struck = struck || step == "SetMAC"
	}
	if !struck {
		t.Error("no MAC was refused")
	}
}

// TestDelOfChainedAgain: a netdev that the plugin before brought into the pod stays there for its DEL, however often podfabric's comes
// before that, also if podfabric had the device in another network once and knows its home from then.
func TestDelOfChainedAgain(t *testing.T) {
	t.Parallel()
	k := named("chained behind host-device")
	m := newMachine(t, k.mode)
	m.pod("pod1")
	alone := request{pod: "pod1", dev: 3}
	m.mustAdd(t, alone)
	m.mustDel(t, alone)
	k.prepare(m)
	m.mustAdd(t, k.request)
	for range 3 {
		m.mustDel(t, k.request)
		if got, want := m.Where(vfAddr(3)), [2]string{"/run/netns/pod1/net1", "host/mlx5_3"}; got != want {
			t.Errorf("devices are at %v, want %v", got, want)
		}
	}
}
