// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// aftermath is what comes after a process was killed or lost all its parts in the middle of a verb.
type aftermath struct {
	name string
	do   func(t *testing.T, m *machine, r request)
}

func aftermaths() []aftermath {
	other := func(r request) request {
		r.pod = "pod2"
		return r
	}
	dead := func(m *machine, r request) {
		m.KillNetNS(netnsOf(r.pod))
	}
	return []aftermath{
		{"DEL", func(t *testing.T, m *machine, r request) { t.Helper(); m.mustDel(t, r) }},
		{"ADD again, DEL", func(t *testing.T, m *machine, r request) {
			t.Helper()
			// A DEL that was killed before it wrote anything leaves a whole attachment, and ADD is not idempotent.
			if err := m.add(t, r); err != nil {
				answered(t, err, 7, "DEL the attachment")
			}
			m.mustDel(t, r)
		}},
		{"netns died, DEL", func(t *testing.T, m *machine, r request) { t.Helper(); dead(m, r); m.mustDel(t, r) }},
		{"netns died, DEL without a path", func(t *testing.T, m *machine, r request) {
			t.Helper()
			dead(m, r)
			raw := r.raw()
			raw.NetNS = ""
			must(t, m.plugin.Del(t.Context(), raw))
		}},
		{"netns dies slowly, DEL", func(t *testing.T, m *machine, r request) {
			t.Helper()
			m.HoldNetNS(netnsOf(r.pod), 4)
			m.mustDel(t, r)
			m.KillNetNS(netnsOf(r.pod)) // the DEL of one with nothing inside does not wait for it
		}},
		{"netns died and its path is another's, DEL", func(t *testing.T, m *machine, r request) {
			t.Helper()
			dead(m, r)
			m.pod(r.pod)
			m.mustDel(t, r)
		}},
		{"netns died, GC", func(t *testing.T, m *machine, r request) { t.Helper(); dead(m, r); must(t, m.gc(t)) }},
		{"GC, DEL", func(t *testing.T, m *machine, r request) { t.Helper(); must(t, m.gc(t)); m.mustDel(t, r) }},
		{"netns died, ADD of another pod, its DEL, GC", func(t *testing.T, m *machine, r request) {
			t.Helper()
			dead(m, r)
			m.mustAdd(t, other(r))
			if !strings.Contains(m.Dump(), "link /run/netns/pod2/net1 ") {
				t.Errorf("pod2 has no interface:\n%s", m.Dump())
			}
			m.mustDel(t, other(r))
			must(t, m.gc(t))
		}},
		{"DEL by another pod's ADD while the netns lives", func(t *testing.T, m *machine, r request) {
			t.Helper()
			switch err := m.add(t, other(r)); {
			case err == nil: // nothing was left in its way
			case strings.Contains(r.keys, "master"): // no device to ask for, but perhaps the same address or MAC
				readable(t, err)
			default:
				answered(t, err, 11, "team-a/pod1", "cid-pod1", "net1", "rail0")
			}
			m.mustDel(t, r)
			m.mustDel(t, other(r))
		}},
	}
}

func killKinds() []kind {
	return some("moved, dual, rail, MTU, up at home", "moved, delegate", "shared", "soft, delegate", "macvlan, delegate", "device by name",
		"VF with settings")
}

// TestAddKilledAnywhere kills ADD before each of its calls and half way through each, and lets all its parts fail from there on.
func TestAddKilledAnywhere(t *testing.T) {
	t.Parallel()
	for _, k := range killKinds() {
		for _, after := range aftermaths() {
			t.Run(k.name+"/"+after.name, func(t *testing.T) {
				t.Parallel()
				m := newMachine(t, k.mode)
				m.pod("pod1")
				m.pod("pod2")
				before := m.state(t)
				n := m.callsOf(t, func() error { return m.add(t, k.request) })
				m.mustDel(t, k.request)
				for at := range n {
					for _, how := range []strike{killed, killHalf, forGood} {
						m.trap.set(at, how)
						var err error
						died := dies(func() { err = m.add(t, k.request) })
						what := fmt.Sprintf("ADD whose call %d, %s, was %s", at, m.trap.hit, how)
						m.trap.clear()
						if died == (how == forGood) || !died && err == nil {
							t.Fatalf("%s: died %t, error %v", what, died, err)
						}
						after.do(t, m, k.request)
						if !m.same(t, "after "+what, before) || t.Failed() {
							t.Fatal(what)
						}
						m.renew()
					}
				}
			})
		}
	}
}

// TestDelKilledAnywhere does the same to DEL.
func TestDelKilledAnywhere(t *testing.T) {
	t.Parallel()
	for _, k := range killKinds() {
		for _, after := range aftermaths() {
			t.Run(k.name+"/"+after.name, func(t *testing.T) {
				t.Parallel()
				m := newMachine(t, k.mode)
				m.pod("pod1")
				m.pod("pod2")
				before := m.state(t)
				m.mustAdd(t, k.request)
				n := m.callsOf(t, func() error { return m.del(t, k.request) })
				for at := range n {
					for _, how := range []strike{killed, killHalf, forGood} {
						m.mustAdd(t, k.request)
						m.trap.set(at, how)
						dies(func() { _ = m.del(t, k.request) })
						what := fmt.Sprintf("DEL whose call %d, %s, was %s", at, m.trap.hit, how)
						m.trap.clear()
						after.do(t, m, k.request)
						if !m.same(t, "after "+what, before) || t.Failed() {
							t.Fatal(what)
						}
						m.renew()
					}
				}
			})
		}
	}
}

// renew gives the pod a new namespace, as the next sandbox has.
func (m *machine) renew() {
	m.KillNetNS(netnsOf("pod1"))
	m.pod("pod1")
}

// TestKilledBetweenWrites has the states that only a kill between two writes of one store leaves.
func TestKilledBetweenWrites(t *testing.T) {
	t.Parallel()
	states := []struct {
		name string
		make func(t *testing.T, m *machine, r request)
	}{
		{"intent without claim", func(t *testing.T, m *machine, r request) {
			t.Helper()
			m.trap.set(2, killed) // open and observe came first
			if !dies(func() { _ = m.add(t, r) }) || m.trap.hit != "lease" {
				t.Fatalf("killed at %q", m.trap.hit)
			}
			m.trap.clear()
			must(t, os.Remove(filepath.Join(m.dir, "run/claims", vfAddr(r.dev).String())))
		}},
		{"record without claim, all home", func(t *testing.T, m *machine, r request) {
			t.Helper()
			m.mustAdd(t, r)
			text, err := os.ReadFile(filepath.Join(m.dir, "run/attachments/cid-pod1/net1.json"))
			must(t, err)
			m.mustDel(t, r)
			must(t, os.Mkdir(filepath.Join(m.dir, "run/attachments/cid-pod1"), 0o700))
			must(t, os.WriteFile(filepath.Join(m.dir, "run/attachments/cid-pod1/net1.json"), text, 0o600))
		}},
		{"a folder without a record", func(t *testing.T, m *machine, _ request) {
			t.Helper()
			must(t, os.Mkdir(filepath.Join(m.dir, "run/attachments/cid-pod1"), 0o700))
		}},
		{"a record half written", func(t *testing.T, m *machine, _ request) {
			t.Helper()
			must(t, os.Mkdir(filepath.Join(m.dir, "run/attachments/cid-pod1"), 0o700))
			must(t, os.WriteFile(filepath.Join(m.dir, "run/attachments/cid-pod1/.net1.json1234"), []byte("{"), 0o600))
		}},
	}
	for _, state := range states {
		for _, after := range aftermaths() {
			t.Run(state.name+"/"+after.name, func(t *testing.T) {
				t.Parallel()
				m := newMachine(t, "exclusive")
				m.pod("pod1")
				m.pod("pod2")
				before := m.state(t)
				r := request{pod: "pod1", dev: 3}
				state.make(t, m, r)
				after.do(t, m, r)
				m.mustDel(t, r) // GC knows records only, so that a folder without one is left to it
				m.same(t, after.name, before)
			})
		}
	}
}
