// SPDX-License-Identifier: Apache-2.0

package attachtest

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// Dump prints everything there is, sorted, but what changes by itself: interface indices and the age of GIDs. Two dumps are
// equal if and only if the machine is in the same state.
func (k *Kernel) Dump() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	lines := []string{"mode " + string(k.mode)}
	for _, ns := range k.spaces {
		lines = append(lines, fmt.Sprintf("namespace %s ino %d", k.label(ns), ns.id.Ino))
	}
	for _, f := range k.functions {
		lines = append(lines, fmt.Sprintf("function %s driver %q vf %t number %d pf %s numa %d",
			f.ID, f.Driver, f.VF, f.Number, f.PF, f.NUMA))
		lines = append(lines, fmt.Sprintf("function %s eswitch %q resets %t strict %t given %t",
			f.ID, f.ESwitch, f.Resets, f.strictMAC, f.given))
		if v := f.vf; f.VF {
			lines = append(lines, fmt.Sprintf("function %s has mac %s vlan %d qos %d proto %s spoofchk %t trust %t link state %s rates %d to %d",
				f.ID, v.MAC, v.VLAN, v.QoS, v.Proto, v.Spoofchk, v.Trust, v.LinkState, v.MinTxRate, v.MaxTxRate))
		}
	}
	for _, l := range k.links {
		lines = append(lines, k.dumpLink(l)...)
	}
	for _, d := range k.rdma {
		lines = append(lines, k.dumpDevice(d)...)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

func (k *Kernel) label(ns *netns) string {
	switch {
	case ns == k.host:
		return "host"
	case !ns.visible:
		return ns.id.Path + " (held)"
	}
	return ns.id.Path
}

func (k *Kernel) dumpLink(l *link) []string {
	head := fmt.Sprintf("link %s/%s", k.label(l.ns), l.name)
	lines := []string{fmt.Sprintf("%s pci %s type %s kind %s mac %s mtu %d up %t carrier %t default %t inuse %q",
		head, l.dev, l.typ, l.kind, l.address(), l.mtu, l.up, l.carrier, l.dflt, l.inUse)}
	for _, x := range l.lowers {
		lines = append(lines, fmt.Sprintf("%s on %s/%s mode %q vlan %d device %d", head, k.label(x.ns), x.name, l.mode, l.vid, l.devID))
	}
	if changes := freshTraits().Changes(l.traits); changes != "" {
		lines = append(lines, head+" traits "+changes)
	}
	if l.peer != nil {
		lines = append(lines, fmt.Sprintf("%s pairs with %s/%s", head, k.label(l.peer.ns), l.peer.name))
	}
	if l.local.IsValid() {
		lines = append(lines, head+" link-local "+l.local.String())
	}
	for _, key := range slices.Sorted(maps.Keys(l.sysctls)) {
		lines = append(lines, head+" sysctl "+key+" "+l.sysctls[key])
	}
	for _, name := range l.alt {
		lines = append(lines, head+" alternative name "+name)
	}
	for _, a := range l.addrs {
		lines = append(lines, head+" address "+a.String())
	}
	for _, r := range l.routes {
		lines = append(lines, fmt.Sprintf("%s route %s via %s", head, r.dst, via(r.via)))
	}
	return lines
}

func via(a netip.Addr) string {
	if !a.IsValid() {
		return "link"
	}
	return a.String()
}

func (k *Kernel) dumpDevice(d *device) []string {
	head := fmt.Sprintf("rdma %s/%s", k.label(d.ns), d.name)
	netdev := "none"
	if d.link != nil {
		netdev = k.label(d.link.ns) + "/" + d.link.name
	}
	lines := []string{fmt.Sprintf("%s index %d uverbs %d guid %s pci %s soft %t ports %d layer %s netdev %s users %q gids %d of %d",
		head, d.index, d.uverbs, d.guid, d.dev, d.soft, d.ports, d.linkLayer, netdev, d.users, d.table.foreign, d.table.size)}
	for _, s := range d.table.slots {
		lines = append(lines, fmt.Sprintf("%s gid %d %s %s %s", head, s.gid.Index, s.gid.Addr, s.gid.Type, s.gid.Netdev))
	}
	return lines
}
