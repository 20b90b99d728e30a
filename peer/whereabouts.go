// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/podfabric/podfabric/nad"
)

// whereabouts has the rules of whereabouts (pkg/config/config.go, pkg/types).
func (p *pool) whereabouts() {
	p.keys(keys{
		"type": text, "name": text, "routes": list, "addresses": list, "ipRanges": list, "node_slice_size": text, "exclude": texts, "dns": object,
		"range": text, "range_start": text, "range_end": text, "gateway": text, "leader_lease_duration": whole, "leader_renew_deadline": whole,
		"leader_retry_period": whole, "log_file": text, "log_level": text, "reconciler_cron_expression": text, "enable_overlapping_ranges": truth,
		"sleep_for_race": whole, "kubernetes": object, "configuration_path": text, "network_name": text, "datastore": text,
	})
	ranges := get(p.v, "ipRanges")
	some := false
	if get(p.v, "range").Str() != "" {
		some = true
		p.whereaboutsRange(p.v, p.path)
	}
	if ranges != nil && ranges.Shape == nad.List {
		for i, item := range ranges.Items {
			some = true
			field := nad.Item(p.at("ipRanges"), i)
			p.j.decode(item, field, "whereabouts", keys{"exclude": texts, "range": text, "range_start": text, "range_end": text})
			before := len(p.subnets)
			p.whereaboutsRange(item, field)
			if len(p.subnets) > before && slices.Contains(p.subnets[:before], p.subnets[before]) {
				at := nad.Below(field, "range")
				p.j.reject(get(item, "range"), at, "write each subnet once, with range_start, range_end and exclude: all ranges of %s are one pool, "+
					"from which the pod gets the same address again (file exists): %s", p.subnets[before], at)
			}
		}
	}
	addresses := get(p.v, "addresses")
	if addresses != nil {
		for i, item := range addresses.Items {
			some = true
			p.staticAddress(item, nad.Item(p.at("addresses"), i))
		}
	}
	if v := get(p.v, "range"); !some && (v == nil || v.Shape == nad.String) {
		p.j.reject(p.v, p.at("range"), `add "range" to the ipam section: invalid CIDR (do you have the 'range' parameter `+
			`set for Whereabouts?): %s`, p.path)
	}
	if g := get(p.v, "gateway"); g.Str() != "" {
		p.whereaboutsGateway(g)
	}
}

// whereaboutsGateway judges the one gateway against all ranges.
func (p *pool) whereaboutsGateway(g *nad.Value) {
	field := p.at("gateway")
	a, ok := sloppy(g.Text)
	if !ok {
		p.j.reject(g, field, "write an IP address: couldn't parse gateway IP: %s, found %s", field, g.Show())
		return
	}
	for _, s := range p.subnets {
		if s.Contains(a) {
			return
		}
	}
	if len(p.subnets) > 0 {
		p.j.warn(g, field, "%s %s is in no range of this network: no route can go over it", field, g.Show())
	}
}

// whereaboutsRange reads "subnet", or "first-last/length".
func (p *pool) whereaboutsRange(v *nad.Value, field string) {
	r := get(v, "range")
	at := nad.Below(field, "range")
	if r == nil || r.Shape != nad.String {
		if r == nil && v.Shape == nad.Object {
			p.j.reject(v, at, `add "range" to the entry: invalid CIDR: %s`, field)
		}
		return
	}
	begin, end, two := strings.Cut(r.Text, "-")
	subnetText := begin
	if two {
		subnetText = end
	}
	subnet, ok := sloppyPrefix(subnetText)
	if !ok {
		p.j.reject(r, at, `write a subnet with its length, as "10.1.0.0/24" or "10.1.0.10-10.1.0.99/24": invalid CIDR `+
			`(do you have the 'range' parameter set for Whereabouts?): %s, found %s`, at, r.Show())
		return
	}
	net := subnet.Masked()
	p.subnets = append(p.subnets, net)
	if two {
		p.dashed(r, at, begin, subnet)
	}
	for _, key := range []string{"range_start", "range_end"} {
		b := get(v, key)
		if b.Str() == "" {
			continue
		}
		where := nad.Below(field, key)
		a, err := netip.ParseAddr(b.Text)
		switch {
		case err != nil:
			p.j.reject(b, where, "write an IP address: %s, found %s (invalid IP address)", where, b.Show())
		case two:
			p.j.ignore(b, where, "the range itself says first and last")
		case !net.Contains(a):
			p.j.warn(b, where, "%s %s is outside the range %s", where, b.Show(), net)
		}
	}
	first, errF := netip.ParseAddr(get(v, "range_start").Str())
	last, errL := netip.ParseAddr(get(v, "range_end").Str())
	if errF == nil && errL == nil && last.Less(first) {
		where := nad.Below(field, "range_end")
		p.j.reject(get(v, "range_end"), where, "write a range_end behind range_start: %s, found %s before %s", where, last, first)
	}
	p.excluded(get(v, "exclude"), nad.Below(field, "exclude"), net)
}

func (p *pool) dashed(r *nad.Value, at, begin string, last netip.Prefix) {
	first, ok := sloppy(begin)
	switch {
	case !ok:
		p.j.reject(r, at, "write an IP address before the dash: invalid range start IP: %s, found %s", at, r.Show())
	case !last.Masked().Contains(first):
		p.j.reject(r, at, "write a first address inside %s: invalid range start for CIDR %s: %s: %s, found %s",
			last.Masked(), last.Masked(), first, at, r.Show())
	case last.Addr().Less(first):
		p.j.reject(r, at, "write the smaller address first: %s, found %s", at, r.Show())
	}
}

func (p *pool) excluded(v *nad.Value, field string, net netip.Prefix) {
	if v == nil || v.Shape != nad.List {
		return
	}
	for i, item := range v.Items {
		if item.Shape != nad.String {
			continue
		}
		at := nad.Item(field, i)
		e, ok := sloppyPrefix(item.Text)
		if a, single := sloppy(item.Text); single {
			e, ok = netip.PrefixFrom(a, a.BitLen()), true
		}
		switch {
		case !ok:
			p.j.reject(item, at, "write a subnet: invalid CIDR in exclude list: %s, found %s", at, item.Show())
		case !net.Overlaps(e):
			p.j.warn(item, at, "%s %s is outside the range %s and excludes nothing", at, item.Show(), net)
		}
	}
}

// zeros are leading ones in a part of an IPv4 address, which whereabouts passes over.
var zeros = regexp.MustCompile(`\b0+([0-9])`)

func sloppy(s string) (netip.Addr, bool) {
	if !strings.Contains(s, ":") {
		s = zeros.ReplaceAllString(s, "$1")
	}
	a, err := netip.ParseAddr(s)
	return a, err == nil
}

func sloppyPrefix(s string) (netip.Prefix, bool) {
	if !strings.Contains(s, ":") {
		s = zeros.ReplaceAllString(s, "$1")
	}
	return prefix(s)
}
