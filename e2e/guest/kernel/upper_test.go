// SPDX-License-Identifier: Apache-2.0

//go:build lab

package kernel_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/e2e/guest/node"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/kernel"
	"github.com/podfabric/podfabric/plugin/link"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// shownLink is what ip -d -j link show says of one link.
type shownLink struct {
	Index  int    `json:"ifindex"`
	Name   string `json:"ifname"`
	MTU    int    `json:"mtu"`
	MAC    string `json:"address"`
	Lower  int    `json:"link_index"`
	Detail struct {
		Kind string `json:"info_kind"`
		Data struct {
			Mode string `json:"mode"`
		} `json:"info_data"`
	} `json:"linkinfo"`
	VFs []shownVF `json:"vfinfo_list"`
}

// shownLinks is what ip(8) shows of a namespace, by name.
func shownLinks(t *testing.T, ns *node.NS) map[string]shownLink {
	t.Helper()
	out, err := ns.Try("ip", "-d", "-j", "link", "show")
	must(t, err)
	var list []shownLink
	must(t, json.Unmarshal([]byte(out), &list))
	byName := map[string]shownLink{}
	for _, l := range list {
		byName[l.Name] = l
	}
	return byName
}

func lower(t *testing.T, name string) attach.Lower {
	t.Helper()
	l, found := shownLinks(t, nil)[name]
	if !found {
		t.Fatalf("no link %s at home", name)
	}
	return attach.Lower{Name: name, Index: l.Index}
}

// with makes a link at home that goes with the test.
func with(t *testing.T, name, args string) attach.Lower {
	t.Helper()
	node.Run(t, "ip", strings.Fields("link add "+args)...)
	t.Cleanup(func() { node.Run(t, "ip", "link", "del", name) })
	return lower(t, name)
}

// bond makes a bond of the netdevs of two VFs.
func bond(t *testing.T, name string, vfs ...string) attach.Lower {
	t.Helper()
	for _, vf := range vfs {
		l, mac := node.Netdev(vf), shownLinks(t, nil)[node.Netdev(vf)].MAC
		node.Run(t, "ip", "link", "set", l, "down")
		t.Cleanup(func() {
			node.Run(t, "ip", "link", "set", l, "down")
			node.Run(t, "ip", "link", "set", l, "address", mac)
		})
	}
	b := with(t, name, name+" type bond mode active-backup fail_over_mac active")
	for _, vf := range vfs {
		node.Run(t, "ip", "link", "set", node.Netdev(vf), "master", name)
	}
	node.Run(t, "ip", "link", "set", name, "up")
	return b
}

// What is below a master: the function, its RDMA device wherever that is, and how many there are.
func TestObserveBelow(t *testing.T) {
	pf := node.PF(t, 1)
	name := node.Netdev(pf)
	vlan := with(t, name+".7", "link "+name+" name "+name+".7 type vlan id 7")
	first, second := node.VF(t, 1, 2), node.VF(t, 1, 3)
	devices := []string{node.IBDev(first), node.IBDev(second)}
	slices.Sort(devices)
	firstOf := first
	if node.IBDev(second) == devices[0] {
		firstOf = second
	}
	both := bond(t, "bond7", first, second)
	overBoth := with(t, "bond7.8", "link bond7 name bond7.8 type vlan id 8")
	for what, tt := range map[string]struct {
		master   attach.Lower
		kind     string
		function bus.ID
		rdma     []string
	}{
		"PF":               {master: lower(t, name), kind: "device", function: bus.PCI(addr(t, pf)), rdma: []string{node.IBDev(pf)}},
		"VLAN on a PF":     {master: vlan, kind: "vlan", function: bus.PCI(addr(t, pf)), rdma: []string{node.IBDev(pf)}},
		"bond":             {master: both, kind: "bond", function: bus.PCI(addr(t, firstOf)), rdma: devices},
		"VLAN on a bond":   {master: overBoth, kind: "vlan", function: bus.PCI(addr(t, firstOf)), rdma: devices},
		"without hardware": {master: with(t, "dummy7", "dummy7 type dummy"), kind: "dummy"},
	} {
		f, err := open(t, nil).Observe(t.Context(), attach.Query{Master: tt.master})
		must(t, err)
		if f.Master == nil || f.Master.Kind != tt.kind || f.Master.Index != tt.master.Index || f.Function.ID != tt.function {
			t.Errorf("%s: master %+v, function %+v", what, f.Master, f.Function)
			continue
		}
		if diff := cmp.Diff(tt.rdma, f.Master.RDMA); diff != "" {
			t.Errorf("%s: RDMA devices (-want +got):\n%s", what, diff)
		}
		if len(tt.rdma) > 0 && (f.RDMA == nil || f.RDMA.Name != tt.rdma[0] || f.RDMA.NS != attach.Host || f.RDMA.LinkLayer != "Ethernet") {
			t.Errorf("%s: RDMA device %+v", what, f.RDMA)
		}
		if what == "PF" && (f.Function.NumVFs != 6 || f.Function.VF) {
			t.Errorf("PF %+v", f.Function)
		}
	}
}

func TestObserveBelowWithTheRDMADeviceAway(t *testing.T) {
	ns := node.NewNS(t)
	vf := node.VF(t, 1, 3)
	s := open(t, ns)
	master := lower(t, node.Netdev(vf))
	before, err := s.Observe(t.Context(), attach.Query{Master: master})
	must(t, err)
	move := attach.MoveRDMA{Index: before.RDMA.Index, GUID: before.RDMA.NodeGUID, Name: before.RDMA.Name, From: attach.Host, To: attach.Pod}
	apply(t, s, move)
	for what, tt := range map[string]struct {
		s  *kernel.Session
		ns attach.NS
	}{"in the pod": {s, attach.Pod}, "nowhere to be seen": {open(t, nil), attach.Elsewhere}} {
		f, err := tt.s.Observe(t.Context(), attach.Query{Master: master})
		must(t, err)
		if f.RDMA == nil || f.RDMA.NS != tt.ns || f.RDMA.Name != before.RDMA.Name || !slices.Equal(f.Master.RDMA, []string{before.RDMA.Name}) {
			t.Errorf("%s: %+v, master %+v", what, f.RDMA, f.Master)
		}
	}
	apply(t, s, move.Reverse())
}

// Every kind on everything that it can sit on: made in the pod, found there again, gone without a trace.
func TestAddLinkOnHardware(t *testing.T) {
	const mac = "02:11:22:33:44:55"
	pf := node.PF(t, 1)
	name := node.Netdev(pf)
	on := lower(t, name)
	vlan := with(t, name+".9", "link "+name+" name "+name+".9 type vlan id 9")
	both := bond(t, "bond9", node.VF(t, 1, 2), node.VF(t, 1, 3))
	for what, step := range map[string]attach.AddLink{
		"macvlan on a PF":   {Kind: "macvlan", Master: on, Mode: "bridge", MAC: mac, MTU: 1400},
		"passthru on a PF":  {Kind: "macvlan", Master: on, Mode: "passthru"},
		"macvlan on a VLAN": {Kind: "macvlan", Master: vlan, Mode: "private", MAC: mac},
		"macvlan on a bond": {Kind: "macvlan", Master: both, Mode: "bridge", MAC: mac},
		"ipvlan on a PF":    {Kind: "ipvlan", Master: on, Mode: "l2"},
		"ipvlan on a VLAN":  {Kind: "ipvlan", Master: vlan, Mode: "l2"},
	} {
		t.Run(what, func(t *testing.T) {
			ns := node.NewNS(t)
			s := open(t, ns)
			step.Link = attach.Place{NS: attach.Pod, Name: "net1"}
			machine := snapshot(t)
			apply(t, s, step)
			got := shownLinks(t, ns)["net1"]
			wantMAC, wantMTU := step.MAC, step.MTU
			if wantMAC == "" {
				wantMAC = shownLinks(t, nil)[step.Master.Name].MAC
			}
			if wantMTU == 0 {
				wantMTU = 1500
			}
			if got.Detail.Kind != step.Kind || got.Detail.Data.Mode != step.Mode || got.MAC != wantMAC || got.MTU != wantMTU || got.Lower != step.Master.Index {
				t.Errorf("ip shows %+v", got)
			}
			if behind, err := s.Behind(t.Context(), "net1"); err != nil || behind.Master != step.Master || behind.Kind != step.Kind || !behind.Device.IsZero() {
				t.Errorf("behind it %+v, %v", behind, err)
			}
			f, err := s.Observe(t.Context(), attach.Query{
				Master: step.Master, Own: attach.OwnLink{Kind: step.Kind, Name: "net1", MAC: step.MAC},
			})
			must(t, err)
			if f.Link == nil || f.Link.Name != "net1" || f.Link.Kind != step.Kind || f.RDMA == nil || f.RDMA.NS != attach.Host {
				t.Errorf("link %+v, RDMA device %+v", f.Link, f.RDMA)
			}
			apply(t, s, step.Reverse())
			if diff := kernel.Diff(machine, snapshot(t)); len(diff) != 0 {
				t.Errorf("left behind:\n%s", strings.Join(diff, "\n"))
			}
		})
	}
}

func TestAddLinkRefusedByTheKernel(t *testing.T) {
	name := node.Netdev(node.PF(t, 1))
	on := lower(t, name)
	with(t, "mv7", "link "+name+" name mv7 type macvlan mode bridge")
	bond(t, "bond3", node.VF(t, 1, 2))
	for what, tt := range map[string]struct {
		step attach.AddLink
		want error
		text string
	}{
		"ipvlan beside macvlan": {
			step: attach.AddLink{Kind: "ipvlan", Master: on, Mode: "l2"}, want: link.ErrBusy, text: "has links of another kind on it",
		},
		"on a port of a bond": {
			step: attach.AddLink{Kind: "macvlan", Master: lower(t, node.Netdev(node.VF(t, 1, 2))), Mode: "bridge"}, want: link.ErrBusy,
			text: "port of a bridge or bond",
		},
	} {
		ns := node.NewNS(t)
		s := open(t, ns)
		tt.step.Link = attach.Place{NS: attach.Pod, Name: "net1"}
		machine := snapshot(t)
		if err := s.Apply(t.Context(), tt.step); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v, want %v with %q", what, err, tt.want, tt.text)
		}
		if diff := kernel.Diff(machine, snapshot(t)); len(diff) != 0 {
			t.Errorf("%s: something changed:\n%s", what, strings.Join(diff, "\n"))
		}
	}
}

// What other plugins make in a pod, and what is behind it.
func TestBehindWhatOthersMade(t *testing.T) {
	ns := node.NewNS(t)
	s := open(t, ns)
	pf, vf := node.PF(t, 1), node.VF(t, 1, 0)
	name, dev := node.Netdev(pf), node.Netdev(vf)
	on := lower(t, name)
	node.Run(t, "ip", "link", "add", "link", name, "name", "v6", "type", "vlan", "id", "6")
	node.Run(t, "ip", "link", "set", "v6", "netns", ns.Name)
	node.Run(t, "ip", "link", "add", "link", name, "name", "mv6", "netns", ns.Name, "type", "macvlan", "mode", "bridge")
	node.Run(t, "ip", "link", "set", dev, "netns", ns.Name)
	ns.Run(t, "ip", "link", "add", "link", "mv6", "name", "mv6.9", "type", "vlan", "id", "9")
	ns.Run(t, "ip", "link", "add", "link", dev, "name", "vf.9", "type", "vlan", "id", "9")
	ns.Run(t, "ip", "link", "add", "dummy6", "type", "dummy")
	for ifname, want := range map[string]attach.Behind{
		"v6":     {Kind: "vlan", Master: on},
		"mv6":    {Kind: "macvlan", Master: on},
		"mv6.9":  {Kind: "vlan", Master: on}, // through the pod's macvlan
		dev:      {Kind: "device", Device: bus.PCI(addr(t, vf))},
		"vf.9":   {Kind: "vlan"}, // on the pod's VF, which is another attachment's
		"dummy6": {Kind: "dummy"},
	} {
		got, err := s.Behind(t.Context(), ifname)
		want.Type, want.MAC = "ether", shownLinks(t, ns)[ifname].MAC
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", ifname, err, diff)
		}
	}
	ns.Run(t, "ip", "link", "set", dev, "netns", "1")
}

func TestLinksOfHardware(t *testing.T) {
	links, err := open(t, nil).Links(t.Context())
	must(t, err)
	for pciAddr, vf := range map[string]bool{node.PF(t, 1): false, node.VF(t, 1, 0): true} {
		name := node.Netdev(pciAddr)
		i := slices.IndexFunc(links, func(l attach.Candidate) bool { return l.Name == name })
		if i < 0 {
			t.Errorf("no link %s", name)
			continue
		}
		path, err := node.Try("readlink", "-f", "/sys/bus/pci/devices/"+pciAddr)
		must(t, err)
		shown := shownLinks(t, nil)[name]
		want := attach.Candidate{
			Name: name, Index: shown.Index, Type: "ether", Kind: "device", MAC: shown.MAC, Device: bus.PCI(addr(t, pciAddr)),
			Path: strings.TrimSpace(path), VF: vf, RDMA: []string{node.IBDev(pciAddr)},
		}
		got := links[i]
		got.AltNames = nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
