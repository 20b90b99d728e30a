// SPDX-License-Identifier: Apache-2.0

package netconf_test

import (
	"strings"
	"testing"

	"github.com/podfabric/podfabric/netconf"
)

// chained wraps keys into a configuration behind another plugin.
func chained(keys string) string { return network(`,"prevResult":` + previous + keys) }

func TestParseRefusesKinds(t *testing.T) {
	t.Parallel()
	const number = "use an SR-IOV resource: this number is from the RDMA shared device plugin"
	refuses(t, []refusal{
		{"a device and a master", vf(`,"master":"ens1"`), 7, `add "link" to the network: it names a device to move and a master`, "link"},
		{"a sub-function and a master", network(`,"master":"ens1","deviceID":"mlx5_core.sf.4"`), 7, `add "link" to the network`, "link"},
		{"result and a master", chained(`,"master":"ens1"`), 7, `remove "master", it has no meaning with "link": "chained"`, "master"},
		{"macvlan behind another plugin", chained(`,"master":"ens1","link":"macvlan"`), 7, `put podfabric first in "plugins"`, "prevResult"},
		{"ipvlan behind another plugin", chained(`,"master":"ens1","link":"ipvlan"`), 7, `put podfabric first in "plugins"`, "prevResult"},
		{"device behind another plugin", chained(`,"device":"ens1","link":"device"`), 7, `put podfabric first in "plugins"`, "prevResult"},

		{"no device, device said", network(`,"link":"device"`), 7, "add the annotation k8s.v1.cni.cncf.io/resourceName", "deviceID"},
		{"a number with device", network(`,"link":"device","deviceID":"17"`), 7, number, "deviceID"},
		{"a number with hwaddr", network(`,"hwaddr":"02:00:00:00:00:01","pciBusID":"17"`), 7, number, "pciBusID"},
		{"a name as deviceID", network(`,"link":"device","deviceID":"ens1"`), 7, "write the device as a full PCI address or as a sub-function", "deviceID"},
		{"two ways", network(`,"device":"ens1","hwaddr":"02:00:00:00:00:01"`), 7, `keep "device" or "hwaddr", they name one device in two ways`, "hwaddr"},
		{"two ways, Multus' the first", vf(`,"device":"ens1"`), 7, `keep "deviceID" or "device"`, "device"},
		{"two ways, kernelpath", network(`,"hwaddr":"02:00:00:00:00:01","kernelpath":"/sys/devices/x"`), 7, `keep "hwaddr" or "kernelpath"`, "kernelpath"},
		{"device of a path", network(`,"device":"../ens1"`), 7, "write device as the name of a link of the node", "device"},
		{"device with a blank", network(`,"device":"ens 1"`), 7, "write device as the name of a link of the node", "device"},
		{"device with a colon", network(`,"device":"ens1:0"`), 7, "write device as the name of a link of the node", "device"},
		{"device of dots", network(`,"device":".."`), 7, "write device as the name of a link of the node", "device"},
		{"device with a control character", network(`,"device":"ens\u200b1"`), 7, "write device as the name of a link of the node", "device"},
		{"device too long", network(`,"device":"` + strings.Repeat("a", 128) + `"`), 7, "write device as the name of a link of the node", "device"},
		{"hwaddr", network(`,"hwaddr":"ens1"`), 7, "write a MAC address into hwaddr", "hwaddr"},
		{"hwaddr of InfiniBand", network(`,"hwaddr":"80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:00:00:01"`), 7, "write a MAC address into hwaddr", "hwaddr"},
		{"kernelpath elsewhere", network(`,"kernelpath":"/etc/passwd"`), 7, "write kernelpath as the path of a device in sysfs", "kernelpath"},
		{"kernelpath upwards", network(`,"kernelpath":"/sys/devices/a/../b"`), 7, "write kernelpath as the path of a device in sysfs", "kernelpath"},
		{"kernelpath relative", network(`,"kernelpath":"sys/devices/a"`), 7, "write kernelpath as the path of a device in sysfs", "kernelpath"},
		{"kernelpath of all", network(`,"kernelpath":"/sys/devices/"`), 7, "write kernelpath as the path of a device in sysfs", "kernelpath"},
		{"kernelpath with a zero", network(`,"kernelpath":"/sys/devices/a\u0000"`), 7, "write kernelpath as the path of a device in sysfs", "kernelpath"},
		{"mtu of a device's PF", network(`,"device":"ens1","mtu":"pf"`), 7, "write mtu as a number, a whole device has no PF", "mtu"},
		{"mtu zero of a device", network(`,"device":"ens1","mtu":0`), 7, "set mtu to a number from 68 to 65535", "mtu"},
		{"mtu zero of a VF", vf(`,"mtu":0`), 7, `set mtu to a number from 68 to 65535, or "pf"`, "mtu"},

		{"VLAN on a device", network(`,"device":"ens1","vlan":100`), 7, `remove "vlan", it has no meaning with "link": "device"`, "vlan"},
		{"ipam behind another plugin", chained(`,"ipam":{"type":"nv-ipam"}`), 7, `remove "ipam", it has no meaning with "link": "chained": the plugin before`, "ipam"},
		{"mtu behind another plugin", chained(`,"mtu":9000`), 7, `remove "mtu", it has no meaning with "link": "chained"`, "mtu"},
		{"mac behind another plugin", chained(`,"mac":"02:00:00:00:00:01"`), 7, `remove "mac", it has no meaning with "link": "chained"`, "mac"},
		{"mac of an ipvlan", network(`,"master":"ens1","link":"ipvlan","mac":"02:00:00:00:00:01"`), 7, `remove "mac", it has no meaning with "link": "ipvlan"`, "mac"},
		{"bcqueuelen of an ipvlan", network(`,"master":"ens1","link":"ipvlan","bcqueuelen":1`), 7, `remove "bcqueuelen"`, "bcqueuelen"},
		{"a device behind it that is none", chained(`,"deviceID":"ens1"`), 7, "write the device as a full PCI address or as a sub-function", "deviceID"},
		{"routing on a macvlan", network(`,"master":"ens1","routing":{"arp":"strict"}`), 7, `remove "routing", it is not built yet`, "routing"},
		{"routing behind another plugin", chained(`,"routing":{}`), 7, `remove "routing", it is not built yet`, "routing"},
		{"vfioPciMode", vf(`,"vfioPciMode":true`), 7, `remove "vfioPciMode": podfabric sees by itself`, "vfioPciMode"},
	})
}

func TestParseRefusesMasters(t *testing.T) {
	t.Parallel()
	master := func(value string) string { return network(`,"master":` + value) }
	refuses(t, []refusal{
		{"none", network(`,"link":"macvlan"`), 7, `add "master" to the network: podfabric takes no link by itself`, "master"},
		{"none, ipvlan", network(`,"link":"ipvlan","master":null`), 7, `add "master" to the network`, "master"},
		{"empty", network(`,"link":"ipvlan","master":""`), 7, `add "master" to the network`, "master"},
		{"nothing in it", master(`{}`), 7, `say in "master" which link it is`, "master"},
		{"nothing known in it", master(`{"name":"ens1"}`), 7, `say in "master" which link it is`, "master"},
		{"two in it", master(`{"rdma":"mlx5_0","rail":0}`), 7, `keep "rail" or "rdma" in master`, "master.rdma"},
		{"as a list", master(`["ens1"]`), 7, `write "master" as a string or an object`, "master"},
		{"misspelt", master(`{"PFNames":["ens1"]}`), 7, `write "pfNames" instead of "PFNames"`, "master.PFNames"},
		{"misspelt in the device plugin's way", master(`{"pciAddress":"0000:3b:00.0"}`), 7, `write "pci" instead of "pciAddress"`, "master.pciAddress"},
		{"name of a path", master(`"a/b"`), 7, "write master as the name of a link of the node", "master"},
		{"name too long", master(`"` + strings.Repeat("a", 128) + `"`), 7, "write master as the name of a link of the node", "master"},
		{"rail as a word", master(`{"rail":"0"}`), 7, `write "rail" as a number`, "master.rail"},
		{"rail too high", master(`{"rail":64}`), 7, "set master.rail to a whole number from 0 to 63", "master.rail"},
		{"rail unknown to the node", master(`{"rail":5}`), 50, "write the PF of the rail into /etc/podfabric/node.json", "master.rail"},
		{"rail without pci", master(`{"rail":0}`), 50, "write the PF of the rail into /etc/podfabric/node.json", "master.rail"},
		{"two rails", network(`,"master":{"rail":0},"rail":1`), 7, "give rail and master.rail the same number", "master.rail"},
		{"pci short", master(`{"pci":"3b:00.0"}`), 7, "write master.pci as the PF's full PCI address", "master.pci"},
		{"pci zero", master(`{"pci":"0000:00:00.0"}`), 7, "write master.pci as the PF's full PCI address", "master.pci"},
		{"rdma empty", master(`{"rdma":""}`), 7, "write master.rdma as the name of an RDMA device", "master.rdma"},
		{"rdma of a path", master(`{"rdma":"../mlx5_0"}`), 7, "write master.rdma as the name of an RDMA device", "master.rdma"},
		{"rdma of dots", master(`{"rdma":".."}`), 7, "write master.rdma as the name of an RDMA device", "master.rdma"},
		{"rdma too long", master(`{"rdma":"` + strings.Repeat("a", 64) + `"}`), 7, "write master.rdma as the name of an RDMA device", "master.rdma"},
		{"no pattern", master(`{"pfNames":[]}`), 7, "name a PF in master.pfNames", "master.pfNames"},
		{"a pattern as a word", master(`{"pfNames":"ens1f*"}`), 7, `write "pfNames" as a list`, "master.pfNames"},
		{"an empty pattern", master(`{"pfNames":["ens1",""]}`), 7, "write master.pfNames[1] as a pattern", "master.pfNames[1]"},
		{"a pattern that does not close", master(`{"pfNames":["ens[1"]}`), 7, "write master.pfNames[0] as a pattern", "master.pfNames[0]"},
		{"a pattern that does not close, further on", master(`{"pfNames":["zzz[1"]}`), 7, "write master.pfNames[0] as a pattern", "master.pfNames[0]"},
		{"a pattern that ends in an escape", master(`{"pfNames":["ens\\"]}`), 7, "write master.pfNames[0] as a pattern", "master.pfNames[0]"},
		{"a pattern with a control character", master(`{"pfNames":["ens\u0007*"]}`), 7, "write master.pfNames[0] as a pattern", "master.pfNames[0]"},
		{"a pattern too long", master(`{"pfNames":["` + strings.Repeat("*", 128) + `"]}`), 7, "write master.pfNames[0] as a pattern", "master.pfNames[0]"},
		{"a pattern that is a number", master(`{"pfNames":[1]}`), 7, "write master.pfNames[0] as a string", "master.pfNames[0]"},

		{"mode of an ipvlan", network(`,"master":"ens1","mode":"l2"`), 7, `set mode to "bridge" or "private" or "vepa" or "passthru" for "link": "macvlan"`, "mode"},
		{"mode source", network(`,"master":"ens1","mode":"source"`), 7, `set mode to "bridge"`, "mode"},
		{"mode of a macvlan", network(`,"master":"ens1","link":"ipvlan","mode":"bridge"`), 7, `set mode to "l2" for "link": "ipvlan"`, "mode"},
		{"l3", network(`,"master":"ens1","link":"ipvlan","mode":"l3"`), 7, `set mode to "l2": that RoCE finds its way from an ipvlan in mode l3 is unproven`, "mode"},
		{"l3s", network(`,"master":"ens1","link":"ipvlan","mode":"l3s"`), 7, `set mode to "l2": that RoCE finds its way from an ipvlan in mode l3s is unproven`, "mode"},
		{"linkInContainer", network(`,"master":"ens1","linkInContainer":true`), 7, "remove linkInContainer, and name a link of the node", "linkInContainer"},
		{"bcqueuelen below zero", network(`,"master":"ens1","bcqueuelen":-1`), 7, "set bcqueuelen to a whole number from 0", "bcqueuelen"},
		{"bcqueuelen too high", network(`,"master":"ens1","bcqueuelen":4294967296`), 7, "set bcqueuelen to a whole number from 0 to 4294967295", "bcqueuelen"},
		{"mtu", network(`,"master":"ens1","mtu":67`), 7, `set mtu to a number from 68 to 65535, 0 for the master's or "pf"`, "mtu"},
		{"mtu below zero", network(`,"master":"ens1","mtu":-1`), 7, "set mtu to a number", "mtu"},
		{"mtu as a word", network(`,"master":"ens1","mtu":"0"`), 7, "set mtu to a number", "mtu"},
		{"RDMA moved", network(`,"master":"ens1","rdma":{"mode":"move"}`), 7, `set rdma.mode to "auto" or "share", or use a VF: the RDMA device below a macvlan is its master's and never moves`, "rdma.mode"},
		{"RDMA moved, ipvlan", network(`,"master":"ens1","link":"ipvlan","rdma":{"mode":"move"}`), 7, `set rdma.mode to "auto" or "share"`, "rdma.mode"},
		{"soft RoCE, shared", network(`,"master":"ens1","rdma":{"softRoCE":true,"mode":"share"}`), 7, `set rdma.mode to "auto", or remove rdma.softRoCE`, "rdma.softRoCE"},
		{"passthru with a MAC", network(`,"master":"ens1","mode":"passthru","mac":"02:00:00:00:00:01"`), 7, "remove the MAC: a macvlan in mode passthru has the MAC of its master", "mac"},
		{"passthru with the pod's MAC", network(`,"master":"ens1","mode":"passthru","capabilities":{"mac":true},"runtimeConfig":{"mac":"02:00:00:00:00:01"}`), 7, "remove the MAC from the pod's annotation", "runtimeConfig.mac"},
	})
}

func TestParseRefusesVFSettings(t *testing.T) {
	t.Parallel()
	refuses(t, []refusal{
		{"vlan too high", vf(`,"vlan":4095`), 7, "set vlan to a whole number from 0 to 4094", "vlan"},
		{"vlan below zero", vf(`,"vlan":-1`), 7, "set vlan to a whole number from 0 to 4094", "vlan"},
		{"vlan as a fraction", vf(`,"vlan":1.5`), 7, "set vlan to a whole number from 0 to 4094", "vlan"},
		{"priority too high", vf(`,"vlan":1,"vlanQoS":8`), 7, "set vlanQoS to a whole number from 0 to 7", "vlanQoS"},
		{"priority alone", vf(`,"vlanQoS":0`), 7, `add "vlan" beside vlanQoS, or remove vlanQoS`, "vlanQoS"},
		{"priority without a VLAN", vf(`,"vlan":0,"vlanQoS":3`), 7, `add "vlan" beside vlanQoS, or remove vlanQoS`, "vlanQoS"},
		{"protocol", vf(`,"vlan":1,"vlanProto":"qinq"`), 7, `set vlanProto to "802.1q" or "802.1ad"`, "vlanProto"},
		{"protocol alone", vf(`,"vlanProto":"802.1q"`), 7, `add "vlan" beside vlanProto, or remove vlanProto`, "vlanProto"},
		{"protocol without a VLAN", vf(`,"vlan":0,"vlanProto":"802.1AD"`), 7, `add "vlan" beside vlanProto, or remove vlanProto`, "vlanProto"},
		{"spoofchk", vf(`,"spoofchk":"no"`), 7, `set spoofchk to "on" or "off"`, "spoofchk"},
		{"spoofchk as truth", vf(`,"spoofchk":false`), 7, `write "on" or "off", in quotes: spoofchk, found false`, "spoofchk"},
		{"trust as a number", vf(`,"trust":1`), 7, `write "on" or "off", in quotes: trust, found 1`, "trust"},
		{"trust", vf(`,"trust":"ON"`), 7, `set trust to "on" or "off"`, "trust"},
		{"link_state", vf(`,"link_state":"up"`), 7, `set link_state to "auto" or "enable" or "disable"`, "link_state"},
		{"min_tx_rate", vf(`,"min_tx_rate":-1`), 7, "set min_tx_rate to a whole number from 0", "min_tx_rate"},
		{"max_tx_rate", vf(`,"max_tx_rate":1e3`), 7, "set max_tx_rate to a whole number from 0", "max_tx_rate"},
		{"rates crossed", vf(`,"min_tx_rate":200,"max_tx_rate":100`), 7, "set min_tx_rate to at most max_tx_rate", "min_tx_rate"},
		{"baseline", vf(`,"vf":{"baseline":"clean"}`), 7, `set vf.baseline to "keep" or "reset"`, "vf.baseline"},
		{"flr", vf(`,"vf":{"flr":"yes"}`), 7, `write "flr" as true or false`, "vf.flr"},
		{"vf misspelt", vf(`,"vf":{"FLR":true}`), 7, `write "flr" instead of "FLR"`, "vf.FLR"},
		{"vf as a word", vf(`,"vf":"reset"`), 7, `write "vf" as an object`, "vf"},
	})
}

func TestParseRefusesMACs(t *testing.T) {
	t.Parallel()
	var tests []refusal
	for text, remedy := range map[string]string{
		"ens1": "write a MAC address into mac", "02:00:00:00:00": "write a MAC address into mac", "02:00:00:00:00:01:02": "write a MAC",
		"02:00:00:00:00:0g": "write a MAC address into mac", "2:0:0:0:0:1": "write a MAC address into mac",
		"02:00-00:00:00:01": "write a MAC address into mac", "020000000001": "write a MAC address into mac",
		"0200.0000.00": "write a MAC address into mac", "02:00:00:00:00: 1": "write a MAC", `02:00:00:00:00:\n1`: "write a MAC",
		"00:00:00:00:00:00": "write a MAC address into mac, or remove it: zeros are none",
		"ff:ff:ff:ff:ff:ff": "write a unicast MAC address into mac: this one is of a group",
		"33-33-00-00-00-01": "write a unicast MAC address into mac: this one is of a group",
		"0100.5e00.0001":    "write a unicast MAC address into mac: this one is of a group",
	} {
		tests = append(
			tests,
			refusal{"vf " + text, vf(`,"mac":"` + text + `"`), 7, remedy, "mac"},
			refusal{"macvlan " + text, network(`,"master":"ens1","mac":"` + text + `"`), 7, remedy, "mac"},
			refusal{
				"runtime " + text, vf(`,"capabilities":{"mac":true},"runtimeConfig":{"mac":"` + text + `"}`), 7,
				strings.ReplaceAll(remedy, "into mac", "into runtimeConfig.mac"), "runtimeConfig.mac",
			},
		)
	}
	refuses(t, append(
		tests,
		refusal{"a number", vf(`,"mac":1`), 7, `write "mac" as a string`, "mac"},
		refusal{"the runtime's as a number", vf(`,"capabilities":{"mac":true},"runtimeConfig":{"mac":1}`), 7, "write runtimeConfig.mac as a string", "runtimeConfig.mac"},
		refusal{"no consent", vf(`,"runtimeConfig":{"mac":"02:00:00:00:00:01"}`), 7, `add "capabilities": {"mac": true} to the network`, "runtimeConfig.mac"},
		refusal{"consent withdrawn", vf(`,"capabilities":{"mac":false},"runtimeConfig":{"mac":"02:00:00:00:00:01"}`), 7, `add "capabilities": {"mac": true} to the network`, "runtimeConfig.mac"},
		refusal{"the author's is wrong, the pod's right", vf(`,"mac":"x","capabilities":{"mac":true},"runtimeConfig":{"mac":"02:00:00:00:00:01"}`), 7, "write a MAC address into mac", "mac"},
	))
}

// What a pod's annotation says in CNI_ARGS reaches the parser without the network's consent.
func TestParseRefusesMACOfArgs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ stdin, args, remedy string }{
		{vf(""), "IgnoreUnknown=1;MAC=02:00:00:00:00:01", `add "capabilities": {"mac": true} to the network`},
		{network(`,"master":"ens1"`), "MAC=02:00:00:00:00:01", `add "capabilities": {"mac": true} to the network`},
		{network(`,"master":"ens1","link":"ipvlan","capabilities":{"mac":true}`), "MAC=02:00:00:00:00:01", "remove the setting from the pod's annotation"},
		{vf(`,"capabilities":{"mac":true}`), "MAC=01:00:00:00:00:01", "write a unicast MAC address into CNI_ARGS MAC"},
		{network(`,"master":"ens1","mode":"passthru","capabilities":{"mac":true}`), "MAC=02:00:00:00:00:01", "remove the MAC from the pod's annotation"},
	} {
		r := raw(tt.stdin)
		r.Args = tt.args
		_, err := netconf.Parse(r, netconf.Node{})
		p := problem(t, err)
		if !strings.HasPrefix(p.Error(), tt.remedy) || !strings.HasSuffix(p.Field, "MAC") || p.Code != 7 {
			t.Errorf("%s, CNI_ARGS %s: code %d, %v; want %s", tt.stdin, tt.args, p.Code, p, tt.remedy)
		}
	}
}

// The two messages of code 50 say what the node lacks.
func TestParseRefusesRail(t *testing.T) {
	t.Parallel()
	n := node(t, `{"rails":{"2":{"subnet":"10.0.17.0/27"}}}`)
	for rail, found := range map[string]string{"2": "rail 2 without pci", "3": "a node without rail 3"} {
		_, err := netconf.Parse(raw(network(`,"master":{"rail":`+rail+`}`)), n)
		want := `write the PF of the rail into /etc/podfabric/node.json, as {"version": 1, "rails": {"` + rail +
			`": {"pci": "0000:3b:00.0"}}}: master.rail, found ` + found
		if p := problem(t, err); p.Code != netconf.CodeUnavailable || p.Error() != want {
			t.Errorf("got %d, %s\nwant 50, %s", p.Code, p, want)
		}
	}
}
