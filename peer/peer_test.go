// SPDX-License-Identifier: Apache-2.0

package peer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/nad"
	"github.com/podfabric/podfabric/peer"
)

// judged reads a configuration and judges it as one in a definition with a resource, unless bare.
func judged(t testing.TB, conf string, bare bool) peer.Report {
	t.Helper()
	d := nad.Read("a.json", []byte(conf))[0]
	if d.Config == nil || d.Config.Root == nil {
		t.Fatalf("%s: %+v", conf, d.Fault)
	}
	n := peer.Network{Config: d.Config.Root}
	if !bare {
		n.Definition, n.Name = true, "net-a"
		n.Annotations = []nad.Annotation{{Key: nad.ResourceName, Value: "example.com/pool", Line: 3}}
	}
	return peer.Judge(n)
}

const (
	head = `{"cniVersion":"1.0.0","name":"n",`
	pool = `"ipam":{"type":"nv-ipam","poolName":"p"}`
)

// sriov puts keys into a configuration that is right without them.
func sriov(keys string) string { return head + `"type":"sriov",` + keys + pool + "}" }

func macvlan(keys string) string { return head + `"type":"macvlan",` + keys + pool + "}" }

func ipvlan(keys string) string { return head + `"type":"ipvlan","master":"ens1",` + keys + pool + "}" }

// ipam puts a section into one.
func ipam(section string) string {
	return head + `"type":"macvlan","master":"ens1","ipam":{` + section + "}}"
}

func list(entries string) string { return head + `"plugins":[` + entries + "]}" }

// behind puts an entry behind sriov.
func behind(entry string) string { return list(`{"type":"sriov",` + pool + `},` + entry) }

// rows: what the plugins' sources say. Verdict a (accept), w (warn) or r (reject), the field, and words of what is said first of
// this weight.
func rows() [][4]string {
	return slices.Concat(sriovRows(), linkRows(), bondRows(), chainRows(), addressRows(), rangeRows(), topRows(), ourRows())
}

func sriovRows() [][4]string {
	return [][4]string{
		{sriov(``), "a"},
		{sriov(`"vlan":0,"vlanQoS":0,`), "a"},
		{sriov(`"vlan":4094,"vlanQoS":7,"vlanProto":"802.1AD",`), "a"},
		{sriov(`"VLAN":5,`), "a"}, // encoding/json reads keys in any case
		{sriov(`"vlan":null,`), "a"},
		{sriov(`"vlan":-1,`), "r", "vlan", "0 to 4094"},
		{sriov(`"vlan":1.5,`), "r", "vlan", "cannot unmarshal number 1.5"},
		{sriov(`"vlan":[1],`), "r", "vlan", "cannot unmarshal array"},
		{sriov(`"vlan":5,"vlanQoS":8,`), "r", "vlanQoS", "0 to 7"},
		{sriov(`"vlan":0,"vlanQoS":1,`), "r", "vlanQoS", "non-zero vlan id must be configured"},
		{sriov(`"vlanProto":"802.1q",`), "r", "vlanProto", "vlan id must be configured"},
		{sriov(`"vlan":0,"vlanProto":"802.1ad",`), "r", "vlanProto", "802.1ad"},
		{sriov(`"vlan":5,"vlanProto":"qinq",`), "r", "vlanProto", "802.1q or 802.1ad"},
		{sriov(`"spoofchk":false,`), "r", "spoofchk", `write "on" or "off", in quotes: spoofchk, found false, and sriov takes a string only (cannot unmarshal bool into Go value of type string)`},
		{sriov(`"trust":true,`), "r", "trust", `write "on" or "off", in quotes`},
		{sriov(`"spoofchk":"On",`), "w", "spoofchk", "sriov takes everything but"},
		{sriov(`"link_state":"Auto",`), "r", "link_state", `it means "auto"`},
		{sriov(`"link_state":true,`), "r", "link_state", "cannot unmarshal bool"},
		{sriov(`"mac":"0a-00-00-00-00-01",`), "w", "mac", "one address for every pod"},
		{sriov(`"mac":"01:00:00:00:00:01",`), "r", "mac", "unicast"},
		{sriov(`"max_tx_rate":"100",`), "r", "max_tx_rate", "the number 100"},
		{sriov(`"min_tx_rate":5,"max_tx_rate":0,`), "a"},
		{sriov(`"min_tx_rate":-5,`), "r", "min_tx_rate", "0 or more"},
		{sriov(`"max_tx_rate":-5,`), "r", "max_tx_rate", "0 or more"},
		{sriov(`"_comment":"rail 0","description":"x",`), "a"},
		{head + `"type":"sriov","pciBusID":"0000:3b:00.2",` + pool + "}", "w", "pciBusID", "calls the PCI address deviceID"},
		{sriov(`"link-state":"auto",`), "w", "link-state", `it means "link_state"`},
		{sriov(`"mtu":9000,`), "w", "mtu", "tuning entry"},
		{sriov(`"deviceID":"0000:3b:00.2",`), "a"}, // Multus puts another in its place
		{head + `"type":"sriov","deviceID":"3b:00.2",` + pool + "}", "bare r", "deviceID", "full PCI address"},
		{head + `"type":"sriov","deviceID":"mlx5_core.sf.4",` + pool + "}", "bare r", "deviceID", "full PCI address"},
		{head + `"type":"sriov","deviceID":"0000:3b:01.0",` + pool + "}", "bare w", "deviceID", "one node's PCI address"},
		{head + `"type":"sriov","deviceID":7,` + pool + "}", "bare r", "deviceID", "cannot unmarshal number"},
		{head + `"type":"sriov",` + pool + "}", "bare r", "deviceID", "VF pci addr is required"},
		{sriov(`"capabilities":{"mac":"yes"},`), "r", "capabilities.mac", "true or false"},
		{sriov(`"dns":[],`), "r", "dns", "cannot unmarshal array"},
		{head + `"type":"ib-sriov","pkey":"0x8001","rdmaIsolation":true,` + pool + "}", "a"},
		{head + `"type":"ib-sriov","pkey":"five",` + pool + "}", "w", "pkey", "no partition key"},
		{head + `"type":"ib-sriov","link_state":"up",` + pool + "}", "r", "link_state", "auto, enable, disable"},
		{head + `"type":"ib-sriov","vlan":7,` + pool + "}", "w", "vlan", "InfiniBand has no VLANs"},
		{head + `"type":"ib-sriov","guid":"02:00","rdmaIsolation":true,` + pool + "}", "w", "guid", "infinibandGUID"},
		{head + `"type":"ib-sriov","ibKubernetesEnabled":true,` + pool + "}", "a"}, // the GUID comes by cni-args, no capability is needed
		{head + `"type":"ib-sriov","ipam":{"type":"dhcp"}}`, "r", "ipam.type", "refuses dhcp"},
		{head + `"type":"ib-sriov"}`, "w", "ipam", "no ipam"},
		{list(`{"type":"ib-sriov","rdmaIsolation":true,` + pool + `},{"type":"rdma"}`), "r", "plugins[1].type", "remove the rdma entry"},
		{list(`{"type":"ib-sriov",` + pool + `},{"type":"rdma"}`), "w", "plugins[1].type", "rdmaIsolation"},
	}
}

func linkRows() [][4]string {
	return [][4]string{
		{macvlan(`"master":"ens1f0.100","mode":"private","mtu":0,`), "a"},
		{macvlan(`"master":"ens1","mode":"passthru",`), "a"},
		{macvlan(`"master":"eth0","linkInContainer":true,`), "a"},
		{macvlan(`"linkInContainer":true,`), "r", "master", "name the master"},
		{macvlan(``), "w", "master", "default route"},
		{macvlan(`"master":"",`), "w", "master", "default route"},
		{macvlan(`"master":"ib0",`), "r", "master", "probably InfiniBand"},
		{macvlan(`"master":"ib0.8001",`), "r", "master", "probably InfiniBand"},
		{macvlan(`"master":"ibP2p1s0",`), "r", "master", "probably InfiniBand"},
		{macvlan(`"master":"ibis",`), "a"},
		{macvlan(`"master":"mlx5_0",`), "w", "master", "RDMA device"},
		{macvlan(`"master":"ens1,ens2",`), "r", "master", "one interface"},
		{macvlan(`"master":"a-very-long-interface-name",`), "r", "master", "15 characters"},
		{macvlan(`"master":"ens*",`), "r", "master", "no pattern"},
		{macvlan(`"master":"{{ .Values.master }}",`), "r", "master", "template"},
		{macvlan(`"master":"ens1","mode":"l2",`), "r", "mode", "unknown macvlan mode"},
		{macvlan(`"master":"ens1","mtu":-1,`), "r", "mtu", "invalid MTU"},
		{macvlan(`"master":"ens1","mtu":60,`), "r", "mtu", "68"},
		{macvlan(`"master":"ens1","mtu":1000,`), "w", "mtu", "below 1280"},
		{macvlan(`"master":"ens1","bcqueuelen":-1,`), "r", "bcqueuelen", "0 to"},
		{macvlan(`"master":"ens1","vlan":7,`), "w", "vlan", "VLAN interface as master"},
		{macvlan(`"master":"ens1","mac":"zz",`), "r", "mac", "six bytes"},
		{ipvlan(``), "a"},
		{ipvlan(`"mode":"l3",`), "w", "mode", "no ARP"},
		{ipvlan(`"mode":"private",`), "r", "mode", "macvlan's word"},
		{ipvlan(`"mode":"L2",`), "r", "mode", "unknown ipvlan mode"},
		{head + `"type":"ipvlan","master":"ib1",` + pool + "}", "w", "master", "ipoib"},
		{head + `"type":"host-device",` + pool + "}", "a"},
		{head + `"type":"host-device",` + pool + "}", "bare r", "pciBusID", "specify either"},
		{head + `"type":"host-device","capabilities":{"deviceID":true},` + pool + "}", "bare a"},
		{head + `"type":"host-device","device":"ens9",` + pool + "}", "w", "device", "comes before the device of the resource"},
		{head + `"type":"host-device","hwaddr":"02:00:00:00:00",` + pool + "}", "bare r", "hwaddr", "six bytes"},
		{head + `"type":"host-device","hwaddr":"02:00:00:00:00:01",` + pool + "}", "bare w", "hwaddr", "one node's device"},
		{head + `"type":"host-device","kernelpath":"ens1",` + pool + "}", "bare r", "kernelpath", "must be absolute and begin with /sys/devices/"},
		{head + `"type":"host-device","pciBusID":"3b:00",` + pool + "}", "bare r", "pciBusID", "full PCI address"},
		{head + `"type":"host-device","pciBusID":"0000:3b:00.0",` + pool + "}", "bare w", "pciBusID", "physical function"},
		{head + `"type":"host-device","deviceID":"0000:3b:00.2",` + pool + "}", "bare r", "pciBusID", "specify either"},
		{head + `"type":"ipoib","master":"ibs4",` + pool + "}", "a"},
		{head + `"type":"ipoib",` + pool + "}", "r", "master", `"master" field is required`},
		{head + `"type":"ipoib","master":"ens1",` + pool + "}", "r", "master", "probably Ethernet"},
		{head + `"type":"ipoib","master":"ib0","ipam":{"type":"dhcp"}}`, "r", "ipam.type", "refuses dhcp"},
		{head + `"type":"vlan","master":"ens1","vlanId":7,` + pool + "}", "a"},
		{head + `"type":"vlan","master":"ens1","vlanId":4095,` + pool + "}", "r", "vlanId", "0 to 4094"},
		{head + `"type":"vlan","master":"ens1",` + pool + "}", "w", "vlanId", "no vlanId"},
		{head + `"type":"bridge","vlan":5000}`, "r", "vlan", "0 to 4094"},
		{head + `"type":"bridge","hairpinMode":true,"promiscMode":true}`, "r", "promiscMode", "at the same time"},
		{head + `"type":"bridge","isDefaultGateway":true}`, "w", "isDefaultGateway", "default route"},
		{head + `"type":"ovs","bridge":"br0",` + pool + "}", "w", "type", "its own keys are not judged"},
	}
}

func chainRows() [][4]string {
	return [][4]string{
		{behind(`{"type":"tuning","sysctl":{"net.ipv4.conf.IFNAME.rp_filter":"0","net/core/somaxconn":"9"},"mtu":9000,"promisc":true},{"type":"rdma"},{"type":"sbr","gateways":["10.0.0.1"]}`), "a"},
		{behind(`{"type":"tuning","mtu":"9000"}`), "r", "plugins[1].mtu", "the number 9000"},
		{behind(`{"type":"tuning","sysctl":{"net.core.somaxconn":true}}`), "r", "plugins[1].sysctl.net.core.somaxconn", `the string "true"`},
		{behind(`{"type":"tuning","sysctl":{"vm.nr_hugepages":"1"}}`), "r", "plugins[1].sysctl.vm.nr_hugepages", "invalid net sysctl key"},
		{behind(`{"type":"tuning","sysctl":{"net/../kernel/x":"1"}}`), "r", "plugins[1].sysctl.net/../kernel/x", "invalid net sysctl key"},
		{behind(`{"type":"tuning","sysctl":{"net.ipv4.tcp_rmem =":"1"}}`), "r", "plugins[1].sysctl.net.ipv4.tcp_rmem =", "without blanks"},
		{behind(`{"type":"tuning","sysctl":{"net.ipv4.conf.net1.arp_ignore":"1"}}`), "w", "plugins[1].sysctl.net.ipv4.conf.net1.arp_ignore", "IFNAME"},
		{behind(`{"type":"tuning","sysctls":{}}`), "w", "plugins[1].sysctls", `it means "sysctl"`},
		{behind(`{"type":"tuning","txQLen":-1}`), "r", "plugins[1].txQLen", "0 or more"},
		{behind(`{"type":"tuning","ipam":{"type":"static"}}`), "w", "plugins[1].ipam", "hands out no addresses"},
		{behind(`{"type":"vrf","vrfname":"red"}`), "w", "plugins[1].type", "follows the VRF"},
		{behind(`{"type":"vrf"}`), "r", "plugins[1].vrfname", "valid vrf name"},
		{behind(`{"type":"vrf","vrfname":"a-very-long-vrf-name"}`), "r", "plugins[1].vrfname", "15 characters"},
		{behind(`{"type":"vrf","vrfname":5}`), "r", "plugins[1].vrfname", "cannot unmarshal number"},
		{behind(`{"type":"sbr","gateways":["10.0.0"]}`), "r", "plugins[1].gateways[0]", "invalid static gateway"},
		{list(`{"type":"sriov"},{"type":"sbr"}`), "r", "plugins[1].type", "No IP addresses supplied"},
		{behind(`{"type":"coordinator","mode":"auto","podRPFilter":0,"hijackCIDR":["10.0.0.0/8"]}`), "a"},
		{behind(`{"type":"coordinator","mode":"overlayed"}`), "r", "plugins[1].mode", "unknown mode"},
		{behind(`{"type":"coordinator","hostRPFilter":3}`), "r", "plugins[1].hostRPFilter", "-1, 0, 1 or 2"},
		{behind(`{"type":"coordinator","hijackCIDR":["10.0.0.0"]}`), "r", "plugins[1].hijackCIDR[0]", "invalid CIDR"},
		{behind(`{"type":"rdma"},{"type":"rdma"}`), "r", "plugins[2].type", "drop the second rdma"},
		{behind(`{"type":"macvlan","master":"ens1"}`), "r", "plugins[1].type", "sriov has made it already"},
		{behind(`{"type":"bandwidth","ingressRate":"1G"}`), "r", "plugins[1].ingressRate", "a number"},
		{list(`{"type":"ipvlan","master":"ens1",` + pool + `},{"type":"rdma"}`), "r", "plugins[1].type", "behind ipvlan"},
		{list(`{"type":"host-device",` + pool + `},{"type":"rdma"}`), "a"},
		{list(`{"type":"tuning"},{"type":"sriov",` + pool + `}`), "r", "plugins[0].type", "stands first"},
		{list(`{"type":"podfabric"},{"type":"rdma"}`), "r", "plugins[1].type", "drop the rdma entry"},
		{list(`{"type":"podfabric","rdma":{"mode":"off"},` + pool + `},{"type":"rdma"}`), "a"},
		{list(`{"type":"podfabric","master":"ens1"},{"type":"rdma"}`), "r", "plugins[1].type", "which stays on the node"},
		{head + `"type":"podfabric","master":"ibs7"}`, "r", "master", "probably InfiniBand"},
		{list(`{"type":"podfabric","rail":1},{"type":"sbr"}`), "w", "plugins[1].type", "drop sbr"},
		{list(`{"type":"podfabric","rail":1,"routing":{"sourceRules":false},` + pool + `},{"type":"sbr"}`), "a"},
		{list(`{"type":"podfabric"},{"type":"podfabric"}`), "r", "plugins[1].type", "drop the second podfabric"},
		{list(`{"type":"sriov",` + pool + `},{"type":"podfabric"}`), "a"},
		{head + `"type":"whereabouts","range":"10.0.0.0/24"}`, "r", "type", `into "ipam"`},
		{list(`{"type":"podfabric","link":"vf",` + pool + `},{"type":"coordinator"}`), "a"},
		{head + `"type":"infiniband","master":"ib0",` + pool + "}", "r", "type", `write "ipoib"`},
		{head + `"type":"infiniband",` + pool + "}", "r", "type", `write "ib-sriov"`},
		{sriov(`"resourceName":"a.b/c",`), "w", "resourceName", "annotation"},
		{head + `"type":"sriov","pciAddress":"0000:3b:00.2",` + pool + "}", "w", "pciAddress", "calls the PCI address deviceID"},
		{sriov(`"vlan ":5,`), "w", "vlan ", `"vlan " has no effect`},
		{head + `"type":"sbr"}`, "r", "type", "stands alone"},
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	levels := map[string]peer.Level{"a": peer.Note, "w": peer.Warn, "r": peer.Reject}
	for i, row := range rows() {
		t.Run(fmt.Sprintf("%d %s", i, row[0]), func(t *testing.T) {
			t.Parallel()
			word, bare := strings.CutPrefix(row[1], "bare ")
			want := levels[word]
			r := judged(t, row[0], bare)
			worst := peer.Note
			for _, f := range r.Findings {
				worst = max(worst, f.Level)
			}
			if worst != want {
				t.Fatalf("level %d, want %d: %+v", worst, want, r.Findings)
			}
			if row[3] == "" {
				return
			}
			found := slices.ContainsFunc(r.Findings, func(f peer.Finding) bool {
				return f.Level == want && f.Field == row[2] && strings.Contains(f.Text, row[3])
			})
			if !found {
				t.Errorf("no %q of field %s in %+v", row[3], row[2], r.Findings)
			}
			first := slices.IndexFunc(r.Findings, func(f peer.Finding) bool { return f.Level == want })
			if want == peer.Reject && r.Findings[first].Field != row[2] {
				t.Errorf("said first: %+v", r.Findings[first])
			}
		})
	}
}

func TestMeant(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"sriov": "sriov", "sriob": "sriov", "macvaln": "macvlan", "ipvaln": "ipvlan", "hostdevice": "host-device", "host_device": "host-device",
		"rdma-cni": "rdma", "tunning": "tuning", "whereabout": "whereabouts", "nvipam": "nv-ipam", "nvidia-ipam": "nv-ipam", "spiderpol": "spiderpool",
		"coordinatr": "coordinator", "podfabrik": "podfabric", "srb": "sbr", "vfr": "vrf", "rmda": "rdma", "tnuing": "tuning", "x": "", "my-own-plugin": "", "": "", "Macvlan": "macvlan",
		"bond-cni": "bond", "hostlocal": "host-local", "vxlan": "vxlan",
	} {
		if got := peer.Meant(name); got != want {
			t.Errorf("Meant(%q) = %q, want %q", name, got, want)
		}
	}
}

// What a node has counts, not what is known.
func TestInstalled(t *testing.T) {
	t.Parallel()
	d := nad.Read("a.json", []byte(behind(`{"type":"whirlpool"},{"type":"podfabric"}`)))[0]
	n := peer.Network{Definition: true, Config: d.Config.Root, Installed: func(name string) bool { return name != "sriov" }}
	got := peer.Judge(n).Findings[0]
	if got.Level != peer.Reject || !strings.Contains(got.Text, `failed to find plugin "sriov" in path`) {
		t.Errorf("first finding: %+v", got)
	}
	n.Installed = func(string) bool { return true }
	for _, f := range peer.Judge(n).Findings {
		if strings.Contains(f.Text, "unknown") {
			t.Errorf("found although it is there: %+v", f)
		}
	}
}

// The annotation brings the device; what is meant to be it and is not is named with its line.
func TestAnnotations(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a    nad.Annotation
		want string // of the first finding
	}{
		{nad.Annotation{Key: nad.ResourceName, Value: "a.b/c"}, ""},
		{nad.Annotation{Key: nad.ResourceName, Value: "vf"}, "it has no prefix"},
		{nad.Annotation{Key: nad.ResourceName, Value: " a.b/c"}, "it has blanks in it"},
		{nad.Annotation{Key: nad.ResourceName, Value: "A.b/c"}, "it is no domain/name"},
		{nad.Annotation{Key: nad.ResourceName, Value: ""}, "resourceName is empty"},
		{nad.Annotation{Key: nad.ResourceName, Value: "a.b/c", Label: true}, "stands among the labels"},
		{nad.Annotation{Key: "k8s.v1.cni.cncf.io/resourcename", Value: "a.b/c"}, "is not read"},
		{nad.Annotation{Key: "k8s.cni.cncf.io/resourceName", Value: "a.b/c"}, "is not read"},
		{nad.Annotation{Key: "resourceName", Value: "a.b/c"}, "is not read"},
	} {
		d := nad.Read("a.json", []byte(sriov("")))[0]
		tc.a.Line = 7
		r := peer.Judge(peer.Network{Definition: true, Config: d.Config.Root, Annotations: []nad.Annotation{tc.a}})
		f := r.Findings[0]
		if tc.want == "" && f.Level != peer.Note || tc.want != "" && (f.Line != 7 || f.At != -1 || !strings.Contains(f.Text, tc.want)) {
			t.Errorf("%+v: %+v", tc.a, f)
		}
	}
}
