// SPDX-License-Identifier: Apache-2.0

package attach

// Reverse moves the link back where it was, with its name and its MTU there.
func (s MoveLink) Reverse() Step {
	return MoveLink{Device: s.Device, From: s.To, To: s.From, MTU: [2]int{s.MTU[1], s.MTU[0]}}
}

// Reverse removes the link.
func (s AddLink) Reverse() Step {
	return DelLink{Kind: s.Kind, Master: s.Master, Link: s.Link, MAC: s.MAC}
}

// Reverse is nil: a link that was made for a pod has no state worth bringing back.
func (DelLink) Reverse() Step { return nil }

// Reverse sets what was before.
func (s SetVF) Reverse() Step {
	s.From, s.To = s.To, s.From
	return s
}

// Reverse is nil: a reset cannot be taken back.
func (ResetFunction) Reverse() Step { return nil }

// Reverse moves the device back.
func (s MoveRDMA) Reverse() Step {
	s.From, s.To = s.To, s.From
	return s
}

// Reverse gives the other name.
func (s RenameRDMA) Reverse() Step {
	s.From, s.To = s.To, s.From
	return s
}

// Reverse removes the device, wherever it has gone since.
func (s AddSoftRoCE) Reverse() Step { return DelSoftRoCE{Name: s.Name} }

// Reverse is nil: a soft device has no state worth bringing back.
func (DelSoftRoCE) Reverse() Step { return nil }

// Reverse writes the value from before, if it was known.
func (s SetSysctl) Reverse() Step {
	if s.From == "" {
		return nil
	}
	s.From, s.To = s.To, s.From
	return s
}

// Reverse sets the MAC from before.
func (s SetMAC) Reverse() Step {
	s.From, s.To = s.To, s.From
	return s
}

// Reverse takes away what was given, and the other way round.
func (s SetAltName) Reverse() Step {
	s.From, s.To = s.To, s.From
	return s
}

// Reverse sets the traits from before.
func (s SetTraits) Reverse() Step {
	s.From, s.To = s.To, s.From
	return s
}

// Reverse sets the state from before.
func (s SetUp) Reverse() Step {
	s.From, s.To = s.To, s.From
	return s
}

// Reverse takes the address off.
func (s AddAddr) Reverse() Step { return DelAddr(s) }

// Reverse puts the address on.
func (s DelAddr) Reverse() Step { return AddAddr(s) }

// Reverse removes the route.
func (s AddRoute) Reverse() Step { return DelRoute(s) }

// Reverse adds the route.
func (s DelRoute) Reverse() Step { return AddRoute(s) }

func (MoveLink) isStep()      {}
func (AddLink) isStep()       {}
func (DelLink) isStep()       {}
func (SetVF) isStep()         {}
func (ResetFunction) isStep() {}
func (MoveRDMA) isStep()      {}
func (RenameRDMA) isStep()    {}
func (AddSoftRoCE) isStep()   {}
func (DelSoftRoCE) isStep()   {}
func (SetSysctl) isStep()     {}
func (SetMAC) isStep()        {}
func (SetAltName) isStep()    {}
func (SetTraits) isStep()     {}
func (SetUp) isStep()         {}
func (AddAddr) isStep()       {}
func (DelAddr) isStep()       {}
func (AddRoute) isStep()      {}
func (DelRoute) isStep()      {}
