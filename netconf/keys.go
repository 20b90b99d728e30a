// SPDX-License-Identifier: Apache-2.0

package netconf

import "slices"

// kinds is a set of Kind.
type kinds uint8

const (
	onVF kinds = 1 << iota
	onMacvlan
	onIPVlan
	onDevice
	onChained

	onAll  = onVF | onMacvlan | onIPVlan | onDevice | onChained
	onNone = kinds(0)
	// onBuilt are the kinds that this version can make.
	onBuilt = onVF
)

// bit gives the set of k alone; the empty set for a Kind that is none.
func (k Kind) bit() kinds {
	switch k {
	case KindVF:
		return onVF
	case KindMacvlan:
		return onMacvlan
	case KindIPVlan:
		return onIPVlan
	case KindDevice:
		return onDevice
	case KindChained:
		return onChained
	}
	return onNone
}

// allKinds in the order in which messages list them.
func allKinds() []Kind { return []Kind{KindVF, KindMacvlan, KindIPVlan, KindDevice, KindChained} }

// section is one kind of object in a configuration.
type section string

const (
	secTop     section = ""
	secRDMA    section = "rdma"
	secHint    section = "hint"
	secRouting section = "routing"
	secVF      section = "vf"
	secDNS     section = "dns"
	secRange   section = "ipam (range)"
	secStatic  section = "ipam (static)"
	secSpan    section = "ipam.ranges[][]"
	secAddress section = "ipam.addresses[]"
	secRoute   section = "ipam.routes[]"
	secArgs    section = "args"

	secNode      section = "node.json"
	secNodeRail  section = "node.json rails"
	secNodeAllow section = "node.json allow"
	secNodeHint  section = "node.json hint"
	secNodeLog   section = "node.json log"
)

// key is one line of the table: what stands where, of which shape, with which kinds it means something, and with which of
// these this version does it. A key that means something and is not built yet is refused, never ignored: an ignored VLAN is
// a missing wall.
type key struct {
	in    section
	name  string
	shape shape
	kinds kinds
	built kinds
	why   string // for a key that no kind has: what to do instead
}

// table is the list of all keys.
type table []key

// find gives the line of a key; nil when there is none.
func (t table) find(in section, name string) *key {
	for i := range t {
		if t[i].in == in && t[i].name == name {
			return &t[i]
		}
	}
	return nil
}

// configurationKeys is the table of network configurations (design, section 4; names and meanings are those of sriov-cni,
// macvlan, host-device and host-local where they have such a key).
func configurationKeys() table { return slices.Concat(topKeys(), sectionKeys(), ipamKeys()) }

// topKeys are the keys of the configuration itself.
func topKeys() table {
	const (
		text, number, truth, object = shapeString, shapeNumber, shapeBool, shapeObject

		links = onVF | onMacvlan | onIPVlan | onDevice // kinds that make or move a link
		noIB  = "InfiniBand is not supported; for InfiniBand use ib-sriov-cni"
	)
	return table{
		{secTop, "cniVersion", text, onAll, onBuilt, ""},
		{secTop, "name", text, onAll, onBuilt, ""},
		{secTop, "type", text, onAll, onBuilt, ""},
		{secTop, "link", text, onAll, onBuilt, ""},
		{secTop, "capabilities", object, onAll, onBuilt, ""},
		{secTop, "runtimeConfig", object, onAll, onBuilt, ""},
		{secTop, "args", object, onAll, onBuilt, ""},
		{secTop, "prevResult", object, onChained, onNone, ""},
		{secTop, "ipam", object, onAll, onBuilt, ""},
		{secTop, "dns", object, onAll, onBuilt, ""},
		{secTop, "logLevel", text, onAll, onBuilt, ""},
		{secTop, "logFile", text, onAll, onBuilt, ""},
		{secTop, "deviceID", text, onAll, onBuilt, ""},
		{secTop, "pciBusID", text, onAll, onBuilt, ""},
		{secTop, "mtu", number | text, links, onBuilt, ""},
		{secTop, "rail", number, onAll, onBuilt, ""},
		{secTop, "rdma", object, onAll, onBuilt, ""},
		{secTop, "hint", object, onAll, onBuilt, ""},
		{secTop, "routing", object, onAll, onNone, ""},

		{secTop, "vlan", number, onVF, onNone, ""},
		{secTop, "vlanQoS", number, onVF, onNone, ""},
		{secTop, "vlanProto", text, onVF, onNone, ""},
		{secTop, "mac", text, onVF | onMacvlan | onDevice, onNone, ""},
		{secTop, "spoofchk", text, onVF, onNone, ""},
		{secTop, "trust", text, onVF, onNone, ""},
		{secTop, "link_state", text, onVF, onNone, ""},
		{secTop, "min_tx_rate", number, onVF, onNone, ""},
		{secTop, "max_tx_rate", number, onVF, onNone, ""},
		{secTop, "vf", object, onVF, onNone, ""},

		{secTop, "master", text | object, onMacvlan | onIPVlan, onNone, ""},
		{secTop, "mode", text, onMacvlan | onIPVlan, onNone, ""},
		{secTop, "linkInContainer", truth, onMacvlan | onIPVlan, onNone, ""},
		{secTop, "bcqueuelen", number, onMacvlan, onNone, ""},
		{secTop, "device", text, onDevice, onNone, ""},
		{secTop, "hwaddr", text, onDevice, onNone, ""},
		{secTop, "kernelpath", text, onDevice, onNone, ""},

		{secTop, "pkey", text | number, onNone, onNone, noIB},
		{secTop, "guid", text, onNone, onNone, noIB},
		{secTop, "ibKubernetesEnabled", truth, onNone, onNone, noIB},
		{secTop, "rdmaIsolation", truth, onNone, onNone, `write "rdma": {"mode": "move"} for what ib-sriov-cni calls rdmaIsolation`},
		{secTop, "vfioPciMode", truth, onNone, onNone, "functions bound to vfio-pci have no link; use sriov-cni for them"},
	}
}

// sectionKeys are those of the objects in it.
func sectionKeys() table {
	const text, number, truth, list, object = shapeString, shapeNumber, shapeBool, shapeList, shapeObject
	return table{
		{secVF, "baseline", text, onVF, onNone, ""},

		{secRDMA, "mode", text, onAll, onBuilt, ""},
		{secRDMA, "require", text, onAll, onBuilt, ""},
		{secRDMA, "softRoCE", truth, onAll, onBuilt, ""},
		{secRDMA, "wait", text, onAll, onBuilt, ""},

		{secRouting, "sourceRules", truth, onAll, onNone, ""},
		{secRouting, "arp", text, onAll, onNone, ""},
		{secRouting, "probe", truth, onAll, onNone, ""},

		{secHint, "role", text, onAll, onBuilt, ""},
		{secHint, "volume", text, onAll, onBuilt, ""},
		{secHint, "require", truth, onAll, onBuilt, ""},
		{secHint, "nccl", text, onAll, onBuilt, ""},
		{secHint, "noRight", text, onAll, onBuilt, ""},
		{secHint, "failClosed", truth, onAll, onBuilt, ""},
		{secHint, "trafficClass", number, onAll, onBuilt, ""},

		{secDNS, "nameservers", list, onAll, onBuilt, ""},
		{secDNS, "domain", text, onAll, onBuilt, ""},
		{secDNS, "search", list, onAll, onBuilt, ""},
		{secDNS, "options", list, onAll, onBuilt, ""},

		{secArgs, "cni", object, onAll, onBuilt, ""},
	}
}

// ipamKeys are those of our own address management; another plugin's section is not looked into.
func ipamKeys() table {
	const text, number, truth, list, object = shapeString, shapeNumber, shapeBool, shapeList, shapeObject
	return table{
		{secRange, "type", text, onAll, onBuilt, ""},
		{secRange, "ranges", list, onAll, onBuilt, ""},
		{secRange, "subnet", text, onAll, onBuilt, ""},
		{secRange, "rangeStart", text, onAll, onBuilt, ""},
		{secRange, "rangeEnd", text, onAll, onBuilt, ""},
		{secRange, "gateway", text, onAll, onBuilt, ""},
		{secRange, "exclude", list, onAll, onBuilt, ""},
		{secRange, "perNode", number, onAll, onBuilt, ""},
		{secRange, "scope", text, onAll, onBuilt, ""},
		{secRange, "from", text, onAll, onBuilt, ""},
		{secRange, "routes", list, onAll, onBuilt, ""},
		{secRange, "dns", object, onAll, onBuilt, ""},
		{secRange, "defaultRoute", truth, onAll, onBuilt, ""},
		{secRange, "dataDir", text, onAll, onBuilt, ""},
		{secRange, "resolvConf", text, onNone, onNone, `no file is read from a network's configuration; write "dns" instead`},
		{secRange, "addresses", list, onNone, onNone, `it belongs to "type": "static"`},

		{secStatic, "type", text, onAll, onBuilt, ""},
		{secStatic, "addresses", list, onAll, onBuilt, ""},
		{secStatic, "routes", list, onAll, onBuilt, ""},
		{secStatic, "dns", object, onAll, onBuilt, ""},
		{secStatic, "defaultRoute", truth, onAll, onBuilt, ""},
		{secStatic, "ranges", list, onNone, onNone, `it belongs to "type": "range"`},
		{secStatic, "subnet", text, onNone, onNone, `it belongs to "type": "range"`},

		{secSpan, "subnet", text, onAll, onBuilt, ""},
		{secSpan, "rangeStart", text, onAll, onBuilt, ""},
		{secSpan, "rangeEnd", text, onAll, onBuilt, ""},
		{secSpan, "gateway", text, onAll, onBuilt, ""},
		{secSpan, "exclude", list, onAll, onBuilt, ""},
		{secSpan, "perNode", number, onAll, onBuilt, ""},
		{secSpan, "scope", text, onAll, onBuilt, ""},
		{secSpan, "from", text, onAll, onBuilt, ""},

		{secAddress, "address", text, onAll, onBuilt, ""},
		{secAddress, "gateway", text, onAll, onBuilt, ""},

		{secRoute, "dst", text, onAll, onBuilt, ""},
		{secRoute, "gw", text, onAll, onBuilt, ""},
		{secRoute, "mtu", number, onAll, onNone, ""},
		{secRoute, "advmss", number, onAll, onNone, ""},
		{secRoute, "priority", number, onAll, onNone, ""},
		{secRoute, "table", number, onAll, onNone, ""},
		{secRoute, "scope", number, onAll, onNone, ""},
	}
}

// nodeKeys is the table of node.json (design, section 9.8).
func nodeKeys() table {
	const text, number, list, object = shapeString, shapeNumber, shapeList, shapeObject
	line := func(in section, name string, s shape) key { return key{in, name, s, onAll, onAll, ""} }
	return table{
		line(secNode, "version", number),
		line(secNode, "index", number),
		line(secNode, "rails", object),
		line(secNode, "expectedRails", number),
		line(secNode, "allow", object),
		line(secNode, "podMayChooseDevice", shapeBool),
		line(secNode, "overrideGuards", list),
		line(secNode, "kubeletRoot", text),
		line(secNode, "hint", object),
		line(secNode, "uverbs", text),
		line(secNode, "deadline", text),
		line(secNode, "log", object),
		line(secNodeRail, "pci", text),
		line(secNodeRail, "subnet", text),
		line(secNodeRail, "gateway", text),
		line(secNodeAllow, "pfs", list),
		line(secNodeAllow, "masters", list),
		line(secNodeAllow, "kinds", list),
		line(secNodeAllow, "subnets", list),
		line(secNodeHint, "delivery", text),
		line(secNodeLog, "file", text),
		line(secNodeLog, "level", text),
		line(secNodeLog, "format", text),
	}
}
