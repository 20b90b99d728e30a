// SPDX-License-Identifier: Apache-2.0

package netconf

import (
	"bytes"
	"fmt"
	"net/netip"

	"github.com/containernetworking/cni/pkg/types"
)

// ipamKind tells who hands out addresses by the section alone, and the plugin's name if it is another. A section that cannot
// be read is of kind none: DEL goes on, and ADD has its own words for it.
func ipamKind(root *value) (IPAMKind, string) {
	v := root.get("ipam")
	switch name := v.get("type").str(); {
	case itself(root, name):
		return IPAMNone, ""
	case name == string(IPAMRange):
		return IPAMRange, ""
	case name == string(IPAMStatic):
		return IPAMStatic, ""
	case name == "" || name == "none" || name == "dhcp":
		return IPAMNone, ""
	case plain(name, "_.-") && pathSafe(name):
		return IPAMDelegate, name
	}
	return IPAMNone, ""
}

// itself tells whether an IPAM plugin of that name would be this one. It would call itself with the same section, and that one itself again,
// until the node has no memory left.
func itself(root *value, name string) bool {
	return name != "" && (name == "podfabric" || name == root.get("type").str())
}

// ipam reads who hands out addresses, and for our own ways which ones.
func (p *parser) ipam() error {
	v := p.root.get("ipam")
	if err := p.ipamType(v); err != nil {
		return err
	}
	kind, plugin := ipamKind(p.root)
	p.conf.IPAM.Kind, p.conf.IPAM.Plugin = kind, plugin
	if d := v.get("defaultRoute"); d != nil {
		p.conf.IPAM.DefaultRoute = d.yes
	}
	var err error
	switch kind {
	case IPAMNone:
		err = p.noAddress()
	case IPAMRange:
		err = p.rangeIPAM(v)
	case IPAMStatic:
		err = p.staticIPAM(v)
	case IPAMDelegate:
		err = p.delegate(v)
	}
	if err != nil {
		return err
	}
	for _, at := range []struct {
		v     *value
		field string
	}{{v.get("dns"), "ipam.dns"}, {p.root.get("dns"), "dns"}} {
		if at.v == nil || kind == IPAMDelegate && at.field == "ipam.dns" {
			continue
		}
		dns, err := p.dns(at.v, at.field)
		if err != nil {
			return err
		}
		if p.conf.IPAM.DNS.IsEmpty() {
			p.conf.IPAM.DNS = dns
		}
	}
	return nil
}

// ipamType refuses what ipamKind passes over.
func (p *parser) ipamType(v *value) error {
	if v == nil || len(v.members) == 0 {
		return nil
	}
	t := v.get("type")
	switch {
	case t == nil:
		return invalid(`add "type" to ipam, or remove ipam for a link without address`, "ipam.type", nil,
			`"range", "static" or the name of an IPAM plugin`)
	case t.str() == "dhcp":
		return invalid(`use "range", "static" or another IPAM plugin: dhcp would need a daemon in the pod's namespace`,
			"ipam.type", t, `"range", "static" or the name of an IPAM plugin`)
	case itself(p.root, t.str()):
		return invalid(`use "range", "static" or another IPAM plugin: podfabric hands out addresses under these two names, and would call `+
			"itself for ever under its own", "ipam.type", t, `"range", "static" or the name of an IPAM plugin`)
	case t.str() == "none" && len(v.members) > 1:
		p.warn(`ipam has no effect beside "type": "none"`)
	case !plain(t.str(), "_.-") || !pathSafe(t.str()):
		return invalid("set ipam.type to the name of an IPAM plugin", "ipam.type", t, "letters, digits and _ . -")
	}
	return nil
}

// noAddress is for a link that no one gives an address.
func (p *parser) noAddress() error {
	if len(p.want) > 0 {
		return invalid("remove the address from the pod's annotation: this network has no ipam to give it", p.want[0].field, nil, "")
	}
	if p.conf.Previous != nil && len(p.conf.Previous.IPs) > 0 {
		return nil
	}
	if p.conf.RDMA.Require == RequireActive || p.conf.RDMA.Require == RequireGID {
		p.warn("rdma.require asks for the GID of an address, and without ipam there is none to wait for")
	}
	return nil
}

// delegate passes the whole document on: nv-ipam reads the device's ID at its top, others args or runtimeConfig.
func (p *parser) delegate(v *value) error {
	p.conf.IPAM.Delegate = bytes.Clone(p.raw.Stdin)
	if p.conf.IPAM.Plugin == "host-local" {
		p.warn("ipam host-local knows only its own node: with one configuration for several nodes they all hand out the same " +
			`addresses; "type": "range" with "perNode" does not`)
	}
	if d := v.get("defaultRoute"); d != nil && d.shape != shapeBool {
		return invalid(`write "defaultRoute" as true or false`, "ipam.defaultRoute", d, "true or false")
	}
	if routes := v.get("routes"); routes != nil {
		for i, r := range routes.items {
			dst, err := netip.ParsePrefix(r.get("dst").str())
			if err == nil && dst.Bits() == 0 && !p.conf.IPAM.DefaultRoute {
				return defaultRoute(item("ipam.routes", i)+".dst", r.get("dst"))
			}
		}
	}
	return nil
}

// address reads one IP address that an interface of a pod, or its gateway, may have.
func address(text, field string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || !Usable(a) {
		return netip.Addr{}, &Problem{
			Code: CodeInvalid, Remedy: "write an IP address into " + field, Field: field, Found: quote(text),
			Right: `a unicast address as "10.1.0.7" or "fd00::7"`,
		}
	}
	return a, nil
}

// Usable leaves out what no interface can have, and the two spellings (with a zone, IPv4 in IPv6) that would make one address
// look like two.
func Usable(a netip.Addr) bool {
	return !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() && !a.Is4In6() && a.Zone() == "" &&
		a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// subnet reads a prefix without host bits.
func subnet(v *value, field string) (netip.Prefix, error) {
	s, err := netip.ParsePrefix(v.str())
	if err != nil || s.Addr().Is4In6() {
		return netip.Prefix{}, invalid("write a subnet into "+field, field, v, `an address and a length as "10.1.0.0/16"`)
	}
	if s != s.Masked() {
		return netip.Prefix{}, invalid(fmt.Sprintf("write %s instead of %s: there are bits behind the prefix", s.Masked(), s),
			field, v, s.Masked().String())
	}
	return s, nil
}

func (p *parser) dns(v *value, field string) (types.DNS, error) {
	if err := p.object(secDNS, field, v); err != nil {
		return types.DNS{}, err
	}
	dns := types.DNS{Domain: v.get("domain").str()}
	for _, l := range []struct {
		name string
		to   *[]string
	}{{"nameservers", &dns.Nameservers}, {"search", &dns.Search}, {"options", &dns.Options}} {
		list, err := texts(v.get(l.name), below(field, l.name))
		if err != nil {
			return types.DNS{}, err
		}
		*l.to = list
	}
	for i, server := range dns.Nameservers {
		if _, err := netip.ParseAddr(server); err != nil {
			at := item(field+".nameservers", i)
			return types.DNS{}, &Problem{
				Code: CodeInvalid, Remedy: "write an IP address into " + at, Field: at, Found: quote(server), Right: "an IP address",
			}
		}
	}
	return dns, nil
}
