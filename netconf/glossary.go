// SPDX-License-Identifier: Apache-2.0

package netconf

import (
	"slices"
	"strings"
)

// Key describes one key of a network configuration or of node.json, for documentation.
type Key struct {
	Section string // "" for the top of a configuration, "rdma", "ipam.ranges[][]", "node.json", "node.json log"
	Name    string
	Shape   string // JSON type: "a string", "a number or a string"
	// Kinds with which the key is taken; nil for a key that is always refused, and for those of node.json, which has no kinds.
	Kinds   []Kind
	Default string // what its absence means
	Unit    string // of a number or a text with one; empty: none
	Since   string // version of podfabric that took it first; empty for a key that is always refused
	What    string // one sentence
	Refused string // why it is always refused; empty for a key that is taken
}

// Keys lists every key that podfabric knows, those of configurations before those of node.json, by section. Section, name,
// shape and kinds are what Parse and ParseNode judge by.
func Keys() []Key {
	notes := allNotes()
	var keys []Key
	for _, k := range slices.Concat(configurationKeys(), nodeKeys()) {
		key := Key{Section: string(k.in), Name: k.name, Shape: k.shape.String()}
		switch {
		case k.kinds == onNone, k.why == later:
			key.Refused = k.why
		case !strings.HasPrefix(key.Section, string(secNode)):
			key.Kinds = k.kinds.list()
		}
		if i := slices.IndexFunc(notes, func(n note) bool { return n.in == k.in && n.name == k.name }); i >= 0 {
			n := notes[i]
			key.Default, key.Unit, key.Since, key.What = n.absent, n.unit, n.since, n.what
		}
		keys = append(keys, key)
	}
	return keys
}

func allNotes() []note {
	return slices.Concat(topNotes(), linkNotes(), sectionNotes(), ipamNotes(), spanNotes(), nodeNotes())
}

// list gives the kinds of a set in order.
func (k kinds) list() []Kind {
	return slices.DeleteFunc(allKinds(), func(kind Kind) bool { return k&kind.bit() == 0 })
}

// note is what the table of keys does not say.
type note struct {
	in     section
	name   string
	absent string
	unit   string
	since  string
	what   string
}

// The versions of podfabric.
const (
	v1 = "0.1.0"
	v2 = "0.2.0"
)

// megabits is the unit of rates; octets that of sizes.
const (
	megabits = "Mb/s"
	octets   = "bytes"
)

// topNotes are those on the keys at the top that every kind has.
func topNotes() []note {
	return []note{
		{secTop, "cniVersion", "an error", "", v1, "Version of the CNI specification in which the runtime speaks, 0.3.0 to 1.1.0."},
		{secTop, "name", "an error", "", v1, "Name of the network."},
		{secTop, "type", "the runtime's matter", "", v1, "Name of the plugin's binary, podfabric."},
		{
			secTop, "link", "inferred", "", v1,
			`What the attachment is made of: "vf", "macvlan", "ipvlan", "device" or "chained"; absent, a prevResult means chained, ` +
				"a VF vf, any other device device, a master without a device macvlan.",
		},
		{secTop, "capabilities", "none", "", v1, `What a pod's annotation may set by runtimeConfig and CNI_ARGS: {"mac": true, "ips": true}.`},
		{secTop, "runtimeConfig", "nothing", "", v1, "Filled by the runtime; no author writes it."},
		{secTop, "args", "nothing", "", v1, "Filled by Multus from a pod's annotation; no author writes it."},
		{secTop, "prevResult", "podfabric comes first", "", v2, "Result of the plugin before, put in by the runtime; no author writes it."},
		{secTop, "ipam", "no address", "", v1, "Who hands out addresses."},
		{secTop, "dns", "nothing", "", v1, "Passed on in the result."},
		{secTop, "logLevel", "nothing", "", v1, "No effect, warned of; the log is set in node.json."},
		{secTop, "logFile", "nothing", "", v1, "No effect, warned of; the log is set in node.json."},
		{
			secTop, "deviceID", "none", "", v1,
			"PCI address or sub-function (mlx5_core.sf.4), from Multus; with chained it must be what is behind the interface, a bare number " +
				"of the shared device plugin says nothing there or with macvlan and ipvlan.",
		},
		{secTop, "pciBusID", "none", "", v1, "Another name of deviceID; Multus writes both."},
		{
			secTop, "mtu", "as it is; macvlan and ipvlan: the master's", octets, v1,
			`MTU of the interface, 68 to 65535, or "pf" for the PF's or master's; 0 with macvlan and ipvlan is the master's.`,
		},
		{secTop, "rail", "none", "", v1, "Number of the rail, 0 to 63."},
		{secTop, "rdma", "the defaults of its keys", "", v1, "What happens to the RDMA device."},
		{secTop, "hint", "the defaults of its keys", "", v1, "How the pod learns which RDMA device and GID are its own."},
		{secTop, "routing", "nothing", "", "", "Source rules and ARP of a rail."},
	}
}

// linkNotes are those on the keys of a few kinds.
func linkNotes() []note {
	return []note{
		{secTop, "vlan", "as it is", "", v2, "VLAN of the VF, 1 to 4094; 0 takes it away."},
		{secTop, "vlanQoS", "0 with vlan", "", v2, "Priority in the VLAN's tag, 0 to 7; needs vlan."},
		{secTop, "vlanProto", "802.1q with vlan", "", v2, `Protocol of the VLAN's tag, "802.1q" or "802.1ad"; needs vlan.`},
		{
			secTop, "mac", "as it is; macvlan: made from the attachment's identity", "", v2,
			"MAC of the interface, of a VF also the administrative one; a pod's annotation goes first if the network has the capability mac.",
		},
		{secTop, "spoofchk", "as it is", "", v2, `Whether the NIC drops frames of the VF with another MAC: "on" or "off".`},
		{secTop, "trust", "as it is", "", v2, `Whether the VF may set promiscuous mode and the like: "on" or "off".`},
		{secTop, "link_state", "as it is", "", v2, `What the VF sees of the link: "auto" (the PF's), "enable" or "disable".`},
		{secTop, "min_tx_rate", "as it is", megabits, v2, "Least rate at which the VF may send; 0 is no limit."},
		{secTop, "max_tx_rate", "as it is", megabits, v2, "Highest rate at which the VF may send; 0 is no limit."},
		{secTop, "vf", "the defaults of its keys", "", v2, "What becomes of a VF before and after the pod."},
		{secVF, "baseline", "keep", "", v2, "Settings that the network does not name: keep them, or reset VLAN, trust, rates and link state."},
		{secVF, "flr", "false", "", v2, "Reset the function when the pod goes."},

		{secTop, "master", "an error", "", v2, "Link of the node to sit on: its name, or an object that finds exactly one."},
		{secMaster, "rail", "", "", v2, "The PF that node.json has for the rail."},
		{secMaster, "pci", "", "", v2, "The link of this PCI function."},
		{secMaster, "rdma", "", "", v2, "The link of the function with this RDMA device."},
		{secMaster, "pfNames", "", "", v2, "The one link whose name fits one of these patterns, with *, ? and [a-c]."},
		{
			secTop, "mode", "bridge; ipvlan: l2", "", v2,
			`Of a macvlan "bridge", "private", "vepa" or "passthru", of an ipvlan "l2".`,
		},
		{secTop, "linkInContainer", "false", "", v2, "Accepted as false; a master inside the pod is refused."},
		{secTop, "bcqueuelen", "the kernel's", "", v2, "Broadcasts that may wait for delivery to the macvlan."},
		{secTop, "device", "none", "", v2, "Name of the link to move, instead of deviceID."},
		{secTop, "hwaddr", "none", "", v2, "MAC of the link to move, instead of deviceID."},
		{secTop, "kernelpath", "none", "", v2, "Path in sysfs, below /sys/devices, of the device whose link to move, instead of deviceID."},

		{secTop, "pkey", "", "", "", "Partition of ib-sriov-cni."},
		{secTop, "guid", "", "", "", "GUID of ib-sriov-cni."},
		{secTop, "ibKubernetesEnabled", "", "", "", "Switch of ib-sriov-cni."},
		{secTop, "rdmaIsolation", "", "", "", "What rdma.mode says here."},
		{secTop, "vfioPciMode", "", "", "", "Switch of ib-sriov-cni."},
	}
}
