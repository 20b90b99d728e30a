// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"slices"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/link"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// lookBelow adds the master, what is below it, and the attachment's own link in the pod. A master that is gone leaves the first two
// away.
func (s *Session) lookBelow(f *attach.Facts, q attach.Query, now seen) error {
	var err error
	home := now.links[s.host]
	i := slices.IndexFunc(home, func(l link.Link) bool { return l.Index == q.Master.Index })
	if i < 0 {
		f.Function = attach.Function{Number: -1, NUMA: -1}
		f.Link, err = s.ownLink(q, now)
		return err
	}
	m := home[i]
	routed, err := s.routed()
	if err != nil {
		return err
	}
	f.Master = &attach.Master{
		Name: m.Name, Index: m.Index, Type: m.Type, Kind: m.Kind, MAC: m.MAC, MTU: m.MTU, Up: m.Up, Default: carries(m, routed),
	}
	below, err := s.below(home, m)
	if err != nil {
		return err
	}
	if err = s.lookBehind(f, below, now); err != nil {
		return err
	}
	f.Link, err = s.ownLink(q, now)
	return err
}

// lookBehind adds the functions' RDMA devices and, of them, the one with the first, else the first function.
func (s *Session) lookBehind(f *attach.Facts, below []bus.ID, now seen) error {
	f.Function = attach.Function{Number: -1, NUMA: -1}
	for i, id := range below {
		if err := s.find(id, &now); err != nil {
			return err
		}
		fn, err := s.function(id, now)
		if err != nil {
			return err
		}
		if i == 0 {
			f.Function = fn
		}
		if !now.exists {
			continue
		}
		names := slices.Clone(now.function.RDMA)
		for _, u := range now.function.Uverbs {
			names = append(names, u.Device)
		}
		slices.Sort(names)
		f.Master.RDMA = append(f.Master.RDMA, slices.Compact(names)...)
		device, err := s.rdma(id, now)
		if err != nil {
			return err
		}
		if device != nil && (f.RDMA == nil || device.Name < f.RDMA.Name) {
			f.Function, f.RDMA = fn, device
		}
	}
	slices.Sort(f.Master.RDMA)
	f.Master.RDMA = slices.Compact(f.Master.RDMA)
	return nil
}

// below lists the functions that a link at home ends at, through VLANs, macvlans and the ports of bonds, each once.
func (s *Session) below(home []link.Link, top link.Link) ([]bus.ID, error) {
	var ids []bus.ID
	met := map[int]bool{}
	rest := []link.Link{top}
	for len(rest) > 0 {
		l := rest[0]
		rest = rest[1:]
		if met[l.Index] {
			continue
		}
		met[l.Index] = true
		id, err := s.parent(s.host, l)
		if err != nil {
			return nil, err
		}
		if !id.IsZero() {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
			continue
		}
		for _, other := range home {
			if stacked(l) && other.Index == l.Lower || bonded(l) && other.Master == l.Index {
				rest = append(rest, other)
			}
		}
	}
	return ids, nil
}

// stacked tells whether a link has one below it that carries its traffic. The other end of a veth does not.
func stacked(l link.Link) bool {
	return slices.Contains([]string{"vlan", "macvlan", "ipvlan", "macvtap", "ipvtap", "macsec", "ipoib"}, l.Kind)
}

func bonded(l link.Link) bool { return l.Kind == "bond" || l.Kind == "team" }

// parent gives the function that a link is the netdev of. A kernel that tells no parents has it in the namespace's own sysfs.
func (s *Session) parent(p *place, l link.Link) (bus.ID, error) {
	if !l.Parent.IsZero() {
		s.parents = true
		return l.Parent, nil
	}
	if s.parents || l.Kind != "device" && l.Kind != "ipoib" {
		return bus.ID{}, nil
	}
	view, err := s.view(p)
	if err != nil {
		return bus.ID{}, err
	}
	id, err := view.NetDevice(l.Name)
	return id, errors.Join(err, view.Close())
}

// routed gives the indices of the links at home that a default route leads through.
func (s *Session) routed() ([]int, error) {
	routes, err := s.host.links.Routes(0)
	if err != nil {
		return nil, err
	}
	var indices []int
	for _, r := range routes {
		if r.Dst.Bits() == 0 {
			indices = append(indices, r.Links...)
		}
	}
	return indices, nil
}

// carries tells whether a link carries the default route, itself or as a port of the bridge or bond that does.
func carries(l link.Link, routed []int) bool {
	return slices.Contains(routed, l.Index) || l.Master != 0 && slices.Contains(routed, l.Master)
}

// ownLink finds the attachment's link in the pod: by its index wherever its master is by now, else among those on the master. One
// that does not sit there is another's, or is lost.
func (s *Session) ownLink(q attach.Query, now seen) (*attach.Link, error) {
	if s.pod == nil {
		return nil, nil
	}
	links := now.links[s.pod]
	if l, found := indexed(links, q.Own); found {
		return s.inside(l)
	}
	on, err := s.sitsOn(s.pod, links, q.Master.Index)
	if err != nil {
		return nil, err
	}
	return s.pickOwn(on, q.Own)
}

// indexed finds the attachment's link by its index. An index is not used again in a namespace unless somebody asks for it, and then
// the kind is still to fit.
func indexed(links []link.Link, known attach.OwnLink) (link.Link, bool) {
	i := slices.IndexFunc(links, func(l link.Link) bool { return known.Index != 0 && l.Index == known.Index && l.Kind == known.Kind })
	if i < 0 {
		return link.Link{}, false
	}
	return links[i], true
}

// pickOwn is the facts of the attachment's link among links of the pod; nil: it is not there.
func (s *Session) pickOwn(links []link.Link, known attach.OwnLink) (*attach.Link, error) {
	l, found, err := own(links, known)
	if errors.Is(err, attach.ErrConflict) {
		return nil, nil // any of several: none that is known to be it
	}
	if err != nil || !found {
		return nil, err
	}
	return s.inside(l)
}

// inside is the facts of a link of the pod.
func (s *Session) inside(l link.Link) (*attach.Link, error) {
	out := s.described(s.pod, l)
	var err error
	out.Addrs, err = addresses(s.pod, l.Index)
	return out, err
}

// sitsOn gives the links of a pod that sit on a link at home, directly or through others of the pod.
func (s *Session) sitsOn(p *place, links []link.Link, master int) ([]link.Link, error) {
	nsid, err := s.homeNSID(p)
	if err != nil || nsid < 0 {
		return nil, err
	}
	var on []link.Link
	for _, l := range links {
		if far := descend(links, l); far.NSID == nsid && far.Index == master {
			on = append(on, l)
		}
	}
	return on, nil
}

// uppers gives the links of the pod that sit right on one of p, by index.
func (s *Session) uppers(p *place, on link.Link, now seen) ([]attach.Upper, error) {
	if s.pod == nil {
		return nil, nil
	}
	nsid := 0
	var err error
	if p != s.pod {
		if nsid, err = s.homeNSID(s.pod); err != nil {
			return nil, err
		}
	}
	var out []attach.Upper
	for _, l := range now.links[s.pod] {
		sits := l.Lower == on.Index
		if p != s.pod {
			sits = l.Far == link.Far{Index: on.Index, NSID: nsid}
		}
		if sits && stacked(l) {
			out = append(out, attach.Upper{Kind: l.Kind, Name: l.Name, Index: l.Index})
		}
	}
	return out, nil
}

// homeNSID is the host's namespace as one pod's numbers it; -1: it does not, and has no link with one below it at home.
func (s *Session) homeNSID(p *place) (int, error) {
	nsid := -1
	err := s.host.ns.WithFD(func(fd int) error {
		var err error
		nsid, err = p.links.NSID(fd)
		return err
	})
	return nsid, err
}

// descend follows a link of a namespace down to the first link that is elsewhere; zero: it ends here.
func descend(links []link.Link, l link.Link) link.Far {
	for range links {
		if !stacked(l) {
			return link.Far{}
		}
		if l.Far.Index != 0 {
			return l.Far
		}
		i := slices.IndexFunc(links, func(other link.Link) bool { return other.Index == l.Lower })
		if i < 0 {
			return link.Far{}
		}
		l = links[i]
	}
	return link.Far{}
}
