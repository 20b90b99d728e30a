// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"strings"
	"testing"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
)

// TestCheckNamesTheNextStep: what CHECK says of an attachment that is not whole tells who holds what, and what to do.
func TestCheckNamesTheNextStep(t *testing.T) {
	t.Parallel()
	const by = "sleep (pid 71)"
	state := func(s record.State) func(*testing.T, *machine, request) {
		return func(t *testing.T, m *machine, r request) {
			t.Helper()
			m.change(t, r, func(rec *record.Record) { rec.State = s })
		}
	}
	macvlan := request{pod: "pod1", of: otherPF(), keys: `"link":"macvlan","master":"ens2f0"`}
	for name, tc := range map[string]struct {
		mode   attach.Mode
		r      request
		damage func(*testing.T, *machine, request)
		words  []string
	}{
		"its DEL is over and a process has the device": {attach.Exclusive, request{pod: "pod1", dev: 3}, func(t *testing.T, m *machine, r request) {
			t.Helper()
			m.HoldNetNSBy(netnsOf("pod1"), -1, by)
			m.mustDel(t, r)
		}, []string{"its DEL is over", "ens1f0v1", "held by " + by, "end " + by, "then run podfabricctl repair"}},
		"its DEL is over and nothing is away": {
			attach.Exclusive,
			request{pod: "pod1", dev: 3},
			func(t *testing.T, m *machine, r request) {
				t.Helper()
				m.KillNetNS(netnsOf("pod1"))
				state(record.Returning)(t, m, r)
			},
			[]string{"its DEL is over", "run podfabricctl repair"},
		},
		"the path is gone and a process has the namespace": {attach.Exclusive, request{pod: "pod1", dev: 3}, func(_ *testing.T, m *machine, _ request) {
			m.HoldNetNSBy(netnsOf("pod1"), -1, by)
		}, []string{"namespace is gone", "held by " + by, "end " + by, "then run podfabricctl repair"}},
		"the path is gone and a process has the macvlan": {attach.Shared, macvlan, func(_ *testing.T, m *machine, _ request) {
			m.HoldNetNSBy(netnsOf("pod1"), -1, by)
		}, []string{"namespace is gone", "held by " + by, "end " + by}},
		"the namespace is gone": {attach.Exclusive, request{pod: "pod1", dev: 3}, func(_ *testing.T, m *machine, _ request) {
			m.KillNetNS(netnsOf("pod1"))
		}, []string{"namespace is gone", "run podfabricctl repair"}},
		"its ADD did not end": {
			attach.Exclusive,
			request{pod: "pod1", dev: 3},
			state(record.Intent),
			[]string{"its ADD began", "s ago", "podfabricctl repair"},
		},
		"its DEL did not end": {
			attach.Exclusive,
			request{pod: "pod1", dev: 3},
			state(record.Deleting),
			[]string{"its DEL began", "podfabricctl repair"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, tc.mode)
			m.pod("pod1")
			m.mustAdd(t, tc.r)
			tc.damage(t, m, tc.r)
			before := m.state(t)
			rec, err := m.plugin.Records.Load(tc.r.owner())
			must(t, err)
			lost, _, err := m.plugin.Inspect(t.Context(), rec)
			must(t, err)
			for _, word := range tc.words {
				if len(lost) != 1 || !strings.Contains(lost[0], word) {
					t.Errorf("lost is %q, want %q in it", lost, word)
				}
			}
			m.same(t, "CHECK", before)
		})
	}
}
