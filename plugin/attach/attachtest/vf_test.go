// SPDX-License-Identifier: Apache-2.0

package attachtest_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
)

// withVFs has masters and VFs 0 and 1 of the first PF, fn(0) and fn(1), and one of the second.
func withVFs(t *testing.T) (*attachtest.Kernel, *attachtest.Session) {
	t.Helper()
	k, s := masters(t, attach.Exclusive)
	k.AddVF(attachtest.VF{ID: fn(0), PF: pf(0), Link: "vf0", RDMA: "mlx5_2"})
	k.AddVF(attachtest.VF{ID: fn(1), PF: pf(0), Number: 1, Link: "vf1"})
	k.AddVF(attachtest.VF{ID: fn(2), PF: pf(1), Link: "vf2"})
	return k, s
}

// fresh is what a VF has that nobody set anything of: igb and mlx5 both start with checks on, no trust, no limits.
func fresh() attach.VFState {
	return attach.VFState{MAC: "00:00:00:00:00:00", Proto: "802.1q", Spoofchk: true, LinkState: "auto"}
}

func vfFacts(t *testing.T, s *attachtest.Session) attach.Facts {
	t.Helper()
	f, err := s.Observe(t.Context(), attach.Query{Device: fn(0), VF: true})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func settings() map[attach.VFSetting]attach.VFState {
	vlan, mac, rate, spoofchk, trust, state := fresh(), fresh(), fresh(), fresh(), fresh(), fresh()
	vlan.VLAN, vlan.QoS, vlan.Proto = 100, 3, "802.1ad"
	mac.MAC = ownMAC
	rate.MinTxRate, rate.MaxTxRate = 100, 1000
	spoofchk.Spoofchk = false
	trust.Trust = true
	state.LinkState = "enable"
	return map[attach.VFSetting]attach.VFState{
		attach.VFVLAN: vlan, attach.VFMAC: mac, attach.VFRate: rate, attach.VFSpoofchk: spoofchk, attach.VFTrust: trust, attach.VFLinkState: state,
	}
}

// One setting at a time, the others of To not counting; without the pod's namespace; one call, none when it holds.
func TestSetVF(t *testing.T) {
	t.Parallel()
	for what, want := range settings() {
		t.Run(string(what), func(t *testing.T) {
			t.Parallel()
			k, s := withVFs(t)
			k.KillNetNS(podA)
			before := k.Dump()
			all := attach.VFState{MAC: ownMAC, VLAN: 100, QoS: 3, Proto: "802.1ad", Trust: true, LinkState: "enable", MinTxRate: 100, MaxTxRate: 1000}
			step := attach.SetVF{PF: pf(0), What: what, From: fresh(), To: all}
			must(t, s, step, step)
			if diff := cmp.Diff(&want, vfFacts(t, s).VF); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
			if k.Dump() == before {
				t.Error("the dump does not show it")
			}
			must(t, s, step.Reverse(), step.Reverse())
			if diff := cmp.Diff(before, k.Dump()); diff != "" || k.Changes() != 2 {
				t.Errorf("%d calls, after the reverse (-before +after):\n%s", k.Changes(), diff)
			}
		})
	}
}

// review.md lab 8: with the PF's netdev in a pod its VFs cannot be asked for or set. review.md 43: mode switchdev. design.md
// §9.18: what igb does not have. Refused values are the kernel's and the drivers'.
func TestSetVFRefusals(t *testing.T) {
	t.Parallel()
	set := func(what attach.VFSetting, change func(*attach.VFState)) attach.SetVF {
		to := settings()[what]
		if change != nil {
			change(&to)
		}
		return attach.SetVF{PF: pf(0), What: what, From: fresh(), To: to}
	}
	tests := []struct {
		name    string
		setup   func(*attachtest.Kernel)
		step    attach.SetVF
		want    error
		noCalls bool
	}{
		{name: "PF's netdev away", want: attach.ErrConflict, noCalls: true, step: set(attach.VFVLAN, nil), setup: func(k *attachtest.Kernel) { k.Give(busOf(0), podB, "x") }},
		{name: "VF gone", want: attach.ErrConflict, noCalls: true, step: set(attach.VFVLAN, nil), setup: func(k *attachtest.Kernel) { k.RemoveFunction(fn(0)) }},
		{name: "VLAN in switchdev", want: syscall.EOPNOTSUPP, step: set(attach.VFVLAN, nil), setup: func(k *attachtest.Kernel) { k.SetESwitch(busOf(0), "switchdev") }},
		{name: "spoofchk in switchdev", want: syscall.EOPNOTSUPP, step: set(attach.VFSpoofchk, nil), setup: func(k *attachtest.Kernel) { k.SetESwitch(busOf(0), "switchdev") }},
		{name: "driver without it", want: syscall.EOPNOTSUPP, step: set(attach.VFLinkState, nil), setup: func(k *attachtest.Kernel) { k.RefuseVF(attach.VFLinkState, syscall.EOPNOTSUPP) }},
		{name: "igb: link_state", want: syscall.EOPNOTSUPP, step: set(attach.VFLinkState, nil), setup: func(k *attachtest.Kernel) { k.LikeIGB(busOf(0)) }},
		{name: "igb: least rate", want: syscall.EINVAL, step: set(attach.VFRate, nil), setup: func(k *attachtest.Kernel) { k.LikeIGB(busOf(0)) }},
		{name: "igb: 802.1ad", want: syscall.EPROTONOSUPPORT, step: set(attach.VFVLAN, nil), setup: func(k *attachtest.Kernel) { k.LikeIGB(busOf(0)) }},
		{name: "driver that does not do it", want: attachtest.ErrNotTaken, step: set(attach.VFTrust, nil), setup: func(k *attachtest.Kernel) { k.IgnoreVF(attach.VFTrust, true) }},
		{name: "VLAN too large", want: syscall.EINVAL, step: set(attach.VFVLAN, func(v *attach.VFState) { v.VLAN = 4096 })},
		{name: "QoS too large", want: syscall.EINVAL, step: set(attach.VFVLAN, func(v *attach.VFState) { v.QoS = 8 })},
		{name: "group MAC", want: syscall.EINVAL, step: set(attach.VFMAC, func(v *attach.VFState) { v.MAC = "01:00:00:00:00:01" })},
		{name: "rates the wrong way round", want: syscall.EINVAL, step: set(attach.VFRate, func(v *attach.VFState) { v.MinTxRate = 2000 })},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k, s := withVFs(t)
			if tt.setup != nil {
				tt.setup(k)
			}
			before := k.Dump()
			if err := s.Apply(t.Context(), tt.step); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if diff := cmp.Diff(before, k.Dump()); diff != "" || k.Changes() == 0 != tt.noCalls {
				t.Errorf("%d calls, changed (-before +after):\n%s", k.Changes(), diff)
			}
		})
	}
	k, s := withVFs(t)
	must(t, s, set(attach.VFVLAN, func(v *attach.VFState) { v.VLAN, v.QoS = 0, 0 }))
	if k.Changes() != 0 {
		t.Error("no VLAN of another protocol is another state")
	}
	must(t, s, set(attach.VFVLAN, func(v *attach.VFState) { v.Proto = "" }))
	k.SetESwitch(busOf(0), "switchdev")
	must(t, s, set(attach.VFMAC, nil))
	k.RefuseVF(attach.VFTrust, syscall.EPERM)
	k.RefuseVF(attach.VFTrust, nil)
	k.IgnoreVF(attach.VFRate, true)
	k.IgnoreVF(attach.VFRate, false)
	k.SetESwitch(busOf(0), "legacy")
	must(t, s, set(attach.VFTrust, nil), set(attach.VFRate, nil))
}

// What is asked of the PF is asked on demand only, and not to be had while its netdev is away; devlink is.
func TestObserveVF(t *testing.T) {
	t.Parallel()
	k, s := withVFs(t)
	k.SetVFState(fn(1), attach.VFState{MAC: ownMAC, VLAN: 7})
	f := vfFacts(t, s)
	if f.VF == nil || cmp.Diff(map[int]string{1: ownMAC}, f.Siblings) != "" || f.Function.ESwitch != "legacy" || !f.Function.Resets {
		t.Errorf("facts %+v", f)
	}
	if got := k.VFState(fn(1)); got != (attach.VFState{MAC: ownMAC, VLAN: 7, Proto: "802.1q", LinkState: "auto"}) {
		t.Errorf("state %+v", got)
	}
	f, err := s.Observe(t.Context(), attach.Query{Device: fn(0)})
	if err != nil || f.VF != nil || f.Siblings != nil || f.Function.ESwitch != "" || f.Function.Resets {
		t.Errorf("facts %+v, error %v", f, err)
	}
	k.Give(busOf(0), podB, "x")
	if f = vfFacts(t, s); f.VF != nil || f.Siblings != nil || f.Function.PFLink != "" || f.Function.ESwitch != "legacy" {
		t.Errorf("PF away: %+v", f)
	}
	k.Give(busOf(0), "", "ens1f0")
	if f = vfFacts(t, s); f.VF == nil || f.Function.PFLink != "ens1f0" {
		t.Errorf("PF home again: %+v", f)
	}
	k.AddPF(attachtest.PF{PCI: pf(3), Link: "eno1", ESwitch: "none"})
	if f, err = s.Observe(t.Context(), attach.Query{Device: busOf(3), VF: true}); err != nil || f.Function.ESwitch != "" {
		t.Errorf("no switch: %+v, error %v", f.Function, err)
	}
}

// A reset takes the netdev down and leaves what the PF holds; it is no state, so that each step makes one.
func TestResetFunction(t *testing.T) {
	t.Parallel()
	k, s := withVFs(t)
	k.SetLink(fn(0), "", 0, true)
	k.SetVFState(fn(0), attach.VFState{VLAN: 7})
	held := k.VFState(fn(0))
	must(t, s, attach.ResetFunction{Device: fn(0)}, attach.ResetFunction{Device: fn(0)})
	if k.Resets(fn(0)) != 2 || k.Changes() != 2 || k.VFState(fn(0)) != held || observe(t, s, 0).Link.Up {
		t.Errorf("%d resets, %d calls, %+v", k.Resets(fn(0)), k.Changes(), observe(t, s, 0).Link)
	}
	k.SetResets(fn(1), false)
	if err := s.Apply(t.Context(), attach.ResetFunction{Device: fn(1)}); !errors.Is(err, syscall.ENOTTY) || k.Resets(fn(1)) != 0 {
		t.Errorf("without a reset: %v", err)
	}
	k.Rebind(fn(2), "vfio-pci")
	must(t, s, attach.ResetFunction{Device: fn(2)})
	k.RemoveFunction(fn(0))
	if err := s.Apply(t.Context(), attach.ResetFunction{Device: fn(0)}); !errors.Is(err, attach.ErrConflict) {
		t.Errorf("gone: %v", err)
	}
}

// What the PF holds outlives the VF's driver, not the VF. A driver that binds takes the administrative MAC, and the RDMA device's
// GUID follows it (rdma-cni README: set the MAC, then rebind); one that is bound keeps the effective one.
func TestAdministrativeMAC(t *testing.T) {
	t.Parallel()
	k, s := withVFs(t)
	must(t, s, attach.SetVF{PF: pf(0), What: attach.VFMAC, From: fresh(), To: attach.VFState{MAC: ownMAC}})
	if got := observe(t, s, 0).Link.MAC; got == ownMAC {
		t.Error("the effective MAC followed at once")
	}
	k.Rebind(fn(0), "")
	if f := observe(t, s, 0); f.Link.MAC != ownMAC || f.RDMA.NodeGUID != "0211:22ff:fe33:4455" || k.VFState(fn(0)).MAC != ownMAC {
		t.Errorf("after a rebind: %+v, %+v", f.Link, f.RDMA)
	}
	other := attach.SetMAC{Link: at(attach.Host, "vf0"), From: ownMAC, To: "02:00:00:00:00:07"}
	k.StrictMAC(fn(0)) // ixgbe_set_vf_mac_addr, i40e_check_vf_permission
	if err := s.Apply(t.Context(), other); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("another MAC: %v", err)
	}
	must(t, s, attach.SetVF{PF: pf(0), What: attach.VFTrust, To: attach.VFState{Trust: true}}, other)
	k.RemoveFunction(fn(0))
	k.AddVF(attachtest.VF{ID: fn(0), PF: pf(0), Link: "vf0"})
	if got := k.VFState(fn(0)); got != fresh() {
		t.Errorf("a new VF on an old address: %+v", got)
	}
}

// The lab's igb on 7.3.4, one line after the other.
func TestMACsOnIGB(t *testing.T) {
	t.Parallel()
	const first, m8, m9, m7a, m7c = "02:54:00:01:10:00", "02:00:00:00:00:08", "02:00:00:00:00:09", "02:00:00:00:00:7a", "02:00:00:00:00:7c"
	k, s := withVFs(t)
	k.LikeIGB(busOf(0))
	admin := func(mac string) attach.Step {
		return attach.SetVF{PF: pf(0), What: attach.VFMAC, To: attach.VFState{MAC: mac}}
	}
	own := func(mac string) attach.Step { return attach.SetMAC{Link: at(attach.Host, "vf0"), To: mac} }
	trust := func(on bool) attach.Step {
		return attach.SetVF{PF: pf(0), What: attach.VFTrust, To: attach.VFState{Trust: on}}
	}
	none := "00:00:00:00:00:00"
	for i, tt := range []struct {
		step             attach.Step
		err              error
		shown, effective string
	}{
		{admin(m8), nil, m8, first},
		{own(m8), syscall.EADDRNOTAVAIL, m8, first}, // not even the one it was given
		{attach.SetUp{Link: at(attach.Host, "vf0"), To: true}, nil, m8, first},
		{trust(true), nil, m8, first},
		{own(m7a), nil, m7a, m7a},
		{trust(false), nil, m7a, m7a},
		{admin(none), nil, none, m7a},
		{own(m7c), nil, m7c, m7c},
		{admin(m9), nil, m9, m7c},
		{attach.ResetFunction{Device: fn(0)}, nil, m9, m9},
	} {
		if err := s.Apply(t.Context(), tt.step); !errors.Is(err, tt.err) {
			t.Errorf("%d, %s: error %v, want %v", i, tt.step, err, tt.err)
		}
		if shown, effective := k.VFState(fn(0)).MAC, observe(t, s, 0).Link.MAC; shown != tt.shown || effective != tt.effective {
			t.Errorf("%d, after %s: the PF shows %s, the VF has %s; want %s, %s", i, tt.step, shown, effective, tt.shown, tt.effective)
		}
	}
}

// Of these steps nothing is ever half there: what was done when the answer is lost is all of it.
func TestFaultsOfWholeSteps(t *testing.T) {
	t.Parallel()
	steps := map[string]func(*testing.T, *attachtest.Session) attach.Step{
		"add link": func(t *testing.T, s *attachtest.Session) attach.Step {
			t.Helper()
			return addMacvlan(t, s, "ens1f0", "net1", ownMAC)
		},
		"set VF": func(*testing.T, *attachtest.Session) attach.Step {
			return attach.SetVF{PF: pf(0), What: attach.VFTrust, From: fresh(), To: attach.VFState{Trust: true}}
		},
	}
	for name, make := range steps {
		for _, extent := range []attachtest.Extent{attachtest.Nothing, attachtest.Half, attachtest.Whole} {
			k, s := withVFs(t)
			step := make(t, s)
			before := k.Dump()
			k.FailWith(0, extent, attachtest.ErrInjected)
			if err := s.Apply(t.Context(), step); !errors.Is(err, attachtest.ErrInjected) {
				t.Errorf("%s: %v", name, err)
			}
			failed := k.Dump()
			must(t, s, step)
			if (failed == before) != (extent == attachtest.Nothing) || extent != attachtest.Nothing && failed != k.Dump() || k.Changes() != 1 {
				t.Errorf("%s, extent %d: %d calls, state\n%s", name, extent, k.Changes(), failed)
			}
			must(t, s, step.Reverse())
			k.KillAt(0, extent)
			if !attachtest.Killed(func() { _ = s.Apply(t.Context(), step) }) || extent != attachtest.Nothing && failed != k.Dump() {
				t.Errorf("%s, killed at extent %d:\n%s", name, extent, k.Dump())
			}
		}
	}
}
