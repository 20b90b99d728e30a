// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
)

// losses are what of the state folder is lost below a living pod. Something that names the owner stays.
func losses() map[string][]string {
	return map[string][]string{
		"records":                          {"attachments"},
		"records and claims":               {"attachments", "claims"},
		"records and hints":                {"attachments", "fragments", "pods"},
		"records, and the parts of hints":  {"attachments", "fragments"},
		"records and what devices tell of": {"attachments", "out"},
		"records, claims, devices, leases": {"attachments", "claims", "out", "leases"},
	}
}

// losePart takes of these folders what is of one attachment.
func (m *machine) losePart(t *testing.T, r request, folders []string) {
	t.Helper()
	part := map[string]string{
		"attachments": r.owner().ContainerID, "claims": r.device().String(), "out": r.device().String() + ".json",
		"fragments": uidOf(r.pod), "pods": uidOf(r.pod),
	}
	for _, folder := range folders {
		if folder == "leases" {
			must(t, m.plugin.Leases.Release(t.Context(), r.owner().String()))
			continue
		}
		must(t, os.RemoveAll(filepath.Join(m.dir, "run", folder, part[folder])))
	}
}

// TestRecordsOfALivingPodLost: whose records are lost and whose pod lives keeps address, claim, hint and device. Neither repair nor
// another pod's ADD takes anything of it, and repair says of all that is left whose it is.
func TestRecordsOfALivingPodLost(t *testing.T) {
	t.Parallel()
	for what, folders := range losses() {
		for _, k := range kinds() {
			below := strings.HasPrefix(k.link, "host/")
			if strings.Contains(what, "parts") && below || strings.Contains(what, "devices") && k.link == "none" {
				continue // nothing that is left leads to a namespace
			}
			t.Run(what+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				m := newMachine(t, k.mode)
				m.pod("pod1")
				m.pod("pod2")
				k.prepare(m)
				start := m.state(t)
				m.mustAdd(t, k.request)
				m.losePart(t, k.request, folders)
				before := m.state(t)
				for _, dry := range []bool{true, false} {
					found := m.findings(t, dry)
					for _, f := range found {
						if f.Outcome != plugin.Left && f.Outcome != plugin.Noted {
							t.Errorf("dry %t: %+v", dry, f)
						}
						told := strings.Contains(f.Detail, "team-a/pod1") || strings.Contains(f.Detail, "pause (pid")
						if f.Outcome == plugin.Left && (!told || !strings.Contains(f.Detail, "delete the pod")) {
							t.Errorf("dry %t: whose it is, or what to do, is not told: %+v", dry, f)
						}
					}
					m.same(t, "repair", before)
				}
				next := request{pod: "pod2", dev: 6, ipam: noIPAM}
				if k.mode == attach.NoRDMA {
					next.more = rdmaOff
				}
				m.mustAdd(t, next)
				m.mustDel(t, next)
				m.same(t, "another pod", before)
				if what != "records" {
					return
				}
				m.mustDel(t, k.request)
				if below {
					m.KillNetNS(netnsOf("pod1")) // without a record, a link whose MAC is not its own ends with its namespace
					if k.before != nil {
						m.pod("pod1")
						k.prepare(m)
					}
				}
				m.same(t, "DEL", start)
			})
		}
	}
}

// TestWhatALivingPodKeeps: of a VF with an address and a hint, all four are left.
func TestWhatALivingPodKeeps(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	r := request{pod: "pod1", dev: 3}
	m.mustAdd(t, r)
	m.losePart(t, r, []string{"attachments"})
	want := []plugin.FindingKind{plugin.FindClaim, plugin.FindDevice, plugin.FindLease, plugin.FindHint}
	for _, dry := range []bool{true, false} {
		var kinds []plugin.FindingKind
		for _, f := range m.findings(t, dry) {
			kinds = append(kinds, f.Kind)
			if f.Outcome != plugin.Left || !strings.Contains(f.Detail, "team-a/pod1") {
				t.Errorf("dry %t: %+v", dry, f)
			}
		}
		if len(kinds) != len(want) {
			t.Fatalf("dry %t: found %v, want %v", dry, kinds, want)
		}
		for i := range want {
			if kinds[i] != want[i] {
				t.Errorf("dry %t: found %v, want %v", dry, kinds, want)
			}
		}
	}

	// With the pod's end all of it is repair's.
	m.KillNetNS(netnsOf("pod1"))
	for _, f := range m.findings(t, false) {
		if f.Outcome != plugin.Repaired {
			t.Errorf("after the pod's end: %+v", f)
		}
	}
	if found := m.findings(t, false); len(found) > 0 {
		t.Errorf("repaired once and still: %+v", found)
	}
}

// TestAddressThatAnswers: the pod is gone, something keeps its namespace, and nothing but the lease is left: who has the address is told, and
// nobody gets it.
func TestAddressThatAnswers(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Shared)
	m.pod("pod1")
	start := m.state(t)
	r := named("macvlan").request
	m.mustAdd(t, r)
	m.losePart(t, r, []string{"attachments", "fragments", "pods"})
	m.HoldNetNSBy(netnsOf("pod1"), -1, "sleep (pid 71)")
	before := m.state(t)
	found := m.findings(t, false)
	if len(found) != 1 || found[0].Kind != plugin.FindLease || found[0].Outcome != plugin.Left || !strings.Contains(found[0].Detail, "sleep (pid 71)") {
		t.Errorf("repair: %+v", found)
	}
	m.same(t, "repair", before)
	m.ReleaseNetNS(netnsOf("pod1"), 0)
	m.findings(t, true) // looks, and the namespace ends
	if found = m.findings(t, false); len(found) != 1 || found[0].Outcome != plugin.Repaired {
		t.Errorf("repair: %+v", found)
	}
	m.same(t, "repair", start)
}

// TestLostRecordOfADevicePassedOn: that another pod has the device by now says nothing of the one before it.
func TestLostRecordOfADevicePassedOn(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	m.pod("pod2")
	r, next := request{pod: "pod1", dev: 3}, request{pod: "pod2", dev: 3}
	m.mustAdd(t, r)
	m.losePart(t, r, []string{"attachments", "claims", "out"})
	m.KillNetNS(netnsOf("pod1"))
	m.mustAdd(t, next)
	for _, f := range m.findings(t, false) {
		if f.Outcome != plugin.Repaired || f.Kind != plugin.FindLease && f.Kind != plugin.FindHint {
			t.Errorf("repair: %+v", f)
		}
	}
	if found := m.findings(t, false); len(found) > 0 {
		t.Errorf("repaired once and still: %+v", found)
	}
	must(t, m.plugin.Check(t.Context(), next.raw()))
}
