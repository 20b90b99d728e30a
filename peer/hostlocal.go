// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"net/netip"

	"github.com/podfabric/podfabric/nad"
)

// span is a run of addresses.
type span struct {
	first, last netip.Addr
	at          *nad.Value
	field       string
}

func (s span) overlaps(o span) bool {
	return s.first.BitLen() == o.first.BitLen() && s.first.Compare(o.last) <= 0 && o.first.Compare(s.last) <= 0
}

// hostLocal has the rules of host-local (backend/allocator).
func (p *pool) hostLocal() {
	p.keys(keys{
		"type": text, "name": text, "routes": list, "dataDir": text, "resolvConf": text, "ranges": list, "subnet": text, "rangeStart": text,
		"rangeEnd": text, "gateway": text,
	})
	var sets [][]span
	whole := false
	if get(p.v, "subnet") != nil {
		s, all := p.span(p.v, p.path)
		sets, whole = append(sets, s), all
	}
	ranges := get(p.v, "ranges")
	if ranges != nil && ranges.Shape == nad.List {
		for i, set := range ranges.Items {
			spans, all := p.rangeSet(set, nad.Item(p.at("ranges"), i))
			sets, whole = append(sets, spans), whole || all
		}
	}
	if len(sets) == 0 && !get(get(p.e.Conf, "capabilities"), "ipRanges").IsTrue() {
		p.j.reject(p.v, p.at("ranges"), `add "subnet" or "ranges": no IP ranges specified: %s`, p.path)
	}
	const most = 500 // of sets that are compared with each other
	for i := range sets[:min(len(sets), most)] {
		for k := range i {
			p.apart(sets[k], sets[i], k, i)
		}
	}
	repeats := "host-local knows only its own node: all nodes hand out the same addresses, so they are not unique across nodes"
	if whole {
		repeats += "; without rangeStart and rangeEnd it takes the whole subnet, routers and other hosts included"
	}
	p.j.warn(p.v, p.at("type"), "%s", repeats)
}

// rangeSet reads one list of alternatives.
func (p *pool) rangeSet(set *nad.Value, field string) ([]span, bool) {
	if set.Shape != nad.List {
		p.j.reject(set, field, `write "ranges" as a list of lists, [[{"subnet": …}]]: %s, found %s (cannot unmarshal %s `+
			`into Go value of type allocator.RangeSet)`, field, set.Show(), goWord(set))
		return nil, false
	}
	if len(set.Items) == 0 {
		p.j.reject(set, field, "write a range into each list: %s is empty (empty range set)", field)
	}
	var spans []span
	whole := false
	for i, item := range set.Items {
		at := nad.Item(field, i)
		if item.Shape != nad.Object {
			p.j.reject(item, at, "write the range as an object: %s, found %s", at, item.Show())
			continue
		}
		p.j.decode(item, at, "host-local", keys{"rangeStart": text, "rangeEnd": text, "subnet": text, "gateway": text})
		more, all := p.span(item, at)
		for _, s := range more {
			for _, o := range spans {
				if s.overlaps(o) {
					p.j.reject(s.at, s.field, "make the ranges of %s disjoint: %s overlaps with %s (subnets overlap)",
						field, s.field, o.field)
				}
			}
		}
		spans, whole = append(spans, more...), whole || all
	}
	return spans, whole
}

// apart refuses sets that give the same addresses.
func (p *pool) apart(a, b []span, i, k int) {
	for _, s := range b {
		for _, o := range a {
			if s.overlaps(o) {
				p.j.reject(s.at, s.field, "make the ranges disjoint: range set %d overlaps with %d: %s, %s",
					i, k, o.field, s.field)
				return
			}
		}
	}
}

// span reads one range; whole tells that it is its subnet's all.
func (p *pool) span(v *nad.Value, field string) ([]span, bool) {
	subnet := get(v, "subnet")
	at := nad.Below(field, "subnet")
	if subnet != nil && subnet.Shape != nad.String {
		return nil, false
	}
	net, ok := prefix(subnet.Str())
	switch {
	case subnet == nil:
		p.j.reject(v, at, `add "subnet" to the range: %s`, field)
		return nil, false
	case !ok:
		p.j.reject(subnet, at, `write a subnet with its length, as "10.1.0.0/24": %s, found %s (invalid CIDR address)`,
			at, subnet.Show())
		return nil, false
	case net != net.Masked():
		p.j.reject(subnet, at, "write %s instead of %s: Network has host bits set: %s", net.Masked(), net, at)
		return nil, false
	case net.Bits() > net.Addr().BitLen()-2:
		p.j.reject(subnet, at, "write a larger subnet: Network %s too small to allocate from: %s", net, at)
		return nil, false
	}
	p.subnets = append(p.subnets, net)
	p.gateway(get(v, "gateway"), nad.Below(field, "gateway"), net, true)
	s := span{first: net.Addr().Next(), last: lastOf(net), at: subnet, field: field}
	first, hasFirst := p.bound(v, field, "rangeStart", "RangeStart", net)
	last, hasLast := p.bound(v, field, "rangeEnd", "RangeEnd", net)
	if hasFirst {
		s.first = first
	}
	if hasLast {
		s.last = last
	}
	if s.last.Less(s.first) {
		p.j.reject(get(v, "rangeEnd"), nad.Below(field, "rangeEnd"), "write a rangeEnd behind rangeStart: %s, found %s "+
			"before %s (RangeEnd not in network)", nad.Below(field, "rangeEnd"), s.last, s.first)
	}
	return []span{s}, get(v, "rangeStart") == nil && get(v, "rangeEnd") == nil
}

func (p *pool) bound(v *nad.Value, field, key, word string, net netip.Prefix) (netip.Addr, bool) {
	b := get(v, key)
	if b.Str() == "" {
		return netip.Addr{}, false
	}
	at := nad.Below(field, key)
	a, err := netip.ParseAddr(b.Text)
	switch {
	case err != nil:
		p.j.reject(b, at, "write an IP address: %s, found %s (invalid IP address)", at, b.Show())
		return netip.Addr{}, false
	case !net.Contains(a):
		p.j.reject(b, at, "write a %s inside the subnet: %s %s not in network %s: %s", key, word, a, net, at)
		return netip.Addr{}, false
	}
	return a, true
}

// lastOf is the last address of a subnet that a host may have: for IPv4 not the broadcast address.
func lastOf(net netip.Prefix) netip.Addr {
	b := net.Masked().Addr().AsSlice()
	for i := net.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(b)
	if a.Is4() {
		return a.Prev()
	}
	return a
}
