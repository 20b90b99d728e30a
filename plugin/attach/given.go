// SPDX-License-Identifier: Apache-2.0

package attach

import "slices"

// Given is what a plan makes of a device that it takes from home. By it what still stands as an attachment left it is told from what
// somebody has set since.
type Given struct {
	Name  string `json:"name,omitempty"` // of the netdev in the pod; empty: it is not moved
	MAC   string `json:"mac,omitempty"`  // of the netdev; empty: it stays
	MTU   int    `json:"mtu,omitempty"`  // bytes; 0: it stays
	Moved bool   `json:"moved"`          // the RDMA device goes into the pod
	// VF is what the PF's driver is to hold for the VF; nil: nothing of it is set.
	VF *VFState `json:"vf,omitempty"`
}

// Gives sums up a plan.
func Gives(steps []Step) Given {
	g := Given{Moved: MovesRDMA(steps)}
	for _, s := range steps {
		switch s := s.(type) {
		case MoveLink:
			g.Name, g.MTU = s.To.Name, s.MTU[1]
		case SetMAC:
			g.MAC = s.To
		case SetVF:
			to := s.To
			g.VF = &to
		}
	}
	return g
}

// Owed gives the steps that put right a device of which no record tells any more, and to which nobody living has a right: before is
// what it was when an attachment took it from home, given what that made of it. What is in the pod's namespace comes home, and names are put
// right in any case. Settings are put back where they still stand as they were given: an operator may have set others since.
func Owed(before Facts, given Given, now Facts) []Step {
	if Anew(before.Function, now.Function) {
		return nil // what was given went with the old one
	}
	steps := Restore(mine(before, given, now), now)
	if given.VF != nil {
		steps = append(steps, Leftover(before, *given.VF, now)...)
	}
	return steps
}

// mine is before with what others have set since.
func mine(before Facts, given Given, now Facts) Facts {
	if was, is := before.Link, now.Link; was != nil && is != nil && is.NS == Host && was.NS == Host {
		link := *was
		// Somebody who gave it its own name back, udev perhaps, may have set more. Under any other, nobody has put it right.
		if touched := is.Name == was.Name && is.Name != given.Name; touched {
			link.Up, link.Traits = is.Up, nil
			link.AltNames = slices.DeleteFunc(slices.Clone(is.AltNames), func(n string) bool { return n == was.Name })
			if given.MAC == "" || is.MAC != given.MAC {
				link.MAC = is.MAC
			}
			if given.MTU == 0 || is.MTU != given.MTU {
				link.MTU = is.MTU
			}
		}
		before.Link = &link
	}
	if before.VF == nil || now.VF == nil {
		return before
	}
	state := *now.VF
	if given.VF != nil {
		for _, what := range vfSettings() {
			if now.VF.of(what) == given.VF.of(what) {
				state.take(what, *before.VF)
			}
		}
	}
	before.VF = &state
	return before
}

// take takes over one setting.
func (v *VFState) take(what VFSetting, from VFState) {
	switch what {
	case VFVLAN:
		v.VLAN, v.QoS, v.Proto = from.VLAN, from.QoS, from.Proto
	case VFMAC:
		v.MAC = from.MAC
	case VFRate:
		v.MinTxRate, v.MaxTxRate = from.MinTxRate, from.MaxTxRate
	case VFSpoofchk:
		v.Spoofchk = from.Spoofchk
	case VFTrust:
		v.Trust = from.Trust
	case VFLinkState:
		v.LinkState = from.LinkState
	}
}

// Misnamed tells whether a device came home and is not called there as before, because others have its names.
func Misnamed(before, now Facts) bool {
	if before.Master != nil || another(before, now) {
		return false
	}
	if was, is := before.Link, now.Link; was != nil && is != nil && was.NS == Host && is.NS == Host && was.Name != is.Name {
		return true
	}
	was, is := before.RDMA, now.RDMA
	return was != nil && is != nil && was.NS == Host && is.NS == Host && was.Name != is.Name
}

// Inside tells whether the pod has a device that an attachment took from home, or a program of the pod may drive it.
func Inside(before, now Facts) bool {
	if now.RDMA != nil && now.RDMA.NS == Pod {
		return true
	}
	return !chained(before) && (now.Link != nil && now.Link.NS == Pod || now.Function.Userspace())
}

// Halved tells whether of a netdev and an RDMA device that went into the pod together one is there and the other at home, as a move
// that was cut short leaves them.
func Halved(given Given, now Facts) bool {
	if !given.Moved || given.Name == "" || now.Link == nil || now.RDMA == nil {
		return false
	}
	return now.Link.NS == Pod && now.RDMA.NS == Host || now.Link.NS == Host && now.RDMA.NS == Pod
}
