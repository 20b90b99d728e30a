// SPDX-License-Identifier: Apache-2.0

package attachtest

import (
	"fmt"
	"syscall"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// freshTraits are those of a new Ethernet link, as a 7.3.4 kernel has them.
func freshTraits() attach.Traits {
	return attach.Traits{
		Flags: "multicast", TxQueue: 1000, LinkMode: "default", Broadcast: "ff:ff:ff:ff:ff:ff",
		GSO: 65536, GSOSegs: 65535, GRO: 65536, GSOIPv4: 65536, GROIPv4: 65536,
	}
}

// SetTraits is what a pod with CAP_NET_ADMIN does to a function's netdev, or the node's owner.
func (k *Kernel) SetTraits(a bus.ID, traits attach.Traits) {
	k.in(func() { k.function(a).link.traits = traits })
}

// Traits gives those of a function's netdev.
func (k *Kernel) Traits(a bus.ID) attach.Traits {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.function(a).link.traits
}

// HoldXDP lets a BPF link hold the program on a function's netdev: nobody else can take it away.
func (k *Kernel) HoldXDP(a bus.ID, on bool) { k.in(func() { k.function(a).link.heldXDP = on }) }

// setTraits is one RTM_NEWLINK: do_setlink takes XDP last, so that what else there is stays done when it fails. It has no way to
// give a program.
func (s *Session) setTraits(step attach.SetTraits) error {
	l := s.linkOf(step.Link)
	if l == nil {
		return conflict("find interface %s", step.Link)
	}
	to := step.To
	if to.XDP != "" {
		to.XDP = l.traits.XDP
	}
	if l.traits == to {
		return nil
	}
	s.k.call()
	held := l.heldXDP && l.traits.XDP != to.XDP
	if held {
		to.XDP = l.traits.XDP
	}
	l.traits = to
	if held {
		return fmt.Errorf("set traits of %s: %w", l.name, syscall.EBUSY)
	}
	return nil
}
