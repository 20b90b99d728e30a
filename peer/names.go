// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"slices"
	"strings"

	"github.com/podfabric/podfabric/nad"
)

// addressers are the plugins that hand out addresses.
func addressers() []string {
	return []string{
		"dhcp", "host-local", "static", "whereabouts", "nv-ipam", "spiderpool", "calico-ipam", "multi-nic-ipam", "multi-nic-operator-ipam",
		"azure-vnet-ipam", "azure-ipam", "weave-ipam", "kube-ovn", "infoblox", "cilium-cni", "aws-cni", "galaxy-k8s-vlan",
	}
}

// chained are the plugins that need the interface of another one.
func chained() []string {
	return []string{
		"rdma", "tuning", "sbr", "vrf", "bandwidth", "portmap", "firewall", "coordinator", "route-override", "istio-cni",
		"linkerd-cni", "dnsname", "ovs-mirror-producer", "ovs-mirror-consumer",
	}
}

// plugins are all that are known by name.
func plugins() []string {
	return slices.Concat([]string{
		Ours, "ifacer", "sriov", "ib-sriov", "macvlan", "ipvlan", "host-device", "ipoib", "bridge", "ptp", "vlan", "dummy", "tap", "bond", "loopback", "ovs",
		"accelerated-bridge", "macvtap", "multi-nic", "multus", "multus-shim", "calico", "flannel", "cilium-cni", "weave-net", "kube-ovn",
		"ovn-k8s-cni-overlay", "antrea", "aws-cni", "egress-cni", "azure-vnet", "azure-cns", "cnv-bridge", "cnv-tuning", "userspace", "netd", "gke",
		"terway", "galaxy", "galaxy-sdn", "kuryr-cni", "danm", "ovn4nfv-k8s-cni", "vxlan", "geneve", "gre", "macsec", "netkit", "wireguard", "veth",
		"noop", "debug", "kindnet", "canal", "romana", "kube-router", "tke-route-eni", "tke-bridge", "hybridnet", "fabedge", "contrail-k8s-cni",
		"cni-genie", "knitter", "vpp", "afxdp", "ipvtap",
	}, addressers(), chained())
}

// Meant gives the plugin that a type means: itself if it is known, the one that it is a slip for, or empty.
func Meant(name string) string {
	all := plugins()
	if slices.Contains(all, name) {
		return name
	}
	plain := strings.ToLower(strings.TrimSpace(name))
	for _, suffix := range []string{"-cni", "_cni", "-plugin", "cni"} {
		if short := strings.TrimSuffix(plain, suffix); short != plain && slices.Contains(all, short) {
			return short
		}
	}
	for other, right := range map[string]string{
		"nvidia-ipam": "nv-ipam", "nvidia-k8s-ipam": "nv-ipam", "spider": "spiderpool", "spiderpool-ipam": "spiderpool", "local": "host-local",
		"sr-iov": "sriov", "infiniband": "ib-sriov", "sriov-ib": "ib-sriov", "host": "host-device",
	} {
		if plain == other {
			return right
		}
	}
	best, most := "", 2
	if len(plain) <= 4 {
		most = 1
	}
	if len(plain) < 3 || len(plain) > 64 {
		return ""
	}
	for i := range len(plain) - 1 { // two letters in the wrong order
		swapped := plain[:i] + string(plain[i+1]) + string(plain[i]) + plain[i+2:]
		if slices.Contains(all, swapped) {
			return swapped
		}
	}
	for _, other := range all {
		if d := nad.Distance(plain, other); d <= most {
			best, most = other, d-1
		}
	}
	return best
}
