// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"os"
	"testing"

	"github.com/podfabric/podfabric/plugin/attach"
)

// TestChainedAfterLost: the plugin before takes a VF from home that a pod of podfabric's left there without a DEL. Its netdev is in the new
// pod by the time that podfabric is asked, and no reason to wait for it; what the other plugin has set of it stays.
func TestChainedAfterLost(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, m *machine, r request){
		"DEL":        func(*testing.T, *machine, request) {},
		"record":     func(t *testing.T, m *machine, r request) { t.Helper(); must(t, os.Remove(m.recordOf(r))) },
		"everything": func(t *testing.T, m *machine, r request) { t.Helper(); m.forget(t, r) },
		"DEL came, and the device later": func(t *testing.T, m *machine, r request) {
			t.Helper()
			m.HoldNetNS(netnsOf(r.pod), -1)
			m.mustDel(t, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			m.pod("pod1")
			m.pod("pod2")
			r := request{pod: "pod1", dev: 3, more: walled}
			m.mustAdd(t, r)
			lose(t, m, r)
			m.KillNetNS(netnsOf("pod1"))
			others := m.VFState(vfAddr(3))
			others.VLAN = 200
			m.SetVFState(vfAddr(3), others)
			c := named("chained behind host-device")
			c.pod = "pod2"
			c.prepareFor(m, "pod2")
			m.mustAdd(t, c.request)
			if at := m.where(3); at != [2]string{"/run/netns/pod2/net1", "/run/netns/pod2/mlx5_3"} {
				t.Errorf("the VF is at %v", at)
			}
			if got := m.VFState(vfAddr(3)); got != others {
				t.Errorf("the VF has %+v, not %+v", got, others)
			}
			m.mustDel(t, r)
			if at := m.where(3); at != [2]string{"/run/netns/pod2/net1", "/run/netns/pod2/mlx5_3"} {
				t.Errorf("a late DEL of the first: the VF is at %v", at)
			}
			m.mustDel(t, c.request)
			c.after(m, "pod2")
			again := request{pod: "pod2", dev: 3}
			m.mustAdd(t, again)
			m.mustDel(t, again)
			if at := m.where(3); at != [2]string{"host/ens1f0v1", "host/mlx5_3"} {
				t.Errorf("in the end the VF is at %v", at)
			}
		})
	}
}
