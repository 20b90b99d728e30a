// SPDX-License-Identifier: Apache-2.0

package netconf

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"github.com/podfabric/podfabric/ipam"
)

// rangeIPAM reads host-local's grammar: "ranges" is a list of lists, the outer one gives one address each, the inner one its
// alternatives; a subnet directly in ipam stands before them as a set of its own.
func (p *parser) rangeIPAM(v *value) error {
	if err := p.object(secRange, "ipam", v); err != nil {
		return err
	}
	if v.get("dataDir") != nil {
		p.warn("ipam.dataDir has no effect: leases live below /run/podfabric")
	}
	if flat := flatKey(v); flat != "" {
		if v.get("subnet") == nil && v.get("from") == nil {
			return invalid(fmt.Sprintf(`add "subnet" beside %q, or move it into "ranges"`, flat), "ipam.subnet", nil, "a subnet")
		}
		r, err := p.span(v, "ipam")
		if err != nil {
			return err
		}
		p.conf.IPAM.Ranges = append(p.conf.IPAM.Ranges, []Range{r})
	}
	if sets := v.get("ranges"); sets != nil {
		if err := p.rangeSets(sets); err != nil {
			return err
		}
	}
	if len(p.conf.IPAM.Ranges) == 0 {
		return invalid(`add "subnet" or "ranges" to ipam`, "ipam.ranges", v.get("ranges"),
			`[[{"subnet": "10.1.0.0/16", "perNode": 26}]]`)
	}
	if err := p.wantRange(); err != nil {
		return err
	}
	return p.routes(v.get("routes"))
}

// flatKey gives the first key of the flat form that stands in ipam itself; empty when there is none.
func flatKey(v *value) string {
	for _, name := range []string{"subnet", "from", "rangeStart", "rangeEnd", "gateway", "exclude", "perNode", "scope"} {
		if v.get(name) != nil {
			return name
		}
	}
	return ""
}

func (p *parser) rangeSets(sets *value) error {
	for i, set := range sets.items {
		field := item("ipam.ranges", i)
		if set.shape != shapeList || len(set.items) == 0 {
			return invalid("write ipam.ranges as a list of lists", field, set, `[[{"subnet": …}]], one inner list for each address`)
		}
		var ranges []Range
		for j, v := range set.items {
			at := item(field, j)
			if v.shape != shapeObject {
				return invalid("write "+at+" as an object", at, v, `{"subnet": …}`)
			}
			if err := p.object(secSpan, at, v); err != nil {
				return err
			}
			r, err := p.span(v, at)
			if err != nil {
				return err
			}
			if len(ranges) > 0 && ranges[0].Subnet.Addr().Is4() != r.Subnet.Addr().Is4() {
				return invalid("move the range into an inner list of its own: alternatives are of one family", at+".subnet",
					v.get("subnet"), "a subnet of the family of "+ranges[0].Subnet.String())
			}
			if other, ok := p.overlapping(append(ranges, r)); ok {
				return invalid("remove one of two ranges with addresses in common", at, v, "no address that is also in "+other)
			}
			ranges = append(ranges, r)
		}
		p.conf.IPAM.Ranges = append(p.conf.IPAM.Ranges, ranges)
	}
	return nil
}

// overlapping tells whether the last of ranges has addresses in common with one before it or with an earlier set.
func (p *parser) overlapping(ranges []Range) (string, bool) {
	r, before := ranges[len(ranges)-1], ranges[:len(ranges)-1]
	for _, set := range append(slices.Clip(p.conf.IPAM.Ranges), before) {
		for _, o := range set {
			if o.First.Is4() == r.First.Is4() && !o.Last.Less(r.First) && !r.Last.Less(o.First) {
				return o.First.String() + " to " + o.Last.String(), true
			}
		}
	}
	return "", false
}

// span reads one range and cuts it down to this node's part.
func (p *parser) span(v *value, field string) (Range, error) {
	r, err := p.pool(v, field)
	if err != nil {
		return Range{}, err
	}
	low, high := hosts(r.Subnet)
	if r.First, err = bound(v.get("rangeStart"), field+".rangeStart", r.Subnet, r.First, low, higher); err != nil {
		return Range{}, err
	}
	if r.Last, err = bound(v.get("rangeEnd"), field+".rangeEnd", r.Subnet, r.Last, high, lower); err != nil {
		return Range{}, err
	}
	if r.Last.Less(r.First) {
		return Range{}, invalid("widen the range: nothing of this node's part lies in it", field, v,
			"rangeStart not behind rangeEnd, and addresses of this node's block between them")
	}
	if g := v.get("gateway"); g != nil {
		if r.Gateway, err = gateway(g, field+".gateway", r.Subnet); err != nil {
			return Range{}, err
		}
	}
	if r.Exclude, err = exclude(v.get("exclude"), field+".exclude", r.Subnet); err != nil {
		return Range{}, err
	}
	if err := r.pool().Check(); err != nil {
		return Range{}, &Problem{
			Code: CodeInvalid, Remedy: "leave an address in the range that can be given", Field: field, Found: v.found(), Err: err,
		}
	}
	if !p.allowsRun(r.First, r.Last) {
		return Range{}, invalid("use a subnet that this node allows, or add it to allow.subnets in "+NodePath, field+".subnet",
			v.get("subnet"), "addresses inside one of "+fmt.Sprint(p.node.Allow.Subnets))
	}
	return r, nil
}

// pool settles the subnet and the part of it that is this node's: exactly one of perNode, scope and from says which.
func (p *parser) pool(v *value, field string) (Range, error) {
	perNode, scope, from := v.get("perNode"), v.get("scope"), v.get("from")
	given := 0
	for _, way := range []*value{perNode, scope, from} {
		if way != nil {
			given++
		}
	}
	const right = `"perNode": 26, "scope": "node" or "from": "rail"`
	switch {
	case given == 0:
		return Range{}, invalid(`add "perNode" (prefix length of one node's block), "scope": "node" (the subnet is this node's `+
			`alone) or "from": "rail" (the rail's subnet in `+NodePath+`): without it every node would hand out the same addresses`,
			field, v, right)
	case given > 1:
		return Range{}, invalid(`keep one of "perNode", "scope" and "from"`, field, v, right)
	case from != nil:
		return p.poolOfRail(v, field)
	}
	s := v.get("subnet")
	if s == nil {
		return Range{}, invalid(`add "subnet" to the range`, field+".subnet", nil, "an address and a length")
	}
	whole, err := subnet(s, field+".subnet")
	if err != nil {
		return Range{}, err
	}
	if scope != nil {
		if scope.str() != "node" {
			return Range{}, invalid(`set scope to "node", or remove it`, field+".scope", scope, `"node"`)
		}
		return Range{Subnet: whole, First: whole.Addr(), Last: last(whole), NodeScoped: true}, nil
	}
	length, err := integer(perNode, field+".perNode", whole.Bits(), whole.Addr().BitLen())
	if err != nil {
		return Range{}, err
	}
	if p.node.Index == nil {
		return Range{}, &Problem{
			Code:   CodeUnavailable,
			Remedy: `write this node's number into ` + NodePath + `, as {"version": 1, "index": 17}, another one on each node`,
			Field:  field + ".perNode", Found: "a node without index", Right: "a number from 0 that no other node has",
		}
	}
	block, err := ipam.Block(whole, length, uint64(*p.node.Index))
	if err != nil {
		return Range{}, &Problem{
			Code: CodeInvalid, Remedy: "widen the subnet, or make perNode longer, so that it has a block for each node",
			Field: field + ".perNode", Found: strconv.Itoa(length) + ", and node index " + strconv.Itoa(*p.node.Index), Err: err,
		}
	}
	return Range{Subnet: whole, First: block.Addr(), Last: last(block)}, nil
}

// poolOfRail takes the subnet that node.json has for the network's rail.
func (p *parser) poolOfRail(v *value, field string) (Range, error) {
	from := v.get("from")
	if from.str() != "rail" {
		return Range{}, invalid(`set from to "rail", or remove it`, field+".from", from, `"rail"`)
	}
	if p.conf.Rail == nil {
		return Range{}, invalid(`add "rail" with its number to the network`, field+".from", from, `"rail": 0 beside "ipam"`)
	}
	rail := p.node.Rails[*p.conf.Rail]
	if !rail.Subnet.IsValid() {
		return Range{}, &Problem{
			Code: CodeUnavailable,
			Remedy: fmt.Sprintf(`write the rail's subnet into %s, as {"version": 1, "rails": {"%d": {"subnet": "…"}}}`,
				NodePath, *p.conf.Rail),
			Field: field + ".from", Found: fmt.Sprintf("a node without a subnet for rail %d", *p.conf.Rail),
		}
	}
	if s := v.get("subnet"); s != nil && s.str() != rail.Subnet.String() {
		return Range{}, invalid(`remove "subnet": with "from": "rail" it comes from `+NodePath, field+".subnet", s,
			rail.Subnet.String())
	}
	return Range{
		Subnet: rail.Subnet, First: rail.Subnet.Addr(), Last: last(rail.Subnet), Gateway: rail.Gateway, NodeScoped: true,
	}, nil
}

// bound cuts one end of a run: to what an interface may have, and to rangeStart or rangeEnd if that is given.
func bound(
	v *value, field string, in netip.Prefix, end, host netip.Addr, inner func(a, b netip.Addr) netip.Addr,
) (netip.Addr, error) {
	end = inner(end, host)
	if v == nil {
		return end, nil
	}
	a, err := address(v.str(), field)
	if err != nil {
		return netip.Addr{}, err
	}
	if !in.Contains(a) {
		return netip.Addr{}, invalid("keep "+field+" inside the subnet", field, v, "an address of "+in.String())
	}
	return inner(end, a), nil
}
