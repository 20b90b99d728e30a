// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"slices"

	"github.com/Mellanox/rdmamap"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/sysfs"
)

// function puts together what the host's sysfs says of a function.
func (s *Session) function(id bus.ID, now seen) (attach.Function, error) {
	fn := now.function
	if !now.exists {
		return attach.Function{ID: id, Number: -1, NUMA: -1}, nil
	}
	out := attach.Function{
		ID: id, Exists: true, Driver: fn.Driver, VF: fn.VF(), Number: fn.Number, PF: fn.PF, NUMA: fn.NUMA,
		NumVFs: fn.NumVFs, Inode: fn.Inode,
	}
	if id.SF() {
		out.PF = fn.PCI
		return out, nil
	}
	if !fn.VF() {
		return out, nil
	}
	pf, found, err := s.choose(s.host, bus.PCI(fn.PF), now.links[s.host])
	if err != nil {
		return attach.Function{}, err
	}
	if found {
		out.PFLink, out.PFMTU = pf.Name, pf.MTU
	}
	return out, nil
}

// rdmaNames lists the RDMA devices that a function has at home: by rdmamap on the live sysfs, which gives an empty list where
// it cannot read, and so is held against what was read here.
func (s *Session) rdmaNames(fn sysfs.Function) ([]string, error) {
	if s.kernel.Sysfs != liveSysfs {
		return fn.RDMA, nil
	}
	list := rdmamap.GetRdmaDevicesForPcidev
	if fn.Aux != "" {
		list = rdmamap.GetRdmaDevicesForAuxdev
	}
	found := list(fn.ID().String())
	slices.Sort(found)
	if !slices.Equal(found, fn.RDMA) {
		return nil, fmt.Errorf("RDMA devices of %s (%q, or %q): %w", fn.ID(), fn.RDMA, found, errMoved)
	}
	return found, nil
}

// rdma says where the function's RDMA device is: at home by the host's sysfs, in the pod by the pod's, and elsewhere if
// its verbs device, which every namespace sees, is there all the same.
func (s *Session) rdma(id bus.ID, now seen) (*attach.RDMA, error) {
	fn := now.function
	home, err := s.rdmaNames(fn)
	if err != nil {
		return nil, err
	}
	if len(home) > 0 {
		d, deviceErr := s.device(s.host, s.sys, home[0], fn.Uverbs, now)
		if d != nil {
			d.Beside = append([]string(nil), home[1:]...) // nil for none, as it comes back from a record
		}
		return d, deviceErr
	}
	if s.pod != nil && now.exclusive && len(now.rdma[s.pod]) > 0 {
		if d, podErr := s.inPod(id, now); podErr != nil || d != nil {
			return d, podErr
		}
	}
	if len(fn.Uverbs) == 0 {
		return nil, nil
	}
	// It may have gone from one place to the other between the two reads. Then these are not what they were.
	again, err := s.read(id)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(again.function.RDMA, fn.RDMA) || !slices.Equal(again.function.Uverbs, fn.Uverbs) ||
		s.pod != nil && !slices.Equal(again.rdma[s.pod], now.rdma[s.pod]) {
		return nil, fmt.Errorf("RDMA device of %s: %w", id, errMoved)
	}
	u := fn.Uverbs[0]
	return &attach.RDMA{Name: u.Device, NS: attach.Elsewhere, Uverbs: u.Number}, nil
}

// inPod finds the function's RDMA device in the pod; nil when it is not there.
func (s *Session) inPod(id bus.ID, now seen) (*attach.RDMA, error) {
	view, err := s.view(s.pod)
	if err != nil {
		return nil, err
	}
	var d *attach.RDMA
	fn, err := view.Device(id)
	if err == nil && len(fn.RDMA) > 0 {
		d, err = s.device(s.pod, view, fn.RDMA[0], fn.Uverbs, now)
	}
	return d, errors.Join(err, view.Close())
}

// device puts together what is known of an RDMA device that a namespace has.
func (s *Session) device(p *place, view *sysfs.FS, name string, uverbs []sysfs.Uverbs, now seen) (*attach.RDMA, error) {
	i := slices.IndexFunc(now.rdma[p], func(d rdmans.Device) bool { return d.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("RDMA device %s: %w", name, errMoved)
	}
	d := now.rdma[p][i]
	layer, err := view.LinkLayer(name)
	if err != nil {
		return nil, err
	}
	users, err := p.rdma.Users(d.Index, s.kernel.Proc)
	if err != nil {
		return nil, err
	}
	out := &attach.RDMA{
		Index: d.Index, Name: name, NS: s.nameOf(p), NodeGUID: d.NodeGUID, Ports: d.Ports, LinkLayer: layer, Uverbs: number(uverbs, name),
	}
	for _, u := range users {
		out.Users = append(out.Users, u.String())
	}
	return out, nil
}

// number finds the verbs device of an RDMA device; -1: it has none.
func number(uverbs []sysfs.Uverbs, name string) int {
	for _, u := range uverbs {
		if u.Device == name {
			return u.Number
		}
	}
	return -1
}

// soft says where a soft RoCE device is. It has no function; its name is all that identifies it.
func (s *Session) soft(name string, now seen) (*attach.RDMA, error) {
	for _, p := range s.places() {
		if !slices.ContainsFunc(now.rdma[p], func(d rdmans.Device) bool { return d.Name == name }) {
			continue
		}
		view, err := s.view(p)
		if err != nil {
			return nil, err
		}
		d, err := s.device(p, view, name, now.uverbs, now)
		return d, errors.Join(err, view.Close())
	}
	if n := number(now.uverbs, name); n >= 0 {
		return &attach.RDMA{Name: name, NS: attach.Elsewhere, Uverbs: n}, nil
	}
	return nil, nil
}
