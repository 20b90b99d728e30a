// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
)

// What another plugin made is left to it by every way back; only the RDMA device goes home, and a soft one goes away.
func TestChainsAtEveryPoint(t *testing.T) {
	t.Parallel()
	for _, p := range chains() {
		for n := range len(play(t, p).steps) + 1 {
			for name, e := range extents() {
				t.Run(fmt.Sprintf("%s/%d-%s", p.name, n, name), func(t *testing.T) {
					t.Parallel()
					sc := play(t, p)
					sc.k.KillAt(n, e)
					attachtest.Killed(func() { _ = attach.Run(t.Context(), sc.s, sc.steps) })
					sc.k.ClearFaults()
					if err := sc.home(t, open(t, sc.k, podPath)); err != nil {
						t.Fatal(err)
					}
					same(t, "state after Restore", sc.start, sc.k.Dump())
					settled(t, sc, sc.s)

					sc = play(t, p)
					sc.k.FailWith(n, e, attachtest.ErrInjected)
					err := attach.Run(t.Context(), sc.s, sc.steps)
					sc.k.ClearFaults()
					if (err == nil) != (n == len(sc.steps)) {
						t.Fatal(err)
					}
					if err == nil {
						err = attach.Undo(t.Context(), sc.s, sc.steps)
					}
					if n == len(sc.steps) && err != nil {
						t.Fatal(err)
					}
					same(t, "state after Undo", sc.start, sc.k.Dump())
				})
			}
		}
	}
}

// With the pod dead, the kernel brings the devices home under the pod's names; of these only the RDMA device's is put right here.
func TestChainsWhenTheNamespaceDied(t *testing.T) {
	t.Parallel()
	for _, p := range chains() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			sc := play(t, p)
			if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
				t.Fatal(err)
			}
			moved := attach.MovesRDMA(sc.steps)
			if moved {
				sc.k.RenameRDMA(vf(), "mine_0")
			}
			sc.k.KillNetNS(podPath)
			host := open(t, sc.k, "")
			now := sc.observe(t, host)
			want := ""
			if moved {
				want = "rename rdma (index 1) in host mine_0 -> mlx5_1\n"
			}
			if diff := cmp.Diff(want, lines(attach.Restore(recorded(t, sc.before), now))); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if err := sc.home(t, host); err != nil {
				t.Fatal(err)
			}
			settled(t, sc, host)
		})
	}
}

// Another plugin, rdma-cni perhaps, had brought the device into the pod: it is not ours to take home.
func TestRestoreLeavesWhatAnotherPluginMoved(t *testing.T) {
	t.Parallel()
	before := good()
	before.Link.NS, before.RDMA.NS = attach.Pod, attach.Pod
	if steps := attach.Restore(before, before); len(steps) != 0 {
		t.Errorf("steps %v", steps)
	}
	gone := good()
	gone.Link, gone.RDMA = nil, nil
	if away := attach.Away(before, gone); len(away) != 0 {
		t.Errorf("away %v", away)
	}
	if attach.Held(before, before) {
		t.Error("addresses of another plugin are held")
	}
}

// While the kernel still brings the RDMA device of a chained function home, it is waited for, and the netdev is not.
func TestAwayOfAChain(t *testing.T) {
	t.Parallel()
	sc := play(t, chains()[0])
	if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
		t.Fatal(err)
	}
	sc.k.HoldNetNS(podPath, -1)
	now := sc.observe(t, open(t, sc.k, ""))
	if diff := cmp.Diff([]string{"RDMA device mlx5_1 (index 1)"}, attach.Away(recorded(t, sc.before), now)); diff != "" {
		t.Errorf("away (-want +got):\n%s", diff)
	}
}

func TestHeld(t *testing.T) {
	t.Parallel()
	master := &attach.Master{Name: "ens1f0", Index: 2}
	own := func(ns attach.NS) *attach.Link {
		return &attach.Link{Place: attach.Place{NS: ns, Name: "net1"}, Kind: "macvlan"}
	}
	elsewhere, inPod, gone := good(), good(), good()
	elsewhere.Link, inPod.Link, gone.Function.Exists = nil, own(attach.Pod), false
	tests := []struct {
		name        string
		before, now attach.Facts
		want        bool
	}{
		{"at home", good(), good(), false},
		{"in the pod", good(), inPod, true},
		{"seen nowhere", good(), elsewhere, true},
		{"function gone", good(), gone, false},
		{"a macvlan in the pod", attach.Facts{Master: master}, attach.Facts{Master: master, Link: own(attach.Pod)}, true},
		{"a macvlan that is gone", attach.Facts{Master: master}, attach.Facts{Master: master}, false},
		{"a macvlan behind another plugin", attach.Facts{Master: master, Link: own(attach.Pod)}, attach.Facts{Master: master, Link: own(attach.Pod)}, false},
		{"a program's function", attach.Facts{Function: attach.Function{Exists: true, Driver: "vfio-pci"}}, attach.Facts{Function: attach.Function{Exists: true, Driver: "vfio-pci"}}, false},
	}
	for _, tt := range tests {
		if got := attach.Held(tt.before, tt.now); got != tt.want {
			t.Errorf("%s: held %t", tt.name, got)
		}
	}
}

// The settings of a VF come home before its own MAC, which a strict driver ties to the administrative one; undoing alone cannot,
// and Restore finishes.
func TestRestoreWithADriverThatTiesTheMACs(t *testing.T) {
	t.Parallel()
	p := plan(t, "vf-settings")
	p.conf.VF.Trust = nil
	for n := range play(t, p).steps {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			p := p
			p.setup = func(k *attachtest.Kernel) { k.StrictMAC(vf()) }
			sc := play(t, p)
			sc.k.FailWith(n, attachtest.Whole, attachtest.ErrInjected)
			if err := attach.Run(t.Context(), sc.s, sc.steps); err == nil {
				t.Fatal("no failure")
			}
			if err := sc.home(t, sc.s); err != nil {
				t.Fatal(err)
			}
			same(t, "state after Restore", sc.start, sc.k.Dump())
			settled(t, sc, sc.s)
		})
	}
}

// The PF's netdev went away while the pod ran: everything else comes home, and the settings wait for it.
func TestRestoreWithThePFAway(t *testing.T) {
	t.Parallel()
	sc := play(t, plan(t, "vf-settings"))
	if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
		t.Fatal(err)
	}
	sc.k.AddNetNS("/run/netns/other")
	sc.k.Give(pfID(), "/run/netns/other", "eth9")
	if err := sc.home(t, sc.s); err != nil {
		t.Fatal(err)
	}
	want := []string{"PF 0000:3b:00.0, through which the settings of 0000:3b:10.0 are put back"}
	if diff := cmp.Diff(want, attach.Away(recorded(t, sc.before), sc.observe(t, sc.s))); diff != "" {
		t.Errorf("away (-want +got):\n%s", diff)
	}
	sc.k.Give(pfID(), "", "ens1f0")
	sc.k.SetLink(pfID(), "", 0, true)
	if err := sc.home(t, sc.s); err != nil {
		t.Fatal(err)
	}
	same(t, "state after the second Restore", without(sc.start, "ens1f0 ", "/run/netns/other"), without(sc.k.Dump(), "ens1f0 ", "/run/netns/other"))
}

// Of a link on a master nothing is told but what is still there.
func TestNotesOfALinkOnAMaster(t *testing.T) {
	t.Parallel()
	sc := play(t, plan(t, "macvlan"))
	sc.k.RemoveFunction(pfID())
	if notes := attach.Notes(recorded(t, sc.before), sc.observe(t, sc.s)); len(notes) != 0 {
		t.Errorf("notes %v", notes)
	}
	if now := attach.Homed(sc.before, sc.before); now.Master == nil || now.RDMA.Name != "mlx5_0" {
		t.Errorf("names changed: %v", now)
	}
}

// A VF bound to a program's driver has its settings restored, whatever it is bound to by then.
func TestRestoreOfAProgramsFunction(t *testing.T) {
	t.Parallel()
	sc := play(t, plan(t, "vf-userspace"))
	if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
		t.Fatal(err)
	}
	sc.k.KillNetNS(podPath)
	sc.k.Rebind(plainVF(), "")
	if err := sc.home(t, open(t, sc.k, "")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*sc.before.VF, sc.k.VFState(plainVF())); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	sc.k.RemoveFunction(plainVF())
	want := []string{"function 0000:3b:10.2 is gone; there was nothing to restore"}
	if diff := cmp.Diff(want, attach.Notes(recorded(t, sc.before), sc.observe(t, sc.s))); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// review.md 29: a new VF at the address must not get what an older one had.
func TestRestoreLeavesTheSettingsOfANewVF(t *testing.T) {
	t.Parallel()
	sc := play(t, plan(t, "vf-settings"))
	if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
		t.Fatal(err)
	}
	sc.k.Rebind(vf(), "")
	set := sc.k.VFState(vf())
	if err := sc.home(t, sc.s); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(set, sc.k.VFState(vf())); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if notes := attach.Notes(recorded(t, sc.before), sc.observe(t, sc.s)); len(notes) != 1 {
		t.Errorf("notes %v", notes)
	}
}

func TestWantedVF(t *testing.T) {
	t.Parallel()
	clean := attach.VFState{MAC: "00:00:00:00:00:00", Proto: "802.1q", Spoofchk: true, LinkState: "auto"}
	tests := []struct {
		name   string
		change func(*netconf.Conf)
		now    attach.VFState
		want   func(*attach.VFState)
	}{
		{"nothing", func(*netconf.Conf) {}, leftover(), func(*attach.VFState) {}},
		{"keep", func(c *netconf.Conf) { c.VF.Baseline = netconf.BaselineKeep }, leftover(), func(*attach.VFState) {}},
		{"reset", func(c *netconf.Conf) { c.VF.Baseline = netconf.BaselineReset }, leftover(), func(v *attach.VFState) {
			*v = attach.VFState{MAC: "02:00:00:00:bb:01", Proto: "802.1q", LinkState: "auto"}
		}},
		{"reset, and some named", func(c *netconf.Conf) {
			c.VF.Baseline, c.VF.VLAN, c.VF.Trust, c.VF.MinTxRate = netconf.BaselineReset, new(9), new(true), new(3)
		}, leftover(), func(v *attach.VFState) {
			*v = attach.VFState{MAC: "02:00:00:00:bb:01", VLAN: 9, Proto: "802.1q", Trust: true, LinkState: "auto", MinTxRate: 3}
		}},
		{"a VLAN has QoS 0 and 802.1q unless said", func(c *netconf.Conf) { c.VF.VLAN = new(5) }, leftover(), func(v *attach.VFState) {
			v.VLAN, v.QoS, v.Proto = 5, 0, "802.1q"
		}},
		{"VLAN 0 clears", func(c *netconf.Conf) { c.VF.VLAN, c.VF.QoS = new(0), new(0) }, leftover(), func(v *attach.VFState) {
			v.VLAN, v.QoS, v.Proto = 0, 0, "802.1q"
		}},
		{"one rate leaves the other", func(c *netconf.Conf) { c.VF.MaxTxRate = new(0) }, leftover(), func(v *attach.VFState) { v.MaxTxRate = 0 }},
		{"everything", everything, clean, func(v *attach.VFState) {
			*v = attach.VFState{
				MAC: "02:00:00:00:aa:01", VLAN: 100, QoS: 3, Proto: "802.1ad", Trust: true, LinkState: "enable", MinTxRate: 100, MaxTxRate: 1000,
			}
		}},
	}
	for _, tt := range tests {
		c, want := conf(tt.change), tt.now
		tt.want(&want)
		if diff := cmp.Diff(want, attach.WantedVF(c, tt.now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if steps := attach.VFSteps(good().Function, clean, clean); len(steps) != 0 {
		t.Errorf("steps %v", steps)
	}
}
