// SPDX-License-Identifier: Apache-2.0

package attachtest

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// ErrNotTaken is what a SetVF step fails with when the driver said yes and did not do it.
var ErrNotTaken = errors.New("the driver did not take the setting")

// LikeIGB makes a PF and the VFs it has an igb's, as seen on 7.3.4: it refuses link_state, a least rate and 802.1ad; it shows the
// MAC that a VF has as the administrative one until there is one; from then on an untrusted VF may set none at all, not even
// that, and takes it only with a reset.
func (k *Kernel) LikeIGB(pf bus.ID) {
	k.in(func() {
		k.function(pf).Driver = igb
		for _, f := range k.functions {
			if f.link != nil && k.ofIGB(f) && f.vf.MAC == noMAC {
				f.vf.MAC = f.link.mac
			}
		}
	})
}

// ofIGB tells whether a function is the VF of an igb.
func (k *Kernel) ofIGB(f *function) bool {
	if f == nil || !f.VF {
		return false
	}
	pf := k.function(bus.PCI(f.PF))
	return pf != nil && pf.Driver == igb
}

const (
	igb       = "igb"
	plainVLAN = "802.1q"
)

// RefuseVF lets the drivers of all PFs refuse one setting with err; nil takes that back.
func (k *Kernel) RefuseVF(what attach.VFSetting, err error) {
	k.in(func() {
		if k.vfRefused == nil {
			k.vfRefused = map[attach.VFSetting]error{}
		}
		k.vfRefused[what] = err
	})
}

// IgnoreVF lets the drivers of all PFs say yes to one setting and not do it, or do it again.
func (k *Kernel) IgnoreVF(what attach.VFSetting, ignore bool) {
	k.in(func() {
		if k.vfIgnored == nil {
			k.vfIgnored = map[attach.VFSetting]bool{}
		}
		k.vfIgnored[what] = ignore
	})
}

// SetVFState is what another tool left a VF with. An empty MAC, Proto or LinkState is the driver's default.
func (k *Kernel) SetVFState(a bus.ID, v attach.VFState) {
	k.in(func() {
		for p, def := range map[*string]string{&v.MAC: noMAC, &v.Proto: plainVLAN, &v.LinkState: "auto"} {
			if *p == "" {
				*p = def
			}
		}
		k.function(a).vf = v
	})
}

// VFState gives what the PF's driver holds for a VF.
func (k *Kernel) VFState(a bus.ID) attach.VFState {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.function(a).vf
}

// SetESwitch sets the mode of a PF's embedded switch; empty: it has none.
func (k *Kernel) SetESwitch(pf bus.ID, mode string) { k.in(func() { k.function(pf).ESwitch = mode }) }

// SetResets says whether a function can be reset on its own.
func (k *Kernel) SetResets(a bus.ID, can bool) { k.in(func() { k.function(a).Resets = can }) }

// StrictMAC lets a VF that is not trusted have no other effective MAC than the administrative one, once there is one
// (ixgbe_set_vf_mac_addr, i40e_check_vf_permission). igb is stricter: see LikeIGB.
func (k *Kernel) StrictMAC(a bus.ID) { k.in(func() { k.function(a).strictMAC = true }) }

// Resets counts the function-level resets of a function so far.
func (k *Kernel) Resets(a bus.ID) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.function(a).resets
}

// pfAtHome is the PF of a VF, if its netdev, by which it is asked, is in the host's namespace [review.md lab 8].
func (k *Kernel) pfAtHome(f *function) *function {
	pf := k.function(bus.PCI(f.PF))
	if !f.VF || pf == nil || pf.link == nil || pf.link.ns != k.host {
		return nil
	}
	return pf
}

// vfFacts adds what is asked of the PF, and what some drivers take their time over.
func (k *Kernel) vfFacts(fn *function, f *attach.Facts) {
	f.Function.Resets = fn.Resets
	pf := k.function(bus.PCI(fn.PF))
	if !fn.VF || pf == nil {
		f.Function.ESwitch = fn.ESwitch
		return
	}
	f.Function.ESwitch = pf.ESwitch // devlink knows it wherever the netdev is
	if k.pfAtHome(fn) == nil {
		return
	}
	state := fn.vf
	f.VF, f.Siblings = &state, map[int]string{}
	for _, other := range k.functions {
		if other != fn && other.VF && other.PF == fn.PF {
			f.Siblings[other.Number] = other.vf.MAC
		}
	}
}

// setVF is one RTM_SETLINK with IFLA_VFINFO_LIST on the PF, and a look at what came of it.
func (s *Session) setVF(step attach.SetVF) error {
	k := s.k
	var f *function
	for _, x := range k.functions {
		if x.VF && x.PF == step.PF && x.Number == step.Number {
			f = x
		}
	}
	if f == nil || k.pfAtHome(f) == nil {
		return conflict("find vf %d of %s through its PF's netdev", step.Number, step.PF)
	}
	want := merge(f.vf, step.To, step.What)
	if want == f.vf {
		return nil
	}
	k.call()
	err := k.vfRefused[step.What]
	if err == nil {
		err = k.refuseVF(f, step.What, want)
	}
	if err != nil {
		return fmt.Errorf("set %s of vf %d of %s: %w", step.What, step.Number, step.PF, err)
	}
	if k.vfIgnored[step.What] {
		return fmt.Errorf("set %s of vf %d of %s: %w", step.What, step.Number, step.PF, ErrNotTaken)
	}
	f.vf = want
	if step.What == attach.VFMAC {
		f.given = k.ofIGB(f) && want.MAC != noMAC
	}
	return nil
}

// refuseVF is what drivers refuse by themselves: a switch in mode switchdev has no VLANs and no checks of its own
// (mlx5_eswitch_set_vport_vlan, _spoofchk, _trust), 12 bits of VLAN and 3 of QoS are all there is (mlx5, igb), and a
// group address is no MAC (igb_ndo_set_vf_mac).
func (k *Kernel) refuseVF(f *function, what attach.VFSetting, want attach.VFState) error {
	pf := k.pfAtHome(f)
	offloaded := pf.ESwitch == "switchdev"
	switch {
	case pf.Driver == igb && what == attach.VFLinkState:
		return syscall.EOPNOTSUPP
	case pf.Driver == igb && what == attach.VFRate && want.MinTxRate != 0:
		return syscall.EINVAL
	case pf.Driver == igb && what == attach.VFVLAN && want.Proto != plainVLAN:
		return syscall.EPROTONOSUPPORT
	case offloaded && (what == attach.VFVLAN || what == attach.VFSpoofchk || what == attach.VFTrust):
		return syscall.EOPNOTSUPP
	case what == attach.VFVLAN && (want.VLAN < 0 || want.VLAN > 4095 || want.QoS < 0 || want.QoS > 7):
		return syscall.EINVAL
	case what == attach.VFMAC && octets(want.MAC)[0]&1 != 0:
		return syscall.EINVAL
	case what == attach.VFRate && want.MaxTxRate > 0 && want.MinTxRate > want.MaxTxRate:
		return syscall.EINVAL
	}
	return nil
}

// merge takes one setting out of to.
func merge(v, to attach.VFState, what attach.VFSetting) attach.VFState {
	switch what {
	case attach.VFVLAN:
		v.VLAN, v.QoS, v.Proto = to.VLAN, to.QoS, to.Proto
		if v.Proto == "" || v.VLAN == 0 {
			v.Proto = plainVLAN // without a VLAN there is no other
		}
	case attach.VFMAC:
		v.MAC = to.MAC
	case attach.VFRate:
		v.MinTxRate, v.MaxTxRate = to.MinTxRate, to.MaxTxRate
	case attach.VFSpoofchk:
		v.Spoofchk = to.Spoofchk
	case attach.VFTrust:
		v.Trust = to.Trust
	case attach.VFLinkState:
		v.LinkState = to.LinkState
	}
	return v
}

// resetFunction is a write to the function's reset file. What the PF holds stays, the netdev goes down.
func (s *Session) resetFunction(step attach.ResetFunction) error {
	f := s.k.function(step.Device)
	if f == nil {
		return conflict("find function %s", step.Device)
	}
	if !f.Resets {
		return fmt.Errorf("reset function %s: %w", step.Device, syscall.ENOTTY)
	}
	s.k.call()
	f.resets++
	if f.link != nil {
		if f.given {
			f.link.mac = f.vf.MAC
		}
		s.k.setUp(f.link, false)
	}
	s.k.syncGIDs()
	return nil
}
