// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	types100 "github.com/containernetworking/cni/pkg/types/100"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/delegate"
	"github.com/podfabric/podfabric/plugin/record"
)

// TestDelPaths has what a runtime may give as the namespace's path, and what may have become of what was recorded.
func TestDelPaths(t *testing.T) {
	t.Parallel()
	file := func(m *machine) string { return filepath.Join(m.dir, "run/attachments/cid-pod1/net1.json") }
	write := func(text string) func(*testing.T, *machine) {
		return func(t *testing.T, m *machine) { t.Helper(); must(t, os.WriteFile(file(m), []byte(text), 0o600)) }
	}
	tests := []struct {
		name  string
		path  string
		lost  func(t *testing.T, m *machine)
		stays bool // the namespace lives on with what was in it
	}{
		{"the right one", netnsOf("pod1"), func(*testing.T, *machine) {}, false},
		{"none, namespace lives", "", func(*testing.T, *machine) {}, false},
		{"none, namespace is dead", "", func(_ *testing.T, m *machine) { m.KillNetNS(netnsOf("pod1")) }, false},
		{"missing", netnsOf("pod1"), func(_ *testing.T, m *machine) { m.KillNetNS(netnsOf("pod1")) }, false},
		{"another one that lives", netnsOf("bystander"), func(*testing.T, *machine) {}, false},
		{"used again for another pod", netnsOf("pod1"), func(_ *testing.T, m *machine) {
			m.KillNetNS(netnsOf("pod1"))
			m.pod("pod1")
			m.AddLink(netnsOf("pod1"), "net1")
		}, true},
		{"dying", netnsOf("pod1"), func(_ *testing.T, m *machine) { m.HoldNetNS(netnsOf("pod1"), 6) }, false},
		{"the pod renamed its interface", netnsOf("pod1"), func(_ *testing.T, m *machine) { m.RenameLink(vfAddr(3), "fast0") }, false},
		{"the pod took it down and changed it", netnsOf("pod1"), func(_ *testing.T, m *machine) {
			m.SetLink(vfAddr(3), "02:00:00:00:00:99", 1400, false)
		}, false},
		{"its record is gone, its claim is not", netnsOf("pod1"), func(t *testing.T, m *machine) { t.Helper(); must(t, os.Remove(file(m))) }, false},
		{"its claim is gone, its record is not", netnsOf("pod1"), func(t *testing.T, m *machine) {
			t.Helper()
			must(t, os.Remove(filepath.Join(m.dir, "run/claims", vfAddr(3).String())))
		}, false},
		{"its claim is no claim", netnsOf("pod1"), func(t *testing.T, m *machine) {
			t.Helper()
			claim := filepath.Join(m.dir, "run/claims", vfAddr(3).String())
			must(t, os.Remove(claim))
			must(t, os.WriteFile(claim, nil, 0o600))
			t.Cleanup(func() { _ = os.Remove(claim) })
		}, false},
		{"its record is torn", netnsOf("pod1"), write(`{"version":1,"sta`), false},
		{"its record is of a newer version", netnsOf("pod1"), write(`{"version":3,"state":"done"}`), false},
		{"its record is another's", netnsOf("pod1"), write(`{"version":1,"state":"done","owner":{"containerID":"x","ifname":"y"}}`), false},
		{"its record is a folder", netnsOf("pod1"), func(t *testing.T, m *machine) {
			t.Helper()
			must(t, os.Remove(file(m)))
			must(t, os.Mkdir(file(m), 0o700))
		}, false},
		{"its record is newer and the namespace dead", "", func(t *testing.T, m *machine) {
			t.Helper()
			write(`{"version":3,"state":"done"}`)(t, m)
			m.KillNetNS(netnsOf("pod1"))
		}, false},
	}
	for _, tc := range tests {
		for _, addresses := range []string{v4Range, delegated} {
			t.Run(tc.name+" "+addresses[9:14], func(t *testing.T) {
				t.Parallel()
				m := newMachine(t, attach.Exclusive)
				m.pod("pod1")
				before := m.state(t)
				r := request{pod: "pod1", dev: 3, ipam: addresses, more: `,"mtu":2000`}
				m.mustAdd(t, r)
				tc.lost(t, m)
				raw := r.raw()
				raw.NetNS = tc.path
				for range 2 {
					if err := m.plugin.Del(t.Context(), raw); err != nil {
						t.Fatalf("DEL: %v", err)
					}
				}
				if tc.stays {
					if !strings.Contains(m.Dump(), "link /run/netns/pod1/net1 ") {
						t.Error("the other pod's interface is gone")
					}
					m.KillNetNS(netnsOf("pod1"))
				}
				if tc.name == "its claim is no claim" {
					must(t, os.Remove(filepath.Join(m.dir, "run/claims", vfAddr(3).String())))
				}
				m.same(t, "DEL", before)
			})
		}
	}
}

// TestDelOfNothing: an attachment that never was is deleted with success, and the other IPAM plugin is asked all the same.
func TestDelOfNothing(t *testing.T) {
	t.Parallel()
	for _, stdin := range []string{
		`{"cniVersion":"1.1.0","name":"rail0","type":"podfabric","ipam":{"type":"other-ipam"}}`,
		`{"cniVersion":"9.9","name":"rail0","vlan":"x","deviceID":7,"ipam":{"type":"other-ipam"},"prevResult":{"ips":[]}}`,
		`{"name":"rail0","ipam":{"type":"other-ipam"},"max-tx-rate":1,"rdma":"?"}`,
	} {
		m := newMachine(t, attach.Exclusive)
		before := m.state(t)
		r := request{pod: "pod1", dev: 3, ipam: delegated}
		// As after a reboot: /run is empty, the other plugin's leases are not.
		m.ipam.held["cid-pod1/net1"] = "10.9.0.200/24"
		raw := r.raw()
		raw.Stdin = []byte(stdin)
		if err := m.plugin.Del(t.Context(), raw); err != nil {
			t.Errorf("DEL with %s: %v", stdin, err)
		}
		m.same(t, "DEL", before)
	}
}

// TestDelWithBrokenSettings: what is wrong with the node's settings keeps no device away.
func TestDelWithBrokenSettings(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	before := m.state(t)
	r := request{pod: "pod1", dev: 3, ipam: delegated}
	m.mustAdd(t, r)
	m.plugin = m.process(`"deadline":"soon"`)
	answered(t, m.add(t, request{pod: "pod1", ifname: "net2", dev: 6}), 7, "deadline")
	m.mustDel(t, r)
	m.same(t, "DEL", before)
}

// stateOf gives the state of the record of r; empty when there is none.
func (m *machine) stateOf(t *testing.T, r request) record.State {
	t.Helper()
	rec, err := m.plugin.Records.Load(r.owner())
	if errors.Is(err, record.ErrNotFound) {
		return ""
	}
	must(t, err)
	return rec.State
}

// TestDelWhenTheDelegateFails: the device is home and free for the next pod, what is owed is kept, and a later DEL ends it.
func TestDelWhenTheDelegateFails(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	m.pod("pod2")
	before := m.state(t)
	r, next := request{pod: "pod1", dev: 3, ipam: delegated}, request{pod: "pod2", dev: 3}
	m.mustAdd(t, r)
	m.ipam.set(nil, func(context.Context) error {
		return &delegate.Error{Plugin: "other-ipam", Verb: "DEL", Msg: "its daemon is down"}
	})
	answered(t, m.del(t, r), 109, "its daemon is down")
	if at := m.where(3); at != [2]string{"host/ens1f0v1", "host/mlx5_3"} {
		t.Errorf("devices are at %v", at)
	}
	if state := m.stateOf(t, r); state != record.Returning {
		t.Errorf("record is in state %q", state)
	}
	m.mustAdd(t, next)
	answered(t, m.del(t, r), 109, "its daemon is down")
	if at := m.where(3); at != [2]string{"/run/netns/pod2/net1", "/run/netns/pod2/mlx5_3"} {
		t.Errorf("the next pod's devices are at %v", at)
	}
	m.ipam.set(nil, nil)
	m.mustDel(t, r)
	if at := m.where(3)[0]; at != "/run/netns/pod2/net1" {
		t.Errorf("the next pod's netdev is at %s", at)
	}
	m.mustDel(t, next)
	m.same(t, "DEL", before)
}

// TestDelWhileAway: a device that does not come home in time costs DEL a warning, the next pod an answer that names who had
// it, and nobody anything once it is home.
func TestDelWhileAway(t *testing.T) {
	t.Parallel()
	ends := map[string]func(t *testing.T, m *machine, r, next request){
		"DEL again":  func(t *testing.T, m *machine, r, _ request) { t.Helper(); m.mustDel(t, r) },
		"GC":         func(t *testing.T, m *machine, _, _ request) { t.Helper(); must(t, m.gc(t)) },
		"next ADD":   func(t *testing.T, m *machine, _, next request) { t.Helper(); m.mustAdd(t, next); m.mustDel(t, next) },
		"same again": func(t *testing.T, m *machine, r, _ request) { t.Helper(); m.mustAdd(t, r); m.mustDel(t, r) },
	}
	for name, end := range ends {
		for _, k := range some("moved", "shared, delegate", "off", "soft") {
			t.Run(name+"/"+k.name, func(t *testing.T) {
				t.Parallel()
				m := newMachine(t, k.mode)
				m.pod("pod1")
				m.pod("pod2")
				before := m.state(t)
				r, next := k.request, k.request
				next.pod = "pod2"
				m.mustAdd(t, r)
				m.HoldNetNS(netnsOf("pod1"), -1)
				for range 2 {
					m.mustDel(t, r)
					if state := m.stateOf(t, r); state != record.Returning {
						t.Errorf("record is in state %q", state)
					}
				}
				if !m.log.has("WARN", "not home yet") {
					t.Error("no warning")
				}
				answered(t, m.add(t, next), 11, "team-a/pod1", "cid-pod1", vfAddr(k.dev).String())
				if state := m.stateOf(t, next); state != "" {
					t.Errorf("the ADD that could not left a record in state %q", state)
				}
				m.KillNetNS(netnsOf("pod1"))
				if name == "same again" {
					m.pod("pod1")
				}
				end(t, m, r, next)
				m.same(t, name, before)
			})
		}
	}
}

// TestDelOfOldOwner: the DEL of a pod that lost its device to another one, which healed, does not touch the device.
func TestDelOfOldOwner(t *testing.T) {
	t.Parallel()
	for _, k := range some("moved", "shared, delegate", "soft") {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, k.mode)
			m.pod("pod1")
			m.pod("pod2")
			before := m.state(t)
			r, next := k.request, k.request
			next.pod = "pod2"
			m.mustAdd(t, r)
			old, err := os.ReadFile(filepath.Join(m.dir, "run/attachments/cid-pod1/net1.json"))
			must(t, err)
			m.KillNetNS(netnsOf("pod1"))
			m.mustAdd(t, next)
			mine := m.state(t)
			m.mustDel(t, r)
			m.same(t, "DEL of the old owner", mine)
			// As when that DEL had read its record before the other one healed it.
			must(t, os.MkdirAll(filepath.Join(m.dir, "run/attachments/cid-pod1"), 0o700))
			must(t, os.WriteFile(filepath.Join(m.dir, "run/attachments/cid-pod1/net1.json"), old, 0o600))
			m.mustDel(t, r)
			m.same(t, "DEL of the old owner, late", mine)
			m.mustDel(t, next)
			m.same(t, "DEL", before)
		})
	}
}

// TestDelDuringDelegate: DEL comes while ADD waits for another IPAM plugin. DEL ends at once, and ADD takes everything back,
// the address too that it was given after DEL.
func TestDelDuringDelegate(t *testing.T) {
	t.Parallel()
	for _, next := range []bool{false, true} {
		m := newMachine(t, attach.Exclusive)
		m.pod("pod1")
		m.pod("pod2")
		before := m.state(t)
		r, other := request{pod: "pod1", dev: 3, ipam: delegated}, request{pod: "pod2", dev: 3}
		entered, leave := make(chan struct{}), make(chan struct{})
		m.ipam.set(func(context.Context) (*types100.Result, error) {
			close(entered)
			<-leave
			return nil, nil //nolint:nilnil // then it works as ever
		}, nil)
		done := make(chan error)
		go func() { done <- m.add(t, r) }()
		<-entered
		begin := time.Now()
		m.mustDel(t, r)
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("DEL waited for the delegate: %s", took)
		}
		m.same(t, "DEL", append(before, "1 sessions are open")) // the ADD's
		if next {
			m.mustAdd(t, other)
		}
		now := m.state(t)
		close(leave)
		answered(t, <-done, 11, "cid-pod1/net1")
		m.same(t, "ADD", now[:len(now)-1])
		if next {
			m.mustDel(t, other)
		}
		m.same(t, "in the end", before)
	}
}
