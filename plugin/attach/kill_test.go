// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
)

func kill(t *testing.T, sc *scene, steps []attach.Step, n int, e attachtest.Extent) {
	t.Helper()
	sc.k.KillAt(n, e)
	if !attachtest.Killed(func() { _ = attach.Run(t.Context(), sc.s, steps) }) {
		t.Fatal("the process was not killed")
	}
}

func settled(t *testing.T, sc *scene, s *attachtest.Session) {
	t.Helper()
	now := sc.observe(t, s)
	if again := attach.Restore(recorded(t, sc.before), now); len(again) != 0 {
		t.Errorf("Restore is not done: %v", again)
	}
	if away := attach.Away(recorded(t, sc.before), now); len(away) != 0 {
		t.Errorf("away: %v", away)
	}
	if notes := attach.Notes(recorded(t, sc.before), now); len(notes) != 0 {
		t.Errorf("notes: %v", notes)
	}
}

func TestRestoreAfterAKillAtAnyPointOfADD(t *testing.T) {
	t.Parallel()
	points(t, func(t *testing.T, sc *scene, n int, e attachtest.Extent) {
		t.Helper()
		kill(t, sc, sc.steps, n, e)
		s := open(t, sc.k, podPath)
		if err := sc.home(t, s); err != nil {
			t.Fatal(err)
		}
		same(t, "state after Restore", sc.start, sc.k.Dump())
		settled(t, sc, s)
	})
}

func without(dump string, things ...string) string {
	lines := slices.DeleteFunc(strings.Split(dump, "\n"), func(l string) bool {
		return slices.ContainsFunc(things, func(x string) bool { return strings.Contains(l, x) })
	})
	return strings.Join(lines, "\n")
}

func TestRestoreAfterTheNamespaceDied(t *testing.T) {
	t.Parallel()
	points(t, func(t *testing.T, sc *scene, n int, e attachtest.Extent) {
		t.Helper()
		kill(t, sc, sc.steps, n, e)
		sc.k.KillNetNS(podPath)
		host := open(t, sc.k, "")
		if err := sc.home(t, host); err != nil {
			t.Fatal(err)
		}
		same(t, "state after Restore", without(sc.start, podPath), sc.k.Dump())
		settled(t, sc, host)
	})
}

func TestRestoreAfterTheNamespaceDiedAndNamesWereTaken(t *testing.T) {
	t.Parallel()
	points(t, func(t *testing.T, sc *scene, n int, e attachtest.Extent) {
		t.Helper()
		kill(t, sc, sc.steps, n, e)
		sc.k.AddLink("", "net1")
		if rdmaIn(sc.k, podPath) {
			sc.k.AddRDMA("mlx5_1")
		}
		sc.k.KillNetNS(podPath)
		if rdmaIn(sc.k, "host/ibdev") {
			removeForeign(t, sc.k)
		}
		host := open(t, sc.k, "")
		if err := sc.home(t, host); err != nil {
			t.Fatal(err)
		}
		same(t, "state after Restore", without(sc.start, podPath), without(sc.k.Dump(), "link host/net1"))
		settled(t, sc, host)
	})
}

func rdmaIn(k *attachtest.Kernel, prefix string) bool {
	return strings.HasPrefix(k.Where(vf())[1], prefix)
}

func removeForeign(t *testing.T, k *attachtest.Kernel) {
	t.Helper()
	k.RemoveRDMA("mlx5_1")
	if !rdmaIn(k, "host/ibdev1") {
		t.Fatalf("RDMA device at %v", k.Where(vf()))
	}
}

func TestRestoreAfterAKillAtAnyPointOfDEL(t *testing.T) {
	t.Parallel()
	for _, p := range plans() {
		for m := range 12 {
			for name, e := range extents() {
				for _, dies := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%d-%s-dies-%t", p.name, m, name, dies), func(t *testing.T) {
						t.Parallel()
						sc := play(t, p)
						if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
							t.Fatal(err)
						}
						spoil(sc)
						sc.k.KillAt(m, e)
						if !attachtest.Killed(func() { _ = sc.home(t, sc.s) }) {
							sc.k.ClearFaults() // fewer steps than m
						}
						s, want := sc.s, sc.start
						if dies {
							sc.k.KillNetNS(podPath)
							s, want = open(t, sc.k, ""), without(sc.start, podPath)
						}
						if err := sc.home(t, s); err != nil {
							t.Fatal(err)
						}
						same(t, "state after the second DEL", want, sc.k.Dump())
						settled(t, sc, s)
					})
				}
			}
		}
	}
}

func spoil(sc *scene) {
	k, dev := sc.k, sc.query.Device
	switch m := sc.query.Own; {
	case m.MAC != "" && len(sc.addrs.Addrs) > 1:
		k.SetPodMAC(podPath, "net1", "02:de:ad:be:ef:00")
	case m.MAC != "":
		k.RenamePodLink(podPath, "net1", "mine")
	case m.Kind != "":
		k.SetPodUp(podPath, "net1", false) // an ipvlan has no MAC of its own to be known by
	case !sc.before.Function.Userspace():
		k.RenameLink(dev, "mine")
		k.SetLink(dev, "02:de:ad:be:ef:00", 1400, false)
		k.SetTraits(dev, podTraits())
		k.Stack(podPath, "mine", "vlan", "mine.5")
		k.Stack(podPath, "mine", "macvlan", "mine0")
	}
	if sc.before.VF != nil {
		k.SetVFState(dev, attach.VFState{VLAN: 1, QoS: 1, Spoofchk: !sc.before.VF.Spoofchk, MaxTxRate: 1})
	}
	if dev == vf() && rdmaIn(k, podPath) {
		k.RenameRDMA(dev, "mine_0")
	}
}
