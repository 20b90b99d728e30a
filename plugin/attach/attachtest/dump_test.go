// SPDX-License-Identifier: Apache-2.0

package attachtest_test

import (
	"testing"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// design.md §9.15: a comparison of states is worth what it can see. These are the states of masters and what is on them.
func TestDumpShowsEveryChangeOfUppers(t *testing.T) {
	t.Parallel()
	changes := map[string]func(*testing.T, *attachtest.Kernel, *attachtest.Session){
		"SF": func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) {
			k.AddSF(attachtest.SF{ID: bus.ID{Aux: "mlx5_core.sf.4"}})
		},
		"VLAN":              func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.AddVLAN("ens1f1", "v", 5) },
		"bond":              func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.AddBond("bond0", "ens1f0") },
		"pair":              func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.AddVeth(podA, "eth0") },
		"macvlan":           func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.MakeMacvlan(podA, "mv", "ens1f0") },
		"ipvlan":            func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.MakeIpvlan(podA, "iv", "ens1f1") },
		"default route":     func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.SetDefault("dummy0", true) },
		"type":              func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.SetType("dummy0", "infiniband") },
		"MTU":               func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.SetHostMTU("dummy0", 1400) },
		"alternative names": func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.SetHostAltNames("dummy0", "x") },
		"address": func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) {
			k.PutAddr("", "dummy0", prefix("10.0.0.1/8"))
		},
		"up":   func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.SetPodUp("", "dummy0", true) },
		"name": func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.RenamePodLink(podA, "mine", "x") },
		"MAC": func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) {
			k.SetPodMAC(podA, "mine", "02:00:00:00:00:07")
		},
		"gone":       func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.DelPodLink(podA, "mine") },
		"PF away":    func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.Give(busOf(0), podB, "x") },
		"VF state":   func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.SetVFState(fn(0), attach.VFState{}) },
		"switch":     func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.SetESwitch(busOf(0), "switchdev") },
		"reset":      func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.SetResets(fn(0), false) },
		"strict MAC": func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.StrictMAC(fn(0)) },
		"igb":        func(_ *testing.T, k *attachtest.Kernel, _ *attachtest.Session) { k.LikeIGB(busOf(0)) },
		"master": func(t *testing.T, k *attachtest.Kernel, s *attachtest.Session) {
			t.Helper()
			k.DelPodLink(podA, "mine")
			must(t, s, addMacvlan(t, s, "ens1f1", "mine", ownMAC))
		},
		"mode": func(t *testing.T, k *attachtest.Kernel, s *attachtest.Session) {
			t.Helper()
			k.DelPodLink(podA, "mine")
			step := addMacvlan(t, s, "ens1f0", "mine", ownMAC)
			step.Mode = "private"
			must(t, s, step)
		},
		"address generation": func(t *testing.T, _ *attachtest.Kernel, s *attachtest.Session) {
			t.Helper()
			must(t, s, attach.SetSysctl{NS: attach.Pod, Key: "net/ipv6/conf/mine/addr_gen_mode", To: "1"})
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, s := withVFs(t)
			must(t, s, addMacvlan(t, s, "ens1f0", "mine", ownMAC))
			before := k.Dump()
			change(t, k, s)
			if k.Dump() == before {
				t.Error("the dump does not show it")
			}
		})
	}
}

func TestHelpersNameWhatIsMissing(t *testing.T) {
	t.Parallel()
	k, _ := masters(t, attach.Shared)
	for _, fn := range []func(){
		func() { k.MakeMacvlan("/run/netns/none", "x", "ens1f0") },
		func() { k.MakeMacvlan(podA, "x", "ens9") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a test that names nothing was not told")
				}
			}()
			fn()
		}()
	}
	k.SetPodUp("", "ens1f0", true) // the machine is not left locked
}
