// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/delegate"
	"github.com/podfabric/podfabric/plugin/record"
)

// change rewrites the record of r behind the plugin's back.
func (m *machine) change(t *testing.T, r request, do func(*record.Record)) {
	t.Helper()
	rec, err := m.plugin.Records.Load(r.owner())
	must(t, err)
	do(&rec)
	must(t, m.plugin.Records.Save(rec))
}

// TestHeal has what an ADD may find on its device and clears, by the old record's facts, before it goes on (review.md [5]).
func TestHeal(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		damage func(t *testing.T, m *machine, old request)
	}{
		{"owner dead, device home", func(_ *testing.T, m *machine, _ request) { m.KillNetNS(netnsOf("pod1")) }},
		{"owner dead, device home under other names", func(_ *testing.T, m *machine, old request) {
			m.AddLink("", "net1")
			if dir, name := filepath.Split(m.where(old.dev)[1]); dir == netnsOf("pod1")+"/" {
				m.AddRDMA(name)
				m.KillNetNS(netnsOf("pod1"))
				m.RemoveRDMA(name)
			}
			m.KillNetNS(netnsOf("pod1"))
		}},
		{"owner dead, device on its way home", func(_ *testing.T, m *machine, _ request) { m.HoldNetNS(netnsOf("pod1"), 8) }},
		{"owner dead, its path another pod's", func(_ *testing.T, m *machine, _ request) {
			m.KillNetNS(netnsOf("pod1"))
			m.pod("pod1")
		}},
		{"owner's path is now the node's own", func(t *testing.T, m *machine, old request) {
			t.Helper()
			m.KillNetNS(netnsOf("pod1"))
			m.change(t, old, func(r *record.Record) { r.NetNS.Path = "/proc/1/ns/net" })
		}},
		{"owner deleted half way, netns lives", func(t *testing.T, m *machine, old request) {
			t.Helper()
			m.change(t, old, func(r *record.Record) { r.State = record.Deleting })
		}},
		{"owner on its way home, netns lives", func(t *testing.T, m *machine, old request) {
			t.Helper()
			m.change(t, old, func(r *record.Record) { r.State = record.Returning })
		}},
		{"intent of a dead owner", func(t *testing.T, m *machine, old request) {
			t.Helper()
			m.change(t, old, func(r *record.Record) { r.State = record.Intent })
			m.KillNetNS(netnsOf("pod1"))
		}},
		{"dangling claim", func(t *testing.T, m *machine, old request) {
			t.Helper()
			m.mustDel(t, old)
			must(t, os.Symlink("../attachments/gone/net1.json", filepath.Join(m.dir, "run/claims", vfAddr(old.dev).String())))
		}},
		{"dangling claim, device home under the pod's name", func(t *testing.T, m *machine, _ request) {
			t.Helper()
			m.KillNetNS(netnsOf("pod1"))
			must(t, os.RemoveAll(filepath.Join(m.dir, "run/attachments/cid-pod1")))
		}},
		{"claim of a record of another device", func(t *testing.T, m *machine, old request) {
			t.Helper()
			m.mustDel(t, old)
			must(t, os.Symlink("../attachments/cid-bystander/net1.json", filepath.Join(m.dir, "run/claims", vfAddr(old.dev).String())))
		}},
		{"unreadable record, owner dead, device home", func(t *testing.T, m *machine, _ request) {
			t.Helper()
			m.KillNetNS(netnsOf("pod1"))
			must(t, os.WriteFile(filepath.Join(m.dir, "run/attachments/cid-pod1/net1.json"), []byte(`{"version":9}`), 0o600))
		}},
	}
	for _, tc := range tests {
		for _, k := range some("moved", "shared", "off", "soft", "moved, delegate") {
			t.Run(tc.name+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				m := newMachine(t, k.mode)
				m.pod("pod1")
				m.pod("pod2")
				before, home := m.state(t), m.where(k.dev)
				old, next := k.request, k.request
				next.pod, next.ipam = "pod2", v4Range
				m.mustAdd(t, old)
				tc.damage(t, m, old)
				m.mustAdd(t, next)
				m.mustDel(t, next)
				if at := m.where(k.dev); at != home {
					t.Errorf("devices are at %v, want %v", at, home)
				}
				m.mustDel(t, old)
				if tc.name != "owner dead, device home under other names" {
					m.same(t, "DEL", before)
				}
			})
		}
	}
}

// TestHealLeaves has what an ADD must not clear: it answers with code 11 and who has the device, and nothing changes.
func TestHealLeaves(t *testing.T) {
	t.Parallel()
	unreadable := func(text string) func(t *testing.T, m *machine) {
		return func(t *testing.T, m *machine) {
			t.Helper()
			must(t, os.WriteFile(filepath.Join(m.dir, "run/attachments/cid-pod1/net1.json"), []byte(text), 0o600))
		}
	}
	tests := []struct {
		name   string
		damage func(t *testing.T, m *machine)
		words  []string
	}{
		{"owner lives", func(*testing.T, *machine) {}, []string{"team-a/pod1", "cid-pod1", "net1", "rail0"}},
		{"owner's ADD is under way", func(t *testing.T, m *machine) {
			t.Helper()
			m.change(t, request{pod: "pod1"}, func(r *record.Record) { r.State = record.Intent })
		}, []string{"team-a/pod1", "cid-pod1", "net1", "rail0"}},
		{"owner lives, its record is newer", unreadable(`{"version":3,"state":"done"}`), []string{"cid-pod1", "net1", "newer"}},
		{"owner lives, its record is torn", unreadable(`{"vers`), []string{"cid-pod1", "net1"}},
	}
	for _, tc := range tests {
		for _, k := range some("moved", "shared, delegate", "off", "soft, delegate") {
			t.Run(tc.name+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				m := newMachine(t, k.mode)
				m.pod("pod1")
				m.pod("pod2")
				start := m.state(t)
				old, next := k.request, k.request
				next.pod = "pod2"
				m.mustAdd(t, old)
				tc.damage(t, m)
				before := m.state(t)
				answered(t, m.add(t, next), 11, append(tc.words, vfAddr(k.dev).String())...)
				m.same(t, "ADD", before)
				m.mustDel(t, old)
				m.same(t, "DEL", start)
			})
		}
	}
}

// TestAddTwice: ADD is not idempotent, as CNI wants it.
func TestAddTwice(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	start := m.state(t)
	r := request{pod: "pod1", dev: 3}
	m.mustAdd(t, r)
	before := m.state(t)
	answered(t, m.add(t, r), 7, "DEL the attachment", "cid-pod1/net1")
	m.same(t, "the second ADD", before)
	other := r
	other.dev = 6
	answered(t, m.add(t, other), 7, "DEL the attachment")
	m.same(t, "an ADD of another device", before)
	m.mustDel(t, r)
	m.same(t, "DEL", start)
}

// TestNamesSurvive: the names that a device has at home come from the first time that it left, over any number of lost DELs
// (review.md lab 9).
func TestNamesSurvive(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	before := m.state(t)
	var r request
	for n := range 3 {
		r = request{pod: fmt.Sprint("lost", n), dev: 3}
		m.pod(r.pod)
		m.mustAdd(t, r)
		m.KillNetNS(netnsOf(r.pod))
	}
	m.mustDel(t, r)
	m.same(t, "DEL", before)
}

// TestHealInPart: what an old owner still owes elsewhere keeps nobody from its device; a step that fails on the device does.
func TestHealInPart(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	m.pod("pod2")
	before := m.state(t)
	old, next := request{pod: "pod1", dev: 3, ipam: delegated}, request{pod: "pod2", dev: 3}
	m.mustAdd(t, old)
	m.KillNetNS(netnsOf("pod1"))
	m.FailAt(0, false)
	answered(t, m.add(t, next), 199, "clear the attachment cid-pod1/net1", "team-a/pod1", "injected failure")
	if state := m.stateOf(t, next); state != "" {
		t.Errorf("the ADD that could not left a record in state %q", state)
	}
	m.ipam.set(nil, func(context.Context) error {
		return &delegate.Error{Plugin: "other-ipam", Verb: "DEL", Msg: "its daemon is down"}
	})
	m.mustAdd(t, next)
	if !m.log.has("WARN", "its daemon is down") || m.stateOf(t, old) != record.Returning {
		t.Errorf("the old record is in state %q", m.stateOf(t, old))
	}
	m.mustDel(t, next)
	m.pod("pod1")
	answered(t, m.add(t, old), 109, "its daemon is down")
	m.ipam.set(nil, nil)
	m.mustAdd(t, old)
	m.mustDel(t, old)
	m.same(t, "DEL", before)
}
