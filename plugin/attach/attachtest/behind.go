// SPDX-License-Identifier: Apache-2.0

package attachtest

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// Links lists the links at home that a selector may mean, by index.
func (s *Session) Links(ctx context.Context) ([]attach.Candidate, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("list links: %w", err)
	}
	k := s.k
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []attach.Candidate
	for _, l := range k.links {
		if l.ns != k.host {
			continue
		}
		c := attach.Candidate{
			Name: l.name, AltNames: slices.Clone(l.alt), Index: l.index, Type: l.typ, Kind: l.kind, MAC: l.address(), Device: l.dev,
			Default: k.carries(l),
		}
		if len(l.lowers) == 1 && l.lowers[0].ns == k.host {
			c.Lower = attach.Lower{Name: l.lowers[0].name, Index: l.lowers[0].index}
		}
		if f := k.function(l.dev); f != nil {
			c.Path, c.VF = f.path(), f.VF
			if f.rdma != nil && (f.rdma.ns == k.host || k.mode == attach.Shared) {
				c.RDMA = []string{f.rdma.name}
			}
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b attach.Candidate) int { return cmp.Compare(a.Index, b.Index) })
	return out, nil
}

// path is where sysfs has the device: every PCI function below the first bridge, a sub-function below its PF.
func (f *function) path() string {
	const root = "/sys/devices/pci0000:00/"
	if f.ID.SF() {
		return root + bus.PCI(f.PF).String() + "/" + f.ID.String()
	}
	return root + f.ID.String()
}

// Behind says what is behind an interface of the pod. The error wraps attach.ErrConflict when the pod has none of that name.
func (s *Session) Behind(ctx context.Context, ifname string) (attach.Behind, error) {
	if err := context.Cause(ctx); err != nil {
		return attach.Behind{}, fmt.Errorf("look behind %s: %w", ifname, err)
	}
	k := s.k
	k.mu.Lock()
	defer k.mu.Unlock()
	l := s.linkOf(attach.Place{NS: attach.Pod, Name: ifname})
	if l == nil {
		return attach.Behind{}, conflict("find interface %s in the pod", ifname)
	}
	out := attach.Behind{Device: l.dev, Kind: l.kind, Type: l.typ, MAC: l.address()}
	if m := outOf(s.pod, l); m != nil && m.ns == k.host {
		out.Master = attach.Lower{Name: m.name, Index: m.index}
	}
	return out, nil
}
