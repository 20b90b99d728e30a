// SPDX-License-Identifier: Apache-2.0

package attachtest

import (
	"cmp"
	"fmt"
	"slices"

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

// HoldXDP lets a BPF link hold the program on a function's netdev: who else takes it away is told err. nil: it is let go.
func (k *Kernel) HoldXDP(a bus.ID, err error) { k.in(func() { k.function(a).link.holdXDP = err }) }

// Stack is what a pod with CAP_NET_ADMIN puts on its interface, a VLAN or a macvlan: it stays on that wherever the interface goes, and in
// the pod.
func (k *Kernel) Stack(path, on, kind, name string) {
	k.in(func() {
		l := k.podLink(path, on)
		x := link{ns: l.ns, name: name, kind: kind, typ: l.typ, lowers: []*link{l}, mac: l.mac, mtu: l.mtu, up: true, carrier: true}
		if kind == macvlan {
			x.mode, x.mac = "bridge", k.randomMAC()
		}
		k.newLink(x)
		k.syncGIDs()
	})
}

// uppersFacts are the links in the pod that sit on l.
func (s *Session) uppersFacts(l *link) []attach.Upper {
	var out []attach.Upper
	for _, x := range s.k.uppers(l) {
		if x.ns == s.pod && x.kind != bond {
			out = append(out, attach.Upper{Kind: x.kind, Name: x.name, Index: x.index})
		}
	}
	slices.SortFunc(out, func(a, b attach.Upper) int { return cmp.Compare(a.Index, b.Index) })
	return out
}

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
	held := l.holdXDP != nil && l.traits.XDP != to.XDP
	if held {
		to.XDP = l.traits.XDP
	}
	l.traits = to
	if held {
		return fmt.Errorf("set traits of %s: %w", l.name, l.holdXDP)
	}
	return nil
}
