// SPDX-License-Identifier: Apache-2.0

package netconf_test

import (
	"strings"
	"testing"

	"github.com/podfabric/podfabric/netconf"
)

// refusal is a mistake that someone can make, and what Parse must say.
type refusal struct {
	name   string
	stdin  string
	code   uint
	remedy string // begin of the message
	field  string // must occur in the field
}

func refuses(t *testing.T, tests []refusal) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := node(t, `{"index":17,"rails":{"0":{"subnet":"10.8.0.0/24"}}}`)
			_, err := netconf.Parse(raw(tt.stdin), n)
			p := problem(t, err)
			if p.Code != tt.code || !strings.HasPrefix(p.Error(), tt.remedy) || !strings.Contains(p.Field, tt.field) {
				t.Errorf("got code %d, field %q, %q\nwant code %d, field with %q, text that begins with %q",
					p.Code, p.Field, p.Error(), tt.code, tt.field, tt.remedy)
			}
		})
	}
}

// Each line is a mistake that someone can make; the remedy is what kubelet's event shows first.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	tests := []refusal{
		{"empty", "", 6, "give a JSON object, the text is empty", "line 1, column 1"},
		{"blank", " \n ", 6, "give a JSON object, the text is empty", "line 2, column 2"},
		{"not JSON", "hello", 6, "correct the JSON", "line 1, column 1"},
		{"comma at the end", "{\n  \"name\": \"a\",\n}", 6, "correct the JSON", "line 3, column 1"},
		{"a bracket lost", `{"plugins":[{"type":"x"}}`, 6, "correct the JSON", "line 1, column 25"},
		{"cut", `{"name":"a"`, 6, "complete the JSON, it ends too early", "line 1, column 12"},
		{"two documents", "{}\n\n{}", 6, "keep one JSON document, something follows its end", "line 3, column 1"},
		{"trailing word", "{} x", 6, "keep one JSON document, something follows its end", "line 1, column 4"},
		{"not an object", `["a"]`, 6, "give a JSON object in { }", "line 1, column 1"},
		{"byte order mark", "\ufeff{}", 6, "correct the JSON", "line 1, column 1"},
		{"key twice", "{\"cniVersion\":\"1.0.0\",\n \"mtu\":1,\"mtu\":2}", 6, `write the key "mtu" once`, "line 2, column 10"},
		{"key twice, deep", vf(`,"hint":{"x":[{"a":1,"a":2}]}`), 6, `write the key "a" once`, "line 1, column"},
		{"nested without end", vf(`,"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200)), 6, "correct the JSON", ""},
		{"too long", vf(`,"x":"` + strings.Repeat("x", 5<<20) + `"`), 6, "make the text shorter", "network configuration"},
		{"nested beyond encoding/json", strings.Repeat("[", 20000), 6, "correct the JSON", ""},

		{"no version", `{"name":"a","deviceID":"0000:3b:00.2"}`, 1, `add "cniVersion": "1.0.0" to the network`, "cniVersion"},
		{"version in other letters", `{"CNIVersion":"1.0.0","name":"a"}`, 1, `write "cniVersion" with exactly these letters`, "cniVersion"},
		{"version as a number", `{"cniVersion":1.0,"name":"a"}`, 1, `set "cniVersion" to one that podfabric speaks`, "cniVersion"},
		{"no name", `{"cniVersion":"1.0.0","deviceID":"0000:3b:00.2"}`, 7, `add a "name" to the network`, "name"},
		{"name of a path", `{"cniVersion":"1.0.0","name":"../a"}`, 7, "give the network a name of letters", "name"},
		{"empty name", `{"cniVersion":"1.0.0","name":""}`, 7, "give the network a name of letters", "name"},
		{"name as a number", `{"cniVersion":"1.0.0","name":4}`, 7, "give the network a name of letters", "name"},

		{"no device", `{"cniVersion":"1.0.0","name":"a"}`, 7, "add the annotation k8s.v1.cni.cncf.io/resourceName", "deviceID"},
		{"no device, link said", `{"cniVersion":"1.0.0","name":"a","link":"vf"}`, 7, "add the annotation", "deviceID"},
		{"empty device", `{"cniVersion":"1.0.0","name":"a","deviceID":""}`, 7, "add the annotation", "deviceID"},
		{"device malformed", `{"cniVersion":"1.0.0","name":"a","deviceID":"3b:00.2"}`, 7, "write the device as a full PCI address", "deviceID"},
		{"device of a path", `{"cniVersion":"1.0.0","name":"a","pciBusID":"../../etc"}`, 7, "write the device as a full PCI address", "pciBusID"},
		{"device zero", `{"cniVersion":"1.0.0","name":"a","deviceID":"0000:00:00.0"}`, 7, "write the device as a full PCI address", "deviceID"},
		{"device of the shared plugin", `{"cniVersion":"1.0.0","name":"a","deviceID":"17"}`, 7, "use an SR-IOV resource", "deviceID"},
		{"device of the shared plugin, vf said", `{"cniVersion":"1.0.0","name":"a","deviceID":"17","link":"vf"}`, 7, "use an SR-IOV resource", "deviceID"},
		{"device as a number", `{"cniVersion":"1.0.0","name":"a","deviceID":17}`, 7, `write "deviceID" as a string`, "deviceID"},
		{"sub-function, vf said", `{"cniVersion":"1.0.0","name":"a","link":"vf","deviceID":"mlx5_core.sf.4"}`, 7, `set "link" to "device", or remove it: this is a sub-function`, "deviceID"},
		{"two devices", vf(`,"pciBusID":"0000:3b:00.3"`), 7, `remove "deviceID" or "pciBusID"`, "pciBusID"},

		{"unknown link", vf(`,"link":"VF"`), 7, `set link to "vf" or "macvlan"`, "link"},
		{"behind another plugin", vf(`,"link":"vf","prevResult":{}`), 7, `put podfabric first in "plugins"`, "prevResult"},
		{"key of another kind", vf(`,"link":"vf","master":"ens1"`), 7, `remove "master", it has no meaning with "link": "vf"`, "master"},
		{"VLAN on a macvlan", `{"cniVersion":"1.0.0","name":"a","link":"macvlan","master":"ens1","vlan":100}`, 7, `remove "vlan", it has no meaning with "link": "macvlan"`, "vlan"},
		{"VLAN as a string", vf(`,"vlan":"28"`), 7, `write "vlan" as a number`, "vlan"},
		{"routing", vf(`,"routing":{"arp":"strict"}`), 7, `remove "routing", it is not built yet`, "routing"},
		{"InfiniBand", vf(`,"pkey":"0x5"`), 7, `remove "pkey": InfiniBand is not supported`, "pkey"},
		{"misspelling by case", vf(`,"MTU":9000`), 7, `write "mtu" instead of "MTU"`, "MTU"},
		{"misspelling by dashes", vf(`,"max-tx-rate":9000`), 7, `write "max_tx_rate" instead of "max-tx-rate"`, "max-tx-rate"},
		{"misspelling from the list", vf(`,"spoofCheck":"off"`), 7, `write "spoofchk" instead of "spoofCheck"`, "spoofCheck"},
		{"misspelling in a section", vf(`,"rdma":{"softroce":true}`), 7, `write "softRoCE" instead of "softroce"`, "rdma.softroce"},

		{"mtu too small", vf(`,"mtu":67`), 7, `set mtu to a number from 68 to 65535, or "pf"`, "mtu"},
		{"mtu too large", vf(`,"mtu":65536`), 7, `set mtu to a number`, "mtu"},
		{"mtu as a word", vf(`,"mtu":"9000"`), 7, `set mtu to a number`, "mtu"},
		{"mtu as a fraction", vf(`,"mtu":1500.5`), 7, `set mtu to a number`, "mtu"},
		{"mtu as a power", vf(`,"mtu":9e3`), 7, `set mtu to a number`, "mtu"},
		{"mtu as an object", vf(`,"mtu":{}`), 7, `write "mtu" as a number or a string`, "mtu"},
		{"rail", vf(`,"rail":64`), 7, "set rail to a whole number from 0 to 63", "rail"},
		{"rail below zero", vf(`,"rail":-1`), 7, "set rail to a whole number from 0 to 63", "rail"},

		{"rdma.mode", vf(`,"rdma":{"mode":"exclusive"}`), 7, `set rdma.mode to "auto" or "move" or "share" or "off"`, "rdma.mode"},
		{"rdma.mode empty", vf(`,"rdma":{"mode":""}`), 7, `set rdma.mode to "auto"`, "rdma.mode"},
		{"rdma.require", vf(`,"rdma":{"require":"yes"}`), 7, `set rdma.require to "active" or "gid" or "no"`, "rdma.require"},
		{"rdma.require as truth", vf(`,"rdma":{"require":true}`), 7, `write "require" as a string`, "rdma.require"},
		{"rdma.wait", vf(`,"rdma":{"wait":"1"}`), 7, "set rdma.wait to a time above zero", "rdma.wait"},
		{"rdma.wait zero", vf(`,"rdma":{"wait":"0s"}`), 7, "set rdma.wait to a time above zero", "rdma.wait"},
		{"rdma.wait beyond the deadline", vf(`,"rdma":{"wait":"30s"}`), 7, "set rdma.wait below the node's deadline of 20s", "rdma.wait"},
		{"soft RoCE, off", vf(`,"rdma":{"mode":"off","softRoCE":true}`), 7, `set rdma.mode to "auto" or "move"`, "rdma.softRoCE"},
		{"soft RoCE, share", vf(`,"rdma":{"mode":"share","softRoCE":true}`), 7, `set rdma.mode to "auto" or "move"`, "rdma.softRoCE"},
		{"required, off", vf(`,"rdma":{"mode":"off","require":"gid"}`), 7, `remove rdma.require, or rdma.mode "off"`, "rdma.require"},
		{"rdma as a word", vf(`,"rdma":"auto"`), 7, `write "rdma" as an object`, "rdma"},

		{"hint.role", vf(`,"hint":{"role":"storage"}`), 7, `set hint.role to "compute" or "other"`, "hint.role"},
		{"hint.noRight", vf(`,"hint":{"noRight":"stop"}`), 7, `set hint.noRight to "warn" or "fail"`, "hint.noRight"},
		{"hint.volume", vf(`,"hint":{"volume":"../etc"}`), 7, "set hint.volume to the name of a volume", "hint.volume"},
		{"hint.volume empty", vf(`,"hint":{"volume":""}`), 7, "set hint.volume to the name of a volume", "hint.volume"},
		{"hint.volume long", vf(`,"hint":{"volume":"` + strings.Repeat("a", 64) + `"}`), 7, "set hint.volume to the name of a volume", "hint.volume"},
		{"hint.nccl", vf(`,"hint":{"nccl":"2.21"}`), 7, "write hint.nccl as the oldest NCCL", "hint.nccl"},
		{"hint.nccl of three", vf(`,"hint":{"nccl":">=3.1"}`), 7, "write hint.nccl as the oldest NCCL", "hint.nccl"},
		{"hint.nccl odd", vf(`,"hint":{"nccl":">=2.021"}`), 7, "write hint.nccl as the oldest NCCL", "hint.nccl"},
		{"hint.trafficClass", vf(`,"hint":{"trafficClass":256}`), 7, "set hint.trafficClass to a whole number from 0 to 255", "hint.trafficClass"},
		{"dns", vf(`,"dns":{"nameservers":["one"]}`), 7, "write an IP address into dns.nameservers[0]", "dns.nameservers[0]"},
		{"dns list", vf(`,"dns":{"search":[1]}`), 7, "write dns.search[0] as a string", "dns.search[0]"},

		{"capability as a word", vf(`,"capabilities":{"ips":"yes"}`), 7, "write each capability as true or false", "capabilities.ips"},
		{"debug as a word", vf(`,"args":{"cni":{"debug":"yes"}}`), 7, "write debug as true or false in the pod's annotation", "args.cni.debug"},
		{"device from an annotation", vf(`,"runtimeConfig":{"deviceID":"0000:3b:00.5"}`), 7, "remove the device from the pod's annotation", "runtimeConfig.deviceID"},
		{"device from an annotation alone", `{"cniVersion":"1.0.0","name":"a","runtimeConfig":{"deviceID":"0000:3b:00.5"}}`, 7, "remove the device from the pod's annotation", "runtimeConfig.deviceID"},
		{"device by cni-args", vf(`,"args":{"cni":{"deviceID":"0000:3b:00.5"}}`), 7, "remove the setting from the pod's annotation", "args.cni.deviceID"},
		{"ranges from the runtime", vf(`,"runtimeConfig":{"ipRanges":[]}`), 7, "write the ranges into the network's configuration", "runtimeConfig.ipRanges"},
	}
	refuses(t, tests)
}

// A wrong type is reported with key, found and right, and never converted (hustcat/sriov-cni#15).
func TestParseNamesKeyFoundAndRight(t *testing.T) {
	t.Parallel()
	_, err := netconf.Parse(raw(vf(`,"vlan":"28"`)), netconf.Node{})
	const want = `write "vlan" as a number: vlan, found "28", right is a number`
	if got := problem(t, err).Error(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestParseRefusesByNode(t *testing.T) {
	t.Parallel()
	const pool = `,"ipam":{"type":"range","subnet":"10.1.0.0/16","perNode":26}`
	tests := []struct {
		name   string
		stdin  string
		node   string
		code   uint
		remedy string
	}{
		{"no index", vf(pool), `{}`, 50, `write this node's number into /etc/podfabric/node.json`},
		{"kind", vf(""), `{"allow":{"kinds":["macvlan"]}}`, 7, "use another network on this node"},
		{"no kind at all", vf(""), `{"allow":{"kinds":[]}}`, 7, "use another network on this node"},
		{"subnet of a range", vf(pool), `{"index":17,"allow":{"subnets":["10.1.4.0/26"]}}`, 7, "use a subnet that this node allows"},
		{"no subnet at all", vf(pool), `{"index":17,"allow":{"subnets":[]}}`, 7, "use a subnet that this node allows"},
		{
			"static address", vf(`,"ipam":{"type":"static","addresses":[{"address":"10.1.0.7/24"}]}`),
			`{"allow":{"subnets":["10.2.0.0/16"]}}`, 7, "use an address that this node allows",
		},
		{"wait", vf(`,"rdma":{"wait":"3s"}`), `{"deadline":"2s"}`, 7, `set rdma.wait below the node's deadline of 2s, or raise "deadline"`},
		{"chosen device empty", vf(`,"runtimeConfig":{"deviceID":""}`), `{"podMayChooseDevice":true}`, 7, "give the device as a PCI address"},
		{"chosen device malformed", vf(`,"runtimeConfig":{"deviceID":"x"}`), `{"podMayChooseDevice":true}`, 7, "write the device as a full PCI"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := netconf.Parse(raw(tt.stdin), node(t, tt.node))
			if p := problem(t, err); p.Code != tt.code || !strings.HasPrefix(p.Error(), tt.remedy) {
				t.Errorf("got code %d, %q\nwant code %d, text that begins with %q", p.Code, p.Error(), tt.code, tt.remedy)
			}
		})
	}
}

// The default wait of one second is no mistake of an author whose node is in a hurry.
func TestParseDefaultWaitFitsDeadline(t *testing.T) {
	t.Parallel()
	c, err := netconf.Parse(raw(vf("")), node(t, `{"deadline":"500ms"}`))
	if err != nil || c.RDMA.Wait.String() != "500ms" {
		t.Errorf("wait %v, %v; want 500ms", c.RDMA.Wait, err)
	}
}

func TestParseKnowsEveryMisspelling(t *testing.T) {
	t.Parallel()
	for _, m := range netconf.Misspellings() {
		if !netconf.HasKey(m[0], m[2]) {
			t.Errorf("misspelling %v: there is no such right key", m)
		}
		if netconf.HasKey(m[0], m[1]) {
			t.Errorf("misspelling %v: the wrong key is a right one", m)
		}
	}
	for _, wrong := range []string{
		"max-tx-rate", "maxTxRate", "min-tx-rate", "vlanqos", "vlanQos", "vlan_qos", "VLAN", "vlanID", "spoofCheck", "spoof_chk",
		"linkState", "link-state", "deviceId", "DeviceID", "device_id", "pciBusId", "MTU", "Mtu", "macAddress", "Trust", "IPAM",
		"runtimeconfig", "prevresult",
	} {
		_, err := netconf.Parse(raw(vf(`,"`+wrong+`":1`)), netconf.Node{})
		if p := problem(t, err); p.Found != "a known misspelling" {
			t.Errorf("%s: %v; want it refused as a known misspelling", wrong, err)
		}
	}
}
