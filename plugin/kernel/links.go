// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/link"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/sysfs"
)

// Links lists the links at home, by index, with what a selector may know them by. A representor belongs to no device here: it
// stands for another's port.
func (s *Session) Links(ctx context.Context) ([]attach.Candidate, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	links, err := s.host.links.List()
	if err != nil {
		return nil, err
	}
	routed, err := s.routed()
	if err != nil {
		return nil, err
	}
	out := make([]attach.Candidate, 0, len(links))
	for _, l := range links {
		c := attach.Candidate{
			Name: l.Name, AltNames: l.AltNames, Index: l.Index, Type: l.Type, Kind: l.Kind, MAC: l.MAC, Default: carries(l, routed),
		}
		if i := slices.IndexFunc(links, func(x link.Link) bool { return x.Index == l.Lower }); i >= 0 && stacked(l) && l.Far.Index == 0 {
			c.Lower = attach.Lower{Name: links[i].Name, Index: links[i].Index}
		}
		if err := s.addDevice(&c, l); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// addDevice adds the device that a link belongs to. One that goes away meanwhile leaves the link without.
func (s *Session) addDevice(c *attach.Candidate, l link.Link) error {
	id, err := s.parent(s.host, l)
	if errors.Is(err, sysfs.ErrNotExist) || err == nil && id.IsZero() {
		return nil
	}
	if err != nil {
		return err
	}
	other, err := s.sys.Representor(l.Name)
	if err != nil || other {
		return err
	}
	fn, err := s.sys.Device(id)
	if errors.Is(err, sysfs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	c.Device, c.VF, c.RDMA = id, fn.VF(), fn.RDMA
	c.Path, err = s.sys.Path(id)
	return err
}

// Behind says what an interface of the pod is. ErrConflict: there is none of that name, or no pod.
func (s *Session) Behind(ctx context.Context, ifname string) (attach.Behind, error) {
	if err := ctx.Err(); err != nil {
		return attach.Behind{}, fmt.Errorf("look behind %s: %w", ifname, err)
	}
	p, err := s.in(attach.Pod)
	if err != nil {
		return attach.Behind{}, err
	}
	links, err := p.links.List()
	if err != nil {
		return attach.Behind{}, err
	}
	i := slices.IndexFunc(links, func(l link.Link) bool { return l.Name == ifname })
	if i < 0 {
		return attach.Behind{}, fmt.Errorf("the pod has no interface %s: %w", ifname, attach.ErrConflict)
	}
	l := links[i]
	out := attach.Behind{Kind: l.Kind, Type: l.Type, MAC: l.MAC}
	if out.Device, err = s.parent(p, l); err != nil || out.Device != (bus.ID{}) {
		return out, err
	}
	far := descend(links, l)
	nsid, err := s.homeNSID(p)
	if err != nil || far.Index == 0 || far.NSID != nsid {
		return out, err
	}
	m, err := s.host.links.ByIndex(far.Index)
	if errors.Is(err, link.ErrNotFound) {
		return out, nil
	}
	out.Master = attach.Lower{Name: m.Name, Index: m.Index}
	return out, err
}
