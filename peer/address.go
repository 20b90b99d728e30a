// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/podfabric/podfabric/nad"
)

// pool is one ipam section on its way.
type pool struct {
	j       *judge
	e       Entry
	v       *nad.Value
	path    string // "plugins[0].ipam"
	kind    string
	subnets []netip.Prefix // of the addresses that it gives; empty: not known from the text
}

// addresses judges the section ipam of a plugin that makes an interface.
func (j *judge) addresses(e Entry) {
	if slices.Contains(chained(), e.Type) || slices.Contains(addressers(), e.Type) {
		return
	}
	v := get(e.Conf, "ipam")
	if v != nil && v.Shape != nad.Object {
		return
	}
	kind := get(v, "type")
	p := pool{j: j, e: e, v: v, path: e.path("ipam"), kind: kind.Str()}
	switch {
	case kind != nil && kind.Shape != nad.String:
		j.reject(kind, p.at("type"), "write ipam.type as a string: %s, found %s (cannot unmarshal %s into Go value of "+
			"type string)", p.at("type"), kind.Show(), goWord(kind))
	case kind.Str() == "":
		p.none()
	case slices.Contains(addressers(), kind.Text) || !slices.Contains(plugins(), kind.Text):
		p.other(kind)
	default:
		j.reject(kind, p.at("type"), "write the name of an IPAM plugin: %s, found %s, which hands out no addresses",
			p.at("type"), kind.Show())
	}
}

func (p pool) at(key string) string { return nad.Below(p.path, key) }

// none is for a section that gives no address.
func (p pool) none() {
	const gids = "the GID table holds only fe80:: entries; NCCL >= 2.21 finds no valid IPv4 GID and falls to index 0 " +
		"(RoCE v1, link-local)"
	if p.v != nil && len(p.v.Members) > 0 {
		p.j.ignored = append(p.j.ignored, p.path)
		p.j.warn(p.v, p.path, "%s has no type, so all of it is passed over and the link has no address: add \"type\"", p.path)
		return
	}
	if !slices.Contains([]string{Ours, "sriov", "macvlan", "ipvlan", "host-device", "vlan", "bond"}, p.e.Type) {
		if p.e.Type == "ib-sriov" || p.e.Type == "ipoib" {
			p.j.warn(p.e.Conf, p.path, "no ipam: the link has no address, and NCCL needs one for its hand-shake")
		}
		return
	}
	found := "no ipam"
	if p.v != nil {
		found = "ipam {}"
	}
	p.j.warn(p.e.Conf, p.path, "%s: link without address, no IPv4 GID: %s", found, gids)
}

// other judges a section with a type.
func (p *pool) other(kind *nad.Value) {
	j := p.j
	if kind.Text == "range" {
		j.reject(kind, p.at("type"), `use another IPAM plugin, or "type": "podfabric" for the network: "range" is `+
			`podfabric's own and no plugin: %s`, p.at("type"))
		return
	}
	if kind.Text == "none" {
		j.reject(kind, p.at("type"), `remove ipam for a link without address: there is no plugin "none" (failed to find plugin "none" in path): %s`,
			p.at("type"))
		return
	}
	j.known(kind, p.at("type"), "IPAM plugin", Meant(kind.Text))
	before := len(j.findings)
	switch kind.Text {
	case "host-local":
		p.hostLocal()
	case "static":
		p.static()
	case "dhcp":
		p.dhcp(kind)
	case "whereabouts":
		p.whereabouts()
	case "nv-ipam":
		p.nvIPAM()
	case "spiderpool":
		j.spiderVersion(kind, p.at("type"), "spiderpool")
		p.keys(keys{
			"type": text, "log_level": text, "log_file_path": text, "log_file_max_size": whole, "log_file_max_age": whole, "log_file_max_count": whole,
			"default_ipv4_ippool": texts, "default_ipv6_ippool": texts, "clean_gateway": truth, "match_master_subnet": truth, "ipam_unix_socket_path": text,
		})
		return
	default:
		if Meant(kind.Text) == kind.Text {
			j.warn(kind, p.at("type"), "the rules of IPAM plugin %s are not known here: its own keys are not judged", kind.Show())
		}
	}
	broken := slices.ContainsFunc(j.findings[before:], func(f Finding) bool { return f.Level == Reject })
	p.routes(get(p.v, "routes"), !broken)
}

func (p pool) keys(k keys) { p.j.decode(p.v, p.path, p.kind, k) }

func (p pool) dhcp(kind *nad.Value) {
	p.keys(keys{"type": text, "daemonSocketPath": text, "provide": list, "request": list, "priority": whole})
	switch p.e.Type {
	case "ib-sriov", "ipoib":
		p.j.reject(kind, p.at("type"), "use another IPAM plugin: %s refuses dhcp, which needs an Ethernet link: %s",
			p.e.Type, p.at("type"))
	case "ipvlan":
		p.j.warn(kind, p.at("type"), "dhcp tells clients apart by their MAC, and all ipvlans of a parent have one")
	default:
		p.j.warn(kind, p.at("type"), "dhcp needs its daemon on each node (/run/cni/dhcp.sock) and a DHCP server in the "+
			"fabric's network")
	}
}

// nvIPAM has the rules of nv-ipam (pkg/cni/types).
func (p pool) nvIPAM() {
	p.keys(keys{
		"type": text, "poolName": text, "poolType": text, "daemonSocket": text, "daemonCallTimeoutSeconds": whole, "confDir": text, "logFile": text,
		"logLevel": text, "forcePoolName": truth,
	})
	name, kind := get(p.v, "poolName"), get(p.v, "poolType")
	if kind.Str() != "" && !slices.Contains([]string{"ippool", "cidrpool"}, strings.ToLower(kind.Text)) {
		p.j.reject(kind, p.at("poolType"), "set poolType to ippool or cidrpool: %s, found %s (unsupported poolType)",
			p.at("poolType"), kind.Show())
	}
	switch {
	case name != nil && name.Shape != nad.String:
	case name.Str() == "" && get(p.v, "forcePoolName").IsTrue():
		p.j.reject(p.v, p.at("poolName"), "add poolName: with forcePoolName nv-ipam takes no default (no pool provided): %s",
			p.at("poolName"))
	case name.Str() == "":
		p.j.warn(p.v, p.at("poolName"), "no poolName: nv-ipam looks for a pool that is called as the network")
	default:
		pools := strings.Split(name.Text, ",")
		if len(pools) > 2 {
			p.j.reject(name, p.at("poolName"), "name two pools at most: pool field can't contain more then two entries: "+
				"%s, found %s", p.at("poolName"), name.Show())
		} else if slices.Contains(pools, "") {
			p.j.reject(name, p.at("poolName"), "write one name, or two with a comma between them: pool field has invalid "+
				"format: %s, found %s", p.at("poolName"), name.Show())
		}
	}
}

// static has the rules of static.
func (p *pool) static() {
	p.keys(keys{"type": text, "routes": list, "addresses": list, "dns": object})
	addresses := get(p.v, "addresses")
	if addresses == nil || len(addresses.Items) == 0 {
		const none = "static without addresses gives none: every pod must bring its own (capability ips, or cni-args)"
		if get(get(p.e.Conf, "capabilities"), "ips").IsTrue() {
			p.j.note(p.v, p.at("addresses"), none)
		} else {
			p.j.warn(p.v, p.at("addresses"), none)
		}
	}
	if addresses == nil {
		return
	}
	for i, item := range addresses.Items {
		field := nad.Item(p.at("addresses"), i)
		if item.Shape != nad.Object {
			p.j.reject(item, field, "write the address as an object with address in it: %s, found %s (cannot unmarshal "+
				"%s into Go value of type main.Address)", field, item.Show(), goWord(item))
			continue
		}
		p.j.decode(item, field, "static", keys{"address": text, "gateway": text})
		p.staticAddress(item, field)
	}
	if len(addresses.Items) > 0 {
		p.sameForAll(addresses)
	}
}

// sameForAll warns of addresses that a network gives to each of its pods.
func (p pool) sameForAll(addresses *nad.Value) {
	p.j.warn(addresses, p.at("addresses"), "static gives every pod of this network the same address: it is good for "+
		"one pod at a time")
}

func (p *pool) staticAddress(item *nad.Value, field string) {
	a, g := get(item, "address"), get(item, "gateway")
	where := nad.Below(field, "address")
	subnet, ok := prefix(a.Str())
	switch {
	case a != nil && a.Shape != nad.String:
	case !ok:
		at := a
		if at == nil {
			at = item
		}
		p.j.reject(at, where, `write the address with its prefix length, as "10.1.0.7/24": the 'address' field is `+
			`expected to be in CIDR notation: %s, found %s`, where, a.Show())
	default:
		if subnet.IsSingleIP() || subnet.Addr() != subnet.Masked().Addr() {
			break
		}
		p.j.warn(a, where, "%s %s is the address of the network itself", where, a.Show())
	}
	p.subnets = append(p.subnets, subnet.Masked())
	p.gateway(g, nad.Below(field, "gateway"), subnet, false)
}

// gateway judges the address of a router. strict: the plugin refuses one outside.
func (p pool) gateway(v *nad.Value, field string, subnet netip.Prefix, strict bool) {
	if v.Str() == "" {
		return
	}
	g, err := netip.ParseAddr(v.Text)
	switch {
	case err != nil:
		p.j.reject(v, field, "write an IP address: %s, found %s (invalid IP address)", field, v.Show())
	case !subnet.IsValid() || subnet.Masked().Contains(g):
	case strict:
		p.j.reject(v, field, "write a gateway inside the subnet: gateway %s not in network %s: %s", g, subnet.Masked(), field)
	default:
		p.j.warn(v, field, "%s %s is outside %s: no route can go over it", field, v.Show(), subnet.Masked())
	}
}
