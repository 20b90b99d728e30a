// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/sysfs"
)

// sought is a device that is neither at home nor in the pod.
type sought struct {
	what  string
	id    bus.ID        // of the function whose netdev or RDMA device it is; zero: rdma is a soft device
	rdma  string        // name of the RDMA device; empty: it is the netdev
	own   *attach.Query // of the link on a master that it is; nil: it is a function's
	found bool
}

// Holders looks for the devices of q that are neither at home nor in the pod through every namespace of the node, by every process,
// descriptor and mount that leads to one, and says who keeps them. That takes a while on a node with many processes, so it is for
// those who have to explain, not for those who only need to know that a device is away. With an error comes what was found until then.
func (s *Session) Holders(ctx context.Context, q attach.Query) ([]attach.Holding, error) {
	now, err := s.Observe(ctx, q)
	if err != nil {
		return nil, err
	}
	wanted := missing(now, q.VF)
	if q.Lost != nil && now.Link != nil && now.Link.NS == attach.Elsewhere {
		wanted = append(wanted, &sought{what: q.Own.Kind + " on " + q.Master.Name, own: &q})
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	var out []attach.Holding
	scan := rdmans.Scan{Proc: s.kernel.Proc, Run: s.kernel.RunNetns, Deep: true}
	err = s.each(ctx, scan, func(p *place, n rdmans.Namespace) error {
		if s.pod != nil && n.ID == s.pod.ns.ID() {
			return nil
		}
		for i := range wanted {
			what, found, seekErr := s.seek(p, wanted[i])
			if seekErr != nil {
				return seekErr
			}
			if found {
				wanted[i].found = true
				h := holding(what, n)
				h.NS.Cookie = p.ns.Cookie()
				out = append(out, h)
			}
		}
		return nil
	})
	if err != nil {
		return out, err // what was not found may be where nobody has looked
	}
	for _, w := range wanted {
		if !w.found {
			out = append(out, attach.Holding{What: w.what})
		}
	}
	return out, nil
}

// missing are the devices of facts that are in neither place, and with pf the PF's netdev if that is not at home.
func missing(now attach.Facts, pf bool) []*sought {
	var out []*sought
	fn := now.Function
	if now.Soft != nil && now.Soft.NS == attach.Elsewhere {
		out = append(out, &sought{what: "soft RDMA device " + now.Soft.Name, rdma: now.Soft.Name})
	}
	if now.RDMA != nil && now.RDMA.NS == attach.Elsewhere {
		out = append(out, &sought{what: "RDMA device " + now.RDMA.Name, id: fn.ID, rdma: now.RDMA.Name})
	}
	if now.Link == nil && now.Master == nil && fn.Exists && fn.Driver != "" && !fn.Userspace() {
		out = append(out, &sought{what: "netdev of " + fn.ID.String(), id: fn.ID})
	}
	if pf && fn.VF && fn.PFLink == "" {
		out = append(out, &sought{what: "netdev of PF " + fn.PF.String(), id: bus.PCI(fn.PF)})
	}
	return out
}

// seek looks into one namespace for a device, and gives what it is called there.
func (s *Session) seek(p *place, w *sought) (string, bool, error) {
	if w.own != nil {
		_, found, err := s.strayed(p, *w.own)
		return w.what, found, err
	}
	if w.rdma == "" {
		l, found, err := s.linkOf(p, w.id)
		return "netdev " + l.Name + strings.TrimPrefix(w.what, "netdev"), found, err
	}
	devices, err := s.ownRDMA(p)
	if err != nil || !slices.ContainsFunc(devices, func(d rdmans.Device) bool { return d.Name == w.rdma }) {
		return "", false, err
	}
	if w.id.IsZero() {
		return w.what, true, nil
	}
	// In exclusive mode two namespaces may have RDMA devices of one name.
	view, err := s.view(p)
	if err != nil {
		return "", false, err
	}
	parent, err := view.Parent(w.rdma)
	if closeErr := view.Close(); err == nil {
		err = closeErr
	}
	if errors.Is(err, sysfs.ErrNotExist) {
		return "", false, nil
	}
	return w.what, parent == w.id, err
}

// holding puts together what is said of a device in a namespace. This process, which looks, holds nothing.
func holding(what string, n rdmans.Namespace) attach.Holding {
	h := attach.Holding{What: what, NS: attach.NetNS{Dev: n.ID.Dev, Ino: n.ID.Ino}}
	for _, x := range n.Holders {
		if x.PID == os.Getpid() {
			continue
		}
		path, text := x.Via, x.String()
		if x.Mount != "" {
			path, text = x.Mount, "mount "+x.Mount
		}
		if h.NS.Path == "" && !strings.HasPrefix(x.By, "socket ") { // a socket's link leads to the socket
			h.NS.Path = path
		}
		h.By = append(h.By, plain(text))
		h.Living = h.Living || x.PID != 0 && x.By == ""
	}
	return h
}

// plain keeps what a pod may have chosen, the name of a process, from doing anything to a log or a terminal.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\ufffd' || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, text)
}

// Elsewhere lists the functions of which a netdev or an RDMA device is in a namespace that is not the host's, and who keeps that.
func (k *Kernel) Elsewhere(ctx context.Context) ([]attach.Astray, error) {
	s, err := k.Open(ctx, "")
	if err != nil {
		return nil, err
	}
	found := map[bus.ID][]attach.Holding{}
	scan := rdmans.Scan{Proc: k.Proc, Run: k.RunNetns, Deep: true}
	err = s.each(ctx, scan, func(p *place, n rdmans.Namespace) error { return s.strangers(p, n, found) })
	out := make([]attach.Astray, 0, len(found))
	for id, held := range found {
		out = append(out, attach.Astray{Device: id, Held: held})
	}
	slices.SortFunc(out, func(a, b attach.Astray) int { return strings.Compare(a.Device.String(), b.Device.String()) })
	return out, errors.Join(err, s.Close())
}

// Interfaces lists the links in every namespace but the host's, with their addresses, and who keeps the namespace. Loopback is nobody's.
func (k *Kernel) Interfaces(ctx context.Context) ([]attach.Interface, error) {
	s, err := k.Open(ctx, "")
	if err != nil {
		return nil, err
	}
	var out []attach.Interface
	scan := rdmans.Scan{Proc: k.Proc, Run: k.RunNetns, Deep: true}
	err = s.each(ctx, scan, func(p *place, n rdmans.Namespace) error {
		some, listErr := interfaces(p, n)
		out = append(out, some...)
		return listErr
	})
	return out, errors.Join(err, s.Close())
}

// interfaces lists those of one namespace. A pod may have any number of them, and of addresses: each kind is dumped once.
func interfaces(p *place, n rdmans.Namespace) ([]attach.Interface, error) {
	links, err := p.links.List()
	if err != nil {
		return nil, fmt.Errorf("look into %s: %w", n.Name(), err)
	}
	addrs, err := p.links.Everywhere()
	if err != nil {
		return nil, fmt.Errorf("look into %s: %w", n.Name(), err)
	}
	var out []attach.Interface
	for _, l := range links {
		if l.Type == "loopback" {
			continue
		}
		i := attach.Interface{Name: l.Name, MAC: l.MAC, Addrs: addrs[l.Index], Held: holding("interface "+l.Name, n)}
		i.Held.NS.Cookie = p.ns.Cookie()
		out = append(out, i)
	}
	return out, nil
}

// strangers adds what one namespace has of functions.
func (s *Session) strangers(p *place, n rdmans.Namespace, found map[bus.ID][]attach.Holding) error {
	links, err := p.links.List()
	if err != nil {
		return err
	}
	for _, l := range links {
		if !l.Parent.IsZero() {
			found[l.Parent] = append(found[l.Parent], holding("netdev "+l.Name, n))
		}
	}
	devices, err := s.ownRDMA(p)
	if err != nil || len(devices) == 0 {
		return err
	}
	view, err := s.view(p)
	if err != nil {
		return err
	}
	for _, d := range devices {
		parent, parentErr := view.Parent(d.Name)
		if errors.Is(parentErr, sysfs.ErrNotExist) || parentErr == nil && parent.IsZero() {
			continue
		}
		if parentErr != nil {
			return errors.Join(parentErr, view.Close())
		}
		found[parent] = append(found[parent], holding("RDMA device "+d.Name, n))
	}
	return view.Close()
}
