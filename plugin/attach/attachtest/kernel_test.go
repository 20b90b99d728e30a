// SPDX-License-Identifier: Apache-2.0

package attachtest_test

import (
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

const podA, podB = "/run/netns/a", "/run/netns/b"

func fn(n uint8) bus.ID { return bus.PCI(pci.Addr{Bus: 1, Device: 0x10, Function: n}) }

func at(ns attach.NS, name string) attach.Place { return attach.Place{NS: ns, Name: name} }

// machine has two VFs, vf0 with mlx5_0 and vf1 with mlx5_1, and two pods.
func machine(t *testing.T, mode attach.Mode) (*attachtest.Kernel, *attachtest.Session) {
	t.Helper()
	k := attachtest.New(mode)
	k.AddVF(attachtest.VF{ID: fn(0), Link: "vf0", RDMA: "mlx5_0"})
	k.AddVF(attachtest.VF{ID: fn(1), Link: "vf1", RDMA: "mlx5_1", Number: 1})
	k.AddNetNS(podA)
	k.AddNetNS(podB)
	return k, open(t, k, podA)
}

func open(t *testing.T, k *attachtest.Kernel, path string) *attachtest.Session {
	t.Helper()
	s, err := k.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func observe(t *testing.T, s *attachtest.Session, n uint8) attach.Facts {
	t.Helper()
	f, err := s.Observe(t.Context(), attach.Query{Device: fn(n), Soft: "pf1"})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func must(t *testing.T, s *attachtest.Session, steps ...attach.Step) {
	t.Helper()
	for _, step := range steps {
		if err := s.Apply(t.Context(), step); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	}
}

func moveLink(n uint8, from, to attach.Place, mtu int) attach.Step {
	return attach.MoveLink{Device: fn(n), From: from, To: to, MTU: [2]int{1500, mtu}}
}

func moveRDMA(t *testing.T, s *attachtest.Session, n uint8, from, to attach.NS) attach.Step {
	t.Helper()
	d := observe(t, s, n).RDMA
	return attach.MoveRDMA{Index: d.Index, GUID: d.NodeGUID, Name: d.Name, From: from, To: to}
}

// Each row is an errno and what it leaves, as seen on a real kernel; plugin/kernel's lab tests hold the same.
func TestRefusals(t *testing.T) {
	t.Parallel()
	home, net1 := at(attach.Host, "vf0"), at(attach.Pod, "net1")
	in := moveLink(0, home, net1, 0)
	tests := []struct {
		name  string
		mode  attach.Mode
		setup func(*testing.T, *attachtest.Kernel, *attachtest.Session)
		step  attach.Step
		want  error
		where string // of vf0's netdev afterwards
	}{
		{
			name: "name taken: moved all the same (M4)", step: in, want: syscall.EEXIST, where: podA + "/vf0",
			setup: func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.AddLink(podA, "net1") },
		},
		{name: "bad MTU: moved all the same (M4)", step: moveLink(0, home, net1, 99999), want: syscall.EINVAL, where: podA + "/vf0"},
		{
			name: "old name taken too: not moved", step: in, want: syscall.EEXIST, where: "host/vf0",
			setup: func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) {
				k.AddLink(podA, "net1")
				k.AddLink(podA, "vf0")
			},
		},
		{
			name: "old name taken: no obstacle (M5)", step: in, where: podA + "/net1",
			setup: func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.AddLink(podA, "vf0") },
		},
		{
			name: "link in a third namespace", step: in, want: attach.ErrConflict, where: podB + "/net1",
			setup: func(t *testing.T, k *attachtest.Kernel, _ *attachtest.Session) {
				t.Helper()
				must(t, open(t, k, podB), in)
			},
		},
		{
			name: "pod dead", step: in, want: attach.ErrNoNetNS, where: "host/vf0",
			setup: func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.KillNetNS(podA) },
		},
		{
			name: "function gone", step: in, want: attach.ErrConflict,
			setup: func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.RemoveFunction(fn(0)) },
		},
		{
			name: "RDMA move in shared mode (lab fact 2)", mode: attach.Shared, want: syscall.EOPNOTSUPP, where: "host/vf0",
			step: attach.MoveRDMA{Index: 0, GUID: "0254:00ff:fe01:1000", From: attach.Host, To: attach.Pod},
		},
		{
			name: "another device by its GUID", want: attach.ErrConflict, where: "host/vf0",
			step: attach.MoveRDMA{Index: 0, GUID: "0254:00ff:fe01:1001", From: attach.Host, To: attach.Pod},
		},
		{
			name: "RDMA name taken in the pod", want: syscall.EEXIST, where: "host/vf0",
			step: attach.MoveRDMA{Index: 0, GUID: "0254:00ff:fe01:1000", From: attach.Host, To: attach.Pod},
			setup: func(t *testing.T, k *attachtest.Kernel, s *attachtest.Session) {
				t.Helper()
				must(t, s, moveRDMA(t, s, 1, attach.Host, attach.Pod))
				k.RenameRDMA(fn(1), "mlx5_0")
			},
		},
		{
			name: "rename onto a taken RDMA name", want: syscall.EEXIST, where: "host/vf0",
			step: attach.RenameRDMA{Index: 0, NS: attach.Host, From: "mlx5_0", To: "mlx5_1"},
		},
		{
			name: "rename of a device with another name", want: attach.ErrConflict, where: "host/vf0",
			step: attach.RenameRDMA{Index: 0, NS: attach.Host, From: "mlx5_7", To: "mlx5_8"},
		},
		{
			name: "rename of a device that is not there", want: attach.ErrConflict, where: "host/vf0",
			step: attach.RenameRDMA{Index: 0, NS: attach.Pod, From: "mlx5_0", To: "mlx5_8"},
		},
		{
			name: "second rxe on a netdev", want: syscall.EEXIST, where: "host/vf0", step: attach.AddSoftRoCE{Name: "pf2", Link: home},
			setup: func(t *testing.T, _ *attachtest.Kernel, s *attachtest.Session) {
				t.Helper()
				must(t, s, attach.AddSoftRoCE{Name: "pf1", Link: home})
			},
		},
		{name: "rxe on nothing", want: attach.ErrConflict, where: "host/vf0", step: attach.AddSoftRoCE{Name: "pf1", Link: net1}},
		{
			name: "IPv6 switched off", want: syscall.EACCES, where: podA + "/net1",
			step: attach.AddAddr{Link: net1, Addr: netip.MustParsePrefix("fd00::1/64")},
			setup: func(t *testing.T, k *attachtest.Kernel, s *attachtest.Session) {
				t.Helper()
				k.DisableIPv6(podA)
				must(t, s, in)
			},
		},
		{
			name: "route on a link that is down", want: syscall.ENETDOWN, where: "host/vf0",
			step: attach.AddRoute{Link: home, Dst: netip.MustParsePrefix("10.0.0.0/8")},
		},
		{
			name: "gateway that is not on the link", want: syscall.ENETUNREACH, where: "host/vf0",
			step:  attach.AddRoute{Link: home, Dst: netip.MustParsePrefix("10.0.0.0/8"), Via: netip.MustParseAddr("10.9.9.9")},
			setup: func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.SetLink(fn(0), "", 0, true) },
		},
		{name: "route on nothing", want: attach.ErrConflict, where: "host/vf0", step: attach.AddRoute{Link: net1}},
		{name: "sysctl of nothing", want: attach.ErrConflict, where: "host/vf0", step: attach.SetSysctl{NS: attach.Pod, Key: "net/ipv6/conf/net1/accept_ra"}},
		{name: "sysctl that is not known", want: attach.ErrConflict, where: "host/vf0", step: attach.SetSysctl{NS: attach.Pod, Key: "kernel/panic"}},
		{name: "address off nothing", where: "host/vf0", step: attach.DelAddr{Link: net1}},
		{name: "route off nothing", where: "host/vf0", step: attach.DelRoute{Link: net1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.mode == "" {
				tt.mode = attach.Exclusive
			}
			k, s := machine(t, tt.mode)
			if tt.setup != nil {
				tt.setup(t, k, s)
			}
			if err := s.Apply(t.Context(), tt.step); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if got := k.Where(fn(0))[0]; got != tt.where {
				t.Errorf("netdev at %q, want %q", got, tt.where)
			}
		})
	}
}

// review.md lab 3: a lower free number is taken, and the device keeps it at home and in later moves.
func TestUverbsNumbersShiftIntoHoles(t *testing.T) {
	t.Parallel()
	k, s := machine(t, attach.Exclusive)
	number := func() int { return observe(t, s, 1).RDMA.Uverbs }
	must(t, s, moveRDMA(t, s, 1, attach.Host, attach.Pod))
	if got := number(); got != 1 {
		t.Errorf("without a hole: uverbs%d", got)
	}
	k.RemoveRDMA("mlx5_0")
	must(t, s, moveRDMA(t, s, 1, attach.Pod, attach.Host))
	if got := number(); got != 0 {
		t.Errorf("with a hole below: uverbs%d", got)
	}
	must(t, s, moveRDMA(t, s, 1, attach.Host, attach.Pod))
	if got := number(); got != 0 {
		t.Errorf("later: uverbs%d", got)
	}
}

// lab/README.md facts 4, 5; style.md M3, M6, M8.
func TestKillNetNSReturnsDevices(t *testing.T) {
	t.Parallel()
	k, s := machine(t, attach.Exclusive)
	must(t, s, moveLink(0, at(attach.Host, "vf0"), at(attach.Pod, "net1"), 0), moveRDMA(t, s, 0, attach.Host, attach.Pod))
	must(t, s, moveLink(1, at(attach.Host, "vf1"), at(attach.Pod, "net2"), 0), moveRDMA(t, s, 1, attach.Host, attach.Pod),
		attach.AddSoftRoCE{Name: "pf1", Link: at(attach.Pod, "net2")}, attach.MoveRDMA{Soft: "pf1", From: attach.Host, To: attach.Pod})
	k.AddLink(podA, "veth0")
	k.AddLink("", "net1")
	k.AddLink("", "dev0")
	k.AddRDMA("mlx5_0")
	k.KillNetNS(podA)
	if diff := cmp.Diff([2]string{"host/dev1", "host/ibdev0"}, k.Where(fn(0))); diff != "" {
		t.Errorf("taken names (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([2]string{"host/net2", "host/mlx5_1"}, k.Where(fn(1))); diff != "" {
		t.Errorf("free names (-want +got):\n%s", diff)
	}
	for _, gone := range []string{"veth0", "pf1", podA} {
		if strings.Contains(k.Dump(), gone) {
			t.Errorf("%s lives on:\n%s", gone, k.Dump())
		}
	}
	f := observe(t, s, 0)
	if f.PodLinks != nil || f.Link.NS != attach.Host || f.RDMA.Index != 0 {
		t.Errorf("facts of a session whose pod died: %+v", f)
	}
	k.KillNetNS(podA)
}

func TestHeldNamespacesReturnDevicesLater(t *testing.T) {
	t.Parallel()
	k, s := machine(t, attach.Exclusive)
	must(t, s, moveLink(0, at(attach.Host, "vf0"), at(attach.Pod, "net1"), 0), moveRDMA(t, s, 0, attach.Host, attach.Pod))
	if f := observe(t, open(t, k, podB), 0); f.Link == nil || f.Link.NS != attach.Elsewhere || f.RDMA.NS != attach.Elsewhere || f.RDMA.NodeGUID != "" {
		t.Errorf("seen from another pod: %+v, %+v", f.Link, f.RDMA)
	}
	k.HoldNetNS(podA, 2)
	if _, err := k.Open(t.Context(), podA); !errors.Is(err, attach.ErrNoNetNS) {
		t.Errorf("error %v", err)
	}
	host := open(t, k, "")
	for range 2 {
		if f := observe(t, host, 0); f.Link != nil || f.RDMA == nil || f.RDMA.NS != attach.Elsewhere {
			t.Fatalf("seen while held: %+v, %+v", f.Link, f.RDMA)
		}
	}
	if f := observe(t, host, 0); f.Link == nil || f.Link.Place != at(attach.Host, "net1") || f.RDMA.NS != attach.Host {
		t.Errorf("seen after its end: %+v, %+v", f.Link, f.RDMA)
	}
	if id := k.AddNetNS(podA); id == s.PodNS() || id.Path != s.PodNS().Path {
		t.Errorf("a path used again: %+v", id)
	}
}

// lab/README.md fact 6: 2 and 3 for the first IPv4 address of an rdmasim port, 1 on an rxe.
// In shared mode every pod sees every device (cni-anchors.md §4.2).
// design.md §9.15: a comparison of states is worth what it can see.
