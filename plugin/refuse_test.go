// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
	"github.com/podfabric/podfabric/plugin/delegate"
)

// TestAddRefused has what ADD fails over beside its steps: the answer's code and words, and a node as before.
func TestAddRefused(t *testing.T) {
	t.Parallel()
	r := request{pod: "pod1", dev: 3}
	with := func(change func(*request)) request {
		c := r
		change(&c)
		return c
	}
	other := with(func(r *request) { r.ipam = delegated })
	answer := func(result *types100.Result, err error) func(*testing.T, *machine) {
		return func(_ *testing.T, m *machine) {
			m.ipam.set(func(context.Context) (*types100.Result, error) { return result, err }, nil)
		}
	}
	nothing := func(*testing.T, *machine) {}
	v4 := net.IPNet{IP: net.IPv4(10, 9, 0, 7), Mask: net.CIDRMask(24, 32)}
	tests := []struct {
		name  string
		r     request
		setup func(t *testing.T, m *machine)
		code  uint
		words []string
	}{
		{"no address left", with(func(r *request) { r.ipam = oneAddress }), func(t *testing.T, m *machine) {
			t.Helper()
			m.pod("pod2")
			m.mustAdd(t, request{pod: "pod2", dev: 6, ipam: oneAddress})
		}, 106, []string{"1 of 1"}},
		{"the address asked for is taken", with(func(r *request) {
			r.ipam, r.more = oneAddress, `,"capabilities":{"ips":true},"runtimeConfig":{"ips":["10.5.0.5/24"]}`
		}), func(t *testing.T, m *machine) {
			t.Helper()
			m.pod("pod2")
			m.mustAdd(t, request{pod: "pod2", dev: 6, ipam: oneAddress})
		}, 7, []string{"10.5.0.5", "another address"}},
		{"delegate has a code", other, answer(nil, &delegate.Error{Plugin: "other-ipam", Verb: "ADD", Code: 11, Msg: "later"}), 11, []string{"later", "other-ipam"}},
		{"delegate has none", other, answer(nil, &delegate.Error{Plugin: "other-ipam", Verb: "ADD", Msg: "out of luck"}), 109, []string{"out of luck"}},
		{"delegate is not there", other, answer(nil, fmt.Errorf("find plugin: %w", delegate.ErrNotFound)), 109, []string{"other-ipam"}},
		{"delegate prints nonsense", other, answer(nil, fmt.Errorf("read result: %w", delegate.ErrOutput)), 109, []string{"other-ipam"}},
		{"delegate gives no address", other, answer(&types100.Result{}, nil), 109, []string{"no address"}},
		{"delegate gives null", other, answer(&types100.Result{IPs: []*types100.IPConfig{nil}}, nil), 109, []string{"ips[0]"}},
		{"delegate gives a route to nowhere", other, answer(&types100.Result{
			IPs: []*types100.IPConfig{{Address: v4}}, Routes: []*types.Route{nil},
		}, nil), 109, []string{"routes[0]"}},
		{"delegate gives a default route to a rail", with(func(r *request) { r.ipam, r.more = delegated, `,"rail":0` }), answer(&types100.Result{
			IPs: []*types100.IPConfig{{Address: v4}}, Routes: []*types.Route{{Dst: net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}}},
		}, nil), 7, []string{"default route", "0.0.0.0/0"}},
		{"delegate gives a default route", other, answer(&types100.Result{
			IPs: []*types100.IPConfig{{Address: v4}}, Routes: []*types.Route{{Dst: net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}}},
		}, nil), 7, []string{"default route", "0.0.0.0/0", "ipam.defaultRoute"}},
		{"delegate hangs", other, func(_ *testing.T, m *machine) {
			m.ipam.set(func(ctx context.Context) (*types100.Result, error) {
				<-ctx.Done()
				return nil, fmt.Errorf("call IPAM plugin: %w: %w", delegate.ErrTimeout, ctx.Err())
			}, nil)
		}, 11, []string{"other-ipam", "deadline"}},
		{
			"no GID", with(func(r *request) { r.more = `,"rdma":{"wait":"30ms"}` }), func(_ *testing.T, m *machine) { m.SetGIDDelay(1000) },
			105,
			[]string{"no RoCE v2 GID of 10.1.0.", "mlx5_3"},
		},
		{
			"no room for a GID", with(func(r *request) { r.more = `,"rdma":{"wait":"30ms"}` }), func(_ *testing.T, m *machine) { m.FillGIDs("mlx5_3", 4, 4) },
			105,
			[]string{"GID table of mlx5_3 is full (4)"},
		},
		{
			"no carrier", with(func(r *request) { r.more = `,"rdma":{"wait":"30ms"}` }), func(_ *testing.T, m *machine) { m.SetCarrier(vfAddr(3), false) },
			105,
			[]string{"port 1 of mlx5_3 is DOWN"},
		},
		{"no volume", with(func(r *request) { r.more = `,"hint":{"require":true}` }), nothing, 108, []string{"emptyDir", `"podfabric"`}},
		{"networks disagree", with(func(r *request) { r.ifname, r.network, r.more = "net2", "rail7", `,"hint":{"failClosed":true}` }), func(t *testing.T, m *machine) {
			t.Helper()
			m.mustAdd(t, request{pod: "pod1", dev: 6})
		}, 7, []string{"hint.failClosed", "rail0", "rail7"}},
		{"namespace is gone", r, func(_ *testing.T, m *machine) { m.KillNetNS(netnsOf("pod1")) }, 8, []string{"/run/netns/pod1"}},
		{"interface name is taken", r, func(_ *testing.T, m *machine) { m.AddLink(netnsOf("pod1"), "net1") }, 107, []string{"net1"}},
		{"a soft device cannot be moved", with(func(r *request) { r.dev, r.more = softVF, softOn }), func(_ *testing.T, m *machine) {
			m.RefuseSoftMoves(errors.ErrUnsupported)
		}, 199, []string{"move soft rdma"}},
		{"a hole in the uverbs numbers", r, func(_ *testing.T, m *machine) { m.RemoveRDMA("mlx5_0") }, 104, []string{"uverbs2", "uverbs0"}},
		{"a hole that comes during the delegate", other, func(_ *testing.T, m *machine) {
			m.AddRDMA("siw0")
			m.ipam.set(func(context.Context) (*types100.Result, error) {
				m.RemoveRDMA("siw0")
				m.RemoveRDMA("mlx5_0")
				return nil, nil //nolint:nilnil // then it works as ever
			}, nil)
		}, 104, []string{"uverbs2", "uverbs0"}},
		{"the device is gone", with(func(r *request) { r.dev = 1 }), nothing, 11, []string{"0000:3b:00.1", "does not exist"}},
		{"a PF that the node uses", with(func(r *request) { r.dev = 0 }), nothing, 103, []string{"0000:3b:00.0", "ens1f0.100"}},
		{"a PF as a VF", with(func(r *request) { r.dev, r.more = 0, `,"link":"vf"` }), nothing, 102, []string{"0000:3b:00.0"}},
		{"in use by the node", r, func(_ *testing.T, m *machine) { m.SetInUse(vfAddr(3), "it is a port of bridge br0") }, 103, []string{"br0"}},
		{"open RDMA users", r, func(_ *testing.T, m *machine) { m.SetUsers(vfAddr(3), "ib_write_bw (pid 71)") }, 103, []string{"pid 71"}},
		{"no RDMA subsystem", r, func(_ *testing.T, m *machine) { m.SetMode(attach.NoRDMA) }, 100, []string{"ib_core"}},
		{"not JSON", with(func(r *request) { r.more = "," }), nothing, 6, []string{"JSON"}},
		{"unknown version", with(func(r *request) { r.version = "2.0.0" }), nothing, 1, []string{"2.0.0"}},
		{
			"the driver refuses the MTU", with(func(r *request) { r.more = `,"mtu":9000` }), func(_ *testing.T, m *machine) { m.SetMaxMTU(vfAddr(3), 1500) },
			199,
			[]string{"move link 0000:3b:00.3"},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			m.pod("pod1")
			tc.setup(t, m)
			before := m.state(t)
			if strings.HasPrefix(tc.name, "a hole that comes") {
				before = nil
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := m.plugin.Add(ctx, tc.r.raw())
			answered(t, err, tc.code, tc.words...)
			if before != nil {
				m.same(t, "ADD", before)
			}
			if !m.ipam.calledWith(`"of":"its own"`) && tc.r.ipam == delegated {
				t.Error("the delegate did not get all of the configuration")
			}
		})
	}
}

// TestOwnNetNS: a namespace path that leads to the node's own is refused by every verb before anything is touched.
func TestOwnNetNS(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	before := m.state(t)
	raw := request{pod: "pod1", dev: 3}.raw()
	raw.NetNS = attachtest.OwnNetNS
	_, err := m.plugin.Add(t.Context(), raw)
	answered(t, err, 8, "not of the plugin's own")
	m.same(t, "ADD", before)
	answered(t, m.plugin.Del(t.Context(), raw), 8, "not of the plugin's own")
	m.same(t, "DEL", before)
}

// TestStateUnwritable puts a file where a folder of the state must be; root can write everything else. The device does not
// stay away, and once the folder is mended nothing else does.
func TestStateUnwritable(t *testing.T) {
	t.Parallel()
	r := request{pod: "pod1", dev: 3}
	tests := []struct {
		folder string
		code   uint
		after  bool // it is found when something is to be taken back that cannot be
	}{
		{"attachments", 5, false},
		{"attachments/cid-pod1", 5, false},
		{"claims", 5, false},
		{"names", 5, false},
		{"locks", 5, false},
		{"leases", 5, true},
		{"fragments", 5, true},
		{"pods", 5, true},
	}
	for _, tc := range tests {
		t.Run(tc.folder, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			m.pod("pod1")
			start := m.state(t)
			path := filepath.Join(m.dir, "run", tc.folder)
			_ = os.Rename(path, path+".away")
			must(t, os.WriteFile(path, nil, 0o600))
			before, home := m.state(t), m.where(3)
			answered(t, m.add(t, r), tc.code, tc.folder)
			if at := m.where(3); at != home {
				t.Errorf("devices are at %v, want %v", at, home)
			}
			if !tc.after {
				m.same(t, "ADD", before)
			}
			_ = m.del(t, r)
			_ = os.Remove(path)
			_ = os.Rename(path+".away", path)
			m.mustDel(t, r)
			m.same(t, "DEL", start)
		})
	}
}

// TestStateUnwritableAtTheEnd has the record's folder break after all steps were made, between the hint and the last write.
func TestStateUnwritableAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, k.mode)
			m.pod("pod1")
			k.prepare(m)
			before := m.state(t)
			folder := filepath.Join(m.dir, "run/attachments/cid-pod1")
			lock, broken := m.plugin.Hints.Lock, false
			m.plugin.Hints.Lock = func(ctx context.Context, name, holder string) (func(), error) {
				if !broken {
					broken = true
					must(t, os.RemoveAll(folder))
					must(t, os.WriteFile(folder, nil, 0o600))
				}
				return lock(ctx, name, holder)
			}
			answered(t, m.add(t, k.request), 5, folder, "wrong kind")
			m.same(t, "ADD", before)
		})
	}
}

// TestSecondRailFails: what the first rail of the pod wrote, also into the pod's volume, stays as it was.
func TestSecondRailFails(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	volume := m.volume(t, "pod1")
	m.mustAdd(t, request{pod: "pod1", dev: 3, more: `,"rail":0`})
	before := m.state(t)
	second := request{pod: "pod1", dev: upVF, ifname: "net2", network: "rail1", ipam: delegated, more: `,"rail":1`}
	n := m.callsOf(t, func() error { return m.add(t, second) })
	m.mustDel(t, second)
	m.same(t, "ADD and DEL of a second rail", before)
	for at := range n {
		m.trap.set(at, halfDone)
		err := m.add(t, second)
		m.trap.clear()
		if err == nil {
			t.Fatalf("call %d: no error", at)
		}
		if !m.same(t, fmt.Sprintf("call %d", at), before) {
			return
		}
	}
	if _, err := os.Stat(filepath.Join(volume, "nccl.conf")); err != nil {
		t.Error(err)
	}
}
