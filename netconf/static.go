// SPDX-License-Identifier: Apache-2.0

package netconf

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/podfabric/podfabric/ipam"
)

// staticIPAM reads addresses that the author, or with the capability "ips" the pod, has chosen.
func (p *parser) staticIPAM(v *value) error {
	if err := p.object(secStatic, "ipam", v); err != nil {
		return err
	}
	for i, a := range items(v.get("addresses")) {
		field := item("ipam.addresses", i)
		if a.shape != shapeObject {
			return invalid("write "+field+" as an object", field, a, `{"address": "10.1.0.7/24"}`)
		}
		if err := p.object(secAddress, field, a); err != nil {
			return err
		}
		prefix, err := interfaceAddress(a.get("address").str(), field+".address")
		if err != nil {
			return err
		}
		one := Address{Prefix: prefix}
		if g := a.get("gateway"); g != nil {
			if one.Gateway, err = gateway(g, field+".gateway", prefix.Masked()); err != nil {
				return err
			}
		}
		if err := p.addStatic(one, field+".address"); err != nil {
			return err
		}
	}
	if err := p.wantStatic(); err != nil {
		return err
	}
	if len(p.conf.IPAM.Static) == 0 {
		return invalid(`add "addresses" to ipam`, "ipam.addresses", v.get("addresses"), `[{"address": "10.1.0.7/24"}]`)
	}
	return p.routes(v.get("routes"))
}

func items(v *value) []*value {
	if v == nil {
		return nil
	}
	return v.items
}

// addStatic refuses an address that stands there already or that the node does not allow.
func (p *parser) addStatic(a Address, field string) error {
	problem := &Problem{Code: CodeInvalid, Field: field, Found: a.Prefix.String()}
	switch {
	case slices.ContainsFunc(p.conf.IPAM.Static, func(o Address) bool { return o.Prefix.Addr() == a.Prefix.Addr() }):
		problem.Remedy = "give each address once"
		return problem
	case !p.allowsRun(a.Prefix.Addr(), a.Prefix.Addr()):
		problem.Remedy = "use an address that this node allows, or add its subnet to allow.subnets in " + NodePath
		problem.Right = "an address of one of " + fmt.Sprint(p.node.Allow.Subnets)
		return problem
	}
	p.conf.IPAM.Static = append(p.conf.IPAM.Static, a)
	return nil
}

// interfaceAddress reads an address with its prefix length.
func interfaceAddress(text, field string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	if err == nil && Usable(prefix.Addr()) {
		low, high := hosts(prefix)
		if a := prefix.Addr(); !a.Less(low) && !high.Less(a) {
			return prefix, nil
		}
	}
	return netip.Prefix{}, &Problem{
		Code: CodeInvalid, Remedy: "write an address with its prefix length into " + field, Field: field, Found: quote(text),
		Right: `an interface's address as "10.1.0.7/24", not the subnet's first or last`,
	}
}

// wantStatic replaces the author's addresses by the pod's. As with the CNI plugin static, the author's say which subnets are
// meant; where there are none, only the node's allow-list bounds the pod.
func (p *parser) wantStatic() error {
	if len(p.want) == 0 {
		return nil
	}
	listed := p.conf.IPAM.Static
	p.conf.IPAM.Static = nil
	for _, w := range p.want {
		text := w.text
		at := slices.IndexFunc(listed, func(a Address) bool {
			bare, _, _ := strings.Cut(text, "/")
			asked, err := netip.ParseAddr(bare)
			return err == nil && a.Prefix.Contains(asked)
		})
		if at < 0 && len(listed) > 0 {
			return &Problem{
				Code: CodeInvalid, Remedy: "ask for an address of this network in the pod's annotation", Field: w.field,
				Found: quote(text), Right: "an address of " + listed[0].Prefix.Masked().String(),
			}
		}
		if at >= 0 && !strings.Contains(text, "/") {
			text += fmt.Sprintf("/%d", listed[at].Prefix.Bits())
		}
		prefix, err := interfaceAddress(text, w.field)
		if err != nil {
			return err
		}
		one := Address{Prefix: prefix}
		if at >= 0 {
			if prefix.Masked() != listed[at].Prefix.Masked() {
				return &Problem{
					Code: CodeInvalid, Remedy: "ask for the address with the network's own prefix length", Field: w.field,
					Found: quote(text), Right: listed[at].Prefix.Masked().String(),
				}
			}
			one.Gateway = listed[at].Gateway
		}
		if slices.ContainsFunc(p.conf.IPAM.Static, func(o Address) bool { return o == one }) {
			continue // Multus says the same address in runtimeConfig and in CNI_ARGS
		}
		if err := p.addStatic(one, w.field); err != nil {
			return err
		}
	}
	return nil
}

// wantRange checks the addresses that the runtime asks for against this node's ranges; the store looks whether they are free.
func (p *parser) wantRange() error {
	sets := make([][]ipam.Range, len(p.conf.IPAM.Ranges))
	for i, set := range p.conf.IPAM.Ranges {
		for _, r := range set {
			sets[i] = append(sets[i], r.pool())
		}
	}
	for _, w := range p.want {
		bare, length, hasLength := strings.Cut(w.text, "/")
		a, err := address(bare, w.field)
		if err != nil {
			return err
		}
		if slices.Contains(p.conf.IPAM.Want, a) {
			continue // Multus says the same address in runtimeConfig and in CNI_ARGS
		}
		want := append(slices.Clip(p.conf.IPAM.Want), a)
		_, err = ipam.Place(sets, want)
		if err == nil && hasLength && !p.hasLength(a, length) {
			err = fmt.Errorf("the prefix length is not the subnet's: %w", ipam.ErrOutside)
		}
		if err != nil {
			return &Problem{
				Code: CodeInvalid, Remedy: "ask in the pod's annotation for an address of this node's block, at most one of each range set",
				Field: w.field, Found: quote(w.text), Right: "none, or one of " + p.runs(), Err: err,
			}
		}
		p.conf.IPAM.Want = want
	}
	return nil
}

// hasLength tells whether the range that has the address is in a subnet of that prefix length.
func (p *parser) hasLength(a netip.Addr, length string) bool {
	return slices.ContainsFunc(p.conf.IPAM.Ranges, func(set []Range) bool {
		return slices.ContainsFunc(set, func(r Range) bool {
			return r.Subnet.Contains(a) && length == strconv.Itoa(r.Subnet.Bits())
		})
	})
}

// pool is the range as package ipam sees it.
func (r Range) pool() ipam.Range {
	return ipam.Range{Subnet: r.Subnet, First: r.First, Last: r.Last, Gateway: r.Gateway, Exclude: r.Exclude}
}

// runs lists this node's ranges in words.
func (p *parser) runs() string {
	var runs []string
	for _, set := range p.conf.IPAM.Ranges {
		for _, r := range set {
			runs = append(runs, r.First.String()+" to "+r.Last.String())
		}
	}
	return strings.Join(runs, " or ")
}

// allowsRun tells whether every address from first to last lies in one of the node's allowed subnets.
func (p *parser) allowsRun(first, last netip.Addr) bool {
	return p.node.Allow.Subnets == nil || slices.ContainsFunc(p.node.Allow.Subnets, func(s netip.Prefix) bool {
		return s.Contains(first) && s.Contains(last)
	})
}
