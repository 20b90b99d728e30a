// SPDX-License-Identifier: Apache-2.0

package attachtest

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/podfabric/podfabric/plugin/attach"
)

// Kinds of links, as ip -d prints them; hardware has none there.
const (
	hardware = "device"
	macvlan  = "macvlan"
	ipvlan   = "ipvlan"
	vlan     = "vlan"
	bond     = "bond"
	veth     = "veth"
	passthru = "passthru"
)

// address is the MAC that a link has: an ipvlan's and a passthru macvlan's is its master's (ipvlan_link_new and
// macvlan_common_newlink inherit it, NETDEV_CHANGEADDR keeps it so).
func (l *link) address() string {
	if len(l.lowers) > 0 && (l.kind == ipvlan || l.kind == macvlan && l.mode == passthru) {
		return l.lowers[0].address()
	}
	return l.mac
}

// makeLocal gives a link that comes up its IPv6 link-local address, if addr_gen_mode and disable_ipv6 let it. It stays until
// the link goes down, whatever these say later and whatever the MAC becomes.
func (l *link) makeLocal() {
	if l.typ != "ether" || l.local.IsValid() || l.sysctls["disable_ipv6"] != "0" || l.sysctls["addr_gen_mode"] == "1" {
		return
	}
	b := linkLocal(l.address()).As16()
	if l.devID != 0 { // addrconf_ifid_eui48: what shares a MAC is told apart by dev_id
		b[8], b[11], b[12] = b[8]^2, byte(l.devID>>8), byte(l.devID)
	}
	l.local = netip.AddrFrom16(b)
}

// taken tells whether a name of a namespace, alternative ones included, is that of another link than except.
func (k *Kernel) taken(ns *netns, name string, except *link) bool {
	return slices.ContainsFunc(k.links, func(x *link) bool {
		return x.ns == ns && (x != except && x.name == name || slices.Contains(x.alt, name))
	})
}

// uppers are the links on l, in any namespace.
func (k *Kernel) uppers(l *link) []*link {
	var out []*link
	for _, x := range k.links {
		if slices.Contains(x.lowers, l) {
			out = append(out, x)
		}
	}
	return out
}

// tree is l and all links above it, in any namespace, each once.
func (k *Kernel) tree(l *link) []*link {
	out := []*link{l}
	for i := 0; i < len(out); i++ {
		for _, x := range k.uppers(out[i]) {
			if !slices.Contains(out, x) {
				out = append(out, x)
			}
		}
	}
	return out
}

// below are the functions behind l, through VLANs, macvlans and bonds.
func (k *Kernel) below(l *link) []*function {
	if f := k.function(l.dev); f != nil {
		return []*function{f}
	}
	var out []*function
	for _, x := range l.lowers {
		out = append(out, k.below(x)...)
	}
	return out
}

// AddVLAN makes a VLAN at home on a link there, up.
func (k *Kernel) AddVLAN(master, name string, id int) { k.MakeVLAN("", name, master, id) }

// MakeVLAN is what the vlan plugin does: a VLAN in a pod on a link at home.
func (k *Kernel) MakeVLAN(path, name, master string, id int) {
	k.in(func() { k.upper(path, link{name: name, kind: vlan, vid: id}, master) })
}

// MakeMacvlan is what the macvlan plugin does: one in a pod, or at home with an empty path, on a link at home, up.
func (k *Kernel) MakeMacvlan(path, name, master string) {
	k.in(func() { k.upper(path, link{name: name, kind: macvlan, mode: "bridge"}, master) })
}

// MakeIpvlan is what the ipvlan plugin does.
func (k *Kernel) MakeIpvlan(path, name, master string) {
	k.in(func() {
		k.upper(path, link{name: name, kind: ipvlan, mode: "l2", devID: k.nextID(k.hostLink(master))}, master)
	})
}

func (k *Kernel) upper(path string, l link, master string) {
	on := k.hostLink(master)
	l.ns, l.typ, l.lowers, l.mtu, l.up, l.carrier = k.nsOf(path), on.typ, []*link{on}, on.mtu, true, true
	if l.mac = on.address(); l.kind == macvlan {
		l.mac = k.randomMAC()
	}
	k.newLink(l)
	k.syncGIDs()
}

// AddBond makes a bond at home, up, of links there. Its MAC and theirs become the first one's.
func (k *Kernel) AddBond(name string, ports ...string) {
	k.in(func() {
		b := link{ns: k.host, name: name, typ: "ether", kind: bond, mac: k.randomMAC(), mtu: 1500, up: true, carrier: true}
		for i, p := range ports {
			l := k.hostLink(p)
			if i == 0 {
				b.mac, b.mtu = l.mac, l.mtu
			}
			l.mac, l.up = b.mac, true
			b.lowers = append(b.lowers, l)
		}
		k.newLink(b)
		k.syncGIDs()
	})
}

// AddVeth is what the bridge or ptp plugin does: a pair, one end in the pod under name, the other at home under "host-" + name.
func (k *Kernel) AddVeth(path, name string) {
	k.in(func() {
		pod := k.newLink(link{ns: k.nsOf(path), name: name, typ: "ether", kind: veth, mac: k.randomMAC(), mtu: 1500, up: true, carrier: true})
		pod.peer = k.newLink(link{
			ns: k.host, name: "host-" + name, typ: "ether", kind: veth, mac: k.randomMAC(), mtu: 1500, up: true, carrier: true, peer: pod,
		})
	})
}

// randomMAC is what the kernel draws for a link that is made without one.
func (k *Kernel) randomMAC() string {
	return fmt.Sprintf("0a:00:00:00:%02x:%02x", byte((k.nextLink+1)>>8), byte(k.nextLink+1))
}

// nextID is the dev_id of the next ipvlan on a master: they count up until the last one is gone (ipvlan_link_new).
func (k *Kernel) nextID(master *link) int {
	if !slices.ContainsFunc(k.uppers(master), func(l *link) bool { return l.kind == ipvlan }) {
		master.lastID = 0
	}
	master.lastID++
	return master.lastID
}

// nsOf is the namespace that path leads to, the host's if it is empty. A test that names another is wrong, and says so.
func (k *Kernel) nsOf(path string) *netns {
	if path == "" {
		return k.host
	}
	ns := k.byPath(path)
	if ns == nil {
		panic("attachtest: no namespace " + path)
	}
	return ns
}

// hostLink is a link at home that a test names; podLink one in a pod.
func (k *Kernel) hostLink(name string) *link { return k.podLink("", name) }

func (k *Kernel) podLink(path, name string) *link {
	l := k.linkAt(k.nsOf(path), name)
	if l == nil {
		panic(fmt.Sprintf("attachtest: no link %s in namespace %q", name, path))
	}
	return l
}

// owned finds the link of an attachment in a namespace: by its index, fit or not, else among those that are fit: by kind and MAC, since a pod may rename it,
// and if byName else by its kind and name. Of several with one MAC the name tells.
func (k *Kernel) owned(ns *netns, own attach.OwnLink, byName bool, fit func(*link) bool) *link {
	var kind, mac []*link
	for _, l := range k.links {
		if ns != nil && l.ns == ns && own.Index != 0 && l.index == own.Index && l.kind == own.Kind {
			return l
		}
	}
	for _, l := range k.links {
		if l.ns != ns || l.kind != own.Kind || !fit(l) {
			continue
		}
		kind = append(kind, l)
		if own.MAC != "" && l.address() == own.MAC {
			mac = append(mac, l)
		}
	}
	switch {
	case len(mac) == 1:
		return mac[0]
	case len(mac) > 1:
		kind = mac
	case !byName:
		return nil
	}
	if i := slices.IndexFunc(kind, func(l *link) bool { return l.name == own.Name }); i >= 0 {
		return kind[i]
	}
	return nil
}

func anyLink(*link) bool { return true }

// outOf is the link outside of a namespace that l in it sits on, through others of it; nil: none, or more than one.
func outOf(ns *netns, l *link) *link {
	for l.ns == ns {
		if len(l.lowers) != 1 {
			return nil
		}
		l = l.lowers[0]
	}
	return l
}

// carries tells whether the default route leads through a link, itself or as a port of a bond.
func (k *Kernel) carries(l *link) bool {
	return l.dflt || slices.ContainsFunc(k.uppers(l), func(x *link) bool { return x.kind == bond && x.dflt })
}
