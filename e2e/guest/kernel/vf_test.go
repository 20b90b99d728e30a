// SPDX-License-Identifier: Apache-2.0

//go:build lab

package kernel_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/e2e/guest/node"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/kernel"
	"github.com/podfabric/podfabric/plugin/link"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// shownVF is what ip -d -j link show says of one VF.
type shownVF struct {
	Number int    `json:"vf"`
	MAC    string `json:"address"`
	VLAN   []struct {
		VLAN int `json:"vlan"`
		QoS  int `json:"qos"`
	} `json:"vlan_list"`
	Rate struct {
		Max int `json:"max_tx"`
		Min int `json:"min_tx"`
	} `json:"rate"`
	Spoofchk  bool   `json:"spoofchk"`
	Trust     bool   `json:"trust"`
	LinkState string `json:"link_state"`
}

// state puts it into the form of facts.
func (v shownVF) state() attach.VFState {
	s := attach.VFState{
		MAC: v.MAC, Proto: "802.1q", Spoofchk: v.Spoofchk, Trust: v.Trust, LinkState: v.LinkState, MinTxRate: v.Rate.Min, MaxTxRate: v.Rate.Max,
	}
	if len(v.VLAN) > 0 {
		s.VLAN, s.QoS = v.VLAN[0].VLAN, v.VLAN[0].QoS
	}
	return s
}

// byIP is a VF of the first PF as ip(8) shows it.
func byIP(t *testing.T, number int) attach.VFState {
	t.Helper()
	vfs := shownLinks(t, nil)[node.Netdev(node.PF(t, 1))].VFs
	i := slices.IndexFunc(vfs, func(v shownVF) bool { return v.Number == number })
	if i < 0 {
		t.Fatalf("ip shows no VF %d in %+v", number, vfs)
	}
	return vfs[i].state()
}

// asked observes a function and what its PF holds for it.
func asked(t *testing.T, s *kernel.Session, vf string) attach.Facts {
	t.Helper()
	f, err := s.Observe(t.Context(), attach.Query{Device: bus.PCI(addr(t, vf)), VF: true})
	must(t, err)
	return f
}

func TestObserveVF(t *testing.T) {
	s, vf := open(t, nil), node.VF(t, 1, 5)
	f := asked(t, s, vf)
	if f.VF == nil {
		t.Fatal("nothing of the VF")
	}
	if diff := cmp.Diff(byIP(t, 5), *f.VF); diff != "" {
		t.Errorf("VF 5 (-ip +ours):\n%s", diff)
	}
	siblings := map[int]string{}
	for n := range 5 {
		siblings[n] = byIP(t, n).MAC
	}
	if diff := cmp.Diff(siblings, f.Siblings); diff != "" {
		t.Errorf("siblings (-ip +ours):\n%s", diff)
	}
	t.Logf("VF %+v, switch %q, resets %t", *f.VF, f.Function.ESwitch, f.Function.Resets)
	if f.Function.ESwitch != "" {
		t.Errorf("igb has a switch in mode %q", f.Function.ESwitch)
	}
	if plain := observe(t, s, addr(t, vf)); plain.VF != nil || plain.Siblings != nil || plain.Function.Resets {
		t.Errorf("not asked for: %+v", plain)
	}
	if f := asked(t, s, node.PF(t, 1)); f.VF != nil || f.Function.NumVFs != 6 {
		t.Errorf("of the PF: %+v", f)
	}
}

func TestSetVF(t *testing.T) {
	s, pf := open(t, nil), addr(t, node.PF(t, 1))
	machine, before := snapshot(t), *asked(t, s, node.VF(t, 1, 5)).VF
	for what, change := range map[attach.VFSetting]func(*attach.VFState){
		attach.VFVLAN:     func(v *attach.VFState) { v.VLAN, v.QoS = 100, 3 },
		attach.VFMAC:      func(v *attach.VFState) { v.MAC = "02:00:00:00:0e:05" },
		attach.VFRate:     func(v *attach.VFState) { v.MaxTxRate = 50 },
		attach.VFSpoofchk: func(v *attach.VFState) { v.Spoofchk = !v.Spoofchk },
		attach.VFTrust:    func(v *attach.VFState) { v.Trust = !v.Trust },
	} {
		want := before
		change(&want)
		step := attach.SetVF{PF: pf, Number: 5, What: what, From: before, To: want}
		apply(t, s, step)
		if diff := cmp.Diff(want, byIP(t, 5)); diff != "" {
			t.Errorf("%s (-want +ip):\n%s", step, diff)
		}
		if diff := cmp.Diff(want, *asked(t, s, node.VF(t, 1, 5)).VF); diff != "" {
			t.Errorf("%s (-want +ours):\n%s", step, diff)
		}
		apply(t, s, step.Reverse())
	}
	if diff := kernel.Diff(machine, snapshot(t)); len(diff) != 0 {
		t.Errorf("left behind:\n%s", strings.Join(diff, "\n"))
	}
}

// What igb does not know, and what is not there.
func TestSetVFRefused(t *testing.T) {
	s, pf := open(t, nil), addr(t, node.PF(t, 1))
	machine, before := snapshot(t), *asked(t, s, node.VF(t, 1, 5)).VF
	to := func(change func(*attach.VFState)) attach.VFState {
		v := before
		change(&v)
		return v
	}
	for name, tt := range map[string]struct {
		step attach.SetVF
		want error
		text string
	}{
		"link state": {
			step: attach.SetVF{PF: pf, Number: 5, What: attach.VFLinkState, To: to(func(v *attach.VFState) { v.LinkState = "enable" })},
			want: link.ErrUnsupported, text: "set link_state of VF 5: the driver does not know this setting",
		},
		"lower bound of the rate": {
			step: attach.SetVF{PF: pf, Number: 5, What: attach.VFRate, To: to(func(v *attach.VFState) { v.MinTxRate, v.MaxTxRate = 10, 50 })},
			want: link.ErrRefused, text: "set transmit rates of VF 5",
		},
		"802.1ad": {
			step: attach.SetVF{PF: pf, Number: 5, What: attach.VFVLAN, To: to(func(v *attach.VFState) { v.VLAN, v.Proto = 100, "802.1ad" })},
			want: link.ErrUnsupported, text: "set VLAN protocol 802.1ad of VF 5",
		},
		"no such VF": {
			step: attach.SetVF{PF: pf, Number: 60, What: attach.VFTrust, To: to(func(v *attach.VFState) { v.Trust = true })},
			want: attach.ErrConflict, text: "has no VF 60",
		},
	} {
		err := s.Apply(t.Context(), tt.step)
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v, want %v with %q", name, err, tt.want, tt.text)
		}
		t.Log(err)
	}
	if diff := kernel.Diff(machine, snapshot(t)); len(diff) != 0 {
		t.Errorf("something changed:\n%s", strings.Join(diff, "\n"))
	}
}

// With the PF's netdev in a pod nobody can ask or tell it.
func TestVFWithThePFAway(t *testing.T) {
	ns := node.NewNS(t)
	s, pf := open(t, nil), node.PF(t, 1)
	name := node.Netdev(pf)
	machine := snapshot(t)
	node.Run(t, "ip", "link", "set", name, "netns", ns.Name)
	f := asked(t, s, node.VF(t, 1, 5))
	step := attach.SetVF{PF: addr(t, pf), Number: 5, What: attach.VFTrust, To: attach.VFState{Trust: true}}
	err := s.Apply(t.Context(), step)
	ns.Run(t, "ip", "link", "set", name, "netns", "1")
	node.Run(t, "ip", "link", "set", name, "up")
	node.Wait(t, "the PF to have all that it had", func() bool { return len(kernel.Diff(machine, snapshot(t))) == 0 })
	if f.VF != nil || f.Siblings != nil || f.Function.PFLink != "" {
		t.Errorf("facts %+v", f)
	}
	if !errors.Is(err, attach.ErrConflict) || !strings.Contains(err.Error(), "is not at home") {
		t.Errorf("set: %v", err)
	}
}

// A function that is reset keeps netdev and name, and its driver works on. Its netdev is up meanwhile: the driver of the emulated
// VF hangs in the reset otherwise.
func TestResetFunction(t *testing.T) {
	s, vf := open(t, nil), node.VF(t, 1, 5)
	machine := snapshot(t)
	before := asked(t, s, vf)
	if !before.Function.Resets {
		t.Fatal("the emulated VF cannot be reset on its own")
	}
	up := attach.SetUp{Link: before.Link.Place, From: before.Link.Up, To: true}
	apply(t, s, up, attach.ResetFunction{Device: bus.PCI(addr(t, vf))}, up.Reverse())
	after := asked(t, s, vf)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("facts (-before +after):\n%s", diff)
	}
	if diff := kernel.Diff(machine, snapshot(t)); len(diff) != 0 {
		t.Errorf("left behind:\n%s", strings.Join(diff, "\n"))
	}
	err := s.Apply(t.Context(), attach.ResetFunction{Device: bus.PCI(addr(t, "0000:ff:1f.7"))})
	if !errors.Is(err, attach.ErrConflict) {
		t.Errorf("reset of nothing: %v", err)
	}
}
