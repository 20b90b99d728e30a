// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
)

// findings are those of a repair.
func (m *machine) findings(t *testing.T, dry bool) []plugin.Finding {
	t.Helper()
	found, err := m.plugin.Repair(t.Context(), m, dry)
	must(t, err)
	return found
}

// forget takes away the record and the claim of an attachment, and what it holds elsewhere by name; what is kept at the device stays.
func (m *machine) forget(t *testing.T, r request) {
	t.Helper()
	must(t, os.RemoveAll(filepath.Dir(m.recordOf(r))))
	must(t, os.RemoveAll(filepath.Join(m.dir, "run/claims", r.device().String())))
	must(t, m.plugin.Leases.Release(t.Context(), r.owner().String()))
	must(t, m.plugin.Hints.Drop(t.Context(), uidOf(r.pod), r.owner()))
}

// orphaned are the ways in which a device is found without a record after its pod's end, and the names that it has then at home.
func orphaned() map[string]func(m *machine, r request) {
	return map[string]func(m *machine, r request){
		"under the pod's name": func(m *machine, r request) { m.KillNetNS(netnsOf(r.pod)) },
		"renamed by the pod": func(m *machine, r request) {
			if strings.HasPrefix(m.Where(r.device())[1], netnsOf(r.pod)) {
				m.RenameRDMA(r.device(), "mine0")
			}
			m.RenameLink(r.device(), "mine")
			m.KillNetNS(netnsOf(r.pod))
		},
		"under names of the kernel's": func(m *machine, r request) {
			m.AddLink("", "net1")
			name := filepath.Base(m.Where(r.device())[1])
			if strings.HasPrefix(m.Where(r.device())[1], netnsOf(r.pod)) {
				m.AddRDMA(name)
				defer m.RemoveRDMA(name)
			}
			m.KillNetNS(netnsOf(r.pod))
			m.DelPodLink("", "net1")
		},
		"with names that the pod added": func(m *machine, r request) {
			m.SetAltNames(r.device(), "podalt", "other")
			m.KillNetNS(netnsOf(r.pod))
		},
		"on its way": func(m *machine, r request) { m.HoldNetNSBy(netnsOf(r.pod), 5, "sleep (pid 71)") },
	}
}

// TestOrphanIsPutRight: a device whose record was lost is put right by whoever meets it first: names, MAC, MTU, state, and
// what the PF keeps for it.
func TestOrphanIsPutRight(t *testing.T) {
	t.Parallel()
	first := map[string]func(t *testing.T, m *machine, next request){
		"ADD": func(t *testing.T, m *machine, next request) {
			t.Helper()
			m.mustAdd(t, next)
			m.mustDel(t, next)
		},
		"DEL": func(t *testing.T, m *machine, next request) {
			t.Helper()
			late := next
			late.pod = "pod1"
			m.mustDel(t, late)
		},
		"repair": func(t *testing.T, m *machine, _ request) {
			t.Helper()
			dry := m.findings(t, true)
			if len(dry) != 1 || dry[0].Kind != plugin.FindDevice || dry[0].Outcome != plugin.Planned || dry[0].Action == "" {
				t.Errorf("dry run: %+v", dry)
			}
			if found := m.findings(t, false); len(found) != 1 || found[0].Outcome != plugin.Repaired {
				t.Errorf("repair: %+v", found)
			}
			if again := m.findings(t, false); len(again) > 0 {
				t.Errorf("repaired once and still: %+v", again)
			}
		},
	}
	for how, come := range orphaned() {
		for who, do := range first {
			for _, k := range some("moved", "moved, dual, rail, MTU, up at home", "shared", "off", "VF with settings") {
				t.Run(how+"/"+who+"/"+k.name, func(t *testing.T) {
					t.Parallel()
					m := newMachine(t, k.mode)
					m.pod("pod1")
					m.pod("pod2")
					m.SetAltNames(vfAddr(3), "enp59s0f0v1")
					before := m.state(t)
					old, next := k.request, k.request
					next.pod, next.ipam = "pod2", v4Range
					m.mustAdd(t, old)
					m.forget(t, old)
					come(m, old)
					do(t, m, next)
					m.same(t, who, before)
				})
			}
		}
	}
}

// TestOrphanOfALivingPod: nobody takes a device from a pod because a record is lost. ADD and repair say whose it is, and its DEL
// brings it home as it was.
func TestOrphanOfALivingPod(t *testing.T) {
	t.Parallel()
	for _, k := range some("moved", "shared", "off", "VF with settings") {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, k.mode)
			m.pod("pod1")
			m.pod("pod2")
			start := m.state(t)
			old, next := k.request, k.request
			next.pod, next.ipam = "pod2", v4Range
			m.mustAdd(t, old)
			m.forget(t, old)
			before := m.state(t)
			answered(t, m.add(t, next), 11, "team-a/pod1", "delete the pod")
			found := m.findings(t, false)
			if len(found) != 1 || found[0].Outcome != plugin.Left || !strings.Contains(found[0].Detail, "team-a/pod1") {
				t.Errorf("repair: %+v", found)
			}
			m.same(t, "ADD and repair", before)
			m.mustDel(t, next)
			m.mustDel(t, old)
			m.same(t, "DEL", start)
		})
	}
}

// TestOrphanOfADebugger: the pod is gone, something keeps its namespace, and the record is lost: who keeps it is said.
func TestOrphanOfADebugger(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	m.pod("pod2")
	start := m.state(t)
	old, next := request{pod: "pod1", dev: 3}, request{pod: "pod2", dev: 3}
	m.mustAdd(t, old)
	m.forget(t, old)
	m.HoldNetNSBy(netnsOf("pod1"), -1, "gdb (pid 71, thread 72)")
	answered(t, m.add(t, next), 11, "gdb (pid 71, thread 72)", "end what keeps", "team-a/pod1")
	found := m.findings(t, false)
	if len(found) != 1 || found[0].Outcome != plugin.Left || !strings.Contains(found[0].Detail, "end gdb (pid 71, thread 72)") {
		t.Errorf("repair: %+v", found)
	}
	m.ReleaseNetNS(netnsOf("pod1"), 6)
	m.mustAdd(t, next)
	m.mustDel(t, next)
	m.same(t, "DEL", start)
}

// TestOrphanWithoutItsName: another device has its name at home. It is used all the same, and gets its name as soon as that is free.
func TestOrphanWithoutItsName(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprint("record lost ", lost), func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			m.pod("pod1")
			m.pod("pod2")
			start := m.state(t)
			old, next := request{pod: "pod1", dev: 3}, request{pod: "pod2", dev: 3}
			m.mustAdd(t, old)
			if lost {
				m.forget(t, old)
			}
			m.RenameLink(vfAddr(3), "mine")
			m.AddLink("", "ens1f0v1")
			m.KillNetNS(netnsOf("pod1"))
			m.mustAdd(t, next)
			m.mustDel(t, next)
			if found := m.findings(t, false); len(found) != 1 || found[0].Outcome != plugin.Left || !strings.Contains(found[0].Detail, "taken") {
				t.Errorf("repair while the name is taken: %+v", found)
			}
			m.DelPodLink("", "ens1f0v1")
			if found := m.findings(t, false); len(found) != 1 || found[0].Outcome != plugin.Repaired {
				t.Errorf("repair: %+v", found)
			}
			m.same(t, "repair", start)
		})
	}
}

// TestOperatorsSettingsStay: what somebody else set after the pod's end is nobody's to put back.
func TestOperatorsSettingsStay(t *testing.T) {
	t.Parallel()
	k := named("VF with settings")
	m := newMachine(t, k.mode)
	m.pod("pod1")
	start := m.VFState(vfAddr(3))
	m.mustAdd(t, k.request)
	m.forget(t, k.request)
	m.KillNetNS(netnsOf("pod1"))
	chosen := m.VFState(vfAddr(3))
	chosen.VLAN, chosen.MaxTxRate = 7, 77
	m.SetVFState(vfAddr(3), chosen)
	m.RenameLink(vfAddr(3), "ens1f0v1") // as udev does
	m.SetLink(vfAddr(3), "", 4000, true)
	if found := m.findings(t, false); len(found) != 1 || found[0].Outcome != plugin.Repaired {
		t.Errorf("repair: %+v", found)
	}
	want := start
	want.VLAN, want.QoS, want.MaxTxRate = 7, chosen.QoS, 77
	if diff := cmp.Diff(want, m.VFState(vfAddr(3))); diff != "" {
		t.Errorf("VF (-want +got):\n%s", diff)
	}
	if dump := m.Dump(); !strings.Contains(dump, "mtu 4000 up true") {
		t.Errorf("the netdev is not as its owner left it:\n%s", dump)
	}
	if again := m.findings(t, false); len(again) > 0 {
		t.Errorf("repaired once and still: %+v", again)
	}
}

// TestUnreadableRecordAndItsDel: what is kept at the device outlives a record that cannot be read.
func TestUnreadableRecordAndItsDel(t *testing.T) {
	t.Parallel()
	k := named("VF with settings")
	for _, dead := range []bool{false, true} {
		t.Run(fmt.Sprint("pod dead ", dead), func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, k.mode)
			m.pod("pod1")
			before := m.state(t)
			m.mustAdd(t, k.request)
			must(t, os.WriteFile(m.recordOf(k.request), []byte(`{"vers`), 0o600))
			if dead {
				m.KillNetNS(netnsOf("pod1"))
			}
			m.mustDel(t, k.request)
			m.same(t, "DEL", before)
		})
	}
}

// TestOthersDevices: what another program gave to a pod, or an operator moved by hand, is told and never touched, whether podfabric
// had the device before or not.
func TestOthersDevices(t *testing.T) {
	t.Parallel()
	for _, had := range []bool{false, true} {
		t.Run(fmt.Sprint("had it before ", had), func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			m.pod("pod1")
			m.pod("theirs")
			if r := (request{pod: "pod1", dev: 3}); had {
				m.mustAdd(t, r)
				m.mustDel(t, r)
			}
			m.Give(vfAddr(3), netnsOf("theirs"), "net1")
			m.Send(netnsOf("theirs"), attach.Place{NS: "host", Name: "mlx5_3"})
			before := m.state(t)
			for _, dry := range []bool{true, false} {
				found := m.findings(t, dry)
				if len(found) != 1 || found[0].Outcome != plugin.Noted || !strings.Contains(found[0].Why, "pause (pid") {
					t.Errorf("repair: %+v", found)
				}
			}
			m.same(t, "repair", before)

			// Home again under their names: only those that nobody but the kernel or a pod gives are put right.
			m.KillNetNS(netnsOf("theirs"))
			m.RenameLink(vfAddr(3), "rail1")
			if found := m.findings(t, false); len(found) > 0 {
				t.Errorf("repair of what somebody named: %+v", found)
			}
		})
	}
}

// TestHalfAnOrphan: a move that was cut short left one half of a device at home and the other in its pod's namespace, and the record was
// lost. With a process inside it is the pod's; with none, nobody can use it, and the rest comes home.
func TestHalfAnOrphan(t *testing.T) {
	t.Parallel()
	for half, sent := range map[string]attach.Place{
		"RDMA device at home": {NS: attach.NS(netnsOf("pod1")), Name: "mlx5_3"},
		"netdev at home":      {NS: attach.NS(netnsOf("pod1")), Name: "net1"},
	} {
		t.Run(half, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			m.pod("pod1")
			m.pod("pod2")
			start := m.state(t)
			old, next := request{pod: "pod1", dev: 3}, request{pod: "pod2", dev: 3}
			m.mustAdd(t, old)
			m.forget(t, old)
			m.Send("", sent)
			before := m.state(t)
			if found := m.findings(t, false); len(found) != 1 || found[0].Outcome != plugin.Left {
				t.Errorf("repair while the pod lives: %+v", found)
			}
			answered(t, m.add(t, next), 11, "team-a/pod1")
			m.same(t, "repair and ADD while the pod lives", before)
			m.Desert(netnsOf("pod1"))
			if found := m.findings(t, true); len(found) != 1 || found[0].Outcome != plugin.Planned {
				t.Errorf("dry run: %+v", found)
			}
			m.same(t, "dry run", before)
			if found := m.findings(t, false); len(found) != 1 || found[0].Outcome != plugin.Repaired {
				t.Errorf("repair: %+v", found)
			}
			m.same(t, "repair", start)
		})
	}
}

// TestVanishedOrphan: the function that was out is no more, or another came to its address: nothing is owed, and nothing is said.
func TestVanishedOrphan(t *testing.T) {
	t.Parallel()
	k := named("VF with settings")
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprint("made anew ", again), func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, k.mode)
			m.pod("pod1")
			m.mustAdd(t, k.request)
			m.forget(t, k.request)
			m.KillNetNS(netnsOf("pod1"))
			m.RemoveFunction(vfAddr(3))
			if again {
				m.AddVF(attachtest.VF{ID: vfAddr(3), PF: vfAddr(0).PCI, Number: 1, Link: "eth9", RDMA: "mlx5_7x"})
				chosen := m.VFState(vfAddr(3))
				chosen.VLAN = 100 // as the pod's was, by chance
				m.SetVFState(vfAddr(3), chosen)
			}
			settings := func() (v attach.VFState) { //nolint:nonamedreturns // zero of one that is gone
				if again {
					v = m.VFState(vfAddr(3))
				}
				return v
			}
			before := settings()
			for _, dry := range []bool{true, false} {
				for _, f := range m.findings(t, dry) {
					if f.Kind != plugin.FindUverbs { // it left a hole
						t.Errorf("repair: %+v", f)
					}
				}
			}
			if diff := cmp.Diff(before, settings()); diff != "" {
				t.Errorf("VF (-before +after):\n%s", diff)
			}
			if _, err := os.Stat(filepath.Join(m.dir, "run/out", vfAddr(3).String()+".json")); err == nil {
				t.Error("what was kept of the old one is still there")
			}
		})
	}
}
