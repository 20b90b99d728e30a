// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"net/netip"
	"testing"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
)

// TestProgramWithoutSettings: a program of a pod drives a VF of which nothing was set. Its record is lost; its address and claim stay its own.
func TestProgramWithoutSettings(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	start := m.state(t)
	r := request{pod: "pod1", of: vfioVF()}
	m.mustAdd(t, r)
	m.mustDel(t, r)
	m.same(t, "ADD and DEL", start)
	m.mustAdd(t, r)
	m.losePart(t, r, []string{"attachments"})
	before := m.state(t)
	for _, f := range m.findings(t, false) {
		if f.Outcome != plugin.Left {
			t.Errorf("repair: %+v", f)
		}
	}
	m.same(t, "repair", before)
	m.KillNetNS(netnsOf("pod1"))
	for _, f := range m.findings(t, false) {
		if f.Outcome != plugin.Repaired {
			t.Errorf("after the pod's end: %+v", f)
		}
	}
	m.same(t, "repair after the pod's end", start)
}

// TestAddressOfAnotherPod: that a pod whose attachments are recorded has the same address by another way says nothing of the one before.
func TestAddressOfAnotherPod(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	m.pod("pod2")
	r, other := request{pod: "pod1", dev: 3}, request{pod: "pod2", dev: 5, ipam: noIPAM}
	m.mustAdd(t, r)
	m.losePart(t, r, []string{"attachments", "claims", "out", "fragments", "pods"})
	m.KillNetNS(netnsOf("pod1"))
	m.mustAdd(t, other)
	all, _ := m.plugin.Leases.List()
	for _, l := range all {
		if l.Owner == r.owner().String() {
			m.PutAddr(netnsOf("pod2"), "net1", netip.PrefixFrom(l.Addr, 24))
		}
	}
	for _, f := range m.findings(t, false) {
		if f.Outcome != plugin.Repaired {
			t.Errorf("repair: %+v", f)
		}
	}
	if found := m.findings(t, false); len(found) > 0 {
		t.Errorf("repaired once and still: %+v", found)
	}
	must(t, m.plugin.Check(t.Context(), other.raw()))
}
