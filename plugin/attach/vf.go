// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"slices"

	"github.com/podfabric/podfabric/netconf"
)

// noMAC is what a PF's driver shows for a VF that was given no administrative MAC.
const noMAC = "00:00:00:00:00:00"

// WantedVF is what the PF's driver is to hold for a VF once the configuration is applied to now. What the configuration does
// not name stays, or with vf.baseline "reset" loses what an earlier tool may have left; spoofchk and MAC stay even then, since
// only the driver knows their defaults.
func WantedVF(c netconf.Conf, now VFState) VFState {
	v, want := c.VF, now
	if v.Baseline == netconf.BaselineReset {
		want.VLAN, want.QoS, want.Proto = 0, 0, string(netconf.Proto8021Q)
		want.Trust, want.LinkState, want.MinTxRate, want.MaxTxRate = false, string(netconf.LinkAuto), 0, 0
	}
	if v.VLAN != nil {
		// The kernel sets the three together, so that those that are not named get the defaults of sriov-cni.
		want.VLAN, want.QoS, want.Proto = *v.VLAN, 0, string(netconf.Proto8021Q)
	}
	set(&want.QoS, v.QoS)
	set(&want.Spoofchk, v.Spoofchk)
	set(&want.Trust, v.Trust)
	set(&want.MinTxRate, v.MinTxRate)
	set(&want.MaxTxRate, v.MaxTxRate)
	if v.Proto != "" {
		want.Proto = string(v.Proto)
	}
	if v.LinkState != "" {
		want.LinkState = string(v.LinkState)
	}
	if c.MAC != "" {
		want.MAC = c.MAC
	}
	return want
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// vfSettings are all settings, in the order in which sriov-cni applies them.
func vfSettings() []VFSetting {
	return []VFSetting{VFVLAN, VFMAC, VFRate, VFSpoofchk, VFTrust, VFLinkState}
}

// VFSteps gives the steps that bring what the PF's driver holds for the VF fn from one state to the other: those settings that
// differ, VLAN first and link state last. A link state that is up before the VLAN is right would let frames out on the wrong one.
func VFSteps(fn Function, from, to VFState) []Step {
	var steps []Step
	for _, what := range vfSettings() {
		if from.of(what) != to.of(what) {
			steps = append(steps, SetVF{PF: fn.PF, Number: fn.Number, What: what, From: from, To: to})
		}
	}
	return steps
}

// Reset gives the steps of a function-level reset at home. The link is brought up for it: the reset of an igbvf that was down did not
// come back from the kernel (seen on 7.3.4).
func Reset(now Facts) []Step {
	var steps []Step
	if now.Link != nil && now.Link.NS == Host && !now.Link.Up {
		steps = append(steps, SetUp{Link: now.Link.Place, To: true})
	}
	return append(steps, ResetFunction{Device: now.Function.ID})
}

// parted takes the administrative MAC out of the settings of a VF. It goes together with the VF's own.
func parted(settings []Step) (others, admin []Step) { //nolint:nonamedreturns // tells them apart
	for _, s := range settings {
		if v, ok := s.(SetVF); ok && v.What == VFMAC {
			admin = append(admin, s)
		} else {
			others = append(others, s)
		}
	}
	return others, admin
}

// AdminFirst is the plan to try when steps failed with err and were undone: the other order of a VF's two MACs, if it was the VF's own
// that was refused. Drivers disagree: of a VF that is not trusted, igb takes no MAC once an administrative one is set, not even
// the same one, while ixgbe and i40e take that one alone once any is set. The VF's own comes first, since to be refused it
// changes nothing, and an administrative one leaves its mark in igb.
func AdminFirst(err error, steps []Step) ([]Step, bool) {
	failed := (*StepError)(nil)
	if !errors.As(err, &failed) || error(failed) != err { //nolint:errorlint // anything joined to it says that undoing failed
		return nil, false
	}
	i := slices.IndexFunc(steps, func(s Step) bool { return s == failed.Step })
	if _, own := failed.Step.(SetMAC); !own || i < 0 || i+1 == len(steps) {
		return nil, false
	}
	if v, ok := steps[i+1].(SetVF); !ok || v.What != VFMAC {
		return nil, false
	}
	other := slices.Clone(steps)
	other[i], other[i+1] = other[i+1], other[i]
	return other, true
}

// ByNone is the plan to try when steps of the way home, which were planned for now, fail at a VF's own MAC, as those before them did: the
// administrative MAC is back, by which igb refuses the VF every one of its own, since a step before failed or the netdev was not to
// be found then. It is taken away for as long as that takes.
func ByNone(steps []Step, now Facts) ([]Step, bool) {
	own := slices.IndexFunc(steps, func(s Step) bool { _, is := s.(SetMAC); return is })
	if _, admin := parted(steps); own < 0 || len(admin) > 0 || now.VF == nil || now.VF.MAC == noMAC {
		return nil, false
	}
	none := *now.VF
	none.MAC = noMAC
	set := SetVF{PF: now.Function.PF, Number: now.Function.Number, What: VFMAC, From: *now.VF, To: none}
	return slices.Concat(steps[:own], []Step{set, steps[own], set.Reverse()}, steps[own+1:]), true
}

// planVF applies the VF settings of a configuration. Facts hold them only where it asks for some.
func planVF(c netconf.Conf, f Facts) []Step {
	if c.Kind != netconf.KindVF || !f.Function.VF || f.VF == nil {
		return nil
	}
	return VFSteps(f.Function, *f.VF, WantedVF(c, *f.VF))
}

// restoreVF puts back what the PF's driver held before. It needs neither the VF's netdev nor a namespace of the pod. A new VF at
// the old one's address must not get the old settings [review.md 29].
func restoreVF(before, now Facts) []Step {
	if before.VF == nil || now.VF == nil || !now.Function.VF || another(before, now) || astray(before, now) {
		return nil
	}
	return VFSteps(now.Function, *now.VF, *before.VF)
}

// astray tells whether netdev or RDMA device of a VF are in a namespace that cannot be seen: a process that outlived its pod has them, or
// another program gave them to a pod of its own. What the PF enforces stays until they are home: a VLAN is a wall around whoever
// has the device.
func astray(before, now Facts) bool {
	if now.RDMA != nil && now.RDMA.NS == Elsewhere {
		return true
	}
	return before.Link != nil && now.Function.Driver == before.Function.Driver && (now.Link == nil || now.Link.NS == Elsewhere)
}

// Leftover gives the steps that take from a VF what an attachment set, when its driver was bound again meanwhile, so that it has
// another RDMA device and Restore leaves it alone: a VLAN that stayed would be the next pod's. set is what the attachment
// had set. Only what still stands as it was set is put back; a VF that was made anew has none of it.
func Leftover(before Facts, set VFState, now Facts) []Step {
	if before.VF == nil || now.VF == nil || !now.Function.VF || !another(before, now) || Anew(before.Function, now.Function) || astray(before, now) {
		return nil
	}
	var steps []Step
	for _, s := range VFSteps(now.Function, *now.VF, *before.VF) {
		if v, ok := s.(SetVF); ok && v.From.of(v.What) == set.of(v.What) {
			steps = append(steps, s)
		}
	}
	return steps
}

// restoreMACs puts both MACs of a VF back, of which the administrative one has to change: by way of none at all, under which every
// driver lets the VF have its own.
func restoreMACs(admin []Step, own SetMAC) []Step {
	if len(admin) == 0 {
		return []Step{own}
	}
	set, ok := admin[0].(SetVF)
	if !ok {
		return append(admin, own)
	}
	none := set.From
	none.MAC = noMAC
	var steps []Step
	if set.From.MAC != noMAC {
		steps = append(steps, SetVF{PF: set.PF, Number: set.Number, What: VFMAC, From: set.From, To: none})
	}
	steps = append(steps, own)
	if set.To.MAC != noMAC {
		steps = append(steps, SetVF{PF: set.PF, Number: set.Number, What: VFMAC, From: none, To: set.To})
	}
	return steps
}
