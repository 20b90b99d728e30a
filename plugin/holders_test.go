// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"strings"
	"testing"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/record"
)

// heldBy are the ways in which somebody keeps a dead pod's namespace, as the scan of a real node words them (rdmans has the test of
// that).
func heldBy() map[string]string {
	return map[string]string{
		"a process":    "sleep (pid 71)",
		"a descriptor": "nsenter (pid 71, descriptor 5)",
		"a mount":      "mount /run/netns/forgotten",
		"a debugger":   "gdb (pid 71, thread 72)",
	}
}

// TestHeldAway: a device that something keeps in a dead pod's namespace is waited for, and who keeps it is said by every verb that
// meets it; as soon as it comes home all goes on, whoever comes first.
func TestHeldAway(t *testing.T) {
	t.Parallel()
	for name, by := range heldBy() {
		for _, k := range some("moved", "shared", "off", "soft") {
			t.Run(name+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				m := newMachine(t, k.mode)
				m.pod("pod1")
				m.pod("pod2")
				before := m.state(t)
				old, next := k.request, k.request
				next.pod, next.ipam = "pod2", v4Range
				m.mustAdd(t, old)
				m.HoldNetNSBy(netnsOf("pod1"), -1, by)

				// The ADD of another pod comes before the DEL, and again after it.
				answered(t, m.add(t, next), 11, by, "end what keeps", "team-a/pod1", vfAddr(k.dev).String())
				m.mustDel(t, old)
				if !m.log.has("WARN", by) {
					t.Errorf("the log of DEL does not name %s", by)
				}
				if state := m.stateOf(t, old); state != record.Returning {
					t.Errorf("the record is in state %q", state)
				}
				if found := m.findings(t, false); len(found) != 1 || found[0].Outcome != plugin.Left || !strings.Contains(found[0].Detail, "end "+by) {
					t.Errorf("repair: %+v", found)
				}
				answered(t, m.add(t, next), 11, by)
				m.mustDel(t, next) // as the runtime does after a failed ADD

				// It ends while the next ADD waits.
				m.ReleaseNetNS(netnsOf("pod1"), 6)
				m.mustAdd(t, next)
				m.mustDel(t, next)
				m.same(t, "DEL", before)
			})
		}
	}
}

// TestElsewhereWithoutRecord: Guard's refusal of a device that another program gave away names who has it.
func TestElsewhereWithoutRecord(t *testing.T) {
	t.Parallel()
	for _, k := range some("moved", "shared", "off") {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, k.mode)
			m.pod("other")
			m.pod("pod2")
			m.Give(vfAddr(k.dev), netnsOf("other"), "eth9")
			before := m.state(t)
			next := k.request
			next.pod = "pod2"
			answered(t, m.add(t, next), 11, "pause (pid", "mount "+netnsOf("other"))
			m.same(t, "ADD", before)
			m.HoldNetNSBy(netnsOf("other"), -1, "sleep (pid 71)")
			answered(t, m.add(t, next), 11, "sleep (pid 71)")
		})
	}
}
