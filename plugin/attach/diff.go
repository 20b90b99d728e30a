// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/podfabric/podfabric/netconf"
)

// Want is what a record promises of an attachment.
type Want struct {
	Kind   netconf.Kind // empty: KindVF
	IfName string
	Before Facts          // of the function or the master, before the attachment was made
	Own    OwnLink        // the link on a master, as it was made; MAC, when not empty, is that of the interface of any kind
	VF     *VFState       // what the PF's driver held when ADD had set it; nil: nothing was asked for
	Addrs  []netip.Prefix // on the pod's interface
	Moved  bool           // the function's RDMA device is in the pod
	Soft   string         // name of the soft RoCE device; empty: none
	GIDs   []WantGID      // of the addresses, as ADD saw them; empty: RDMA was not looked at
}

// WantGID is a GID that ADD saw.
type WantGID struct {
	Port  int        `json:"port"`
	Index int        `json:"index"`
	Addr  netip.Addr `json:"addr"`
}

// Diff holds what is there now against what was promised. The first list is what took the pod's connection away: device,
// netdev, master, VLAN, address, GID. The second is worth a warning only, because it mends itself or never mattered to a running
// job, and a runtime restarts pods over errors: a GID at another index, a port or link that is down [review.md 33]. ports are
// those of the attachment's RDMA device as the pod sees them.
func Diff(w Want, now Facts, ports []Port) ([]string, []string) {
	d := &difference{want: w, now: now}
	if !d.below() {
		return d.errs, d.warnings
	}
	if !w.Userspace() {
		d.link()
	}
	d.vf()
	if d.rdma() {
		d.gids(ports)
	}
	return d.errs, d.warnings
}

type difference struct {
	want           Want
	now            Facts
	errs, warnings []string
}

func (d *difference) lost(format string, args ...any) {
	d.errs = append(d.errs, fmt.Sprintf(format, args...))
}

func (d *difference) warn(format string, args ...any) {
	d.warnings = append(d.warnings, fmt.Sprintf(format, args...))
}

// rdma tells whether the device is there whose GIDs were promised.
func (d *difference) rdma() bool {
	switch {
	case d.want.Soft != "":
		return d.device("soft RDMA device "+d.want.Soft, d.now.Soft)
	case d.want.Moved:
		if !d.device("RDMA device of "+d.want.what(), d.now.RDMA) {
			return false
		}
	case len(d.want.GIDs) == 0:
		return false
	case d.now.RDMA == nil:
		d.lost("RDMA device of %s is gone", d.want.what())
		return false
	}
	if another(d.want.Before, d.now) {
		d.lost("%s has another RDMA device now, %s", d.want.subject(), d.now.RDMA.Name)
		return false
	}
	d.identity()
	return true
}

// device looks for a device in the pod.
func (d *difference) device(what string, dev *RDMA) bool {
	switch {
	case dev == nil:
		d.lost("%s is gone", what)
	case dev.NS != Pod:
		d.lost("%s is %s, not in the pod", what, where(dev.NS))
	default:
		return true
	}
	return false
}

// identity compares what names the device to the pod.
func (d *difference) identity() {
	was, is := d.want.Before.RDMA, d.now.RDMA
	if was == nil || is == nil {
		return
	}
	if is.Name != was.Name {
		d.warn("RDMA device %s is called %s now", was.Name, is.Name)
	}
	if is.Uverbs != was.Uverbs {
		d.warn("RDMA device %s has uverbs%d now, and the container was given uverbs%d", is.Name, is.Uverbs, was.Uverbs)
	}
}

func (d *difference) gids(ports []Port) {
	for _, w := range d.want.GIDs {
		i := slices.IndexFunc(ports, func(p Port) bool { return p.Number == w.Port })
		if i < 0 {
			d.lost("RDMA port %d is gone", w.Port)
			continue
		}
		d.gid(w, ports[i])
	}
	for _, p := range ports {
		if p.State != stateActive {
			d.warn("port %d of %s is %s", p.Number, p.Device, p.State)
		}
	}
}

func (d *difference) gid(w WantGID, p Port) {
	same := func(g GID) bool { return g.Type == RoCEv2 && g.Addr.Unmap() == w.Addr.Unmap() }
	i := slices.IndexFunc(p.GIDs, same)
	switch {
	case i < 0:
		d.lost("GID of %s is gone from port %d of %s", w.Addr.Unmap(), p.Number, p.Device)
	case !slices.ContainsFunc(p.GIDs, func(g GID) bool { return same(g) && g.Index == w.Index }):
		d.warn("GID of %s on port %d of %s is at index %d now, it was at %d",
			w.Addr.Unmap(), p.Number, p.Device, p.GIDs[i].Index, w.Index)
	}
}

// where says a namespace in words.
func where(ns NS) string {
	switch ns {
	case Host:
		return "at home"
	case Pod:
		return "in the pod"
	case Elsewhere:
	}
	return "in another network namespace"
}
