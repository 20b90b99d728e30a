// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"testing"

	"github.com/podfabric/podfabric/plugin/attach"
)

// TestAltNamesOfAPod: a pod that may change its interface gives it an alternative name. Whichever that is, DEL brings the device
// home with the names that it had there and no other, and the next pod can have it.
func TestAltNamesOfAPod(t *testing.T) {
	t.Parallel()
	for what, names := range map[string][]string{
		"the name of another device at home": {"enp3s0v1", "ens1f0"},
		"its own name at home":               {"enp3s0v1", "ens1f0v1"},
		"the name that the next pod wants":   {"enp3s0v1", "net1"},
		"its own alternative name is gone":   nil,
	} {
		for _, dies := range []bool{false, true} {
			t.Run(what, func(t *testing.T) {
				t.Parallel()
				m := newMachine(t, attach.Exclusive)
				m.SetAltNames(vfAddr(3), "enp3s0v1")
				m.pod("pod1")
				m.pod("pod2")
				before := m.state(t)
				r, next := request{pod: "pod1", dev: 3}, request{pod: "pod2", dev: 3}
				m.mustAdd(t, r)
				m.RenameLink(vfAddr(3), "mine")
				m.SetAltNames(vfAddr(3), names...)
				if dies {
					m.KillNetNS(netnsOf("pod1"))
				} else {
					m.mustDel(t, r)
					m.same(t, "DEL", before)
				}
				m.mustAdd(t, next)
				m.mustDel(t, next)
				m.same(t, "DEL of the next", before)
			})
		}
	}
}
