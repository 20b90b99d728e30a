// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/link"
	"github.com/podfabric/podfabric/rdmans"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/sysfs"
)

// errMoved: two reads that belong together do not agree, because a device moved between them.
var errMoved = errors.New("devices changed while they were looked at")

// Bounds on how often Observe begins again when a device moved under its eyes, and on the pause before it does. A move takes a
// millisecond or two, and a node that starts many pods makes many of them.
const (
	looks    = 50
	maxPause = 20 * time.Millisecond
)

// Observe collects the facts about a function, or of what is below a master, the node around it and the pod. Facts are of one moment as far as the
// kernel allows: when a device vanishes or moves between two reads, it looks again.
//
// An RDMA device that is neither at home nor in the pod has NS Elsewhere, its name, uverbs number, and nothing else.
func (s *Session) Observe(ctx context.Context, q attach.Query) (attach.Facts, error) {
	var err error
	pause := time.Millisecond
	for range looks {
		if ended := ctx.Err(); ended != nil {
			return attach.Facts{}, fmt.Errorf("look at %s: %w", subject(q), errors.Join(ended, err))
		}
		var f attach.Facts
		f, err = s.look(q)
		if err == nil && q.Lost != nil && f.Link == nil {
			f.Link, f.LinkNS, err = s.lost(ctx, q)
		}
		switch {
		case err == nil:
			return f, nil
		case errors.Is(err, errMoved), errors.Is(err, sysfs.ErrNotExist), errors.Is(err, link.ErrNotFound),
			errors.Is(err, rdmans.ErrNotFound):
		default:
			return attach.Facts{}, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
			pause = min(2*pause, maxPause)
		}
	}
	return attach.Facts{}, fmt.Errorf("look at %s: %w", subject(q), err)
}

func subject(q attach.Query) string {
	if q.Master.Index != 0 {
		return q.Master.Name
	}
	return q.Device.String()
}

// seen is what one look reads of both namespaces before it is put together.
type seen struct {
	function  sysfs.Function
	exists    bool
	links     map[*place][]link.Link
	rdma      map[*place][]rdmans.Device
	uverbs    []sysfs.Uverbs
	mode      attach.Mode
	exclusive bool
}

func (s *Session) look(q attach.Query) (attach.Facts, error) {
	now, err := s.read(q.Device)
	if err != nil {
		return attach.Facts{}, err
	}
	f := attach.Facts{Mode: now.mode, HostLinks: names(now.links[s.host])}
	if s.pod != nil {
		f.PodLinks = names(now.links[s.pod])
	}
	for _, d := range now.rdma[s.host] {
		f.HostRDMA = append(f.HostRDMA, d.Name)
	}
	slices.Sort(f.HostRDMA)
	for _, u := range now.uverbs {
		f.Uverbs = append(f.Uverbs, u.Number)
	}
	if q.Master.Index != 0 {
		err = s.lookBelow(&f, q, now)
	} else {
		err = s.lookAt(&f, q, now)
	}
	if err == nil && q.Soft != "" {
		f.Soft, err = s.soft(q.Soft, now)
	}
	if err != nil {
		return attach.Facts{}, err
	}
	return f, nil
}

// lookAt adds the function and what is its own.
func (s *Session) lookAt(f *attach.Facts, q attach.Query, now seen) error {
	var err error
	if q.Device.IsZero() && q.Own.Kind != "" && s.pod != nil {
		f.Function = attach.Function{Number: -1, NUMA: -1}
		f.Link, err = s.pickOwn(now.links[s.pod], q.Own)
		return err
	}
	if f.Function, err = s.function(q.Device, now); err != nil || !now.exists {
		return err
	}
	if q.VF {
		if err = s.lookVF(f, now); err != nil {
			return err
		}
	}
	if f.Link, err = s.link(q.Device, now); err != nil {
		return err
	}
	f.RDMA, err = s.rdma(q.Device, now)
	return err
}

// read asks for everything that one look needs of both namespaces.
func (s *Session) read(id bus.ID) (seen, error) {
	now := seen{links: map[*place][]link.Link{}, rdma: map[*place][]rdmans.Device{}}
	var err error
	if err = s.find(id, &now); err != nil {
		return seen{}, err
	}
	if now.uverbs, err = s.sys.Uverbs(); err != nil {
		return seen{}, err
	}
	mode, err := s.host.rdma.Mode()
	if err != nil && !errors.Is(err, rdmans.ErrNoRDMA) {
		return seen{}, err
	}
	now.mode, now.exclusive = attach.Mode(mode), mode == rdmans.Exclusive
	for _, p := range s.places() {
		if now.links[p], err = p.links.List(); err != nil {
			return seen{}, err
		}
		// In shared mode each namespace lists every device of the node, and all of them are the host's.
		if p == s.host && now.mode != attach.NoRDMA || now.exclusive {
			if now.rdma[p], err = p.rdma.Devices(); err != nil {
				return seen{}, err
			}
		}
	}
	return now, nil
}

// find reads a function; one that does not exist is an answer.
func (s *Session) find(id bus.ID, now *seen) error {
	now.function, now.exists = sysfs.Function{}, false
	if id.IsZero() {
		return nil
	}
	fn, err := s.sys.Device(id)
	if errors.Is(err, sysfs.ErrNotExist) {
		return nil
	}
	now.function, now.exists = fn, err == nil
	return err
}

// names are the names taken in a namespace, alternative ones included since they share one table.
func names(links []link.Link) []string {
	all := []string{}
	for _, l := range links {
		all = append(all, l.Name)
		all = append(all, l.AltNames...)
	}
	slices.Sort(all)
	return all
}

// linkOf finds the netdev of a function in one namespace.
func (s *Session) linkOf(p *place, id bus.ID) (link.Link, bool, error) {
	links, err := p.links.List()
	if err != nil {
		return link.Link{}, false, err
	}
	return s.choose(p, id, links)
}

// choose picks the netdev of a function among those of a namespace. A kernel that tells no parents has the same in the
// namespace's own sysfs.
func (s *Session) choose(p *place, id bus.ID, links []link.Link) (link.Link, bool, error) {
	own := link.Of(links, id, nil)
	if len(own) == 1 {
		return own[0], true, nil
	}
	s.parents = s.parents || slices.ContainsFunc(links, func(l link.Link) bool { return !l.Parent.IsZero() })
	if len(own) == 0 && s.parents {
		return link.Link{}, false, nil
	}
	view, err := s.view(p)
	if err != nil {
		return link.Link{}, false, err
	}
	name, err := uplink(view, id)
	if err = errors.Join(err, view.Close()); err != nil {
		return link.Link{}, false, err
	}
	i := slices.IndexFunc(links, func(l link.Link) bool { return l.Name == name })
	if name == "" {
		return link.Link{}, false, nil
	}
	if i < 0 {
		return link.Link{}, false, errMoved
	}
	return links[i], true, nil
}

// uplink names the netdev of a function that is no representor; empty when it has none in this view.
func uplink(view *sysfs.FS, id bus.ID) (string, error) {
	fn, err := view.Device(id)
	if errors.Is(err, sysfs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return view.Uplink(fn.Net)
}

// link says where the function's netdev is. Only at home can it be in the node's own use.
func (s *Session) link(id bus.ID, now seen) (*attach.Link, error) {
	for _, p := range s.places() {
		l, found, err := s.choose(p, id, now.links[p])
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		out := s.described(p, l)
		out.Traits = new(attach.Traits(l.Traits))
		if out.Uppers, err = s.uppers(p, l, now); err != nil {
			return nil, err
		}
		if p == s.host {
			out.InUse, err = p.links.Uses(l, now.links[p])
			return out, err
		}
		out.Addrs, err = addresses(p, l.Index)
		return out, err
	}
	return nil, nil
}

func (s *Session) described(p *place, l link.Link) *attach.Link {
	return &attach.Link{
		Place: attach.Place{NS: s.nameOf(p), Name: l.Name}, Index: l.Index, Type: l.Type, Kind: l.Kind, MAC: l.MAC, MTU: l.MTU, Up: l.Up,
		AltNames: l.AltNames,
	}
}

// addresses are those of a link in the pod, sorted: what CHECK compares.
func addresses(p *place, index int) ([]netip.Prefix, error) {
	addrs, err := p.links.Addrs(index)
	if err != nil {
		return nil, err
	}
	out := make([]netip.Prefix, 0, len(addrs))
	for _, a := range addrs {
		out = append(out, a.Prefix)
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return out, nil
}

func (s *Session) nameOf(p *place) attach.NS {
	if p == s.host {
		return attach.Host
	}
	return attach.Pod
}
