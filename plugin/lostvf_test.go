// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
)

// TestSettingsOfALostRecord: a VLAN is taken back also where only what was kept of the VF at home tells of it, whatever its driver and
// whoever had it before. It would be the next pod's.
func TestSettingsOfALostRecord(t *testing.T) {
	t.Parallel()
	losses := map[string]func(t *testing.T, m *machine, file string){
		"unreadable": func(t *testing.T, _ *machine, file string) {
			t.Helper()
			must(t, os.WriteFile(file, []byte(`{"version":99,"compatible":99}`), 0o600))
		},
		"gone": func(t *testing.T, _ *machine, file string) { t.Helper(); must(t, os.Remove(file)) },
	}
	for name, lose := range losses {
		for _, k := range some("VF with settings", "VF of a program") {
			for _, history := range []string{"first", "after one without settings", "after others"} {
				t.Run(name+"/"+k.name+"/"+history, func(t *testing.T) {
					t.Parallel()
					m := newMachine(t, k.mode)
					m.pod("pod1")
					plain := request{pod: "pod1", of: k.device()}
					if history == "after one without settings" {
						m.mustAdd(t, plain)
						m.mustDel(t, plain)
					}
					if history == "after others" {
						m.mustAdd(t, k.request)
						m.mustDel(t, k.request)
						v := m.VFState(k.device())
						v.VLAN = 9 // the node's owner has it so since
						m.SetVFState(k.device(), v)
						m.mustAdd(t, plain)
						m.mustDel(t, plain)
					}
					before := m.state(t)
					m.mustAdd(t, k.request)
					lose(t, m, filepath.Join(m.dir, "run/attachments/cid-pod1/net1.json"))
					m.mustDel(t, k.request)
					m.same(t, "DEL", before)
				})
			}
		}
	}
}

// TestDelSaysWhichSettingsStay: with everything lost nobody knows what a VF's settings were, so that DEL leaves them, and says which and how
// to clear them.
func TestDelSaysWhichSettingsStay(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		more string
		lose func(*testing.T, *machine, request)
		says string // empty: nothing
	}{
		"a VLAN and trust": {`,"vlan":100,"trust":"on"`, func(t *testing.T, m *machine, r request) { t.Helper(); m.lose(t, r) }, "ip link set ens1f0 vf 1 vlan 0 trust off"},
		"none":             {"", func(t *testing.T, m *machine, r request) { t.Helper(); m.lose(t, r) }, ""},
		"the device tells": {`,"vlan":100`, func(t *testing.T, m *machine, r request) { t.Helper(); m.forget(t, r) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			m.pod("pod1")
			r := request{pod: "pod1", dev: 3, more: tc.more}
			m.mustAdd(t, r)
			tc.lose(t, m, r)
			m.log.reset()
			m.mustDel(t, r)
			if got := m.log.has("WARN", "ip link set"); got != (tc.says != "") || got && !m.log.has("WARN", tc.says) {
				t.Errorf("the log lacks %q, or has what it should not:\n%s", tc.says, m.log.text.String())
			}
		})
	}
}

// TestRepairSaysWhichSettingsStay: where only a claim is left of an attachment whose pod is gone, repair takes the claim away and says which settings
// the VF still has.
func TestRepairSaysWhichSettingsStay(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		more string
		lose []string
		says string // empty: nothing
	}{
		"a VLAN and trust":        {`,"vlan":100,"trust":"on"`, []string{"attachments", "out", "names"}, "ip link set ens1f0 vf 1 vlan 0 trust off"},
		"the home names are left": {`,"vlan":100,"trust":"on"`, []string{"attachments", "out"}, "ip link set ens1f0 vf 1 vlan 0 trust off"},
		"none":                    {"", []string{"attachments", "out", "names"}, ""},
		"the device tells":        {`,"vlan":100`, []string{"attachments"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			m.pod("pod1")
			r := request{pod: "pod1", dev: 3, more: tc.more}
			m.mustAdd(t, r)
			m.losePart(t, r, slices.DeleteFunc(slices.Clone(tc.lose), func(f string) bool { return f == "names" }))
			if slices.Contains(tc.lose, "names") {
				must(t, os.RemoveAll(filepath.Join(m.dir, "run/names")))
			}
			m.KillNetNS(netnsOf("pod1"))
			found := m.findings(t, false)
			says := slices.ContainsFunc(found, func(f plugin.Finding) bool {
				return f.Kind == plugin.FindClaim && f.Outcome == plugin.Noted && strings.Contains(f.Detail, "ip link set")
			})
			right := slices.ContainsFunc(found, func(f plugin.Finding) bool { return tc.says != "" && strings.Contains(f.Detail, tc.says) })
			if says != (tc.says != "") || says != right {
				t.Errorf("found %+v, want %q", found, tc.says)
			}
		})
	}
}
