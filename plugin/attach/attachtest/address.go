// SPDX-License-Identifier: Apache-2.0

package attachtest

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/podfabric/podfabric/plugin/attach"
)

func isIPv6(p netip.Prefix) bool { return p.Addr().Is6() }

func (s *Session) addAddr(step attach.AddAddr) error {
	if l := s.linkOf(step.Link); l != nil && isIPv6(step.Addr) && l.sysctls["disable_ipv6"] != "0" {
		s.k.call()
		return fmt.Errorf("add address %s: %w", step.Addr, syscall.EACCES)
	}
	if l := s.linkOf(step.Link); l != nil && !slices.Contains(l.addrs, step.Addr) && s.k.sharedAddr(l, step.Addr.Addr()) {
		s.k.call()
		return fmt.Errorf("add address %s: %w", step.Addr, syscall.EADDRINUSE)
	}
	done := func(l *link) bool { return slices.Contains(l.addrs, step.Addr) }
	return s.setLink(step.Link, done, func(l *link) { l.addrs = append(l.addrs, step.Addr) })
}

// sharedAddr tells whether another ipvlan of l's master has an address: they are told apart by nothing else
// (ipvlan_addr4_validator_event).
func (k *Kernel) sharedAddr(l *link, a netip.Addr) bool {
	if l.kind != ipvlan || len(l.lowers) != 1 {
		return false
	}
	return slices.ContainsFunc(k.uppers(l.lowers[0]), func(x *link) bool {
		return x != l && x.kind == ipvlan && slices.ContainsFunc(x.addrs, func(p netip.Prefix) bool { return p.Addr() == a })
	})
}

func (s *Session) delAddr(step attach.DelAddr) error {
	if s.linkOf(step.Link) == nil {
		return nil
	}
	done := func(l *link) bool { return !slices.Contains(l.addrs, step.Addr) }
	return s.setLink(step.Link, done, func(l *link) {
		l.addrs = slices.DeleteFunc(l.addrs, func(a netip.Prefix) bool { return a == step.Addr })
		// A route through a gateway that is no longer on the link is gone with the address.
		l.routes = slices.DeleteFunc(l.routes, func(r route) bool { return r.via.IsValid() && !reaches(l, r.via) })
	})
}

func (s *Session) addRoute(step attach.AddRoute) error {
	want := route{dst: step.Dst, via: step.Via}
	l := s.linkOf(step.Link)
	if l == nil {
		return conflict("find interface %s", step.Link)
	}
	if slices.Contains(l.routes, want) {
		return nil
	}
	s.k.call()
	switch {
	case !l.up:
		return fmt.Errorf("add route to %s: %w", step.Dst, syscall.ENETDOWN)
	case step.Via.IsValid() && !reaches(l, step.Via):
		return fmt.Errorf("add route to %s: %w", step.Dst, syscall.ENETUNREACH)
	case slices.ContainsFunc(l.routes, func(r route) bool { return r.dst == step.Dst }):
		return fmt.Errorf("add route to %s: %w", step.Dst, syscall.EEXIST)
	}
	l.routes = append(l.routes, want)
	return nil
}

func (s *Session) delRoute(step attach.DelRoute) error {
	if s.linkOf(step.Link) == nil {
		return nil
	}
	want := route{dst: step.Dst, via: step.Via}
	done := func(l *link) bool { return !slices.Contains(l.routes, want) }
	return s.setLink(step.Link, done, func(l *link) {
		l.routes = slices.DeleteFunc(l.routes, func(r route) bool { return r == want })
	})
}

// reaches tells whether a gateway is on the link. A link-local one always is.
func reaches(l *link, via netip.Addr) bool {
	return via.IsLinkLocalUnicast() || slices.ContainsFunc(l.addrs, func(p netip.Prefix) bool { return p.Contains(via) })
}
