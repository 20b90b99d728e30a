// SPDX-License-Identifier: Apache-2.0

package attachtest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"

	"github.com/podfabric/podfabric/plugin/attach"
)

func (s *Session) setSysctl(step attach.SetSysctl) error {
	rest, ok := strings.CutPrefix(step.Key, "net/ipv6/conf/")
	ifname, key, found := strings.Cut(rest, "/")
	if !ok || !found {
		return conflict("find sysctl %s", step.Key)
	}
	done := func(l *link) bool {
		return l.sysctls[key] == step.To || l.sysctls[key] == "" && step.To == usual(key)
	}
	return s.setLink(attach.Place{NS: step.NS, Name: ifname}, done, func(l *link) {
		if l.sysctls[key] = step.To; step.To == usual(key) {
			delete(l.sysctls, key) // as a new link has it
		}
		if l.up {
			l.makeLocal()
		}
	})
}

const (
	addrGenMode = "addr_gen_mode"
	acceptDAD   = "accept_dad"
)

// usual is what a key stands for that a link has not; empty: a link has it always.
func usual(key string) string {
	return map[string]string{addrGenMode: "0", acceptDAD: "1"}[key]
}

// setAltName: alternative names and names are of one table (netdev_name_node_alt_create).
func (s *Session) setAltName(step attach.SetAltName) error {
	done := func(l *link) bool { return slices.Contains(l.alt, step.Name) == step.To }
	if l := s.linkOf(step.Link); l != nil && step.To && !done(l) && s.k.taken(l.ns, step.Name, nil) {
		s.k.call()
		return fmt.Errorf("give %s the alternative name %s: %w", step.Link, step.Name, syscall.EEXIST)
	}
	return s.setLink(step.Link, done, func(l *link) {
		l.alt = slices.DeleteFunc(slices.Clone(l.alt), func(n string) bool { return n == step.Name })
		if step.To {
			l.alt = append(l.alt, step.Name)
		}
	})
}

func (s *Session) setMAC(step attach.SetMAC) error {
	l := s.linkOf(step.Link)
	if l != nil && l.address() != step.To {
		if err := s.k.refuseMAC(l, step.To); err != nil {
			s.k.call()
			return err
		}
	}
	return s.setLink(step.Link, func(l *link) bool { return l.address() == step.To }, func(l *link) {
		l.setMAC(step.To)
		if f := s.k.function(l.dev); s.k.ofIGB(f) {
			f.vf.MAC = step.To // what a VF tells its PF
		}
	})
}

// setMAC of a passthru macvlan sets its master's.
func (l *link) setMAC(mac string) {
	if l.kind == macvlan && l.mode == passthru && len(l.lowers) > 0 {
		l = l.lowers[0]
	}
	l.mac = mac
}

func (s *Session) setUp(step attach.SetUp) error {
	l := s.linkOf(step.Link)
	if l != nil && step.To && !l.up {
		if err := s.k.refuseUp(l, l.address()); err != nil {
			s.k.call()
			return err
		}
	}
	return s.setLink(step.Link, func(l *link) bool { return l.up == step.To }, func(l *link) { s.k.setUp(l, step.To) })
}

// setMTU: what sits on a link has no larger one than it; an ipvlan's is always the same (NETDEV_CHANGEMTU in macvlan.c,
// ipvlan_main.c and 8021q/vlan.c).
func (k *Kernel) setMTU(l *link, mtu int) {
	l.mtu = mtu
	for _, x := range k.uppers(l) {
		if x.kind == ipvlan || x.kind != bond && x.mtu > mtu {
			k.setMTU(x, mtu)
		}
	}
}

// setLink makes one change to a link unless it is done.
func (s *Session) setLink(p attach.Place, done func(*link) bool, change func(*link)) error {
	l := s.linkOf(p)
	if l == nil {
		return conflict("find interface %s", p)
	}
	if done(l) {
		return nil
	}
	s.k.call()
	change(l)
	s.k.syncGIDs()
	return nil
}

// setUp: a link that goes down loses its routes and its IPv6 addresses. The VLANs on it go up and down with it
// (vlan_device_event; seen on 7.3.4); macvlans and ipvlans stay up and have no carrier [review.md lab 7].
func (k *Kernel) setUp(l *link, up bool) {
	l.up = up
	if up {
		l.makeLocal()
	} else {
		l.routes, l.local = nil, netip.Addr{}
		l.addrs = slices.DeleteFunc(l.addrs, isIPv6)
	}
	for _, x := range k.uppers(l) {
		if x.kind == vlan {
			k.setUp(x, up)
		}
	}
}
