// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"fmt"
	"strings"

	"github.com/podfabric/podfabric/nad"
)

// unknownKey says why a key has no effect.
func unknownKey(name, plugin string, sets []keys) string {
	if why := knownMistake(name, plugin); why != "" {
		return why
	}
	if best := nearKey(name, sets); best != "" {
		return fmt.Sprintf("%s knows no such key and passes over it in silence; it means %q", plugin, best)
	}
	return plugin + " knows no such key and passes over it in silence"
}

// nearKey gives a known key at most two letters away; empty: there is none.
func nearKey(name string, sets []keys) string {
	best, most := "", 2
	plain := letters(name)
	for _, set := range sets {
		for key := range set {
			right := letters(key)
			if len(plain)-len(right) > most || len(right)-len(plain) > most {
				continue
			}
			d := nad.Distance(plain, right)
			if len(plain) >= 4 && d <= most && (d < most || best == "" || key < best) {
				best, most = key, d
			}
		}
	}
	return best
}

// letters reduces a key to what is read aloud.
func letters(s string) string {
	return strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(s, "-", ""), "_", ""))
}

// knownMistake has the words for keys that people have really written.
func knownMistake(name, plugin string) string {
	if strings.EqualFold(name, "resourceName") {
		return "the resource stands in the annotation " + nad.ResourceName + " of the definition, from which Multus brings the device"
	}
	switch plugin + " " + strings.ToLower(name) {
	case "sriov master":
		return "it was the way to name the PF in old versions of sriov; today the device comes from deviceID alone"
	case "sriov if0", "sriov if0name", "sriov l2enable", "sriov vf", "sriov dpdk":
		return "it is a key of an old fork of sriov (Intel's, 2018); today the device comes from deviceID alone"
	case "sriov pcibusid", "ib-sriov pcibusid", "sriov pciaddress", "ib-sriov pciaddress", "sriov pciaddr", "ib-sriov pciaddr":
		return plugin + " calls the PCI address deviceID"
	case "host-device deviceid":
		return "host-device calls the PCI address pciBusID, unless Multus adds it"
	case "sriov mtu":
		return "sriov cannot set an MTU; write it into a tuning entry behind sriov"
	case "sriov rdma", "sriov isrdma":
		return "sriov moves no RDMA device; put an rdma entry behind it"
	case "ib-sriov vlan", "ib-sriov vlanqos":
		return "InfiniBand has no VLANs; its partitions are pkey"
	case "ib-sriov guid":
		return "ib-sriov takes the GUID from the capability infinibandGUID or from cni-args only"
	case "macvlan vlan", "ipvlan vlan", "macvlan vlanid", "ipvlan vlanid":
		return plugin + " makes no VLAN, so the pod is in the master's network; use a VLAN interface as master"
	case "whereabouts etcd_host", "whereabouts etcd_port", "whereabouts etcd_username", "whereabouts etcd_password", "whereabouts etcd_key_file",
		"whereabouts etcd_cert_file", "whereabouts etcd_ca_cert_file":
		return "it is no longer a key of whereabouts, which keeps its addresses in Kubernetes only"
	case "host-local exclude":
		return "host-local knows no exclusions; write several ranges around them"
	case "nv-ipam routes", "spiderpool routes":
		return plugin + " takes routes from its pool, not from here"
	}
	return ""
}
