// SPDX-License-Identifier: Apache-2.0

package peer_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/nad"
	"github.com/podfabric/podfabric/peer"
)

func ours(keys string) string { return head + `"type":"podfabric",` + keys + pool + "}" }

// ourRows: what surprises with every plugin is said of podfabric's own networks too.
func ourRows() [][4]string {
	return [][4]string{
		{head + `"type":"podfabric"}`, "w", "ipam", "no IPv4 GID"},
		{head + `"type":"podfabric","ipam":{}}`, "w", "ipam", "falls to index 0"},
		{head + `"type":"podfabric","link":"device","ipam":{}}`, "w", "ipam", "ipam {}"},
		{ours(`"mtu":"pf",`), "a"},
		{ours(``), "note", "", `"mtu": "pf" takes the PF's`},
		{ours(`"link":"device",`), "note", "", "the device keeps its own"},
		{ours(`"deviceID":"mlx5_core.sf.4",`), "note", "", "the device keeps its own"},
		{head + `"type":"podfabric","ipam":{"type":"static","addresses":[{"address":"10.0.0.7/24"}]}}`, "w", "ipam.addresses", "the same address"},
		{head + `"type":"podfabric","ipam":{"type":"static"}}`, "a"},
		{ours(`"mac":"02:00:00:00:00:01",`), "w", "mac", "one address for every pod"},
		{ours(`"link":"macvlan","master":"ens1","mac":"02:00:00:00:00:01",`), "w", "mac", "one address for every pod"},
		{ours(`"link":"macvlan","master":"ens1",`), "note", "master", "under this very name on each node"},
		{ours(`"master":{"rail":0},`), "a"},
		{ours(`"master":{"rail":0},`), "bare w", "type", "/dev/infiniband"},
		{ours(`"link":"ipvlan","master":{"rail":0},`), "bare w", "type", "no resourceName annotation"},
		{ours(`"master":{"rail":0},"rdma":{"mode":"off"},`), "bare a"},
		{ours(`"device":"ens1",`), "w", "device", "one name is written for all nodes"},
		{ours(`"hwaddr":"02:00:00:00:00:01",`), "w", "hwaddr", "one node's device"},
		{ours(`"deviceID":"0000:3b:00.2",`), "note", "deviceID", "has no effect: Multus puts"},
		{ours(`"deviceID":"0000:3b:00.2",`), "bare note", "deviceID", "one node's PCI address"},
		{ours(`"deviceID":"mlx5_core.sf.4",`), "bare note", "deviceID", "is one node's sub-function"},
		{ours(`"pciBusID":"0000:3b:00.2",`), "bare note", "pciBusID", "one node's PCI address"},
		{ours(`"deviceID":"0000:3b:00.0",`), "bare w", "deviceID", "function 0"},
		{head + `"type":"podfabric","ipam":{"type":"range","subnet":"10.0.0.0/24","scope":"node","defaultRoute":true}}`, "w", "ipam.defaultRoute", "default route on a secondary network"},
		{head + `"type":"podfabric","ipam":{"type":"range","subnet":"10.0.0.0/24","scope":"node","defaultRoute":false}}`, "a"},
		{
			list(`{"type":"podfabric","mtu":9000,"ipam":{"type":"nv-ipam","poolName":"p","defaultRoute":true}},{"type":"sbr"}`), "note", "plugins[0].ipam.defaultRoute",
			"goes into a table of its own by sbr",
		},
		{list(`{"type":"podfabric","mtu":9000,` + pool + `},{"type":"tuning"}`), "a"},
		{list(`{"type":"podfabric",` + pool + `},{"type":"tuning","mtu":9000}`), "a"},
		{list(`{"type":"sriov",` + pool + `},{"type":"podfabric"}`), "a"}, // addresses and MTU are sriov's
	}
}

// A definition that names one node's device is worth a warning, as with sriov.
func TestFixedDeviceOfADefinition(t *testing.T) {
	t.Parallel()
	d := nad.Read("a.json", []byte(ours(`"deviceID":"0000:3b:00.2",`)))[0]
	r := peer.Judge(peer.Network{Definition: true, Name: "net-a", Config: d.Config.Root})
	if !slices.ContainsFunc(r.Findings, func(f peer.Finding) bool {
		return f.Level == peer.Warn && f.Field == "deviceID" && strings.Contains(f.Text, "one node's PCI address is written for all nodes")
	}) {
		t.Errorf("%+v", r.Findings)
	}
}

// What is said of a network is said once more of its conversion.
func TestConvertedHidesNothing(t *testing.T) {
	t.Parallel()
	for _, conf := range []string{
		head + `"type":"sriov"}`,
		head + `"type":"macvlan","master":"ens1","ipam":{}}`,
		head + `"type":"host-device","ipam":{}}`,
		head + `"type":"ipvlan","master":"ens1","ipam":{"type":"static","addresses":[{"address":"10.0.0.7/24"}]}}`,
		sriov(`"mac":"02:00:00:00:00:01",`), macvlan(`"master":"ens1","mac":"02:00:00:00:00:01",`), macvlan(`"master":"ens1",`),
		head + `"type":"host-device","device":"ens1",` + pool + "}", head + `"type":"host-device","hwaddr":"02:00:00:00:00:01",` + pool + "}",
		sriov(`"deviceID":"0000:3b:00.2",`), sriov(`"deviceID":"0000:3b:00.0",`), head + `"type":"host-device","pciBusID":"0000:3b:00.2",` + pool + "}",
		head + `"type":"sriov","ipam":{"type":"whereabouts","range":"10.0.0.0/24","routes":[{"dst":"0.0.0.0/0"}]}}`,
		list(`{"type":"macvlan","master":"ens1","ipam":{"type":"whereabouts","range":"10.0.0.0/24","routes":[{"dst":"0.0.0.0/0"}]}},{"type":"sbr"}`),
	} {
		for _, notes := range [][]nad.Annotation{nil, {{Key: nad.ResourceName, Value: "example.com/pool"}}} {
			n := peer.Network{Definition: true, Name: "net-a", Annotations: notes, Config: nad.Read("a.json", []byte(conf))[0].Config.Root}
			before, worst := levels(peer.Judge(n))
			c, err := peer.Convert(n)
			if err != nil || worst == peer.Reject {
				continue // sriov without any device
			}
			n.Config = c.Config
			after, now := levels(peer.Judge(n))
			if now != worst {
				t.Errorf("%s\nis worth %d, its conversion %d\nbefore %q\nafter %q", conf, worst, now, before, after)
			}
		}
	}
}

func levels(r peer.Report) ([]string, peer.Level) {
	worst := peer.Note
	var texts []string
	for _, f := range r.Findings {
		worst, texts = max(worst, f.Level), append(texts, f.Text)
	}
	return texts, worst
}
