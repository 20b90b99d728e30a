// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"strings"
	"testing"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
)

// TestDryRunNamesHolders: what repair cannot do before somebody lets go of the device, a dry run does not promise.
func TestDryRunNamesHolders(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"sleep (pid 441)", "agent (pid 441, descriptor 5)", "mount /run/netns/blue"} {
		for _, lost := range []bool{false, true} {
			m := newMachine(t, attach.Exclusive)
			m.pod("pod1")
			r := request{pod: "pod1", dev: 3}
			m.mustAdd(t, r)
			if lost {
				m.forget(t, r)
			}
			m.HoldNetNSBy(netnsOf("pod1"), -1, by)
			before := m.state(t)
			found := m.findings(t, true)
			if len(found) != 1 || found[0].Outcome != plugin.Planned || found[0].Detail != "once "+by+" ends" {
				t.Errorf("lost %t: dry run: %+v", lost, found)
			}
			m.same(t, "dry run", before)
			found = m.findings(t, false)
			if len(found) != 1 || found[0].Outcome != plugin.Left || !strings.Contains(found[0].Detail, "netdev net1 (ens1f0v1 at home) of 0000:3b:00.3, held by "+by) {
				t.Errorf("lost %t: repair: %+v", lost, found)
			}
		}
	}

	// Nothing is in the way of a device that comes home by itself.
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	m.mustAdd(t, request{pod: "pod1", dev: 3})
	m.KillNetNS(netnsOf("pod1"))
	if found := m.findings(t, true); len(found) != 1 || found[0].Detail != "" {
		t.Errorf("dry run: %+v", found)
	}
}

// TestDryRunOfALinkThatIsHeld: repair removes no link of a pod that may run, and a dry run says what that waits for.
func TestDryRunOfALinkThatIsHeld(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Shared)
	m.pod("pod1")
	m.mustAdd(t, named("macvlan").request)
	m.HoldNetNSBy(netnsOf("pod1"), -1, "sleep (pid 441)")
	if found := m.findings(t, true); len(found) != 1 || found[0].Detail != "once sleep (pid 441) ends" {
		t.Errorf("dry run: %+v", found)
	}
}
