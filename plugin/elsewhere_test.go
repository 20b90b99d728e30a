// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
	"github.com/podfabric/podfabric/plugin/link"
	"github.com/podfabric/podfabric/plugin/record"
)

// TestDelByOwnNetNS: a path that leads to the node's own namespace by now says as little as one that is gone. What a record means is
// brought home and freed, unless it means that very namespace.
func TestDelByOwnNetNS(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]request{
		"VF":       {pod: "pod1", dev: 3},
		"macvlan":  {pod: "pod1", of: otherPF(), keys: `"link":"macvlan","master":"ens2f0"`},
		"delegate": {pod: "pod1", dev: 3, ipam: delegated},
	} {
		for _, alive := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, pod lives %t", name, alive), func(t *testing.T) {
				t.Parallel()
				m := newMachine(t, attach.Shared)
				m.pod("pod1")
				before := m.state(t)
				m.mustAdd(t, r)
				if !alive {
					m.KillNetNS(netnsOf("pod1"))
				}
				raw := r.raw()
				raw.NetNS = attachtest.OwnNetNS
				must(t, m.plugin.Del(t.Context(), raw))
				if alive {
					m.same(t, "DEL", before)
				}
				if _, err := m.plugin.Records.Load(r.owner()); !errors.Is(err, record.ErrNotFound) {
					t.Errorf("the record: %v", err)
				}
			})
		}
	}
	t.Run("the record means it", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t, attach.Exclusive)
		m.pod("pod1")
		r := request{pod: "pod1", dev: 3}
		m.mustAdd(t, r)
		rec, err := m.plugin.Records.Load(r.owner())
		must(t, err)
		s, err := m.Open(t.Context(), "")
		must(t, err)
		rec.NetNS = s.HostNS()
		must(t, errors.Join(s.Close(), m.plugin.Records.Save(rec)))
		before := m.state(t)
		raw := r.raw()
		raw.NetNS = attachtest.OwnNetNS
		answered(t, m.plugin.Del(t.Context(), raw), 8, "not of the plugin's own")
		m.same(t, "DEL", before)
	})
}

// TestDelMeetsATakenName: on the way home nobody can choose another name, and the next DEL finds a free one.
func TestDelMeetsATakenName(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Shared)
	m.pod("pod1")
	r := request{pod: "pod1", dev: 3}
	before := m.state(t)
	m.mustAdd(t, r)
	m.FailWith(0, attachtest.Nothing, link.ErrNameTaken)
	err := m.del(t, r)
	answered(t, err, 11, "let DEL be called again, or run podfabricctl repair", "taken")
	if text := plugin.Answer(err).Error(); strings.Contains(text, "another interface name") {
		t.Errorf("answer is %q", text)
	}
	m.mustDel(t, r)
	m.same(t, "DEL", before)
}
