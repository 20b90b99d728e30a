// SPDX-License-Identifier: Apache-2.0

package attachtest

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/podfabric/podfabric/plugin/attach"
)

// addLink makes a macvlan or ipvlan by one RTM_NEWLINK, or nothing at all (drivers/net/macvlan.c macvlan_common_newlink,
// drivers/net/ipvlan/ipvlan_main.c ipvlan_link_new; the errnos of macvlan were seen on 6.18).
func (s *Session) addLink(step attach.AddLink) error {
	k, ns, master := s.k, s.at(step.Link.NS), s.k.masterAt(step.Master.Index)
	switch {
	case ns == nil:
		return fmt.Errorf("make %s %s: %w: %w", step.Kind, step.Link, attach.ErrNoNetNS, attach.ErrConflict)
	case master == nil:
		return conflict("find master %s (index %d)", step.Master.Name, step.Master.Index)
	}
	master = lowest(master, step.Kind)
	if l := k.linkAt(ns, step.Link.Name); l != nil && l.kind == step.Kind && slices.Contains(l.lowers, master) &&
		(step.MAC == "" || l.address() == step.MAC) {
		return nil
	}
	k.call()
	if err := k.refuseLink(step, ns, master); err != nil {
		return fmt.Errorf("make %s %s on %s: %w", step.Kind, step.Link, master.name, err)
	}
	l := link{
		ns: ns, name: step.Link.Name, typ: "ether", kind: step.Kind, mode: step.Mode, lowers: []*link{master}, mac: step.MAC, mtu: step.MTU,
		carrier: true,
	}
	if l.mtu == 0 {
		l.mtu = master.mtu
	}
	switch {
	case l.kind == ipvlan:
		l.devID = k.nextID(master)
	case l.mac == "":
		l.mac = k.randomMAC()
	}
	k.newLink(l)
	k.syncGIDs()
	return nil
}

// masterAt is a link at home by its index, which its name may have changed since.
func (k *Kernel) masterAt(index int) *link {
	for _, l := range k.links {
		if l.ns == k.host && l.index == index {
			return l
		}
	}
	return nil
}

// lowest is the master that the kernel takes: one of the same kind is stepped over (macvlan_dev_real_dev).
func lowest(master *link, kind string) *link {
	for master.kind == kind && len(master.lowers) == 1 {
		master = master.lowers[0]
	}
	return master
}

// refuseLink is what the kernel says before it makes anything.
func (k *Kernel) refuseLink(step attach.AddLink, ns *netns, master *link) error {
	others := k.uppers(master)
	count := func(want func(*link) bool) bool { return slices.ContainsFunc(others, want) }
	switch {
	case k.taken(ns, step.Link.Name, nil):
		return syscall.EEXIST
	case master.typ != "ether":
		return syscall.EINVAL
	case step.MAC != "" && octets(step.MAC)[0]&1 != 0:
		return syscall.EADDRNOTAVAIL
	// One handler of received packets a link: netdev_rx_handler_register.
	case count(func(l *link) bool {
		return l.kind == bond || l.kind != step.Kind && (l.kind == macvlan || l.kind == ipvlan)
	}):
		return syscall.EBUSY
	case count(func(l *link) bool { return l.kind == macvlan && (l.mode == passthru || step.Mode == passthru) }):
		return syscall.EINVAL
	case step.Kind == macvlan && step.MTU > master.mtu: // ipvlan_link_new takes any
		return syscall.EINVAL
	case step.Kind == ipvlan && step.Mode != "l2", step.Kind == macvlan && !slices.Contains([]string{"bridge", "private", "vepa", passthru}, step.Mode):
		return syscall.EINVAL
	case step.Kind != macvlan && step.Kind != ipvlan:
		return syscall.EOPNOTSUPP
	}
	return nil
}

// delLink removes a link by its kind and MAC, or by kind and name where a step knows no MAC.
func (s *Session) delLink(step attach.DelLink) error {
	if step.Link.NS == attach.Elsewhere {
		return s.delLost(step)
	}
	ns := s.at(step.Link.NS)
	if ns == nil {
		return conflict("find %s %s", step.Kind, step.Link)
	}
	onMaster := func(l *link) bool {
		out := outOf(ns, l)
		return out != nil && out.ns == s.k.host && out.index == step.Master.Index
	}
	own := attach.OwnLink{Kind: step.Kind, Name: step.Link.Name, MAC: step.MAC, Index: step.Index}
	l := s.k.owned(ns, own, step.MAC == "" && step.Index == 0, func(l *link) bool { return step.Index == 0 && onMaster(l) })
	if l == nil {
		return nil
	}
	s.k.call()
	s.k.dropLink(l)
	return nil
}

// refuseUp: two macvlans of a master that are up cannot have one MAC, nor its own (macvlan_open).
func (k *Kernel) refuseUp(l *link, mac string) error {
	if l.kind != macvlan || l.mode == passthru || len(l.lowers) != 1 {
		return nil
	}
	master := l.lowers[0]
	same := func(x *link) bool { return x != l && x.kind == macvlan && x.up && x.address() == mac }
	if master.address() == mac || slices.ContainsFunc(k.uppers(master), same) {
		return fmt.Errorf("give %s the MAC %s: %w", l.name, mac, syscall.EADDRINUSE)
	}
	return nil
}

// refuseMAC is why a link cannot have a MAC: another macvlan has it, the PF's driver lets an untrusted VF set none once it was
// given one (igb), or it has none of its own.
func (k *Kernel) refuseMAC(l *link, mac string) error {
	f := k.function(l.dev)
	switch {
	case l.kind == ipvlan:
		return fmt.Errorf("set the MAC of %s: %w", l.name, syscall.EOPNOTSUPP)
	case f != nil && !f.vf.Trust && (f.given || f.strictMAC && f.vf.MAC != noMAC && f.vf.MAC != mac):
		return fmt.Errorf("set the MAC of %s: %w", l.name, syscall.EADDRNOTAVAIL)
	case l.up:
		return k.refuseUp(l, mac)
	}
	return nil
}
