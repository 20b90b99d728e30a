// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// macvlan is the real plugin of the network's name, with the addresses of the real static or host-local.
func macvlan(ipam object) object {
	return object{"type": "macvlan", "master": "m0", "mac": mac, "mtu": 1400, "ipam": ipam}
}

// static are addresses as both the real static and ours write them.
func static() object {
	return object{
		"type": "static", "addresses": []object{{"address": "192.0.2.7/24", "gateway": "192.0.2.1"}}, "routes": []object{{"dst": "198.51.100.0/24"}},
	}
}

// tuning and sbr are the real plugins that people put behind a NIC.
func tuning() object {
	return object{"type": "tuning", "sysctl": object{"net.ipv4.conf.IFNAME.arp_ignore": "1"}, "mtu": 1350}
}

func sbr() object { return object{"type": "sbr"} }

// ours is podfabric behind another plugin.
func ours() object {
	return object{"type": "podfabric", "rdma": object{"mode": "off"}, "deviceID": "17", "pciBusID": "17"}
}

// chain is a list of plugins, and what comes of it.
type chain struct {
	plugins []object
	mtu     float64 // in the result
	inside  string  // MTU of net1 in the pod, as ip(8) shows it
	rule    bool    // source routing by sbr
	peer    string  // what another plugin's own CHECK says against it
}

func chains() map[string]chain {
	alone := object{
		"type": "podfabric", "link": "macvlan", "master": "m0", "mac": mac, "mtu": 1400, "rdma": object{"mode": "off"}, "ipam": static(),
	}
	// sbr takes the routes of macvlan out of the main table, where macvlan's CHECK looks for them, with podfabric or without.
	const moved = "Failed to find Gateway"
	return map[string]chain{
		"alone":                      {plugins: []object{alone}, mtu: 1400, inside: "mtu 1400"},
		"first, then tuning and sbr": {plugins: []object{alone, tuning(), sbr()}, mtu: 1400, inside: "mtu 1350", rule: true},
		"last, behind macvlan":       {plugins: []object{macvlan(static()), ours()}, mtu: 1400, inside: "mtu 1400"},
		"last, behind tuning and sbr": {
			plugins: []object{macvlan(static()), tuning(), sbr(), ours()}, mtu: 1350, inside: "mtu 1350", rule: true, peer: moved,
		},
		"in the middle": {plugins: []object{macvlan(static()), ours(), tuning()}, mtu: 1400, inside: "mtu 1350"},
		"in the middle, before sbr": {
			plugins: []object{macvlan(static()), ours(), sbr()}, mtu: 1400, inside: "mtu 1400", rule: true, peer: moved,
		},
	}
}

func TestChains(t *testing.T) {
	for _, v := range versions() {
		for name, ch := range chains() {
			t.Run(v.name+" "+name, func(t *testing.T) {
				p := newPod(t, "chain")
				before := look(t, p)
				c := call{network: object{"cniVersion": v.name, "name": "rail0", "plugins": ch.plugins}, id: "chain", netns: p.path}
				for _, cache := range []string{"", "/run/empty"} { // DEL with prevResult and without
					attach(t, v, ch, c, p)
					c.from(cache).ok(t, "DEL")
					ended(t, c, p)
					c.ok(t, "DEL")
					before.unchanged(t, p)
				}
			})
		}
	}
}

// attach makes and checks one attachment by the chain.
func attach(t *testing.T, v version, ch chain, c call, p pod) {
	t.Helper()
	route := object{"dst": "198.51.100.0/24"}
	if ch.plugins[0]["type"] == "podfabric" {
		route["gw"] = "192.0.2.1" // the real static leaves a route without a gateway as it is
	}
	want := object{
		"cniVersion": v.name, "interfaces": interfaces(v, p, ch.mtu), "routes": []any{route},
		"ips": ips(v, object{"address": "192.0.2.7/24", "gateway": "192.0.2.1"}),
	}
	if v.family {
		want["dns"] = object{} // from 1.0.0 on the library leaves out an empty one
	}
	if diff := cmp.Diff(any(want), c.ok(t, "ADD")); diff != "" {
		t.Errorf("result (-specification +chain):\n%s", diff)
	}
	if link := p.ip(t, "link", "show", "net1"); !strings.Contains(link, ch.inside) || !strings.Contains(link, mac) {
		t.Errorf("wanted %s and %s: %s", ch.inside, mac, link)
	}
	if rules := p.ip(t, "rule"); strings.Contains(rules, "from 192.0.2.7") != ch.rule {
		t.Errorf("rules: %s", rules)
	}
	if !v.check {
		return
	}
	if ch.peer == "" {
		c.ok(t, "CHECK")
		return
	}
	c.refused(t, "CHECK", 999, ch.peer)
	quiet(t, c.by(with(ours(), object{"cniVersion": v.name, "name": "rail0", "prevResult": want})).bare(t, "CHECK"))
}

// Behind itself podfabric would have two records of one interface.
func TestTwiceInOneChain(t *testing.T) {
	p := newPod(t, "twice")
	before := look(t, p)
	plugins := []object{chains()["alone"].plugins[0], ours()}
	c := call{network: object{"cniVersion": "1.1.0", "name": "rail0", "plugins": plugins}, id: "twice", netns: p.path}
	c.refused(t, "ADD", 7, "DEL the attachment before adding it again")
	c.ok(t, "DEL")
	before.unchanged(t, p)
}

// ended wants nothing of the attachment, whatever the other plugins leave in the pod.
func ended(t *testing.T, c call, p pod) {
	t.Helper()
	if recorded(t, c) {
		t.Error("a record is left")
	}
	if links := p.ip(t, "-br", "link"); strings.Contains(links, "net1") {
		t.Errorf("the pod has %s", links)
	}
}
