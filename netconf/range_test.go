// SPDX-License-Identifier: Apache-2.0

package netconf_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
)

// Expected blocks are computed by hand: node 17 of /26 blocks begins 17*64 = 1088 = 4*256+64 behind the base.
func TestParseRanges(t *testing.T) {
	t.Parallel()
	addr, prefix := netip.MustParseAddr, netip.MustParsePrefix
	const index = `{"version":1,"index":17,"rails":{"3":{"subnet":"10.0.17.0/27","gateway":"10.0.17.1"}}}`
	tests := []struct {
		name string
		keys string
		node string
		want netconf.IPAM
	}{
		{
			name: "block of node 17", keys: `"ranges":[[{"subnet":"10.1.0.0/16","perNode":26,"gateway":"10.1.0.1"}]]`,
			want: netconf.IPAM{Ranges: [][]netconf.Range{{{
				Subnet: prefix("10.1.0.0/16"), First: addr("10.1.4.64"), Last: addr("10.1.4.127"), Gateway: addr("10.1.0.1"),
			}}}},
		},
		{
			name: "block of node 0 lacks the network's address", keys: `"subnet":"10.1.0.0/16","perNode":26`, node: `{"index":0}`,
			want: netconf.IPAM{Ranges: [][]netconf.Range{{{
				Subnet: prefix("10.1.0.0/16"), First: addr("10.1.0.1"), Last: addr("10.1.0.63"),
			}}}},
		},
		{
			name: "last block lacks the broadcast", keys: `"subnet":"10.1.0.0/24","perNode":26`, node: `{"index":3}`,
			want: netconf.IPAM{Ranges: [][]netconf.Range{{{
				Subnet: prefix("10.1.0.0/24"), First: addr("10.1.0.192"), Last: addr("10.1.0.254"),
			}}}},
		},
		{
			name: "block of one address", keys: `"subnet":"10.1.0.0/24","perNode":32`,
			want: netconf.IPAM{Ranges: [][]netconf.Range{{{
				Subnet: prefix("10.1.0.0/24"), First: addr("10.1.0.17"), Last: addr("10.1.0.17"),
			}}}},
		},
		{
			name: "block cut by start and end",
			keys: `"ranges":[[{"subnet":"10.1.0.0/16","perNode":26,"rangeStart":"10.1.4.70","rangeEnd":"10.1.200.0"}]]`,
			want: netconf.IPAM{Ranges: [][]netconf.Range{{{
				Subnet: prefix("10.1.0.0/16"), First: addr("10.1.4.70"), Last: addr("10.1.4.127"),
			}}}},
		},
		{
			name: "IPv6: node 17 of /80 blocks in a /64", keys: `"ranges":[[{"subnet":"fd00:1::/64","perNode":80}]]`,
			want: netconf.IPAM{Ranges: [][]netconf.Range{{{
				Subnet: prefix("fd00:1::/64"), First: addr("fd00:1::11:0:0:0"), Last: addr("fd00:1::11:ffff:ffff:ffff"),
			}}}},
		},
		{
			name: "IPv6: node 17 of /56 blocks in a /48", keys: `"ranges":[[{"subnet":"fd00:1::/48","perNode":56}]]`,
			want: netconf.IPAM{Ranges: [][]netconf.Range{{{
				Subnet: prefix("fd00:1::/48"), First: addr("fd00:1:0:1100::"), Last: addr("fd00:1:0:11ff:ffff:ffff:ffff:ffff"),
			}}}},
		},
		{
			name: "dual stack with alternatives",
			keys: `"ranges":[[{"subnet":"10.1.0.0/24","scope":"node","exclude":["10.1.0.16/28","10.1.0.9"]},{"subnet":"10.2.0.0/30","scope":"node"}],
				[{"subnet":"fd00::/126","scope":"node"}]]`,
			want: netconf.IPAM{Ranges: [][]netconf.Range{
				{
					{
						Subnet: prefix("10.1.0.0/24"), First: addr("10.1.0.1"), Last: addr("10.1.0.254"), NodeScoped: true,
						Exclude: []netip.Prefix{prefix("10.1.0.16/28"), prefix("10.1.0.9/32")},
					},
					{Subnet: prefix("10.2.0.0/30"), First: addr("10.2.0.1"), Last: addr("10.2.0.2"), NodeScoped: true},
				},
				{{Subnet: prefix("fd00::/126"), First: addr("fd00::1"), Last: addr("fd00::3"), NodeScoped: true}},
			}},
		},
		{
			name: "flat form stands before the ranges, as host-local has it",
			keys: `"subnet":"10.1.0.0/31","scope":"node","ranges":[[{"subnet":"10.2.0.0/24","scope":"node"}]]`,
			want: netconf.IPAM{Ranges: [][]netconf.Range{
				{{Subnet: prefix("10.1.0.0/31"), First: addr("10.1.0.0"), Last: addr("10.1.0.1"), NodeScoped: true}},
				{{Subnet: prefix("10.2.0.0/24"), First: addr("10.2.0.1"), Last: addr("10.2.0.254"), NodeScoped: true}},
			}},
		},
		{
			name: "the rail's subnet in node.json", keys: `"from":"rail","routes":[{"dst":"10.0.0.0/16"}]`,
			want: netconf.IPAM{
				Ranges: [][]netconf.Range{{{
					Subnet: prefix("10.0.17.0/27"), First: addr("10.0.17.1"), Last: addr("10.0.17.30"), Gateway: addr("10.0.17.1"),
					NodeScoped: true,
				}}},
				Routes: []netconf.Route{{Dst: prefix("10.0.0.0/16"), Via: addr("10.0.17.1")}},
			},
		},
		{
			name: "dataDir of host-local is known", keys: `"subnet":"10.2.0.0/24","scope":"node","dataDir":"/x","defaultRoute":true,
				"routes":[{"dst":"0.0.0.0/0","gw":"10.2.0.1"}]`,
			want: netconf.IPAM{
				DefaultRoute: true,
				Ranges:       [][]netconf.Range{{{Subnet: prefix("10.2.0.0/24"), First: addr("10.2.0.1"), Last: addr("10.2.0.254"), NodeScoped: true}}},
				Routes:       []netconf.Route{{Dst: prefix("0.0.0.0/0"), Via: addr("10.2.0.1")}},
			},
		},
		{
			name: "inside the allow-list", keys: `"subnet":"10.1.0.0/16","perNode":26`,
			node: `{"index":17,"allow":{"subnets":["10.9.0.0/16","10.1.4.0/24"]}}`,
			want: netconf.IPAM{Ranges: [][]netconf.Range{{{
				Subnet: prefix("10.1.0.0/16"), First: addr("10.1.4.64"), Last: addr("10.1.4.127"),
			}}}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.node == "" {
				tt.node = index
			}
			c, err := netconf.Parse(raw(vf(`,"rail":3,"ipam":{"type":"range",`+tt.keys+`}`)), node(t, tt.node))
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Kind = netconf.IPAMRange
			if diff := cmp.Diff(tt.want, c.IPAM, values()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Two nodes never share an address, which is what perNode is for.
func TestParseBlocksAreDisjoint(t *testing.T) {
	t.Parallel()
	seen := map[netip.Addr]int{}
	for i := range 16 {
		n := netconf.Node{Index: &i}
		c, err := netconf.Parse(raw(vf(`,"ipam":{"type":"range","subnet":"10.1.0.0/24","perNode":28}`)), n)
		if err != nil {
			t.Fatal(err)
		}
		r := c.IPAM.Ranges[0][0]
		for a := r.First; !r.Last.Less(a); a = a.Next() {
			if other, ok := seen[a]; ok {
				t.Fatalf("%s belongs to nodes %d and %d", a, other, i)
			}
			seen[a] = i
		}
	}
	if len(seen) != 254 {
		t.Errorf("16 nodes have %d addresses together, want the 254 of a /24", len(seen))
	}
}

func TestParseWantedAddresses(t *testing.T) {
	t.Parallel()
	const caps = `,"capabilities":{"ips":true}`
	const pool = `"ipam":{"type":"range","ranges":[[{"subnet":"10.1.0.0/16","perNode":26,"gateway":"10.1.4.65","exclude":["10.1.4.80/30"]}],
		[{"subnet":"fd00::/64","scope":"node"}]]}`
	const fixed = `"ipam":{"type":"static","addresses":[{"address":"10.1.0.7/24","gateway":"10.1.0.1"}]}`
	tests := []struct {
		name string
		keys string
		args string
		want []string // of IPAM.Want, or of IPAM.Static; nil: refused
	}{
		{"range, from runtimeConfig", caps + `,"runtimeConfig":{"ips":["10.1.4.70"]},` + pool, "", []string{"10.1.4.70"}},
		{"range, both ways as Multus does", caps + `,"runtimeConfig":{"ips":["10.1.4.70/16"]},` + pool, "IP=10.1.4.70/16", []string{"10.1.4.70"}},
		{"range, two families", caps + "," + pool, "IP=10.1.4.70,fd00::5", []string{"10.1.4.70", "fd00::5"}},
		{"range, of another node's block", caps + "," + pool, "IP=10.1.4.128", nil},
		{"range, gateway", caps + "," + pool, "IP=10.1.4.65", nil},
		{"range, excluded", caps + "," + pool, "IP=10.1.4.81", nil},
		{"range, two of one set", caps + "," + pool, "IP=10.1.4.70,10.1.4.71", nil},
		{"range, wrong length", caps + "," + pool, "IP=10.1.4.70/24", nil},
		{"range, no address", caps + "," + pool, "IP=ten", nil},
		{"no opt-in, runtimeConfig", `,"runtimeConfig":{"ips":["10.1.4.70"]},` + pool, "", nil},
		{"no opt-in, CNI_ARGS", "," + pool, "IP=10.1.4.70", nil},
		{"opt-out", `,"capabilities":{"ips":false},` + pool, "IP=10.1.4.70", nil},
		{"no ipam", caps, "IP=10.1.4.70", nil},
		{"not a list", caps + `,"runtimeConfig":{"ips":"10.1.4.70"},` + pool, "", nil},
		{"not strings", caps + `,"runtimeConfig":{"ips":[10]},` + pool, "", nil},
		{"static, in the author's subnet", caps + "," + fixed, "IP=10.1.0.9", []string{"10.1.0.9/24"}},
		{"static, both ways", caps + `,"runtimeConfig":{"ips":["10.1.0.9/24"]},` + fixed, "IP=10.1.0.9", []string{"10.1.0.9/24"}},
		{"static, outside", caps + "," + fixed, "IP=10.1.1.9/24", nil},
		{"static, another length", caps + "," + fixed, "IP=10.1.0.9/16", nil},
		{"static, no author's address", caps + `,"ipam":{"type":"static"}`, "IP=10.7.0.9/24", []string{"10.7.0.9/24"}},
		{"static, no author's address, no length", caps + `,"ipam":{"type":"static"}`, "IP=10.7.0.9", nil},
		{"static, twice with two lengths", caps + `,"ipam":{"type":"static"}`, "IP=10.7.0.9/24,10.7.0.9/25", nil},
		{"delegate gets them itself", caps + `,"ipam":{"type":"host-local"}`, "IP=10.7.0.9", []string{}},
		{"delegate without opt-in", `,"ipam":{"type":"host-local"}`, "IP=10.7.0.9", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := raw(vf(tt.keys))
			r.Args = tt.args
			c, err := netconf.Parse(r, netconf.Node{Index: new(17)})
			if tt.want == nil {
				if p := problem(t, err); p.Code != netconf.CodeInvalid {
					t.Errorf("code %d, want 7: %v", p.Code, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, a := range c.IPAM.Want {
				got = append(got, a.String())
			}
			for _, a := range c.IPAM.Static {
				got = append(got, a.Prefix.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
