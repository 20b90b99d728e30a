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

	onShared = onMacvlan | onIPVlan                   // kinds that sit on a master
	onLinks  = onVF | onMacvlan | onIPVlan | onDevice // kinds that make or move a link
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
	secMaster  section = "master"
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

// key is one line of the table: what stands where, of which shape, and with which kinds it means something. A key that means
// something and is not built yet is refused, never ignored: an ignored VLAN is a missing wall.
type key struct {
	in    section
	name  string
	shape shape
	kinds kinds
	why   string // later, or for a key that no kind has what to do instead
}

// later is the why of a key that this version of podfabric knows and does not do.
const later = "it is not built yet in this version of podfabric"

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

		noIB = "InfiniBand is not supported; for InfiniBand use ib-sriov-cni"
	)
	return table{
		{secTop, "cniVersion", text, onAll, ""},
		{secTop, "name", text, onAll, ""},
		{secTop, "type", text, onAll, ""},
		{secTop, "link", text, onAll, ""},
		{secTop, "capabilities", object, onAll, ""},
		{secTop, "runtimeConfig", object, onAll, ""},
		{secTop, "args", object, onAll, ""},
		{secTop, "prevResult", object, onChained, ""},
		{secTop, "ipam", object, onLinks, ""},
		{secTop, "dns", object, onAll, ""},
		{secTop, "logLevel", text, onAll, ""},
		{secTop, "logFile", text, onAll, ""},
		{secTop, "deviceID", text, onAll, ""},
		{secTop, "pciBusID", text, onAll, ""},
		{secTop, "mtu", number | text, onLinks, ""},
		{secTop, "rail", number, onAll, ""},
		{secTop, "rdma", object, onAll, ""},
		{secTop, "hint", object, onAll, ""},
		{secTop, "routing", object, onAll, later},

		{secTop, "vlan", number, onVF, ""},
		{secTop, "vlanQoS", number, onVF, ""},
		{secTop, "vlanProto", text, onVF, ""},
		{secTop, "mac", text, onVF | onMacvlan | onDevice, ""},
		{secTop, "spoofchk", text, onVF, ""},
		{secTop, "trust", text, onVF, ""},
		{secTop, "link_state", text, onVF, ""},
		{secTop, "min_tx_rate", number, onVF, ""},
		{secTop, "max_tx_rate", number, onVF, ""},
		{secTop, "vf", object, onVF, ""},

		{secTop, "master", text | object, onShared, ""},
		{secTop, "mode", text, onShared, ""},
		{secTop, "linkInContainer", truth, onShared, ""},
		{secTop, "bcqueuelen", number, onMacvlan, ""},
		{secTop, "device", text, onDevice, ""},
		{secTop, "hwaddr", text, onDevice, ""},
		{secTop, "kernelpath", text, onDevice, ""},

		{secTop, "pkey", text | number, onNone, noIB},
		{secTop, "guid", text, onNone, noIB},
		{secTop, "ibKubernetesEnabled", truth, onNone, noIB},
		{secTop, "rdmaIsolation", truth, onNone, `write "rdma": {"mode": "move"} for what ib-sriov-cni calls rdmaIsolation`},
		{secTop, "vfioPciMode", truth, onNone, "podfabric sees by itself which driver a VF is bound to"},
	}
}

// sectionKeys are those of the objects in it.
func sectionKeys() table {
	const text, number, truth, list, object = shapeString, shapeNumber, shapeBool, shapeList, shapeObject
	return table{
		{secVF, "baseline", text, onVF, ""},
		{secVF, "flr", truth, onVF, ""},

		{secMaster, "rail", number, onShared, ""},
		{secMaster, "pci", text, onShared, ""},
		{secMaster, "rdma", text, onShared, ""},
		{secMaster, "pfNames", list, onShared, ""},

		{secRDMA, "mode", text, onAll, ""},
		{secRDMA, "require", text, onAll, ""},
		{secRDMA, "softRoCE", truth, onAll, ""},
		{secRDMA, "wait", text, onAll, ""},

		{secRouting, "sourceRules", truth, onAll, later},
		{secRouting, "arp", text, onAll, later},
		{secRouting, "probe", truth, onAll, later},

		{secHint, "role", text, onAll, ""},
		{secHint, "volume", text, onAll, ""},
		{secHint, "require", truth, onAll, ""},
		{secHint, "nccl", text, onAll, ""},
		{secHint, "noRight", text, onAll, ""},
		{secHint, "failClosed", truth, onAll, ""},
		{secHint, "trafficClass", number, onAll, ""},

		{secDNS, "nameservers", list, onAll, ""},
		{secDNS, "domain", text, onAll, ""},
		{secDNS, "search", list, onAll, ""},
		{secDNS, "options", list, onAll, ""},

		{secArgs, "cni", object, onAll, ""},
	}
}

// ipamKeys are those of our own address management; another plugin's section is not looked into.
func ipamKeys() table {
	const text, number, truth, list, object = shapeString, shapeNumber, shapeBool, shapeList, shapeObject
	return table{
		{secRange, "type", text, onLinks, ""},
		{secRange, "ranges", list, onLinks, ""},
		{secRange, "subnet", text, onLinks, ""},
		{secRange, "rangeStart", text, onLinks, ""},
		{secRange, "rangeEnd", text, onLinks, ""},
		{secRange, "gateway", text, onLinks, ""},
		{secRange, "exclude", list, onLinks, ""},
		{secRange, "perNode", number, onLinks, ""},
		{secRange, "scope", text, onLinks, ""},
		{secRange, "from", text, onLinks, ""},
		{secRange, "routes", list, onLinks, ""},
		{secRange, "dns", object, onLinks, ""},
		{secRange, "defaultRoute", truth, onLinks, ""},
		{secRange, "dataDir", text, onLinks, ""},
		{secRange, "resolvConf", text, onNone, `no file is read from a network's configuration; write "dns" instead`},
		{secRange, "addresses", list, onNone, `it belongs to "type": "static"`},

		{secStatic, "type", text, onLinks, ""},
		{secStatic, "addresses", list, onLinks, ""},
		{secStatic, "routes", list, onLinks, ""},
		{secStatic, "dns", object, onLinks, ""},
		{secStatic, "defaultRoute", truth, onLinks, ""},
		{secStatic, "ranges", list, onNone, `it belongs to "type": "range"`},
		{secStatic, "subnet", text, onNone, `it belongs to "type": "range"`},

		{secSpan, "subnet", text, onLinks, ""},
		{secSpan, "rangeStart", text, onLinks, ""},
		{secSpan, "rangeEnd", text, onLinks, ""},
		{secSpan, "gateway", text, onLinks, ""},
		{secSpan, "exclude", list, onLinks, ""},
		{secSpan, "perNode", number, onLinks, ""},
		{secSpan, "scope", text, onLinks, ""},
		{secSpan, "from", text, onLinks, ""},

		{secAddress, "address", text, onLinks, ""},
		{secAddress, "gateway", text, onLinks, ""},

		{secRoute, "dst", text, onLinks, ""},
		{secRoute, "gw", text, onLinks, ""},
		{secRoute, "mtu", number, onLinks, later},
		{secRoute, "advmss", number, onLinks, later},
		{secRoute, "priority", number, onLinks, later},
		{secRoute, "table", number, onLinks, later},
		{secRoute, "scope", number, onLinks, later},
	}
}

// nodeKeys is the table of node.json (design, section 9.8).
func nodeKeys() table {
	const text, number, list, object = shapeString, shapeNumber, shapeList, shapeObject
	line := func(in section, name string, s shape) key { return key{in, name, s, onAll, ""} }
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
