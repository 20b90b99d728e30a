// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"net/netip"

	"github.com/podfabric/podfabric/nad"
)

// routes judges those of an ipam section. complete: the section's subnets are all known.
func (p *pool) routes(v *nad.Value, complete bool) {
	if v == nil || v.Shape != nad.List {
		return
	}
	if p.kind == "nv-ipam" {
		return
	}
	to := map[netip.Prefix]int{} // how many routes lead to a subnet
	for _, item := range v.Items {
		if dst, ok := prefix(get(item, "dst").Str()); ok && dst.Bits() > 0 {
			to[dst.Masked()]++
		}
	}
	for i, item := range v.Items {
		field := nad.Item(p.at("routes"), i)
		if item.Shape != nad.Object {
			p.j.reject(item, field, `write the route as {"dst": …, "gw": …}: %s, found %s (cannot unmarshal %s into Go `+
				`value of type types.route)`, field, item.Show(), goWord(item))
			continue
		}
		p.j.decode(item, field, p.kind, keys{
			"dst": text, "gw": text, "mtu": whole, "advmss": whole, "priority": whole, "table": whole, "scope": whole,
		})
		p.destination(item, field)
		p.via(item, field, to, complete)
	}
}

func (p *pool) destination(item *nad.Value, field string) {
	dst := get(item, "dst")
	at := nad.Below(field, "dst")
	if dst != nil && dst.Shape != nad.String {
		return
	}
	net, ok := prefix(dst.Str())
	switch {
	case dst.Str() == "":
		p.j.reject(item, at, `add "dst", a subnet, to the route: %s`, field)
	case !ok:
		p.j.reject(dst, at, "write a subnet with its length: %s, found %s (invalid CIDR address)", at, dst.Show())
	case net != net.Masked() && net.Addr().Is4():
		p.j.reject(dst, at, "write %s instead of %s: host bits are set, CNI's types keep them, and the kernel refuses "+
			"such a route: %s", net.Masked(), net, at)
	case net != net.Masked():
		p.j.warn(dst, at, "%s %s has host bits set: write %s", at, dst.Show(), net.Masked())
	case net.Bits() == 0:
		p.defaultRoute(dst, at, net)
	}
}

func (p *pool) defaultRoute(dst *nad.Value, at string, net netip.Prefix) {
	if by := p.j.ownTable(); by != "" {
		p.j.note(dst, at, "the default route %s goes into a table of its own by %s", net, by)
		return
	}
	p.j.warn(dst, at, "default route on a secondary network: %s %s takes the pod's default route from its first network", at, net)
}

// via judges a route's gateway: the kernel adds no route over one that it has no way to.
func (p *pool) via(item *nad.Value, field string, to map[netip.Prefix]int, complete bool) {
	gw := get(item, "gw")
	at := nad.Below(field, "gw")
	if gw.Str() == "" {
		return
	}
	a, err := netip.ParseAddr(gw.Text)
	if err != nil {
		p.j.reject(gw, at, "write an IP address: %s, found %s (invalid IP address)", at, gw.Show())
		return
	}
	dst, ok := prefix(get(item, "dst").Str())
	if ok && dst.Addr().Is4() != a.Is4() {
		p.j.reject(gw, at, "write a gateway of the route's own family: %s, found %s for %s", at, a, dst)
		return
	}
	if !complete || len(p.subnets) == 0 || a.IsLinkLocalUnicast() {
		return
	}
	for _, s := range p.subnets {
		if s.Contains(a) {
			return
		}
	}
	for bits := a.BitLen(); bits > 0; bits-- {
		over := netip.PrefixFrom(a, bits).Masked()
		n := to[over]
		if ok && over == dst.Masked() {
			n-- // the route itself
		}
		if n > 0 {
			p.j.warn(gw, at, "%s %s is in no range of this network: the route works only if the one to %s comes first",
				at, a, over)
			return
		}
	}
	p.j.reject(gw, at, "write a gateway of this network: route gateway %s is in no range of this network, so the route "+
		"cannot be added (network is unreachable): %s", a, at)
}
