// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"testing"

	"github.com/podfabric/podfabric/plugin/attach"
)

// TestGCLeavesWhatIsWithin: a pod that lives may have its devices in a namespace of its own making, as one that runs containers does, and
// takes them back from there. A GC that does not list it must not make them free for whoever comes then.
func TestGCLeavesWhatIsWithin(t *testing.T) {
	t.Parallel()
	link, rdma := "net1", "mlx5_3"
	for name, gone := range map[string][]string{"netdev": {link}, "both": {link, rdma}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			m.pod("pod1")
			m.pod("pod2")
			m.AddNetNS("/within")
			r := request{pod: "pod1", dev: 3}
			m.mustAdd(t, r)
			for _, device := range gone {
				m.Send("/within", attach.Place{NS: attach.NS(netnsOf("pod1")), Name: device})
			}
			must(t, m.gc(t))
			for _, device := range gone {
				m.Send(netnsOf("pod1"), attach.Place{NS: "/within", Name: device})
			}
			answered(t, m.add(t, request{pod: "pod2", dev: 3}), 11, "team-a/pod1")
			if at := m.where(3); !inside("pod1", at[0]) || !inside("pod1", at[1]) {
				t.Errorf("the pod's devices are at %v", at)
			}
		})
	}
}
