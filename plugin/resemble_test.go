// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
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

// TestNamespaceUnknown: a record that does not tell where its pod was says of nobody that the pod lives.
func TestNamespaceUnknown(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	r, other := request{pod: "pod1", dev: 3}, request{pod: "pod1", dev: 5, ifname: "net2", network: "rail1", ipam: noIPAM}
	m.mustAdd(t, r)
	m.mustAdd(t, other)
	must(t, os.Remove(m.recordOf(r)))
	m.change(t, other, func(rec *record.Record) { rec.State, rec.NetNS = record.Returning, attach.NetNS{} })
	must(t, os.RemoveAll(filepath.Join(m.dir, "run", "out")))
	m.KillNetNS(netnsOf("pod1"))
	for _, f := range m.findings(t, true) {
		if f.Outcome != plugin.Planned {
			t.Errorf("dry: %+v", f)
		}
	}
}

// TestHintOfAnUnreadableRecord: of a pod that lives, the parts of its hint are lost and its record cannot be read. The next ADD leaves it what it was shown.
func TestHintOfAnUnreadableRecord(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Shared)
	m.pod("pod1")
	m.pod("pod2")
	r := named("macvlan").request
	m.mustAdd(t, r)
	m.losePart(t, r, []string{"fragments"})
	must(t, os.WriteFile(m.recordOf(r), fmt.Appendf(nil, `{"version":99,"pod":{"namespace":"team-a","name":"pod1","uid":%q}}`, uidOf("pod1")), 0o600))
	m.mustAdd(t, request{pod: "pod2", dev: 5})
	_, err := os.Stat(filepath.Join(m.dir, "run", "pods", uidOf("pod1"), "fabric.json"))
	must(t, err)
}
