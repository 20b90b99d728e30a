// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"os"
	"path/filepath"
	"testing"
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
