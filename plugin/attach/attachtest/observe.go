// SPDX-License-Identifier: Apache-2.0

package attachtest

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// Observe gives the facts of a function as this session sees them. A device in a namespace that no path leads to is seen as
// little as on a real machine: no netdev, and of the RDMA device only that there is one.
func (s *Session) Observe(ctx context.Context, q attach.Query) (attach.Facts, error) {
	if err := context.Cause(ctx); err != nil {
		return attach.Facts{}, fmt.Errorf("observe %s: %w", q.Device, err)
	}
	k := s.k
	k.mu.Lock()
	defer k.mu.Unlock()
	k.look()
	f := attach.Facts{Mode: k.mode, Function: attach.Function{ID: q.Device}}
	switch fn := k.function(q.Device); {
	case q.Master.Index != 0:
		s.masterFacts(q, &f)
	case q.Device.IsZero(): // a chained interface with nothing behind it
		f.Link = s.linkFacts(k.owned(s.at(attach.Pod), q.Own, true, anyLink))
	case fn != nil:
		s.functionFacts(fn, q.VF, &f)
		f.Link = s.linkFacts(fn.link)
	}
	for _, d := range k.rdma {
		if d.soft && q.Soft != "" && d.name == q.Soft {
			f.Soft = s.deviceFacts(d)
		}
		if d.uverbs >= 0 {
			f.Uverbs = append(f.Uverbs, d.uverbs)
		}
		if d.ns == k.host {
			f.HostRDMA = append(f.HostRDMA, d.name)
		}
	}
	for _, l := range k.links {
		switch l.ns {
		case k.host:
			f.HostLinks = append(append(f.HostLinks, l.name), l.alt...)
		case s.pod:
			f.PodLinks = append(append(f.PodLinks, l.name), l.alt...)
		}
	}
	slices.Sort(f.Uverbs)
	slices.Sort(f.HostRDMA)
	slices.Sort(f.HostLinks)
	slices.Sort(f.PodLinks)
	return f, nil
}

// functionFacts are of a function itself and its RDMA device.
func (s *Session) functionFacts(fn *function, asked bool, f *attach.Facts) {
	f.Function = fn.Function
	f.Function.ESwitch, f.Function.Resets = "", false
	for _, x := range s.k.functions {
		if x.VF && bus.PCI(x.PF) == fn.ID {
			f.Function.NumVFs++
		}
	}
	if pf := s.k.pfAtHome(fn); pf != nil {
		f.Function.PFLink, f.Function.PFMTU = pf.link.name, pf.link.mtu
	}
	f.RDMA = s.deviceFacts(fn.rdma)
	if asked {
		s.k.vfFacts(fn, f)
	}
}

// masterFacts are of the link at home, the first function below it, by the name of its RDMA device, and the link of the
// attachment itself, which sits on it. A master that is gone leaves the first two away.
func (s *Session) masterFacts(q attach.Query, f *attach.Facts) {
	f.Function = attach.Function{Number: -1, NUMA: -1}
	l, pod := s.k.masterAt(q.Master.Index), s.at(attach.Pod)
	f.Link = s.linkFacts(s.k.owned(pod, q.Own, true, func(x *link) bool { return l != nil && outOf(pod, x) == l }))
	if f.Link == nil && q.Lost != nil {
		s.lost(q, f)
	}
	if l == nil {
		return
	}
	f.Master = &attach.Master{
		Name: l.name, Index: l.index, Type: l.typ, Kind: l.kind, MAC: l.address(), MTU: l.mtu, Up: l.up, Default: s.k.carries(l),
	}
	below := s.k.below(l)
	for _, fn := range below {
		if fn.rdma != nil {
			f.Master.RDMA = append(f.Master.RDMA, fn.rdma.name)
		}
	}
	slices.Sort(f.Master.RDMA)
	for _, fn := range below {
		if len(f.Master.RDMA) == 0 || fn.rdma != nil && fn.rdma.name == f.Master.RDMA[0] {
			s.functionFacts(fn, false, f)
			return
		}
	}
}

// look lets held namespaces come nearer to their end.
func (k *Kernel) look() {
	for _, ns := range slices.Clone(k.spaces) {
		if ns.visible || ns.returnIn < 0 {
			continue
		}
		if ns.returnIn == 0 {
			k.die(ns)
			continue
		}
		ns.returnIn--
	}
}

func (s *Session) linkFacts(l *link) *attach.Link {
	if l == nil || l.ns != s.pod && !l.ns.visible {
		return nil
	}
	return s.facts(l)
}

func (s *Session) facts(l *link) *attach.Link {
	addrs := slices.Clone(l.addrs)
	slices.SortFunc(addrs, netip.Prefix.Compare)
	out := &attach.Link{
		Place: attach.Place{NS: s.from(l.ns), Name: l.name}, Index: l.index, Type: l.typ, Kind: l.kind, MAC: l.address(), MTU: l.mtu,
		Up: l.up, AltNames: slices.Clone(l.alt), Addrs: addrs, InUse: s.k.uses(l),
	}
	if !l.dev.IsZero() {
		out.Traits, out.Uppers = new(l.traits), s.uppersFacts(l)
	}
	return out
}

// uses says what the node does with a link: what a test says, and what can be seen of bonds, uppers and routes beside it.
func (k *Kernel) uses(l *link) []string {
	out := slices.Clone(l.inUse)
	for _, x := range k.uppers(l) {
		switch {
		case x.ns != l.ns:
		case x.kind == bond:
			out = append(out, "it is a port of bond "+x.name)
		default:
			out = append(out, fmt.Sprintf("%s %s sits on it", x.kind, x.name))
		}
	}
	if l.dflt {
		out = append(out, "it carries the default route")
	}
	return out
}

func (s *Session) deviceFacts(d *device) *attach.RDMA {
	if d == nil {
		return nil
	}
	ns := s.from(d.ns)
	out := &attach.RDMA{Name: d.name, NS: ns, Uverbs: d.uverbs}
	if ns == attach.Elsewhere && !d.ns.visible {
		return out
	}
	out.Index, out.Ports = d.index, d.ports
	if ns == attach.Elsewhere {
		return out
	}
	out.NodeGUID, out.LinkLayer, out.Users = d.guid, d.linkLayer, slices.Clone(d.users)
	return out
}

// Ports gives the ports of an RDMA device as the sysfs of namespace ns shows them.
func (s *Session) Ports(ctx context.Context, ns attach.NS, name string) ([]attach.Port, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("read the ports of %s: %w", name, err)
	}
	k := s.k
	k.mu.Lock()
	defer k.mu.Unlock()
	at := s.at(ns)
	d := k.deviceAt(at, name)
	if at == nil || d == nil {
		return nil, fmt.Errorf("read the ports of %s: %w", name, attach.ErrConflict)
	}
	state := "DOWN"
	if d.link != nil && d.link.up && d.link.carrier {
		state = "ACTIVE"
	}
	return []attach.Port{{
		Device: d.name, Number: 1, LinkLayer: d.linkLayer, State: state, RateMbps: 400000, GIDs: d.table.read(k.gidDelay),
		TableSize: d.table.size,
	}}, nil
}

// Mode gives the RDMA subsystem's namespace mode.
func (k *Kernel) Mode() attach.Mode {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mode
}

// Changes counts the state-changing system calls so far.
func (k *Kernel) Changes() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.changes
}

// Sessions counts the sessions that are open.
func (k *Kernel) Sessions() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sessions
}

// Trace gives the steps that were asked for so far, also those that failed or had nothing to do.
func (k *Kernel) Trace() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.trace)
}

// Where tells the namespace and name of a function's netdev and of its RDMA device, "host/eth3" or "/run/netns/a/net1"; empty
// for what it does not have.
func (k *Kernel) Where(a bus.ID) [2]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out [2]string
	f := k.function(a)
	if f == nil {
		return out
	}
	if f.link != nil {
		out[0] = k.label(f.link.ns) + "/" + f.link.name
	}
	if f.rdma != nil {
		out[1] = k.label(f.rdma.ns) + "/" + f.rdma.name
	}
	return out
}
