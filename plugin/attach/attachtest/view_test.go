// SPDX-License-Identifier: Apache-2.0

package attachtest_test

import (
	"context"
	"errors"
	"net/netip"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	k, s := machine(t, attach.Exclusive)
	if _, err := k.Open(t.Context(), attachtest.OwnNetNS); !errors.Is(err, attach.ErrOwnNetNS) {
		t.Errorf("own namespace: %v", err)
	}
	host := open(t, k, "")
	if !host.PodNS().IsZero() || s.PodNS().IsZero() {
		t.Errorf("namespaces %v and %v", host.PodNS(), s.PodNS())
	}
	if got := k.Sessions(); got != 2 {
		t.Errorf("%d sessions", got)
	}
	for range 2 {
		_ = s.Close()
	}
	if got := k.Sessions(); got != 1 {
		t.Errorf("%d sessions after Close", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := k.Dump()
	_, err := k.Open(ctx, podA)
	_, err2 := host.Observe(ctx, attach.Query{})
	_, err3 := host.Ports(ctx, attach.Host, "mlx5_0")
	err4 := host.Apply(ctx, moveLink(0, at(attach.Host, "vf0"), at(attach.Host, "x"), 0))
	for i, err := range []error{err, err2, err3, err4} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if before != k.Dump() {
		t.Error("something was changed after the end")
	}
}

func TestGIDs(t *testing.T) {
	t.Parallel()
	k, s := machine(t, attach.Exclusive)
	k.SetGIDDelay(1)
	net1 := at(attach.Pod, "net1")
	must(t, s, moveLink(0, at(attach.Host, "vf0"), net1, 0), moveRDMA(t, s, 0, attach.Host, attach.Pod),
		attach.AddAddr{Link: net1, Addr: netip.MustParsePrefix("10.0.0.1/24")}, attach.SetUp{Link: net1, To: true},
		attach.AddSoftRoCE{Name: "pf1", Link: net1}, attach.MoveRDMA{Soft: "pf1", From: attach.Host, To: attach.Pod})
	if p := ports(t, s, "mlx5_0"); len(p.GIDs) != 0 || p.State != "ACTIVE" {
		t.Errorf("at once: %+v", p)
	}
	mapped, local := netip.MustParseAddr("::ffff:10.0.0.1"), netip.MustParseAddr("fe80::54:ff:fe01:1000")
	want := []attach.GID{
		{Index: 0, Addr: local, Type: "IB/RoCE v1", Netdev: "net1"},
		{Index: 1, Addr: local, Type: "RoCE v2", Netdev: "net1"},
		{Index: 2, Addr: mapped, Type: "IB/RoCE v1", Netdev: "net1"},
		{Index: 3, Addr: mapped, Type: "RoCE v2", Netdev: "net1"},
	}
	if diff := cmp.Diff(want, ports(t, s, "mlx5_0").GIDs, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("GIDs (-want +got):\n%s", diff)
	}
	_ = ports(t, s, "pf1")
	if p := ports(t, s, "pf1"); len(p.GIDs) != 2 || p.GIDs[1].Index != 1 || p.GIDs[1].Addr != mapped || p.GIDs[1].Type != attach.RoCEv2 {
		t.Errorf("soft: %+v", p)
	}
	must(t, s, attach.DelAddr{Link: net1, Addr: netip.MustParsePrefix("10.0.0.1/24")})
	if p := ports(t, s, "mlx5_0"); len(p.GIDs) != 2 {
		t.Errorf("without the address: %+v", p)
	}
	k.SetCarrier(fn(0), false)
	if p := ports(t, s, "mlx5_0"); p.State != "DOWN" {
		t.Errorf("without carrier: %+v", p)
	}
	if _, err := s.Ports(t.Context(), attach.Host, "mlx5_0"); err == nil {
		t.Error("the host sees the pod's device")
	}
	k.FillGIDs("mlx5_0", 3, 4)
	must(t, s, attach.AddAddr{Link: net1, Addr: netip.MustParsePrefix("10.0.0.2/24")})
	_ = ports(t, s, "mlx5_0")
	if p := ports(t, s, "mlx5_0"); len(p.GIDs) != 4 || p.TableSize != 4 {
		t.Errorf("full: %+v", p)
	}
}

func ports(t *testing.T, s *attachtest.Session, device string) attach.Port {
	t.Helper()
	p, err := s.Ports(t.Context(), attach.Pod, device)
	if err != nil || len(p) != 1 {
		t.Fatalf("ports %v, error %v", p, err)
	}
	return p[0]
}

func TestSharedModeShowsAllDevices(t *testing.T) {
	t.Parallel()
	k, s := machine(t, attach.Shared)
	_ = ports(t, s, "mlx5_1")
	if k.Mode() != attach.Shared {
		t.Error("mode")
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	step := moveLink(0, at(attach.Host, "vf0"), at(attach.Pod, "net1"), 9000)
	tests := []struct {
		name  string
		apply func(*attachtest.Kernel)
		kill  bool
		where string
	}{
		{"fail", func(k *attachtest.Kernel) { k.FailAt(0, false) }, false, "host/vf0"},
		{"fail half", func(k *attachtest.Kernel) { k.FailAt(0, true) }, false, podA + "/vf0"},
		{"fail whole", func(k *attachtest.Kernel) { k.FailWith(0, attachtest.Whole, attachtest.ErrInjected) }, false, podA + "/net1"},
		{"kill before", func(k *attachtest.Kernel) { k.KillAt(0, attachtest.Nothing) }, true, "host/vf0"},
		{"kill half", func(k *attachtest.Kernel) { k.KillAt(0, attachtest.Half) }, true, podA + "/vf0"},
		{"kill after", func(k *attachtest.Kernel) { k.KillAt(0, attachtest.Whole) }, true, podA + "/net1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k, s := machine(t, attach.Exclusive)
			tt.apply(k)
			var err error
			if got := attachtest.Killed(func() { err = s.Apply(t.Context(), step) }); got != tt.kill {
				t.Errorf("killed: %t", got)
			}
			if !tt.kill && !errors.Is(err, attachtest.ErrInjected) {
				t.Errorf("error %v", err)
			}
			if got := k.Where(fn(0))[0]; got != tt.where {
				t.Errorf("netdev at %s, want %s", got, tt.where)
			}
			if tt.where != "host/vf0" && k.Changes() != 1 {
				t.Errorf("%d changes", k.Changes())
			}
			must(t, s, step) // struck once only
			if diff := cmp.Diff([]string{step.String(), step.String()}, k.Trace()); diff != "" {
				t.Errorf("trace (-want +got):\n%s", diff)
			}
		})
	}
	k, s := machine(t, attach.Exclusive)
	k.KillAt(0, attachtest.Whole)
	k.ClearFaults()
	must(t, s, step)
	defer func() {
		if recover() == nil {
			t.Error("Killed swallowed a panic that was none of its own")
		}
	}()
	attachtest.Killed(func() { panic("other") })
}

func TestDumpShowsEveryChange(t *testing.T) {
	t.Parallel()
	changes := map[string]func(*testing.T, *attachtest.Kernel, *attachtest.Session){
		"namespace": func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.AddNetNS("/run/netns/c") },
		"link":      func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.AddLink(podA, "x") },
		"link name": func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.RenameLink(fn(0), "x") },
		"MAC": func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) {
			k.SetLink(fn(0), "02:00:00:00:00:09", 0, false)
		},
		"MTU":           func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.SetLink(fn(0), "", 1400, false) },
		"up":            func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.SetLink(fn(0), "", 0, true) },
		"carrier":       func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.SetCarrier(fn(0), false) },
		"use":           func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.SetInUse(fn(0), "x") },
		"RDMA device":   func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.AddRDMA("x") },
		"RDMA name":     func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.RenameRDMA(fn(0), "x") },
		"RDMA users":    func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.SetUsers(fn(0), "x") },
		"RDMA gone":     func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.RemoveRDMA("mlx5_0") },
		"RDMA index":    func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.Rebind(fn(0), "") },
		"driver":        func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.Rebind(fn(0), "vfio-pci") },
		"function gone": func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.RemoveFunction(fn(0)) },
		"mode":          func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.SetMode(attach.Shared) },
		"table":         func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.FillGIDs("mlx5_0", 1, 8) },
		"held":          func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.HoldNetNS(podA, -1) },
		"dead":          func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.KillNetNS(podA) },
		"RDMA place": func(t *testing.T, _ *attachtest.Kernel, s *attachtest.Session) {
			t.Helper()
			must(t, s, moveRDMA(t, s, 0, attach.Host, attach.Pod))
		},
		"link place": func(t *testing.T, _ *attachtest.Kernel, s *attachtest.Session) {
			t.Helper()
			must(t, s, moveLink(0, at(attach.Host, "vf0"), at(attach.Pod, "vf0"), 0))
		},
		"sysctl": func(t *testing.T, _ *attachtest.Kernel, s *attachtest.Session) {
			t.Helper()
			must(t, s, attach.SetSysctl{NS: attach.Host, Key: "net/ipv6/conf/vf0/accept_ra", To: "0"})
		},
		"address": func(t *testing.T, _ *attachtest.Kernel, s *attachtest.Session) {
			t.Helper()
			must(t, s, attach.AddAddr{Link: at(attach.Host, "vf0"), Addr: netip.MustParsePrefix("10.0.0.1/24")})
		},
		"soft device": func(t *testing.T, _ *attachtest.Kernel, s *attachtest.Session) {
			t.Helper()
			must(t, s, attach.AddSoftRoCE{Name: "pf1", Link: at(attach.Host, "vf0")})
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, s := machine(t, attach.Exclusive)
			before := k.Dump()
			if k.Dump() != before {
				t.Fatal("two dumps of one state differ")
			}
			change(t, k, s)
			if k.Dump() == before {
				t.Error("the dump does not show it")
			}
		})
	}
	k, s := machine(t, attach.Exclusive)
	must(t, s, attach.SetUp{Link: at(attach.Host, "vf0"), To: true})
	before := k.Dump()
	must(t, s, attach.AddRoute{Link: at(attach.Host, "vf0"), Dst: netip.MustParsePrefix("10.0.0.0/8")})
	if k.Dump() == before {
		t.Error("the dump does not show a route")
	}
	k.FlushAddrs(fn(0))
	k.SetMaxMTU(fn(0), 1)
	k.RefuseSoftMoves(syscall.EOPNOTSUPP)
}
