// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// kill runs steps until the process dies in the n-th; the session's descriptors die with it.
// settled checks that a further Restore has nothing to do and nothing to wait for.
// without is a dump less every line that names path, and less those that name any of the things.
// Another pod's interface of the same name came home before, and another RDMA device had the name when ours did.
// removeForeign takes away the device that took the name mlx5_1 while ours, called ibdev1 now, was away.
// A home name that is taken for good: the kernel's stays, and a note says so. No other link is touched.
func TestRestoreKeepsTheKernelsNameWhenItsOwnIsTaken(t *testing.T) {
	t.Parallel()
	for _, dead := range []bool{false, true} {
		t.Run(fmt.Sprintf("dead-%t", dead), func(t *testing.T) {
			t.Parallel()
			sc := play(t, plan(t, "exclusive"))
			if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"ens1f0v0", "net1", "dev0"} {
				sc.k.AddLink("", name)
			}
			sc.k.AddRDMA("mlx5_1")
			s := sc.s
			if dead {
				sc.k.KillNetNS(podPath)
				s = open(t, sc.k, "")
			}
			for range 2 {
				if err := sc.home(t, s); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([2]string{"host/dev1", "host/ibdev1"}, sc.k.Where(vf())); diff != "" {
					t.Fatalf("where (-want +got):\n%s", diff)
				}
			}
			want := []string{
				"netdev of 0000:3b:10.0 keeps the name dev1: its own, ens1f0v0, is taken by another device",
				"RDMA device of 0000:3b:10.0 keeps the name ibdev1: its own, mlx5_1, is taken by another device",
			}
			now := observe(t, s, vf(), "")
			if diff := cmp.Diff(want, attach.Notes(recorded(t, sc.before), now)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			if steps := attach.Restore(recorded(t, sc.before), now); len(steps) != 0 {
				t.Errorf("Restore is not done: %v", steps)
			}
		})
	}
}

// DEL itself may be killed at each of its steps, or one may fail, and the next DEL finishes; also when the pod dies between.
// spoil does what a pod with NET_ADMIN can do to its interface.
// What is held by a namespace that nobody sees comes home when that dies, and only then is put right.
func TestRestoreOfWhatIsAway(t *testing.T) {
	t.Parallel()
	for _, p := range plans() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			sc := play(t, p)
			if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
				t.Fatal(err)
			}
			sc.k.HoldNetNS(podPath, -1)
			host := open(t, sc.k, "")
			now := sc.observe(t, host)
			var want []string
			if p.soft != "" {
				want = append(want, "soft RDMA device "+p.soft)
			}
			if attach.MovesRDMA(sc.steps) {
				want = append(want, fmt.Sprintf("RDMA device %s (index %d)", sc.before.RDMA.Name, sc.before.RDMA.Index))
			}
			if sc.before.Link != nil {
				want = append(want, "netdev "+sc.before.Link.Name+" of "+p.conf.Device.String())
			}
			if diff := cmp.Diff(want, attach.Away(recorded(t, sc.before), now)); diff != "" {
				t.Errorf("away (-want +got):\n%s", diff)
			}
			if err := sc.home(t, host); err != nil {
				t.Fatal(err)
			}
			if where := sc.k.Where(p.conf.Device)[0]; sc.before.Link != nil && where != podPath+" (held)/net1" {
				t.Errorf("the link is at %s", where)
			}
			sc.k.KillNetNS(podPath)
			if err := sc.home(t, host); err != nil {
				t.Fatal(err)
			}
			same(t, "state after Restore", without(sc.start, podPath), sc.k.Dump())
			settled(t, sc, host)
		})
	}
}

// review.md 29, 30: what is gone counts as restored, and what is new must not get the old one's settings.
func TestRestoreLeavesWhatIsAnotherDevice(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*attachtest.Kernel)
		want   []string // steps
		notes  []string
	}{
		{
			name: "function gone", change: func(k *attachtest.Kernel) { k.RemoveFunction(vf()) },
			notes: []string{"function 0000:3b:10.0 is gone; there was nothing to restore"},
		},
		{
			name: "new VF at the address", change: func(k *attachtest.Kernel) { k.Rebind(vf(), ""); k.RenameLink(vf(), "eth7") },
			notes: []string{"function 0000:3b:10.0 has another RDMA device now (index 3, was 1); its settings were left as they are"},
		},
		{name: "unbound", change: func(k *attachtest.Kernel) { k.Rebind(vf(), "vfio-pci") }},
		{
			name:   "only the RDMA driver was loaded anew: the netdev in the pod is ours still",
			change: func(k *attachtest.Kernel) { k.RemoveRDMA("mlx5_1") },
			want:   []string{"move link 0000:3b:10.0 pod/net1 -> host/ens1f0v0, mtu 1500 -> 1500"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sc := play(t, plan(t, "exclusive"))
			if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
				t.Fatal(err)
			}
			tt.change(sc.k)
			now := observe(t, sc.s, vf(), "")
			var got []string
			for _, s := range attach.Restore(recorded(t, sc.before), now) {
				got = append(got, s.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.notes, attach.Notes(recorded(t, sc.before), now)); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

// A record that is lost leaves only that the device is ours: it comes home as it is.
func TestRestoreWithoutFacts(t *testing.T) {
	t.Parallel()
	sc := play(t, plan(t, "exclusive"))
	if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
		t.Fatal(err)
	}
	now := observe(t, sc.s, vf(), "")
	if err := attach.RunAll(t.Context(), sc.s, attach.Restore(attach.Facts{}, now)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([2]string{"host/net1", "host/mlx5_1"}, sc.k.Where(vf())); diff != "" {
		t.Errorf("where (-want +got):\n%s", diff)
	}
	now = observe(t, sc.s, vf(), "")
	if steps := attach.Restore(attach.Facts{}, now); len(steps) != 0 {
		t.Errorf("Restore is not done: %v", steps)
	}
	if notes, away := attach.Notes(attach.Facts{}, attach.Facts{}), attach.Away(attach.Facts{}, now); len(notes)+len(away) != 0 {
		t.Errorf("notes %v, away %v", notes, away)
	}
}

// Where the PF's MTU was lowered meanwhile, the driver takes the old one no more; the device must come home all the same.
func TestRestoreUnderALowerPF(t *testing.T) {
	t.Parallel()
	p := plan(t, "exclusive")
	p.setup = func(k *attachtest.Kernel) { k.SetLink(vf(), "", 9000, false) }
	sc := play(t, p)
	if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
		t.Fatal(err)
	}
	sc.k.SetLink(bus.PCI(pf()), "", 1500, true)
	sc.k.SetLink(vf(), "", 1500, true)
	sc.k.SetMaxMTU(vf(), 1500)
	if err := sc.home(t, sc.s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([2]string{"host/ens1f0v0", "host/mlx5_1"}, sc.k.Where(vf())); diff != "" {
		t.Errorf("where (-want +got):\n%s", diff)
	}
	want := []string{"netdev ens1f0v0 of 0000:3b:10.0 has MTU 1500, not 9000 as before: its PF has 1500 now"}
	if diff := cmp.Diff(want, attach.Notes(recorded(t, sc.before), observe(t, sc.s, vf(), ""))); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// The node upped the link after the kernel had brought it home as net1: it goes down for its name and MAC.
func TestRestoreOfALinkThatIsUpAtHome(t *testing.T) {
	t.Parallel()
	sc := play(t, plan(t, "exclusive-mtu-pf-up"))
	if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
		t.Fatal(err)
	}
	sc.k.KillNetNS(podPath)
	sc.k.SetLink(vf(), "02:de:ad:be:ef:00", 0, true)
	host := open(t, sc.k, "")
	now := observe(t, host, vf(), "")
	want := "set host/net1 down\n" +
		"move link 0000:3b:10.0 host/net1 -> host/ens1f0v0, mtu 9000 -> 1500\n" +
		"set mac of host/ens1f0v0 02:de:ad:be:ef:00 -> 02:54:00:3b:10:00\n" +
		"set host/ens1f0v0 up\n"
	if diff := cmp.Diff(want, lines(attach.Restore(recorded(t, sc.before), now))); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if err := sc.home(t, host); err != nil {
		t.Fatal(err)
	}
	same(t, "state after Restore", without(sc.start, podPath), sc.k.Dump())
}

// The home of a device is never given to one of another pod: two VFs of one pod go each its own way.
func TestRestoreTouchesOneDeviceOnly(t *testing.T) {
	t.Parallel()
	sc := play(t, plan(t, "exclusive"))
	second := conf(func(c *netconf.Conf) { c.Device, c.Request.IfName = otherVF(), "net2" })
	before := observe(t, sc.s, otherVF(), "")
	steps := slices.Concat(sc.steps, attach.Plan(second, before, attach.Addresses{}, ""))
	if err := attach.Run(t.Context(), sc.s, steps); err != nil {
		t.Fatal(err)
	}
	if err := sc.home(t, sc.s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([2]string{podPath + "/net2", podPath + "/mlx5_2"}, sc.k.Where(otherVF())); diff != "" {
		t.Errorf("where (-want +got):\n%s", diff)
	}
	if err := sc.s.Apply(t.Context(), sc.steps[0]); errors.Is(err, attach.ErrConflict) {
		t.Errorf("the device cannot be attached again: %v", err)
	}
}

// A pod that calls its device like another at home must not keep it away: it is renamed in the pod, then moved.
func TestRestoreOfADeviceNamedLikeAnotherAtHome(t *testing.T) {
	t.Parallel()
	sc := play(t, plan(t, "exclusive"))
	if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
		t.Fatal(err)
	}
	sc.k.RenameRDMA(vf(), "mlx5_2")
	sc.k.RenameLink(vf(), "ens1f0v1")
	if err := sc.home(t, sc.s); err != nil {
		t.Fatal(err)
	}
	same(t, "state after Restore", sc.start, sc.k.Dump())
	settled(t, sc, sc.s)
}
