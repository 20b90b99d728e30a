// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// machine is a node with two PFs, a VF and a sub-function, a VLAN, a bond and its own card.
func machine() []attach.Candidate {
	second := bus.PCI(pci.Addr{Bus: 0x3b, Function: 1})
	own := bus.PCI(pci.Addr{Device: 0x1f, Function: 6})
	return []attach.Candidate{
		{Name: "lo", Index: 1, Kind: "loopback", MAC: "00:00:00:00:00:00"},
		{
			Name: "eno1", Index: 2, Type: "ether", Kind: "device", MAC: "02:00:00:00:00:01", Device: own, Default: true,
			Path: "/sys/devices/pci0000:00/0000:00:1f.6", RDMA: []string{"irdma0"},
		},
		{
			Name: "ens1f0np0", AltNames: []string{"rail0", "enp59s0f0"}, Index: 3, Type: "ether", Kind: "device", MAC: "02:54:00:3b:00:00",
			Device: pfID(), Path: "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0", RDMA: []string{"mlx5_0"},
		},
		{Name: "ens1f1np1", Index: 4, Type: "ether", Kind: "device", MAC: "02:54:00:3b:00:01", Device: second, RDMA: []string{"mlx5_1"}},
		{Name: "ens1f0v0", Index: 5, Type: "ether", Kind: "device", MAC: "02:54:00:3b:10:00", Device: vf(), VF: true, RDMA: []string{"mlx5_2"}},
		{Name: "ens1f0np0.100", Index: 6, Type: "ether", Kind: "vlan", MAC: "02:54:00:3b:00:00"},
		{Name: "bond0", Index: 7, Type: "ether", Kind: "bond", MAC: "02:54:00:3b:00:00"},
		{Name: "en3f0", Index: 8, Type: "ether", Kind: "device", MAC: "02:5f:00:00:00:04", Device: sf(), RDMA: []string{"mlx5_3"}},
	}
}

func TestPick(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		sel  netconf.Selector
		want string
	}{
		{"by name", netconf.Selector{Name: "ens1f1np1"}, "ens1f1np1"},
		{"by alternative name", netconf.Selector{Name: "rail0"}, "ens1f0np0"},
		{"a VLAN", netconf.Selector{Name: "ens1f0np0.100"}, "ens1f0np0.100"},
		{"a bond", netconf.Selector{Name: "bond0"}, "bond0"},
		{"the node's own card, by name", netconf.Selector{Name: "eno1"}, "eno1"},
		{"by PCI address", netconf.Selector{PCI: pf()}, "ens1f0np0"},
		{"a VF by PCI address", netconf.Selector{PCI: vf().PCI}, "ens1f0v0"},
		{"by RDMA device", netconf.Selector{RDMA: "mlx5_1"}, "ens1f1np1"},
		{"by the RDMA device of a sub-function", netconf.Selector{RDMA: "mlx5_3"}, "en3f0"},
		{"by pattern: PFs only", netconf.Selector{PFNames: []string{"ens1f0*"}}, "ens1f0np0"},
		{"by the second pattern", netconf.Selector{PFNames: []string{"ib*", "ens?f1np1"}}, "ens1f1np1"},
		{"by a bad pattern and a good one", netconf.Selector{PFNames: []string{"[", "ens1f1*"}}, "ens1f1np1"},
		{"by MAC: hardware only", netconf.Selector{MAC: "02:54:00:3B:00:00"}, "ens1f0np0"},
		{"by path", netconf.Selector{Path: "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/"}, "ens1f0np0"},
	}
	for _, tt := range tests {
		got, err := attach.Pick(tt.sel, netconf.Node{}, machine())
		if err != nil || got.Name != tt.want {
			t.Errorf("%s: %q, %v; want %s", tt.name, got.Name, err, tt.want)
		}
	}
	own := netconf.Selector{PFNames: []string{"eno*"}}
	n := netconf.Node{OverrideGuards: []bus.ID{bus.PCI(pci.Addr{Device: 0x1f, Function: 6})}}
	if got, err := attach.Pick(own, n, machine()); err != nil || got.Name != "eno1" {
		t.Errorf("the node's own card, given away: %q, %v", got.Name, err)
	}
}

func TestPickRefuses(t *testing.T) {
	t.Parallel()
	const (
		none = "name a link that the node has; if the node has just booted, the runtime tries again by itself"
		some = "say which link is meant, by its name perhaps: exactly one must fit"
		own  = "name the link if it is really meant, for the node's default route leads through it, or list its device in overrideGuards of " +
			"/etc/podfabric/node.json"
		hardware = "one of eno1 (0000:00:1f.6, irdma0), ens1f0np0 (0000:3b:00.0, mlx5_0), ens1f1np1 (0000:3b:00.1, mlx5_1), en3f0 (mlx5_core.sf.4, mlx5_3)"
	)
	tests := []struct {
		name                 string
		sel                  netconf.Selector
		code                 uint
		remedy, found, right string
	}{
		{
			"no such name",
			netconf.Selector{Name: "ens9"},
			netconf.CodeTryLater, none, `"ens9", which no link of the node is`,
			"one of lo, eno1 (0000:00:1f.6, irdma0), ens1f0np0 (0000:3b:00.0, mlx5_0), ens1f1np1 (0000:3b:00.1, mlx5_1), ens1f0np0.100, bond0, " +
				"en3f0 (mlx5_core.sf.4, mlx5_3)",
		},
		{
			"no such address",
			netconf.Selector{PCI: wholePF()},
			netconf.CodeTryLater, none,
			"PCI device 0000:5e:00.0, which no link of the node is", hardware,
		},
		{
			"no such RDMA device",
			netconf.Selector{RDMA: "mlx5_10"},
			netconf.CodeTryLater, none,
			"RDMA device mlx5_10, which no link of the node is", hardware,
		},
		{
			"no such pattern",
			netconf.Selector{PFNames: []string{"ib*", "ens1f0v*"}},
			netconf.CodeTryLater, none,
			`PF named as ["ib*" "ens1f0v*"], which no link of the node is`, hardware,
		},
		{
			"no such MAC",
			netconf.Selector{MAC: "02:00:00:00:00:99"},
			netconf.CodeTryLater, none,
			"MAC 02:00:00:00:00:99, which no link of the node is", hardware,
		},
		{
			"no such path",
			netconf.Selector{Path: "/sys/devices/pci0000:00"},
			netconf.CodeTryLater, none,
			"path /sys/devices/pci0000:00, which no link of the node is", hardware,
		},
		{
			"two PFs",
			netconf.Selector{PFNames: []string{"ens1f*"}},
			netconf.CodeInvalid, some,
			`PF named as ["ens1f*"], which fits ens1f0np0 (0000:3b:00.0, mlx5_0), ens1f1np1 (0000:3b:00.1, mlx5_1)`, "one link",
		},
		{
			"the default route by accident",
			netconf.Selector{PFNames: []string{"en[a-o]*"}},
			netconf.CodeInUse, own,
			`PF named as ["en[a-o]*"], which is eno1 (0000:00:1f.6, irdma0)`, "a link without the default route",
		},
		{
			"the default route by RDMA device",
			netconf.Selector{RDMA: "irdma0"},
			netconf.CodeInUse, own,
			"RDMA device irdma0, which is eno1 (0000:00:1f.6, irdma0)", "a link without the default route",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.sel.Key = "master.x"
			got, err := attach.Pick(tt.sel, netconf.Node{}, machine())
			p := problem(t, err)
			want := &netconf.Problem{Code: tt.code, Remedy: tt.remedy, Field: "master.x", Found: tt.found, Right: tt.right}
			if diff := cmp.Diff(want, p); diff != "" {
				t.Errorf("problem (-want +got):\n%s", diff)
			}
			if got.Name != "" {
				t.Errorf("picked %s", got.Name)
			}
		})
	}
}

// A node with hundreds of links must not make a message that kubelet cuts before its end.
func TestPickListsAFew(t *testing.T) {
	t.Parallel()
	var many []attach.Candidate
	for n := range 300 {
		many = append(many, attach.Candidate{Name: fmt.Sprintf("eth%d", n), Device: bus.PCI(pci.Addr{Bus: uint8(n % 200)})})
	}
	_, err := attach.Pick(netconf.Selector{Name: "ens9"}, netconf.Node{}, many)
	if p := problem(t, err); !strings.HasSuffix(p.Right, "eth7 (0000:07:00.0), 292 more") {
		t.Errorf("right is %q", p.Right)
	}
	_, err = attach.Pick(netconf.Selector{RDMA: "mlx5_0"}, netconf.Node{}, nil)
	if p := problem(t, err); p.Right != "a link of the node, which has none that would do" {
		t.Errorf("right is %q", p.Right)
	}
}

func TestSettle(t *testing.T) {
	t.Parallel()
	_, pfFacts := whole()
	inferred := func(change ...func(*netconf.Conf)) netconf.Conf {
		c := conf(change...)
		c.Inferred = true
		return c
	}
	tests := []struct {
		name  string
		conf  netconf.Conf
		facts attach.Facts
		want  netconf.Kind
	}{
		{"a VF", inferred(everything), good(), netconf.KindVF},
		{"a PF", inferred(), pfFacts, netconf.KindDevice},
		{"a PF with keys of any kind", inferred(func(c *netconf.Conf) { c.MAC, c.MTU.Bytes = "02:00:00:00:aa:01", 9000 }), pfFacts, netconf.KindDevice},
		{"a PF, and the configuration says vf", conf(), pfFacts, netconf.KindVF},
		{"nothing there yet", inferred(), attach.Facts{}, netconf.KindVF},
		{"another guess", inferred(func(c *netconf.Conf) { c.Kind = netconf.KindChained }), pfFacts, netconf.KindChained},
	}
	for _, tt := range tests {
		got, err := attach.Settle(tt.conf, tt.facts)
		if err != nil || got.Kind != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.name, got.Kind, err, tt.want)
		}
	}
	for key, change := range map[string]func(*netconf.Conf){
		"vlan": func(c *netconf.Conf) { c.VF.VLAN = new(0) }, "vlanQoS": func(c *netconf.Conf) { c.VF.QoS = new(0) },
		"vlanProto": func(c *netconf.Conf) { c.VF.Proto = netconf.Proto8021Q }, "spoofchk": func(c *netconf.Conf) { c.VF.Spoofchk = new(false) },
		"trust": func(c *netconf.Conf) { c.VF.Trust = new(true) }, "link_state": func(c *netconf.Conf) { c.VF.LinkState = netconf.LinkAuto },
		"min_tx_rate": func(c *netconf.Conf) { c.VF.MinTxRate = new(0) }, "max_tx_rate": func(c *netconf.Conf) { c.VF.MaxTxRate = new(0) },
		"vf.baseline": func(c *netconf.Conf) { c.VF.Baseline = netconf.BaselineReset }, "vf.flr": func(c *netconf.Conf) { c.VF.FLR = true },
		"mtu": func(c *netconf.Conf) { c.MTU.FromPF = true },
	} {
		_, err := attach.Settle(inferred(change), pfFacts)
		want := &netconf.Problem{
			Code: netconf.CodeInvalid, Field: key, Found: "with 0000:3b:00.0, which is a whole device and no virtual function",
			Remedy: fmt.Sprintf("remove %q, which only a virtual function can have, or give the address of one in deviceID", key),
		}
		if diff := cmp.Diff(want, problem(t, err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
}
