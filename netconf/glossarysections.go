// SPDX-License-Identifier: Apache-2.0

package netconf

import "fmt"

// sectionNotes are those on the objects that every kind has.
func sectionNotes() []note {
	return []note{
		{
			secRDMA, "mode", "auto", "", v1,
			`"auto" moves the RDMA device in an exclusive node and shares it in a shared one, "move" and "share" refuse the other, ` +
				`"off" does not look at RDMA.`,
		},
		{
			secRDMA, "require", "active with an RDMA device and an address, else no", "", v1,
			`What must work before the pod starts: "active" (GID and port), "gid" or "no".`,
		},
		{secRDMA, "softRoCE", "false", "", v1, "Make a soft RoCE device on the pod's interface, for trying out without an RDMA NIC."},
		{secRDMA, "wait", DefaultWait.String(), "Go duration", v1, "How long to wait for the GID and the port together."},

		{secRouting, "sourceRules", "", "", "", "Route by the pod's own address."},
		{secRouting, "arp", "", "", "", "Which ARP requests the interface answers."},
		{secRouting, "probe", "", "", "", "Ask the network for the address before it is used."},

		{
			secHint, "role", "compute with rail, or if no attachment of the pod says either", "", v1,
			`"compute" puts the device into NCCL's list, "other" leaves it out.`,
		},
		{secHint, "volume", DefaultVolume, "", v1, "Name of the pod's emptyDir that the hint is written into."},
		{secHint, "require", "false", "", v1, "Fail if the hint cannot be delivered."},
		{secHint, "nccl", ">=" + DefaultNCCL, "", v1, "Oldest NCCL that must read the hint right."},
		{secHint, "noRight", "warn", "", v1, `What happens when no setting makes every rail come out right: "warn" or "fail".`},
		{secHint, "failClosed", "false", "", v1, "Make NCCL stop rather than fall back to TCP."},
		{secHint, "trafficClass", "nothing said", "", v1, "Traffic class for NCCL, 0 to 255."},

		{secDNS, "nameservers", "none", "", v1, "IP addresses of resolvers."},
		{secDNS, "domain", "none", "", v1, "Local domain."},
		{secDNS, "search", "none", "", v1, "Domains to search."},
		{secDNS, "options", "none", "", v1, "Options of the resolver."},

		{secArgs, "cni", "nothing", "", v1, "From a pod's annotation, which may set debug alone."},
	}
}

// ipamNotes are those on the section "ipam" and its lists.
func ipamNotes() []note {
	const notOurs = "A key of the other way to hand out addresses."
	list := []note{
		{secRange, "type", "an error", "", v1, `"range".`},
		{secRange, "ranges", "the flat keys", "", v1, "One inner list for each address, with alternatives in it."},
		{secRange, "routes", "none", "", v1, "Routes of the interface."},
		{secRange, "dns", "nothing", "", v1, "Passed on in the result."},
		{secRange, "defaultRoute", "false", "", v1, "Allow a default route by this interface."},
		{secRange, "dataDir", "nothing", "", v1, "No effect, warned of; leases live below /run/podfabric."},
		{secRange, "resolvConf", "", "", "", "File of host-local with the resolver's settings."},
		{secRange, "addresses", "", "", "", notOurs},

		{secStatic, "type", "an error", "", v1, `"static".`},
		{secStatic, "addresses", "an error, unless the pod asks for some", "", v1, "Addresses of the interface."},
		{secStatic, "routes", "none", "", v1, "Routes of the interface."},
		{secStatic, "dns", "nothing", "", v1, "Passed on in the result."},
		{secStatic, "defaultRoute", "false", "", v1, "Allow a default route by this interface."},
		{secStatic, "ranges", "", "", "", notOurs},
		{secStatic, "subnet", "", "", "", notOurs},

		{secAddress, "address", "an error", "", v1, "Address with its prefix length."},
		{secAddress, "gateway", "none", "", v1, "Gateway of routes that name none."},

		{secRoute, "dst", "an error", "", v1, "Destination with its prefix length."},
		{secRoute, "gw", "the gateway of the first address of its family", "", v1, "Gateway of the route."},
		{secRoute, "mtu", "", octets, "", "MTU on the route."},
		{secRoute, "advmss", "", octets, "", "Segment size to announce."},
		{secRoute, "priority", "", "", "", "Metric of the route."},
		{secRoute, "table", "", "", "", "Number of the routing table."},
		{secRoute, "scope", "", "", "", "Scope of the route."},
	}
	return list
}

// spanNotes are those on the keys of a range, which stand in ipam itself and in its lists.
func spanNotes() []note {
	var list []note
	for _, in := range []section{secRange, secSpan} {
		list = append(
			list,
			note{in, "subnet", "an error, but with from", "", v1, "Subnet of the addresses."},
			note{in, "rangeStart", "the subnet's first", "", v1, "First address to hand out."},
			note{in, "rangeEnd", "the subnet's last", "", v1, "Last address to hand out."},
			note{in, "gateway", "none", "", v1, "Gateway of routes that name none."},
			note{in, "exclude", "none", "", v1, "Addresses and prefixes never to hand out."},
			note{in, "perNode", "one of perNode, scope and from is needed", "", v1, "Prefix length of one node's block of the subnet."},
			note{in, "scope", "one of perNode, scope and from is needed", "", v1, `"node": the subnet is this node's alone.`},
			note{in, "from", "one of perNode, scope and from is needed", "", v1, `"rail": the subnet that node.json has for the rail.`},
		)
	}
	return list
}

// nodeNotes are those on node.json.
func nodeNotes() []note {
	return []note{
		{secNode, "version", fmt.Sprint(nodeVersion), "", v1, "Version of the file's form."},
		{secNode, "index", "not known", "", v1, "Number of the node in its cluster, from 0, another one on each node."},
		{secNode, "rails", "none", "", v1, "What is known of each rail, by its number."},
		{secNode, "expectedRails", "not said", "", v1, "Rails that a pod should see."},
		{secNode, "allow", "everything", "", v1, "What attachments may use; an absent list allows all, an empty one nothing."},
		{secNode, "podMayChooseDevice", "false", "", v1, "Let a pod's annotation choose the device."},
		{secNode, "overrideGuards", "none", "", v1, "Devices that may be given away though the node itself uses them."},
		{secNode, "kubeletRoot", DefaultKubeletRoot, "", v1, "Root folder of kubelet."},
		{secNode, "hint", "the defaults of its keys", "", v1, "How the hint gets into the pod."},
		{secNode, "uverbs", "refuse", "", v1, `What happens when a uverbs number would change: "refuse" or "agent".`},
		{secNode, "deadline", DefaultDeadline.String(), "Go duration", v1, "Bound of all waits of one call together."},
		{secNode, "log", "the defaults of its keys", "", v1, "Where and how to log."},
		{secNodeRail, "pci", "not said", "", v1, "PCI address of the rail's PF."},
		{secNodeRail, "subnet", "not said", "", v1, "Subnet of the rail that is this node's alone."},
		{secNodeRail, "gateway", "none", "", v1, "Gateway in that subnet."},
		{secNodeAllow, "pfs", "all", "", v1, "PCI addresses of PFs whose VFs, or which themselves, may be given to pods."},
		{secNodeAllow, "masters", "all", "", v1, "Names of links that a macvlan or ipvlan may sit on."},
		{secNodeAllow, "kinds", "all", "", v1, "Kinds of attachments."},
		{secNodeAllow, "subnets", "all", "", v1, "Subnets of which pods may have addresses."},
		{secNodeHint, "delivery", "volume", "", v1, `"volume": ADD writes the hint into the pod's emptyDir; "agent": podfabricd mounts it.`},
		{secNodeLog, "file", "none", "", v1, "File to log to beside standard error."},
		{secNodeLog, "level", "info", "", v1, `"debug", "info", "warn" or "error".`},
		{secNodeLog, "format", "text", "", v1, `"text" or "json".`},
	}
}
