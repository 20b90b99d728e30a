// SPDX-License-Identifier: Apache-2.0

package netconf_test

import (
	"strings"
	"testing"
)

// Mistakes in "ipam": the range grammar is host-local's, so are most of the ways to get it wrong.
func TestParseRefusesIPAM(t *testing.T) {
	t.Parallel()
	const rng = `,"ipam":{"type":"range",`
	refuses(t, []refusal{
		{"ipam without type", vf(`,"ipam":{"subnet":"10.1.0.0/16"}`), 7, `add "type" to ipam`, "ipam.type"},
		{"podfabric itself", vf(`,"ipam":{"type":"podfabric"}`), 7, `use "range", "static" or another IPAM plugin: podfabric`, "ipam.type"},
		{
			"itself by another name", strings.Replace(vf(`,"ipam":{"type":"rdma"}`), `"type":"podfabric"`, `"type":"rdma"`, 1), 7,
			`use "range", "static" or another IPAM plugin: podfabric`, "ipam.type",
		},
		{"dhcp", vf(`,"ipam":{"type":"dhcp"}`), 7, `use "range", "static" or another IPAM plugin: dhcp`, "ipam.type"},
		{"ipam of a path", vf(`,"ipam":{"type":"../../bin/sh"}`), 7, "set ipam.type to the name of an IPAM plugin", "ipam.type"},
		{"ipam of dots", vf(`,"ipam":{"type":".."}`), 7, "set ipam.type to the name of an IPAM plugin", "ipam.type"},
		{"ipam type as a number", vf(`,"ipam":{"type":1}`), 7, "set ipam.type to the name of an IPAM plugin", "ipam.type"},
		{"every node alike", vf(rng + `"subnet":"10.1.0.0/16"}`), 7, `add "perNode" (prefix length of one node's block), "scope": "node"`, "ipam"},
		{"two ways", vf(rng + `"subnet":"10.1.0.0/16","perNode":26,"scope":"node"}`), 7, `keep one of "perNode", "scope" and "from"`, "ipam"},
		{"no ranges", vf(rng + `"routes":[]}`), 7, `add "subnet" or "ranges" to ipam`, "ipam.ranges"},
		{"empty ranges", vf(rng + `"ranges":[]}`), 7, `add "subnet" or "ranges" to ipam`, "ipam.ranges"},
		{"empty set", vf(rng + `"ranges":[[]]}`), 7, "write ipam.ranges as a list of lists", "ipam.ranges[0]"},
		{"ranges flat", vf(rng + `"ranges":[{"subnet":"10.1.0.0/16"}]}`), 7, "write ipam.ranges as a list of lists", "ipam.ranges[0]"},
		{"range no object", vf(rng + `"ranges":[["10.1.0.0/16"]]}`), 7, "write ipam.ranges[0][0] as an object", "ipam.ranges[0][0]"},
		{"start without subnet", vf(rng + `"rangeStart":"10.1.0.1"}`), 7, `add "subnet" beside "rangeStart"`, "ipam.subnet"},
		{"range without subnet", vf(rng + `"ranges":[[{"scope":"node"}]]}`), 7, `add "subnet" to the range`, "ipam.ranges[0][0].subnet"},
		{"subnet malformed", vf(rng + `"subnet":"10.1.0.0","scope":"node"}`), 7, "write a subnet into ipam.subnet", "ipam.subnet"},
		{"subnet with host bits", vf(rng + `"subnet":"10.1.0.1/16","scope":"node"}`), 7, "write 10.1.0.0/16 instead of 10.1.0.1/16", "ipam.subnet"},
		{"subnet of both families", vf(rng + `"subnet":"::ffff:10.0.0.0/104","scope":"node"}`), 7, "write a subnet into ipam.subnet", "ipam.subnet"},
		{"scope", vf(rng + `"subnet":"10.1.0.0/16","scope":"cluster"}`), 7, `set scope to "node"`, "ipam.scope"},
		{"from", vf(rng + `"from":"node"}`), 7, `set from to "rail"`, "ipam.from"},
		{"from rail without rail", vf(rng + `"from":"rail"}`), 7, `add "rail" with its number to the network`, "ipam.from"},
		{"from rail unknown to the node", vf(`,"rail":1` + rng + `"from":"rail"}`), 50, "write the rail's subnet into /etc/podfabric/node.json", "ipam.from"},
		{"from rail with another subnet", vf(`,"rail":0` + rng + `"from":"rail","subnet":"10.9.0.0/24"}`), 7, `remove "subnet"`, "ipam.subnet"},
		{"perNode shorter than the subnet", vf(rng + `"subnet":"10.1.0.0/16","perNode":15}`), 7, "set ipam.perNode to a whole number from 16 to 32", "ipam.perNode"},
		{"no block left", vf(rng + `"subnet":"10.1.0.0/24","perNode":26}`), 7, "widen the subnet, or make perNode longer", "ipam.perNode"},
		{"block outside start and end", vf(rng + `"subnet":"10.1.0.0/16","perNode":26,"rangeEnd":"10.1.0.200"}`), 7, "widen the range: nothing of this node's part", "ipam"},
		{"start behind end", vf(rng + `"subnet":"10.1.0.0/16","scope":"node","rangeStart":"10.1.0.9","rangeEnd":"10.1.0.8"}`), 7, "widen the range", "ipam"},
		{"start outside", vf(rng + `"subnet":"10.1.0.0/16","scope":"node","rangeStart":"10.2.0.9"}`), 7, "keep ipam.rangeStart inside the subnet", "ipam.rangeStart"},
		{"end malformed", vf(rng + `"subnet":"10.1.0.0/16","scope":"node","rangeEnd":"10.1.0.09"}`), 7, "write an IP address into ipam.rangeEnd", "ipam.rangeEnd"},
		{"gateway outside", vf(rng + `"subnet":"10.1.0.0/16","scope":"node","gateway":"10.2.0.1"}`), 7, "set ipam.gateway to an address of the subnet", "ipam.gateway"},
		{"gateway malformed", vf(rng + `"subnet":"10.1.0.0/16","scope":"node","gateway":"gw"}`), 7, "write an IP address into ipam.gateway", "ipam.gateway"},
		{"exclude outside", vf(rng + `"subnet":"10.1.0.0/16","scope":"node","exclude":["10.2.0.0/24"]}`), 7, "write ipam.exclude[0] as an address or prefix", "ipam.exclude[0]"},
		{"exclude with host bits", vf(rng + `"subnet":"10.1.0.0/16","scope":"node","exclude":["10.1.0.1/24"]}`), 7, "write ipam.exclude[0]", "ipam.exclude[0]"},
		{"all excluded", vf(rng + `"subnet":"10.1.0.0/30","scope":"node","exclude":["10.1.0.0/30"]}`), 7, "leave an address in the range", "ipam"},
		{"families mixed", vf(rng + `"ranges":[[{"subnet":"10.1.0.0/24","scope":"node"},{"subnet":"fd00::/64","scope":"node"}]]}`), 7, "move the range into an inner list of its own", "ipam.ranges[0][1].subnet"},
		{"ranges overlap", vf(rng + `"ranges":[[{"subnet":"10.1.0.0/24","scope":"node"}],[{"subnet":"10.1.0.128/25","scope":"node"}]]}`), 7, "remove one of two ranges with addresses in common", "ipam.ranges[1][0]"},
		{"alternatives overlap", vf(rng + `"ranges":[[{"subnet":"10.1.0.0/24","scope":"node"},{"subnet":"10.1.0.0/24","scope":"node"}]]}`), 7, "remove one of two ranges", "ipam.ranges[0][1]"},
		{"whereabouts' key", vf(rng + `"range":"10.1.0.0/16"}`), 7, `write "ranges" instead of "range"`, "ipam.range"},
		{"resolvConf", vf(rng + `"subnet":"10.1.0.0/16","scope":"node","resolvConf":"/etc/shadow"}`), 7, `remove "resolvConf": no file is read`, "ipam.resolvConf"},
		{"addresses in a range", vf(rng + `"addresses":[]}`), 7, `remove "addresses": it belongs to "type": "static"`, "ipam.addresses"},
		{"route key of route", vf(rng + `"subnet":"10.1.0.0/16","scope":"node","route":[]}`), 7, `write "routes" instead of "route"`, "ipam.route"},
		{"default route", vf(rng + `"subnet":"10.1.0.0/16","scope":"node","routes":[{"dst":"0.0.0.0/0","gw":"10.1.0.1"}]}`), 7, "remove the default route, or ask for it", "ipam.routes[0].dst"},
		{"default route, IPv6", vf(rng + `"subnet":"fd00::/64","scope":"node","routes":[{"dst":"::/0","gw":"fd00::1"}]}`), 7, "remove the default route", "ipam.routes[0].dst"},
		{"default route, delegate", vf(`,"ipam":{"type":"host-local","routes":[{"dst":"0.0.0.0/0"}]}`), 7, "remove the default route", "ipam.routes[0].dst"},
		{"defaultRoute as a word, delegate", vf(`,"ipam":{"type":"host-local","defaultRoute":"yes"}`), 7, `write "defaultRoute" as true or false`, "ipam.defaultRoute"},
		{"route with host bits", vf(rng + `"subnet":"10.1.0.0/16","scope":"node","routes":[{"dst":"10.2.0.1/16","gw":"10.1.0.1"}]}`), 7, "write 10.2.0.0/16 instead of 10.2.0.1/16", "ipam.routes[0].dst"},
		{"route without gateway", vf(rng + `"subnet":"10.1.0.0/16","scope":"node","routes":[{"dst":"10.2.0.0/16"}]}`), 7, `add "gateway" to the range, or "gw" to the route`, "ipam.routes[0].gw"},
		{"route without dst", vf(rng + `"subnet":"10.1.0.0/16","scope":"node","routes":[{"gw":"10.1.0.1"}]}`), 7, `add "dst" to the route`, "ipam.routes[0].dst"},
		{"route by a gateway out of reach", vf(rng + `"subnet":"10.1.0.0/16","scope":"node","routes":[{"dst":"10.2.0.0/16","gw":"10.5.0.1"}]}`), 7, "set ipam.routes[0].gw to a gateway", "ipam.routes[0].gw"},
		{"route of another family", vf(rng + `"subnet":"10.1.0.0/16","scope":"node","routes":[{"dst":"fd00::/64"}]}`), 7, "add an address of the route's family", "ipam.routes[0].dst"},
		{"route of another family than its gateway", vf(rng + `"subnet":"10.1.0.0/16","scope":"node","routes":[{"dst":"fd00::/64","gw":"10.1.0.1"}]}`), 7, "set ipam.routes[0].gw", "ipam.routes[0].gw"},
		{"route twice", vf(rng + `"subnet":"10.1.0.0/16","scope":"node","gateway":"10.1.0.1","routes":[{"dst":"10.2.0.0/16"},{"dst":"10.2.0.0/16"}]}`), 7, "keep one route to 10.2.0.0/16", "ipam.routes[1].dst"},
		{"route with a table", vf(rng + `"subnet":"10.1.0.0/16","scope":"node","routes":[{"dst":"10.2.0.0/16","table":100}]}`), 7, `remove "table", it is not built yet`, "ipam.routes[0].table"},
		{"route no object", vf(rng + `"subnet":"10.1.0.0/16","scope":"node","routes":["10.2.0.0/16"]}`), 7, "write ipam.routes[0] as an object", "ipam.routes[0]"},
		{"route with via", vf(rng + `"subnet":"10.1.0.0/16","scope":"node","routes":[{"dst":"10.2.0.0/16","via":"10.1.0.1"}]}`), 7, `write "gw" instead of "via"`, "ipam.routes[0].via"},
		{"static without addresses", vf(`,"ipam":{"type":"static"}`), 7, `add "addresses" to ipam`, "ipam.addresses"},
		{"static without length", vf(`,"ipam":{"type":"static","addresses":[{"address":"10.1.0.7"}]}`), 7, "write an address with its prefix length into ipam.addresses[0].address", "ipam.addresses[0].address"},
		{"static, the subnet's own", vf(`,"ipam":{"type":"static","addresses":[{"address":"10.1.0.0/24"}]}`), 7, "write an address with its prefix length", "ipam.addresses[0].address"},
		{"static, the broadcast", vf(`,"ipam":{"type":"static","addresses":[{"address":"10.1.0.255/24"}]}`), 7, "write an address with its prefix length", "ipam.addresses[0].address"},
		{"static, multicast", vf(`,"ipam":{"type":"static","addresses":[{"address":"224.0.0.5/24"}]}`), 7, "write an address with its prefix length", "ipam.addresses[0].address"},
		{"static, twice", vf(`,"ipam":{"type":"static","addresses":[{"address":"10.1.0.7/24"},{"address":"10.1.0.7/25"}]}`), 7, "give each address once", "ipam.addresses[1].address"},
		{"static, gateway outside", vf(`,"ipam":{"type":"static","addresses":[{"address":"10.1.0.7/24","gateway":"10.2.0.1"}]}`), 7, "set ipam.addresses[0].gateway", "ipam.addresses[0].gateway"},
		{"static, no object", vf(`,"ipam":{"type":"static","addresses":["10.1.0.7/24"]}`), 7, "write ipam.addresses[0] as an object", "ipam.addresses[0]"},
		{"subnet in static", vf(`,"ipam":{"type":"static","subnet":"10.1.0.0/24"}`), 7, `remove "subnet": it belongs to "type": "range"`, "ipam.subnet"},
	})
}
