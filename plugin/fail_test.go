// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"fmt"
	"strings"
	"testing"
)

// some are the kinds that differ in what is done to the machine or in who hands out addresses.
func some(names ...string) []kind {
	var out []kind
	for _, k := range kinds() {
		for _, name := range names {
			if k.name == name {
				out = append(out, k)
			}
		}
	}
	return out
}

// callsOf counts what fn has the plugin ask of its parts.
func (m *machine) callsOf(t testing.TB, fn func() error) int {
	t.Helper()
	const never = 1 << 20
	m.trap.set(never, refused)
	defer m.trap.clear()
	must(t, fn())
	return m.trap.calls
}

// TestAddFailsAnywhere fails ADD at each call that it makes of the machine, the leases, the other IPAM plugin and the hint's
// lock. Nothing is left, and the next ADD finds nothing in its way.
func TestAddFailsAnywhere(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, k.mode)
			m.pod("pod1")
			k.prepare(m)
			before := m.state(t)
			n := m.callsOf(t, func() error { return m.add(t, k.request) })
			m.mustDel(t, k.request)
			if n < 6 {
				t.Fatalf("only %d calls were seen, the test proves nothing", n)
			}
			for at := range n {
				for _, how := range []strike{refused, halfDone} {
					m.trap.set(at, how)
					err := m.add(t, k.request)
					what := fmt.Sprintf("ADD whose call %d, %s, was %s", at, m.trap.hit, how)
					m.trap.clear()
					if err == nil {
						// A VF's own MAC that is refused is tried again after the administrative one.
						if !strings.Contains(what, "set mac of pod/") {
							t.Errorf("%s: no error", what)
						}
						m.mustDel(t, k.request)
						continue
					}
					readable(t, err)
					if !m.same(t, what, before) {
						return
					}
				}
			}
			m.mustAdd(t, k.request)
			m.mustDel(t, k.request)
			m.same(t, "DEL after the last ADD", before)
		})
	}
}

// TestDelFailsAnywhere fails DEL at each of its calls. Whatever it answers, the next DEL ends it, and where it said that all
// is well, all was.
func TestDelFailsAnywhere(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, k.mode)
			m.pod("pod1")
			k.prepare(m)
			before := m.state(t)
			m.mustAdd(t, k.request)
			n := m.callsOf(t, func() error { return m.del(t, k.request) })
			for at := range n {
				for _, how := range []strike{refused, halfDone, forGood} {
					m.mustAdd(t, k.request)
					m.trap.set(at, how)
					err := m.del(t, k.request)
					what := fmt.Sprintf("DEL whose call %d, %s, was %s", at, m.trap.hit, how)
					m.trap.clear()
					if err == nil {
						m.same(t, what+" without an error", before)
					} else {
						readable(t, err)
						m.mustDel(t, k.request)
					}
					if !m.same(t, "DEL after "+what, before) {
						return
					}
				}
			}
		})
	}
}
