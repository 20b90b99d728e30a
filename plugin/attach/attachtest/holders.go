// SPDX-License-Identifier: Apache-2.0

package attachtest

import (
	"context"
	"fmt"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// HoldNetNSBy is HoldNetNS by holders that can be found, "sleep (pid 71)" or, by a descriptor alone, "sleep (pid 71, descriptor 5)".
func (k *Kernel) HoldNetNSBy(path string, looks int, holders ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if ns := k.byPath(path); ns != nil {
		ns.visible, ns.returnIn, ns.holders = false, looks, holders
	}
}

// Desert ends every process of a namespace, which its mount alone keeps from then on.
func (k *Kernel) Desert(path string) { k.in(func() { k.byPath(path).deserted = true }) }

// Send moves what a function has into another namespace, as somebody with root may: its netdev, its RDMA device, or both.
func (k *Kernel) Send(path string, devices ...attach.Place) {
	k.in(func() {
		for _, p := range devices {
			for _, l := range k.links {
				if l.name == p.Name && k.label(l.ns) == string(p.NS) {
					k.relocate(l, k.nsOf(path), p.Name)
				}
			}
			for _, d := range k.rdma {
				if d.name == p.Name && k.label(d.ns) == string(p.NS) {
					k.reregister(d, k.nsOf(path))
				}
			}
		}
	})
}

// Holders says who keeps the devices of q that are neither at home nor in the pod. A namespace that a path leads to is a living
// pod's, with a mount and, until Desert, a process.
func (s *Session) Holders(ctx context.Context, q attach.Query) ([]attach.Holding, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("look for who holds %s: %w", q.Device, err)
	}
	k := s.k
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []attach.Holding
	add := func(what string, ns *netns) {
		if ns != k.host && ns != s.pod {
			out = append(out, s.k.holding(what, ns))
		}
	}
	for _, d := range k.rdma {
		if d.soft && q.Soft != "" && d.name == q.Soft {
			add("soft RDMA device "+d.name, d.ns)
		}
	}
	if q.Lost != nil {
		for _, ns := range k.spaces {
			if k.strayed(ns, q) != nil {
				add(q.Own.Kind+" on "+q.Master.Name, ns)
			}
		}
	}
	if f := k.function(q.Device); f != nil && q.Master.Index == 0 {
		if f.rdma != nil {
			add("RDMA device "+f.rdma.name, f.rdma.ns)
		}
		if f.link != nil {
			add("netdev "+f.link.name+" of "+f.ID.String(), f.link.ns)
		}
		if pf := k.function(bus.PCI(f.PF)); q.VF && pf != nil && pf.link != nil {
			add("netdev "+pf.link.name+" of PF "+pf.ID.String(), pf.link.ns)
		}
	}
	return out, nil
}

func (k *Kernel) holding(what string, ns *netns) attach.Holding {
	h := attach.Holding{What: what}
	switch {
	case ns.visible:
		h.NS, h.By = ns.id, []string{"mount " + ns.id.Path}
		if h.Living = !ns.deserted; h.Living {
			h.By = append(h.By, fmt.Sprintf("pause (pid %d)", ns.id.Ino%1000))
		}
	case len(ns.holders) > 0:
		h.NS, h.By = attach.NetNS{Path: fmt.Sprintf("/proc/held/%d", ns.id.Ino), Dev: ns.id.Dev, Ino: ns.id.Ino, Cookie: ns.id.Cookie}, ns.holders
	}
	return h
}

// ReleaseNetNS lets what holds a namespace go: after looks more calls of Observe it dies.
func (k *Kernel) ReleaseNetNS(path string, looks int) {
	k.in(func() {
		for _, ns := range k.spaces {
			if ns != k.host && !ns.visible && ns.id.Path == path {
				ns.returnIn = looks
			}
		}
	})
}

// Interfaces lists the links in namespaces that are not the host's and that can be seen.
func (k *Kernel) Interfaces(context.Context) ([]attach.Interface, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []attach.Interface
	for _, l := range k.links {
		if l.ns == k.host || !l.ns.visible && len(l.ns.holders) == 0 {
			continue
		}
		i := attach.Interface{Name: l.name, MAC: l.address(), Held: k.holding("interface "+l.name, l.ns)}
		for _, p := range l.addrs {
			i.Addrs = append(i.Addrs, p.Addr())
		}
		out = append(out, i)
	}
	return out, nil
}

// Elsewhere lists the functions of which something is in a namespace that is not the host's and that can be seen.
func (k *Kernel) Elsewhere(context.Context) ([]attach.Astray, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []attach.Astray
	for _, f := range k.functions {
		a := attach.Astray{Device: f.ID}
		if f.link != nil && f.link.ns != k.host && (f.link.ns.visible || len(f.link.ns.holders) > 0) {
			a.Held = append(a.Held, k.holding("netdev "+f.link.name, f.link.ns))
		}
		if f.rdma != nil && f.rdma.ns != k.host && (f.rdma.ns.visible || len(f.rdma.ns.holders) > 0) {
			a.Held = append(a.Held, k.holding("RDMA device "+f.rdma.name, f.rdma.ns))
		}
		if len(a.Held) > 0 {
			out = append(out, a)
		}
	}
	return out, nil
}
