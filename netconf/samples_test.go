// SPDX-License-Identifier: Apache-2.0

package netconf_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/podfabric/podfabric/netconf"
)

// samples gives each key of the table a value that is right where the key is taken at all.
func samples() map[string]string {
	return map[string]string{
		"cniVersion": `"1.1.0"`, "name": `"rail0"`, "type": `"podfabric"`, "link": `"vf"`, "capabilities": `{"mac":true}`,
		"runtimeConfig": `{}`, "args": `{}`, "prevResult": previous, "ipam": `{"type":"range","subnet":"10.1.0.0/16","scope":"node"}`,
		"dns": `{"domain":"d"}`, "logLevel": `"debug"`, "logFile": `"/var/log/x"`, "deviceID": `"0000:3b:00.2"`,
		"pciBusID": `"0000:3b:00.2"`, "mtu": `9000`, "rail": `0`, "rdma": `{"mode":"auto"}`, "hint": `{"role":"compute"}`,
		"routing": `{"arp":"strict"}`, "vlan": `100`, "vlanQoS": `3`, "vlanProto": `"802.1q"`, "mac": `"02:00:00:00:00:01"`,
		"spoofchk": `"off"`, "trust": `"on"`, "link_state": `"auto"`, "min_tx_rate": `0`, "max_tx_rate": `0`,
		"vf": `{"baseline":"reset"}`, "master": `"ens1"`, "mode": `"bridge"`, "linkInContainer": `false`, "bcqueuelen": `1000`,
		"device": `"ens1"`, "hwaddr": `"02:00:00:00:00:01"`, "kernelpath": `"/sys/devices/x"`, "pkey": `"0x5"`,
		"guid": `"02:00:00:00:00:00:00:01"`, "ibKubernetesEnabled": `false`, "rdmaIsolation": `true`, "vfioPciMode": `true`,

		"rdma.mode": `"move"`, "rdma.require": `"gid"`, "rdma.softRoCE": `true`, "rdma.wait": `"2s"`,
		"routing.sourceRules": `true`, "routing.arp": `"strict"`, "routing.probe": `true`, "vf.baseline": `"keep"`, "vf.flr": `true`,
		"master.rail": `0`, "master.pci": `"0000:3b:00.0"`, "master.rdma": `"mlx5_0"`, "master.pfNames": `["ens1f*"]`,
		"hint.role": `"other"`, "hint.volume": `"fabric"`, "hint.require": `true`, "hint.nccl": `">=2.21"`, "hint.noRight": `"fail"`,
		"hint.failClosed": `true`, "hint.trafficClass": `106`,
		"dns.nameservers": `["10.0.0.53"]`, "dns.domain": `"d"`, "dns.search": `["s"]`, "dns.options": `["o"]`, "args.cni": `{}`,

		"ipam (range).type": `"range"`, "ipam (range).ranges": `[[{"subnet":"10.2.0.0/16","scope":"node"}]]`,
		"ipam (range).subnet": `"10.1.0.0/16"`, "ipam (range).rangeStart": `"10.1.0.9"`, "ipam (range).rangeEnd": `"10.1.9.9"`,
		"ipam (range).gateway": `"10.1.0.1"`, "ipam (range).exclude": `["10.1.0.2"]`, "ipam (range).perNode": `26`,
		"ipam (range).scope": `"node"`, "ipam (range).from": `"rail"`, "ipam (range).routes": `[]`, "ipam (range).dns": `{}`,
		"ipam (range).defaultRoute": `true`, "ipam (range).dataDir": `"/x"`, "ipam (range).resolvConf": `"/etc/resolv.conf"`,
		"ipam (range).addresses":  `[]`,
		"ipam (static).addresses": `[{"address":"10.1.0.7/24"}]`, "ipam (static).type": `"static"`, "ipam (static).routes": `[]`,
		"ipam (static).dns": `{}`, "ipam (static).defaultRoute": `true`, "ipam (static).ranges": `[]`,
		"ipam (static).subnet": `"10.1.0.0/16"`,

		"ipam.ranges[][].subnet": `"10.1.0.0/16"`, "ipam.ranges[][].rangeStart": `"10.1.0.9"`, "ipam.ranges[][].rangeEnd": `"10.1.9.9"`,
		"ipam.ranges[][].gateway": `"10.1.0.1"`, "ipam.ranges[][].exclude": `["10.1.0.2"]`, "ipam.ranges[][].perNode": `26`,
		"ipam.ranges[][].scope": `"node"`, "ipam.ranges[][].from": `"rail"`,
		"ipam.addresses[].address": `"10.1.0.7/24"`, "ipam.addresses[].gateway": `"10.1.0.1"`,
		"ipam.routes[].dst": `"10.2.0.0/16"`, "ipam.routes[].gw": `"10.1.0.1"`, "ipam.routes[].mtu": `9000`,
		"ipam.routes[].advmss": `1400`, "ipam.routes[].priority": `10`, "ipam.routes[].table": `100`, "ipam.routes[].scope": `0`,
	}
}

// previous is the result of a plugin that made the interface of raw.
const previous = `{"cniVersion":"1.1.0","interfaces":[{"name":"net1","mac":"02:00:00:00:00:09","sandbox":"/run/netns/a"}],` +
	`"ips":[{"interface":0,"address":"10.1.0.7/24"}]}`

// around is what a configuration of a kind needs beside the key that is looked at.
func around(kind netconf.Kind, in, name string) map[string]string {
	top := map[string]string{"cniVersion": `"1.1.0"`, "name": `"rail0"`, "type": `"podfabric"`, "link": `"` + string(kind) + `"`}
	switch kind {
	case netconf.KindVF:
		top["deviceID"] = `"0000:3b:00.2"`
	case netconf.KindDevice:
		if !slices.Contains([]string{"device", "hwaddr", "kernelpath"}, name) {
			top["deviceID"] = `"0000:3b:00.2"`
		}
	case netconf.KindMacvlan, netconf.KindIPVlan:
		top["master"] = `"ens1"`
	case netconf.KindChained:
		top["prevResult"] = previous
	}
	if kind == netconf.KindVF && (name == "vlanQoS" || name == "vlanProto") {
		top["vlan"] = "100"
	}
	if strings.HasPrefix(in, "ipam") || in == "master" {
		top["rail"] = "0"
	}
	return top
}

// document is a configuration with one key set, and around it what the key needs to be judged by itself.
func document(kind netconf.Kind, in, name, sample string) string {
	set := fmt.Sprintf("%q:%s", name, sample)
	top := around(kind, in, name)
	switch in {
	case "":
		top[name] = sample
	case "ipam (range)":
		if name == "type" {
			name, set = "scope", `"scope":"node"`
		}
		top["ipam"] = `{"type":"range",` + span(name, set) + `}`
	case "ipam (static)":
		if name == "addresses" || name == "type" {
			top["ipam"] = `{"type":"static","addresses":[{"address":"10.1.0.7/24"}]}`
			break
		}
		top["ipam"] = `{"type":"static","addresses":[{"address":"10.1.0.7/24"}],` + set + `}`
	case "ipam.ranges[][]":
		top["ipam"] = `{"type":"range","ranges":[[{` + span(name, set) + `}]]}`
	case "ipam.addresses[]":
		if name == "gateway" {
			set = `"address":"10.1.0.7/24",` + set
		}
		top["ipam"] = `{"type":"static","addresses":[{` + set + `}]}`
	case "ipam.routes[]":
		if name != "dst" {
			set = `"dst":"10.2.0.0/16",` + set
		}
		top["ipam"] = `{"type":"static","addresses":[{"address":"10.1.0.7/24"}],"routes":[{` + set + `}]}`
	default:
		top[in] = "{" + set + "}"
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(top)) {
		parts = append(parts, fmt.Sprintf("%q:%s", key, top[key]))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// span puts a key of a range beside one of the ways to cut a subnet, which exclude each other.
func span(name, set string) string {
	switch name {
	case "subnet":
		return set + `,"scope":"node"`
	case "perNode", "scope":
		return `"subnet":"10.1.0.0/16",` + set
	case "from":
		return set
	}
	return `"subnet":"10.1.0.0/16","scope":"node",` + set
}
