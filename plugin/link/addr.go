// SPDX-License-Identifier: Apache-2.0

package link

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Addr is an address of a netdev.
type Addr struct {
	Prefix    netip.Prefix
	Scope     int  // 0: global; 253: link
	Dynamic   bool // it has a lifetime: autoconfigured or leased
	Tentative bool // duplicate address detection is running, or found one
}

// Addrs lists the addresses of a netdev, IPv4 first.
func (c *Conn) Addrs(index int) ([]Addr, error) {
	found, err := dump(func() ([]netlink.Addr, error) { return c.h.AddrList(ref(index), netlink.FAMILY_ALL) })
	if err != nil {
		return nil, translate(fmt.Sprintf("list addresses of link %d", index), err)
	}
	var addrs []Addr
	for _, a := range found {
		p, ok := prefix(a.IPNet)
		if !ok {
			continue
		}
		addrs = append(addrs, Addr{
			Prefix: p, Scope: a.Scope, Dynamic: a.Flags&unix.IFA_F_PERMANENT == 0,
			Tentative: a.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) != 0,
		})
	}
	slices.SortFunc(addrs, func(a, b Addr) int { return a.Prefix.Compare(b.Prefix) })
	return addrs, nil
}

// Everywhere lists the addresses of all netdevs by index. Addrs reads as much for one of them alone.
func (c *Conn) Everywhere() (map[int][]netip.Addr, error) {
	found, err := dump(func() ([]netlink.Addr, error) { return c.h.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return nil, translate("list all addresses", err)
	}
	all := map[int][]netip.Addr{}
	for _, a := range found {
		if p, ok := prefix(a.IPNet); ok {
			all[a.LinkIndex] = append(all[a.LinkIndex], p.Addr())
		}
	}
	return all, nil
}

// AddAddr adds an address; IPv6 without duplicate address detection, because whoever hands out the address owns it, and a
// tentative one carries no traffic for its first seconds. ErrExists.
func (c *Conn) AddAddr(index int, p netip.Prefix) error {
	a := &netlink.Addr{IPNet: ipNet(p)}
	if p.Addr().Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	return translate(fmt.Sprintf("add address %s to link %d", p, index), c.h.AddrAdd(ref(index), a))
}

// DelAddr takes an address off. ErrNotFound.
func (c *Conn) DelAddr(index int, p netip.Prefix) error {
	return translate(fmt.Sprintf("take address %s off link %d", p, index), c.h.AddrDel(ref(index), &netlink.Addr{IPNet: ipNet(p)}))
}

// Route is a route of the main table.
type Route struct {
	Dst   netip.Prefix
	Via   netip.Addr // zero: on the link
	Links []int      // indices of the netdevs it goes through
}

// Routes lists the unicast routes of the main table that go through a netdev, or all for index 0.
func (c *Conn) Routes(index int) ([]Route, error) {
	var routes []Route
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		found, err := dump(func() ([]netlink.Route, error) { return c.h.RouteListFiltered(family, &netlink.Route{}, 0) })
		if err != nil {
			return nil, translate("list routes", err)
		}
		for _, f := range found {
			r, ok := route(f)
			if ok && (index == 0 || slices.Contains(r.Links, index)) {
				routes = append(routes, r)
			}
		}
	}
	return routes, nil
}

// route takes what is needed of a unicast route.
func route(f netlink.Route) (Route, bool) {
	dst, ok := prefix(f.Dst)
	if !ok || f.Type != unix.RTN_UNICAST {
		return Route{}, false
	}
	r := Route{Dst: dst}
	if via, ok := netip.AddrFromSlice(f.Gw); ok {
		r.Via = via.Unmap()
	}
	if f.LinkIndex != 0 {
		r.Links = []int{f.LinkIndex}
	}
	for _, hop := range f.MultiPath {
		r.Links = append(r.Links, hop.LinkIndex)
	}
	return r, true
}

// AddRoute adds a route through a netdev to the main table. ErrExists: there is one to the destination, perhaps through
// another netdev.
func (c *Conn) AddRoute(index int, dst netip.Prefix, via netip.Addr) error {
	r := routeTo(index, dst, via)
	r.Protocol = unix.RTPROT_STATIC
	return translate(fmt.Sprintf("add route to %s through link %d", dst, index), c.h.RouteAdd(r))
}

// DelRoute removes a route through a netdev from the main table. ErrNotFound.
func (c *Conn) DelRoute(index int, dst netip.Prefix, via netip.Addr) error {
	return translate(fmt.Sprintf("remove route to %s through link %d", dst, index), c.h.RouteDel(routeTo(index, dst, via)))
}

func routeTo(index int, dst netip.Prefix, via netip.Addr) *netlink.Route {
	r := &netlink.Route{LinkIndex: index, Dst: ipNet(dst.Masked()), Table: unix.RT_TABLE_MAIN}
	if via.IsValid() {
		r.Gw = via.AsSlice()
	} else if dst.Addr().Is4() {
		r.Scope = netlink.SCOPE_LINK
	}
	return r
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func prefix(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	addr, ok := netip.AddrFromSlice(n.IP)
	ones, bits := n.Mask.Size()
	if !ok || bits == 0 {
		return netip.Prefix{}, false
	}
	if bits == 32 {
		addr = addr.Unmap()
	}
	return netip.PrefixFrom(addr, ones), true
}
