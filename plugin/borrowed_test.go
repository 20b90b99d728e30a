// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"testing"

	"github.com/podfabric/podfabric/plugin/attach"
)

// TestBorrowedName: a pod gives its VF the name, an alternative name or the MAC of a device that another pod has, and dies without a DEL. The
// VF comes home with them, and whoever asks for the other device must not get it.
func TestBorrowedName(t *testing.T) {
	t.Parallel()
	vf := vfAddr(3)
	mac := "02:54:00:3c:00:00" // of ens2f0
	for name, tt := range map[string]struct {
		keys string
		lend func(m *machine)
	}{
		"name":             {`"device":"ens2f0"`, func(m *machine) { m.RenameLink(vf, "ens2f0") }},
		"alternative name": {`"device":"ens2f0"`, func(m *machine) { m.SetAltNames(vf, "ens2f0") }},
		"alternative name beside its own": {`"device":"ens2f0"`, func(m *machine) {
			m.RenameLink(vf, "ens1f0v1")
			m.SetAltNames(vf, "ens2f0")
		}},
		"MAC": {`"hwaddr":"` + mac + `","link":"device"`, func(m *machine) { m.SetLink(vf, mac, 1500, true) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			for _, pod := range []string{"pod1", "pod2", "pod3"} {
				m.pod(pod)
			}
			whole := request{pod: "pod1", of: otherPF(), keys: tt.keys}
			m.mustAdd(t, whole)
			mine := request{pod: "pod2", dev: 3}
			m.mustAdd(t, mine)
			tt.lend(m)
			m.KillNetNS(netnsOf("pod2"))
			next := whole
			next.pod = "pod3"
			answered(t, m.add(t, next), 11, "team-a/pod1")
			m.mustDel(t, mine)
			answered(t, m.add(t, next), 11, "team-a/pod1")
			m.mustDel(t, whole)
			m.mustAdd(t, next)
			if at := m.Where(otherPF()); at[0] != "/run/netns/pod3/net1" {
				t.Errorf("ens2f0 is at %v", at)
			}
		})
	}
}

// TestBorrowedMaster: nor does a macvlan sit on it.
func TestBorrowedMaster(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Shared)
	m.pod("pod1")
	m.pod("pod2")
	m.mustAdd(t, request{pod: "pod1", dev: 3})
	m.RenameLink(vfAddr(3), "storage0")
	m.KillNetNS(netnsOf("pod1"))
	r := request{pod: "pod2", of: otherPF(), keys: `"link":"macvlan","master":"storage0"`}
	answered(t, m.add(t, r), 11, "storage0")
}
