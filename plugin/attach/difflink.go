// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"slices"

	"github.com/podfabric/podfabric/netconf"
)

// shared tells whether the attachment is on a master that stays at home.
func (w Want) shared() bool { return w.Before.Master != nil }

// Userspace tells whether the attachment has no interface, because a program drives the function.
func (w Want) Userspace() bool {
	return w.Kind != netconf.KindChained && !w.shared() && w.Before.Link == nil && w.Before.Function.Userspace()
}

// what names what the attachment is made of; subject does it as the subject of a sentence.
func (w Want) what() string {
	if w.shared() {
		return "master " + w.Before.Master.Name
	}
	return w.Before.Function.ID.String()
}

func (w Want) subject() string {
	if w.shared() {
		return w.what()
	}
	return "function " + w.what()
}

// netdev names the interface: by its function, which keeps its identity when it loses its name, or else by its name.
func (w Want) netdev() string {
	if w.shared() || w.Before.Function.ID.IsZero() {
		return "interface " + w.IfName
	}
	return "netdev of " + w.what()
}

// mac is what the interface is to have; empty: not known.
func (w Want) mac() string {
	switch before := w.Before; {
	case w.Own.MAC != "":
		return w.Own.MAC
	case w.VF != nil && w.VF.MAC != noMAC && w.VF.MAC != "" && (before.VF == nil || before.VF.MAC != w.VF.MAC):
		return w.VF.MAC
	case before.Link != nil:
		return before.Link.MAC
	}
	return ""
}

// below looks for what the attachment is made of. Without it there is nothing more to say.
func (d *difference) below() bool {
	switch w := d.want; {
	case w.shared() && d.now.Master == nil:
		d.lost("%s is gone", w.what())
	case w.shared() && d.now.Master.Index != w.Before.Master.Index:
		d.lost("interface %s is on master %s, not on %s", w.IfName, d.now.Master.Name, w.Before.Master.Name)
	case w.shared() || w.Before.Function.ID.IsZero():
		return true
	case !d.now.Function.Exists:
		d.lost("function %s is gone", w.what())
	case w.Userspace() && d.now.Function.Driver != w.Before.Function.Driver:
		d.lost("function %s is not bound to %s any more, but to %q", w.what(), w.Before.Function.Driver, d.now.Function.Driver)
	default:
		return true
	}
	return false
}

func (d *difference) link() {
	link, netdev := d.now.Link, d.want.netdev()
	switch {
	case link == nil && d.want.shared():
		d.lost("%s, %s on %s, is gone from the pod", netdev, d.want.Own.Kind, d.want.what())
		return
	case link == nil:
		d.lost("%s is in no namespace that can be seen", netdev)
		return
	case link.NS != Pod:
		d.lost("%s is %s, not in the pod", netdev, where(link.NS))
		return
	case link.Name != d.want.IfName:
		d.lost("%s is called %s in the pod, not %s", netdev, link.Name, d.want.IfName)
	}
	if !link.Up {
		d.warn("interface %s is down", link.Name)
	}
	if m := d.now.Master; m != nil && !m.Up {
		d.warn("master %s is down", m.Name)
	}
	if mac := d.want.mac(); mac != "" && mac != link.MAC {
		d.warn("interface %s has MAC %s, not %s", link.Name, link.MAC, mac)
	}
	for _, a := range d.want.Addrs {
		if !slices.Contains(link.Addrs, a) {
			d.lost("address %s is gone from %s", a, link.Name)
		}
	}
}

// vf compares what the PF's driver holds. Another VLAN or MAC ends the pod's connection; the rest may be the operator's doing.
func (d *difference) vf() {
	want, now := d.want.VF, d.now.VF
	if want == nil {
		return
	}
	if now == nil {
		d.warn("the VF settings of %s cannot be read: the netdev of its PF is not at home", d.want.what())
		return
	}
	for _, what := range vfSettings() {
		is, was := now.of(what), want.of(what)
		switch {
		case is == was:
		case what == VFMAC && d.now.Link != nil && d.now.Link.MAC == now.MAC:
			// The pod gave the interface another, as a bond does, and the VF told its PF: both agree, and link has warned.
		case what == VFVLAN || what == VFMAC:
			d.lost("%s of function %s is %s, not %s", what, d.want.what(), is, was)
		default:
			d.warn("%s of function %s is %s, not %s", what, d.want.what(), is, was)
		}
	}
}
