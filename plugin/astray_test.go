// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
	"github.com/podfabric/podfabric/plugin/record"
)

const sleeper = "sleep (pid 71)"

// onlyOne are attachments of which one at a time can have the address.
func onlyOne() map[string]request {
	return map[string]request{
		"macvlan":           {pod: "pod1", of: otherPF(), keys: `"link":"macvlan","master":"ens2f0"`, ipam: oneAddress},
		"macvlan, RDMA off": {pod: "pod1", of: otherPF(), keys: `"link":"macvlan","master":"ens2f0"`, ipam: oneAddress, more: rdmaOff},
		"macvlan, MAC":      {pod: "pod1", of: otherPF(), keys: `"link":"macvlan","master":"ens2f0","mac":"02:00:5e:00:00:01"`, ipam: oneAddress},
		"ipvlan":            {pod: "pod1", of: otherPF(), keys: `"link":"ipvlan","master":"ens2f0"`, ipam: oneAddress, more: rdmaOff},
	}
}

// next asks for the same address in pod2.
func next(m *machine, r request) error {
	r.pod = "pod2"
	r.keys = strings.Replace(r.keys, "00:01", "00:02", 1)
	_, err := m.plugin.Add(context.Background(), r.raw())
	return err
}

// TestLinkInAHeldNamespace: the path of a pod's namespace is gone, and a process holds the namespace. Nobody gets the address while the link
// answers to it; who takes the attachment back removes the link, and repair, for which no DEL came, says who has it.
func TestLinkInAHeldNamespace(t *testing.T) {
	t.Parallel()
	for name, r := range onlyOne() {
		for _, changed := range []bool{false, true} {
			for verb, do := range map[string]func(*testing.T, *machine) error{
				"DEL": func(t *testing.T, m *machine) error { t.Helper(); return m.del(t, r) },
				"GC":  func(t *testing.T, m *machine) error { t.Helper(); return m.gc(t) },
			} {
				t.Run(name+"/"+verb, func(t *testing.T) {
					t.Parallel()
					m := held(t, r, changed)
					for _, f := range m.repair(t) {
						if f.Outcome != plugin.Left || !strings.Contains(f.Detail, "on ens2f0, held by "+sleeper) || !strings.Contains(f.Detail, "end "+sleeper) {
							t.Errorf("repair: %+v", f)
						}
					}
					answered(t, next(m, r), 106)
					must(t, do(t, m))
					if dump := m.Dump(); strings.Contains(dump, "kind macvlan") || strings.Contains(dump, "kind ipvlan") {
						t.Errorf("the link stays:\n%s", dump)
					}
					if _, err := m.plugin.Records.Load(r.owner()); err == nil {
						t.Error("the record stays")
					}
					must(t, next(m, r))
				})
			}
		}
	}
}

// held is a machine whose pod1 lives on in a process, without its path; its link is changed as a pod can.
func held(t *testing.T, r request, changed bool) *machine {
	t.Helper()
	m := newMachine(t, attach.Shared)
	m.pod("pod1")
	m.pod("pod2")
	m.mustAdd(t, r)
	if changed {
		m.RenamePodLink(netnsOf("pod1"), "net1", "fast0")
		if strings.Contains(r.keys, "macvlan") {
			m.SetPodMAC(netnsOf("pod1"), "fast0", "02:99:00:00:00:01")
		}
	}
	m.HoldNetNSBy(netnsOf("pod1"), -1, sleeper)
	return m
}

// TestLinkInANestedNamespace: a pod has moved its macvlan into a namespace of its own making. DEL finds it there by its MAC; GC and repair
// take it for what it is, the living pod's.
func TestLinkInANestedNamespace(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"macvlan", "macvlan, RDMA off"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := onlyOne()[name]
			m := newMachine(t, attach.Shared)
			m.pod("pod1")
			m.pod("pod2")
			m.mustAdd(t, r)
			m.AddNetNS("/nested")
			m.Send("/nested", attach.Place{NS: attach.NS(netnsOf("pod1")), Name: "net1"})
			before := m.state(t)
			must(t, m.gc(t))
			m.same(t, "GC", before)
			m.repair(t)
			m.same(t, "repair", before)
			answered(t, next(m, r), 106)
			m.mustDel(t, r)
			if dump := m.Dump(); strings.Contains(dump, "/nested/net1") {
				t.Errorf("the link stays:\n%s", dump)
			}
			must(t, next(m, r))
		})
	}
}

// TestLinkThatCannotBeRemoved keeps record and lease, and the next DEL ends it.
func TestLinkThatCannotBeRemoved(t *testing.T) {
	t.Parallel()
	r := onlyOne()["macvlan"]
	m := held(t, r, false)
	m.FailWith(0, attachtest.Nothing, attachtest.ErrInjected)
	if err := m.del(t, r); err == nil {
		t.Error("DEL succeeded")
	}
	rec, err := m.plugin.Records.Load(r.owner())
	must(t, err)
	if rec.State != record.Returning {
		t.Errorf("state %s", rec.State)
	}
	if !m.log.has("WARN", "held by "+sleeper) {
		t.Error("the log does not say who has the link")
	}
	answered(t, next(m, r), 106)
	m.mustDel(t, r)
	must(t, next(m, r))
}

// TestLinkOfAnother: what is found elsewhere by a MAC that a network chose may be the next pod's, and stays.
func TestLinkOfAnother(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"macvlan, MAC", "ipvlan", "macvlan"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := onlyOne()[name]
			r.ipam = noIPAM
			m := newMachine(t, attach.Shared)
			m.pod("pod1")
			m.pod("pod2")
			m.mustAdd(t, r)
			m.KillNetNS(netnsOf("pod1"))
			other := r
			other.pod = "pod2"
			m.mustAdd(t, other)
			m.mustDel(t, r)
			must(t, m.plugin.Check(t.Context(), other.raw()))
		})
	}
}

// TestNoSearchInTheNormalCase: a DEL that finds the link where it was put looks nowhere else.
func TestNoSearchInTheNormalCase(t *testing.T) {
	t.Parallel()
	for name, r := range onlyOne() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Shared)
			m.pod("pod1")
			m.mustAdd(t, r)
			m.mustDel(t, r)
			m.mustDel(t, r)
			if n := m.Searches(); n != 0 {
				t.Errorf("%d looks into every namespace", n)
			}
		})
	}
}

// TestDeviceBelowAHeldLink: a link in a namespace without a path shares its master still, so that the master is nobody's to have whole.
func TestDeviceBelowAHeldLink(t *testing.T) {
	t.Parallel()
	m := held(t, onlyOne()["macvlan"], false)
	whole := request{pod: "pod2", of: otherPF()}
	answered(t, m.add(t, whole), 103, "net1 of pod team-a/pod1")
	m.KillNetNS(netnsOf("pod1"))
	m.mustAdd(t, whole)
}
