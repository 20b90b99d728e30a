// SPDX-License-Identifier: Apache-2.0

package netconf_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

func defaults() netconf.Node {
	return netconf.Node{
		KubeletRoot: "/var/lib/kubelet", Delivery: "volume", Uverbs: "refuse", Deadline: 20 * time.Second,
		Log: netconf.Log{Level: "info", Format: "text"},
	}
}

func TestParseNode(t *testing.T) {
	t.Parallel()
	pf := pci.Addr{Bus: 0x3b}
	subnet := netip.MustParsePrefix("10.0.17.0/27")
	tests := []struct {
		name string
		text string
		want func(*netconf.Node)
	}{
		{"no file", "", func(*netconf.Node) {}},
		{"empty object", "{}", func(*netconf.Node) {}},
		{"lists empty", `{"allow":{"pfs":[],"masters":[],"kinds":[],"subnets":[]},"overrideGuards":[]}`, func(n *netconf.Node) {
			n.Allow = netconf.Allow{PFs: []pci.Addr{}, Masters: []string{}, Kinds: []netconf.Kind{}, Subnets: []netip.Prefix{}}
			n.OverrideGuards = []bus.ID{}
		}},
		{
			"everything", `{"version":1,"index":17,"rails":{"0":{"pci":"0000:3b:00.0","subnet":"10.0.17.0/27","gateway":"10.0.17.1"},"12":{}},
			"expectedRails":8,"allow":{"pfs":["0000:3b:00.0"],"masters":["ens1"],"kinds":["vf","device"],"subnets":["10.0.17.0/27"]},
			"podMayChooseDevice":true,"overrideGuards":["0000:3b:00.0"],"kubeletRoot":"/data01/kubelet/","hint":{"delivery":"agent"},
			"uverbs":"agent","deadline":"1m","log":{"file":"/var/log/podfabric.log","level":"debug","format":"json"}}`,
			func(n *netconf.Node) {
				*n = netconf.Node{
					Index: new(17), ExpectedRails: 8, PodMayChooseDevice: true, OverrideGuards: []bus.ID{bus.PCI(pf)},
					Rails: map[int]netconf.Rail{0: {PCI: pf, Subnet: subnet, Gateway: netip.MustParseAddr("10.0.17.1")}, 12: {}},
					Allow: netconf.Allow{
						PFs: []pci.Addr{pf}, Masters: []string{"ens1"}, Kinds: []netconf.Kind{"vf", "device"}, Subnets: []netip.Prefix{subnet},
					},
					KubeletRoot: "/data01/kubelet", Delivery: "agent", Uverbs: "agent", Deadline: time.Minute,
					Log: netconf.Log{File: "/var/log/podfabric.log", Level: "debug", Format: "json"},
				}
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := defaults()
			tt.want(&want)
			got := node(t, tt.text)
			if diff := cmp.Diff(want, got, values()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestParseNodeRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, remedy, field string }{
		{"no", "correct the JSON", "/etc/podfabric/node.json, line 1, column 2"},
		{"{}{}", "keep one JSON document", "line 1, column 3"},
		{"[]", "give a JSON object", "line 1, column 1"},
		{`{"index":1,"index":2}`, `write the key "index" once`, "line 1, column 12"},
		{`{"version":2}`, "install the podfabric that this file was written for", "version"},
		{`{"index":"17"}`, `write "index" as a number`, "index"},
		{`{"index":-1}`, "set index to a whole number", "index"},
		{`{"Index":1}`, `write "index" instead of "Index"`, "Index"},
		{`{"indx":1}`, `remove "indx", podfabric knows no such key here; did you mean "index"?`, "indx"},
		{`{"expectedRails":65}`, "set expectedRails to a whole number", "expectedRails"},
		{`{"deadline":"0s"}`, "set deadline to a time above zero", "deadline"},
		{`{"kubeletRoot":"kubelet"}`, "write kubeletRoot as a path from the root", "kubeletRoot"},
		{`{"hint":{"delivery":"mail"}}`, `set hint.delivery to "volume" or "agent"`, "hint.delivery"},
		{`{"hint":{"deliver":"mail"}}`, `remove "deliver"`, "hint.deliver"},
		{`{"uverbs":"yes"}`, `set uverbs to "refuse" or "agent"`, "uverbs"},
		{`{"overrideGuards":["ens1"]}`, "write overrideGuards[0] as a PCI address", "overrideGuards[0]"},
		{`{"overrideGuards":[1]}`, "write overrideGuards[0] as a string", "overrideGuards[0]"},
		{`{"rails":{"00":{}}}`, "name each rail by its number", "rails.00"},
		{`{"rails":{"64":{}}}`, "name each rail by its number", "rails.64"},
		{`{"rails":{"0":[]}}`, "write rails.0 as an object", "rails.0"},
		{`{"rails":{"0":{"pf":"0000:3b:00.0"}}}`, `remove "pf"`, "rails.0.pf"},
		{`{"rails":{"0":{"pci":"3b:00.0"}}}`, "write rails.0.pci as the PF's PCI address", "rails.0.pci"},
		{`{"rails":{"0":{"subnet":"10.0.17.1/27"}}}`, "write 10.0.17.0/27 instead of 10.0.17.1/27", "rails.0.subnet"},
		{`{"rails":{"0":{"gateway":"10.0.17.1"}}}`, "add the rail's subnet beside its gateway", "rails.0.subnet"},
		{`{"rails":{"0":{"subnet":"10.0.17.0/27","gateway":"10.0.18.1"}}}`, "set rails.0.gateway to an address of the subnet", "rails.0.gateway"},
		{`{"allow":{"pf":[]}}`, `remove "pf", podfabric knows no such key here; did you mean "pfs"?`, "allow.pf"},
		{`{"allow":{"pfs":"all"}}`, `write "pfs" as a list`, "allow.pfs"},
		{`{"allow":{"pfs":["all"]}}`, "write allow.pfs[0] as a PCI address", "allow.pfs[0]"},
		{`{"allow":{"masters":[1]}}`, "write allow.masters[0] as a string", "allow.masters[0]"},
		{`{"allow":{"kinds":["sriov"]}}`, `set allow.kinds[0] to "vf" or`, "allow.kinds[0]"},
		{`{"allow":{"subnets":["10.0.0.1/8"]}}`, "write 10.0.0.0/8 instead", "allow.subnets[0]"},
		{`{"log":{"file":"x"}}`, "write log.file as a path from the root", "log.file"},
		{`{"log":{"level":"trace"}}`, `set log.level to "info" or "debug"`, "log.level"},
		{`{"log":{"format":"xml"}}`, `set log.format to "text" or "json"`, "log.format"},
		{`{"log":{"lvl":"info"}}`, `remove "lvl"`, "log.lvl"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			_, err := netconf.ParseNode([]byte(tt.text))
			p := problem(t, err)
			if p.Code != netconf.CodeInvalid || !strings.HasPrefix(p.Error(), tt.remedy) ||
				!strings.HasPrefix(p.Field, netconf.NodePath) || !strings.HasSuffix(p.Field, tt.field) {
				t.Errorf("got code %d, field %q, %q\nwant code 7, field %q, text that begins with %q", p.Code, p.Field, p, tt.field, tt.remedy)
			}
		})
	}
}

// An absent list allows all, an empty one nothing.
func TestNodeAllows(t *testing.T) {
	t.Parallel()
	pf, prefix := pci.Addr{Bus: 0x3b}, netip.MustParsePrefix
	type answers struct {
		PF, Master, Kind, Wide, Narrow, Override bool
	}
	ask := func(n netconf.Node) answers {
		return answers{
			PF: n.AllowsPF(pf), Master: n.AllowsMaster("ens1"), Kind: n.AllowsKind(netconf.KindVF),
			Wide: n.AllowsSubnet(prefix("10.0.0.0/8")), Narrow: n.AllowsSubnet(prefix("10.1.2.0/24")), Override: n.Overrides(bus.PCI(pf)),
		}
	}
	for _, tt := range []struct {
		text string
		want answers
	}{
		{`{}`, answers{PF: true, Master: true, Kind: true, Wide: true, Narrow: true}},
		{`{"allow":{"pfs":[],"masters":[],"kinds":[],"subnets":[]}}`, answers{}},
		{
			`{"allow":{"pfs":["0000:3b:00.0"],"masters":["ens1"],"kinds":["vf"],"subnets":["fd00::/8","10.1.0.0/16"]},"overrideGuards":["0000:3b:00.0"]}`,
			answers{PF: true, Master: true, Kind: true, Narrow: true, Override: true},
		},
		{
			`{"allow":{"pfs":["0000:3b:00.1"],"masters":["ens2"],"kinds":["device"],"subnets":["10.1.3.0/24"]}}`, answers{},
		},
	} {
		if diff := cmp.Diff(tt.want, ask(node(t, tt.text))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.text, diff)
		}
	}
}
