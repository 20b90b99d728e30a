// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// TestMACs tries a VF's two MACs on drivers that disagree about their order: mlx5 takes any, igb no MAC of the VF's once there is an
// administrative one, ixgbe and i40e that one alone. Each ends with both set, and each way back with both as before.
func TestMACs(t *testing.T) {
	t.Parallel()
	const given, wanted = "02:aa:00:00:00:01", "02:bb:00:00:00:02"
	admin := func(k *attachtest.Kernel, mac string) {
		v := k.VFState(vf())
		v.MAC = mac
		k.SetVFState(vf(), v)
	}
	for name, tt := range map[string]struct {
		setup func(*attachtest.Kernel)
		retry bool
	}{
		"mlx5":                {func(*attachtest.Kernel) {}, false},
		"mlx5, given one":     {func(k *attachtest.Kernel) { admin(k, given) }, false},
		"igb":                 {func(k *attachtest.Kernel) { k.LikeIGB(bus.PCI(pf())) }, false},
		"i40e":                {func(k *attachtest.Kernel) { k.StrictMAC(vf()) }, false},
		"i40e, given one":     {func(k *attachtest.Kernel) { admin(k, given); k.StrictMAC(vf()) }, true},
		"i40e, given its own": {func(k *attachtest.Kernel) { admin(k, "02:54:00:3b:10:00"); k.StrictMAC(vf()) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := node(attach.Exclusive)
			tt.setup(k)
			start := k.Dump()
			s := open(t, k, podPath)
			query := attach.Query{Device: vf(), VF: true}
			look := func() attach.Facts {
				t.Helper()
				f, err := s.Observe(t.Context(), query)
				if err != nil {
					t.Fatal(err)
				}
				return f
			}
			before := look()
			steps := attach.Plan(conf(func(c *netconf.Conf) { c.MAC = wanted }), before, attach.Addresses{}, "")
			err := attach.Run(t.Context(), s, steps)
			other, again := attach.AdminFirst(err, steps)
			if again != tt.retry {
				t.Fatalf("another order: %t, want %t; %v", again, tt.retry, err)
			}
			if again {
				err = attach.Run(t.Context(), s, other)
			}
			if err != nil {
				t.Fatal(err)
			}
			if now := look(); now.Link.MAC != wanted || now.VF.MAC != wanted {
				t.Errorf("MAC %s, administrative %s", now.Link.MAC, now.VF.MAC)
			}
			if err := attach.RunAll(t.Context(), s, attach.Restore(before, look())); err != nil {
				t.Errorf("restore: %v", err)
			}
			if now := look(); now.Link.MAC != before.Link.MAC || now.VF.MAC != before.VF.MAC {
				t.Errorf("MAC %s, administrative %s afterwards", now.Link.MAC, now.VF.MAC)
			}
			if left := attach.Restore(before, look()); len(left) > 0 {
				t.Errorf("left to restore: %v", left)
			}
			if end := k.Dump(); end != start && name != "igb" { // which keeps a mark that nobody can see
				t.Errorf("before:\n%s\nafter:\n%s", start, end)
			}
		})
	}
}

// Another order is no answer to any other failure, nor to one that left something undone.
func TestAdminFirstIsForMACsAlone(t *testing.T) {
	t.Parallel()
	own := attach.SetMAC{From: "a", To: "b"}
	admin := attach.SetVF{What: attach.VFMAC}
	vlan := attach.SetVF{What: attach.VFVLAN}
	refused := &attach.StepError{Step: own, Err: attach.ErrConflict}
	for name, tt := range map[string]struct {
		err   error
		steps []attach.Step
		want  bool
	}{
		"refused":             {refused, []attach.Step{vlan, own, admin}, true},
		"all is well":         {nil, []attach.Step{own, admin}, false},
		"undo failed":         {errors.Join(refused, attach.ErrConflict), []attach.Step{own, admin}, false},
		"the other one":       {&attach.StepError{Step: admin, Err: attach.ErrConflict}, []attach.Step{own, admin}, false},
		"no administrative":   {refused, []attach.Step{own}, false},
		"something else":      {refused, []attach.Step{own, vlan}, false},
		"no step of the plan": {refused, []attach.Step{attach.SetMAC{To: "c"}, admin}, false},
	} {
		other, got := attach.AdminFirst(tt.err, tt.steps)
		if got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
		if got && (other[1] != attach.Step(admin) || other[2] != attach.Step(own) || tt.steps[1] != attach.Step(own)) {
			t.Errorf("%s: %v", name, other)
		}
	}
}

// TestByNone: the administrative MAC is out of the way while a VF gets its own one, if it is back already, and for nothing else.
func TestByNone(t *testing.T) {
	t.Parallel()
	const given, none = "02:aa:00:00:00:01", "00:00:00:00:00:00"
	now := attach.Facts{
		Function: attach.Function{ID: vf(), VF: true, PF: pf(), Number: 4}, VF: &attach.VFState{MAC: given, VLAN: 7},
	}
	own := attach.SetMAC{From: "02:bb:00:00:00:02", To: given}
	up, admin := attach.SetUp{To: true}, attach.SetVF{What: attach.VFMAC}
	with := func(mac string) attach.VFState { return attach.VFState{MAC: mac, VLAN: 7} }
	away := attach.SetVF{PF: pf(), Number: 4, What: attach.VFMAC, From: with(given), To: with(none)}
	back := attach.SetVF{PF: pf(), Number: 4, What: attach.VFMAC, From: with(none), To: with(given)}
	ungiven := now
	ungiven.VF = &attach.VFState{MAC: none}
	for name, tt := range map[string]struct {
		now         attach.Facts
		steps, want []attach.Step
	}{
		"it is back":           {now, []attach.Step{own, up}, []attach.Step{away, own, back, up}},
		"it is planned":        {now, []attach.Step{own, admin}, nil},
		"there is none":        {ungiven, []attach.Step{own}, nil},
		"no VF":                {attach.Facts{}, []attach.Step{own}, nil},
		"nothing is to change": {now, []attach.Step{up}, nil},
	} {
		got, ok := attach.ByNone(tt.steps, tt.now)
		if diff := cmp.Diff(tt.want, got); diff != "" || ok != (tt.want != nil) {
			t.Errorf("%s: %t (-want +got):\n%s", name, ok, diff)
		}
	}
}
