// SPDX-License-Identifier: Apache-2.0

package netconf

import (
	"net/netip"
	"slices"
)

// defaultRoute refuses a route that would take the pod's traffic away from its default network.
func defaultRoute(field string, v *value) error {
	return invalid(`remove the default route, or ask for it by "defaultRoute": true in ipam: it would take the pod's way to its `+
		"API server and NCCL's start-up traffic", field, v, "a route to the fabric's own networks")
}

// gateway reads a gateway, which must be on the link: in the subnet or, for IPv6, link-local.
func gateway(v *value, field string, in netip.Prefix) (netip.Addr, error) {
	g, err := address(v.str(), field)
	if err != nil {
		return netip.Addr{}, err
	}
	local := g.Is6() && g.IsLinkLocalUnicast() && in.Addr().Is6()
	if !in.Contains(g) && !local {
		return netip.Addr{}, invalid("set "+field+" to an address of the subnet", field, v, "an address of "+in.String())
	}
	return g, nil
}

// exclude reads addresses and prefixes that are never handed out.
func exclude(v *value, field string, in netip.Prefix) ([]netip.Prefix, error) {
	list, err := texts(v, field)
	if err != nil {
		return nil, err
	}
	var out []netip.Prefix
	for i, text := range list {
		at := item(field, i)
		x, err := netip.ParsePrefix(text)
		if a, aErr := netip.ParseAddr(text); aErr == nil && a.Zone() == "" {
			x, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil || x != x.Masked() || !x.Overlaps(in) {
			return nil, invalid("write "+at+" as an address or prefix of the subnet", at, v.items[i], "something of "+in.String())
		}
		out = append(out, x)
	}
	return out, nil
}

// onLink is a network that the pod's interface has an address in, and the gateway there, if any.
type onLink struct {
	subnet  netip.Prefix
	gateway netip.Addr
}

func (p *parser) onLinks() []onLink {
	var links []onLink
	for _, set := range p.conf.IPAM.Ranges {
		for _, r := range set {
			links = append(links, onLink{r.Subnet, r.Gateway})
		}
	}
	for _, a := range p.conf.IPAM.Static {
		links = append(links, onLink{a.Prefix.Masked(), a.Gateway})
	}
	return links
}

// routes reads "routes". A route without "gw" goes by the gateway of the first network of its family that has one, as the
// CNI plugins do it; host-local would make one up from the subnet's first address, podfabric asks for it.
func (p *parser) routes(v *value) error {
	if v == nil {
		return nil
	}
	for i, r := range v.items {
		field := item("ipam.routes", i)
		if r.shape != shapeObject {
			return invalid("write "+field+" as an object", field, r, `{"dst": "10.2.0.0/16", "gw": "10.1.0.1"}`)
		}
		if err := p.object(secRoute, field, r); err != nil {
			return err
		}
		route, err := p.route(r, field)
		if err != nil {
			return err
		}
		p.conf.IPAM.Routes = append(p.conf.IPAM.Routes, route)
	}
	return nil
}

func (p *parser) route(v *value, field string) (Route, error) {
	d := v.get("dst")
	if d == nil {
		return Route{}, invalid(`add "dst" to the route`, field+".dst", nil, "a subnet")
	}
	dst, err := subnet(d, field+".dst")
	if err != nil {
		return Route{}, err
	}
	if dst.Bits() == 0 && !p.conf.IPAM.DefaultRoute {
		return Route{}, defaultRoute(field+".dst", d)
	}
	links := p.onLinks()
	if slices.ContainsFunc(p.conf.IPAM.Routes, func(r Route) bool { return r.Dst == dst }) {
		return Route{}, invalid("keep one route to "+dst.String(), field+".dst", d, "each destination once")
	}
	route := Route{Dst: dst}
	if g := v.get("gw"); g != nil {
		for _, l := range links {
			if route.Via, err = gateway(g, field+".gw", l.subnet); err == nil && l.subnet.Addr().Is4() == dst.Addr().Is4() {
				return route, nil
			}
		}
		return Route{}, invalid("set "+field+".gw to a gateway that the pod's interface can reach", field+".gw", g,
			"an address of one of the subnets above, of the family of dst")
	}
	family := false
	for _, l := range links {
		if l.subnet.Addr().Is4() != dst.Addr().Is4() {
			continue
		}
		family = true
		if l.gateway.IsValid() {
			route.Via = l.gateway
			return route, nil
		}
	}
	switch {
	case !family:
		return Route{}, invalid("add an address of the route's family, or remove the route", field+".dst", d,
			"IPv4 with IPv4, IPv6 with IPv6")
	case p.conf.IPAM.Kind == IPAMRange:
		return Route{}, invalid(`add "gateway" to the range, or "gw" to the route`, field+".gw", nil, "an address of the subnet")
	}
	return route, nil
}
