// SPDX-License-Identifier: Apache-2.0

//go:build lab

package kernel_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/e2e/guest/node"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/kernel"
	"github.com/podfabric/podfabric/rdmans"
	"github.com/podfabric/podfabric/rdmans/bus"
)

func TestUsersOfAnOpenDevice(t *testing.T) {
	ns := node.NewNS(t)
	s, a := open(t, ns), addr(t, node.VF(t, 1, 1))
	before := observe(t, s, a)
	if len(before.RDMA.Users) != 0 {
		t.Fatalf("users before: %v", before.RDMA.Users)
	}
	comm, err := os.ReadFile("/proc/self/comm")
	must(t, err)
	want := []string{fmt.Sprintf("%s (pid %d)", strings.TrimSpace(string(comm)), os.Getpid())}
	t.Run("at home", func(t *testing.T) {
		node.Hold(t, before.RDMA.Uverbs)
		node.Hold(t, before.RDMA.Uverbs)
		if diff := cmp.Diff(want, observe(t, s, a).RDMA.Users); diff != "" {
			t.Errorf("users (-want +got):\n%s", diff)
		}
		t.Log(observe(t, s, a).RDMA.Users)
	})
	_, move := in(before)
	apply(t, s, move)
	t.Run("in the pod", func(t *testing.T) {
		// The thread that opens it ends with Do, and then the kernel knows that there is a user, but not who.
		ns.Do(t, func() error { node.Hold(t, before.RDMA.Uverbs); return nil })
		want := []string{"a process that the kernel does not name"}
		if diff := cmp.Diff(want, observe(t, s, a).RDMA.Users); diff != "" {
			t.Errorf("users (-want +got):\n%s", diff)
		}
	})
	apply(t, s, move.Reverse())
}

func TestSoftRoCE(t *testing.T) {
	ns := node.NewNS(t)
	s, a := open(t, ns), addr(t, node.VF(t, 1, 4))
	machine := snapshot(t)
	f := observe(t, s, a)
	if f.RDMA != nil {
		t.Fatalf("the VF has an RDMA device: %+v", f.RDMA)
	}
	moveLink := attach.MoveLink{Device: bus.PCI(a), From: f.Link.Place, To: attach.Place{NS: attach.Pod, Name: "net1"}}
	const name = "pf0123456789"
	add := attach.AddSoftRoCE{Name: name, Link: moveLink.To}
	move := attach.MoveRDMA{Soft: name, From: attach.Host, To: attach.Pod}
	soft := func() *attach.RDMA {
		f, err := s.Observe(t.Context(), attach.Query{Device: bus.PCI(a), Soft: name})
		must(t, err)
		return f.Soft
	}
	apply(t, s, moveLink, add)
	if r := soft(); r == nil || r.NS != attach.Host || r.Name != name || r.Uverbs < 0 {
		t.Errorf("born: %+v, want it in the host's namespace", r)
	}
	apply(t, s, move)
	if r := soft(); r == nil || r.NS != attach.Pod || r.LinkLayer != "Ethernet" {
		t.Errorf("moved: %+v", r)
	}
	apply(t, s, attach.SetUp{Link: moveLink.To, To: true})
	ports, err := s.Ports(t.Context(), attach.Pod, name)
	must(t, err)
	if len(ports) != 1 || ports[0].Device != name {
		t.Errorf("ports %+v", ports)
	}
	devices, err := kernel.New().Inventory(t.Context())
	must(t, err)
	if i := slices.IndexFunc(devices, func(d kernel.Device) bool { return d.PCI.IsZero() }); i < 0 || devices[i].RDMA[0].NetNS != ns.Path {
		t.Errorf("inventory does not show the soft device: %+v", devices)
	}
	second := attach.AddSoftRoCE{Name: "pfother", Link: moveLink.To}
	if err := s.Apply(t.Context(), second); !errors.Is(err, rdmans.ErrNameTaken) {
		t.Errorf("a second one on the same netdev: %v", err)
	}
	apply(t, s, attach.DelSoftRoCE{Name: name}, attach.SetUp{Link: moveLink.To}, moveLink.Reverse())
	if r := soft(); r != nil {
		t.Errorf("still there: %+v", r)
	}
	if diff := kernel.Diff(machine, snapshot(t)); len(diff) != 0 {
		t.Errorf("left behind:\n%s", strings.Join(diff, "\n"))
	}
}

func TestASoftDeviceOfHardwareIsRefused(t *testing.T) {
	s := open(t, nil)
	f := observe(t, s, addr(t, node.VF(t, 1, 1)))
	err := s.Apply(t.Context(), attach.DelSoftRoCE{Name: f.RDMA.Name})
	if !errors.Is(err, rdmans.ErrUnsupported) {
		t.Errorf("removed a device that is none: %v", err)
	}
}

func TestInventoryFindsDevicesInPods(t *testing.T) {
	ns := node.NewNS(t)
	s, a := open(t, ns), addr(t, node.VF(t, 1, 0))
	before := observe(t, s, a)
	moveLink, moveRDMA := in(before)
	apply(t, s, moveLink, moveRDMA)
	devices, err := kernel.New().Inventory(t.Context())
	must(t, err)
	i := slices.IndexFunc(devices, func(d kernel.Device) bool { return d.PCI == a })
	if i < 0 {
		t.Fatalf("not there: %+v", devices)
	}
	d := devices[i]
	t.Logf("%+v", d)
	if len(d.Links) != 1 || d.Links[0].NetNS != ns.Path || d.Links[0].Name != "net1" || len(d.RDMA) != 1 || d.RDMA[0].NetNS != ns.Path ||
		d.RDMA[0].Name != before.RDMA.Name || d.RDMA[0].Uverbs != before.RDMA.Uverbs || d.RDMA[0].NodeGUID != before.RDMA.NodeGUID {
		t.Errorf("%+v", d)
	}
	pf := slices.IndexFunc(devices, func(d kernel.Device) bool { return d.PCI == before.Function.PF })
	if pf < 0 || devices[pf].NumVFs != 6 || len(devices[pf].RDMA) != 1 || devices[pf].RDMA[0].NetNS != kernel.HostNS {
		t.Errorf("PF: %+v", devices)
	}
	apply(t, s, moveRDMA.Reverse(), moveLink.Reverse())
}

// What a snapshot holds beside what a network namespace alone can show.
func TestSnapshotSeesDevices(t *testing.T) {
	before := snapshot(t)
	pf, ib := node.Netdev(node.PF(t, 1)), node.IBDev(node.VF(t, 1, 1))
	mac := before.NetNS[kernel.HostNS].Links[pf].VFs[5].MAC
	for _, c := range []struct{ do, undo []string }{
		{[]string{"rdma", "dev", "set", ib, "name", "other"}, []string{"rdma", "dev", "set", "other", "name", ib}},
		{
			[]string{"ip", "link", "set", pf, "vf", "5", "mac", "02:00:00:00:00:05"},
			[]string{"ip", "link", "set", pf, "vf", "5", "mac", mac},
		},
		{[]string{"ip", "link", "set", pf, "vf", "5", "vlan", "7"}, []string{"ip", "link", "set", pf, "vf", "5", "vlan", "0"}},
		{[]string{"ip", "link", "set", pf, "vf", "5", "spoofchk", "off"}, []string{"ip", "link", "set", pf, "vf", "5", "spoofchk", "on"}},
	} {
		node.Run(t, c.do[0], c.do[1:]...)
		diff := kernel.Diff(before, snapshot(t))
		if len(diff) == 0 {
			t.Errorf("%v: the change is not seen", c.do)
		}
		t.Logf("%v: %q", c.do, diff)
		node.Run(t, c.undo[0], c.undo[1:]...)
		if diff := kernel.Diff(before, snapshot(t)); len(diff) != 0 {
			t.Errorf("%v: not as before: %q", c.undo, diff)
		}
	}
}

func TestModeIsBusyWhileNamespacesExist(t *testing.T) {
	ns := node.NewNS(t)
	self, err := rdmans.Self()
	must(t, err)
	conn := rdmans.In(self)
	mode, err := conn.Mode()
	must(t, err)
	if mode != rdmans.Exclusive {
		t.Fatalf("mode %s", mode)
	}
	if busy := conn.SetMode(rdmans.Shared); !errors.Is(busy, rdmans.ErrBusy) {
		t.Errorf("set while a namespace exists: %v", busy)
	}
	must(t, conn.SetMode(rdmans.Exclusive)) // what holds already is never refused
	found, err := rdmans.Scan{Proc: "/proc", Run: "/run/netns", Deep: true}.Namespaces(t.Context())
	must(t, err)
	if len(found) != 1 || found[0].Name() != ns.Path {
		t.Errorf("in the way: %+v, want %s", found, ns.Path)
	}
	pod, err := found[0].Open()
	must(t, err)
	id := pod.ID()
	if alive, gone := rdmans.Alive(ns.Path, id); !alive || gone != nil {
		t.Errorf("alive: %v, %v", alive, gone)
	}
	deep, err := rdmans.Scan{Proc: "/proc", Run: "/none", Deep: true}.Namespaces(t.Context())
	must(t, err)
	if len(deep) != 1 || !slices.ContainsFunc(deep[0].Holders, func(h rdmans.Holder) bool { return h.PID == os.Getpid() }) {
		t.Errorf("holders of a descriptor: %+v, want this process", deep)
	}
	must(t, pod.Close())
	ns.Kill(t)
	if alive, err := rdmans.Alive(ns.Path, id); alive || err != nil {
		t.Errorf("alive after its death: %v, %v", alive, err)
	}
	node.Wait(t, "the mode to be free", func() bool {
		err := conn.SetMode(rdmans.Shared)
		if err != nil && !errors.Is(err, rdmans.ErrBusy) {
			t.Fatal(err)
		}
		return err == nil
	})
	must(t, conn.SetMode(rdmans.Exclusive))
}

// The kernel loads rdma_rxe by itself, and says EINVAL when it cannot.
func TestSoftRoCEWithoutItsModule(t *testing.T) {
	ns := node.NewNS(t)
	s, a := open(t, ns), addr(t, node.VF(t, 1, 5))
	f := observe(t, s, a)
	moveLink := attach.MoveLink{Device: bus.PCI(a), From: f.Link.Place, To: attach.Place{NS: attach.Pod, Name: "net1"}}
	add := attach.AddSoftRoCE{Name: "pf0123456789", Link: moveLink.To}
	apply(t, s, moveLink)
	node.Run(t, "modprobe", "-r", "rdma_rxe")
	const never = "/etc/modprobe.d/never.conf"
	must(t, os.WriteFile(never, []byte("install rdma_rxe /bin/false\n"), 0o600))
	err := s.Apply(t.Context(), add)
	if !errors.Is(err, rdmans.ErrUnsupported) || !strings.Contains(err.Error(), "kernel 7.1 or newer with the module rdma_rxe") {
		t.Errorf("without the module: %v", err)
	}
	t.Log(err)
	must(t, os.Remove(never))
	apply(t, s, add, attach.DelSoftRoCE{Name: add.Name}, moveLink.Reverse())
}
