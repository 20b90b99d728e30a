// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/podfabric/podfabric/plugin/link"
	"github.com/podfabric/podfabric/rdmans"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/sysfs"
)

// HostNS is the name that Inventory and Snapshot give the host's namespace.
const HostNS = "host"

// Device is a PCI network function that is an SR-IOV one or has RDMA devices, or a sub-function, with what it has in all namespaces; or, with a
// zero function, an RDMA device of software.
type Device struct {
	sysfs.Function
	Links []LinkAt `json:"links"`
	RDMA  []RDMAAt `json:"rdmaDevices"`
}

// Where is a namespace: HostNS, the path of a bind mount, or net:[inode].
type Where struct {
	NetNS   string          `json:"netns"`
	Holders []rdmans.Holder `json:"holders,omitempty"` // who keeps it alive; empty for the host's
}

// LinkAt is a netdev and where it is.
type LinkAt struct {
	Where
	Name string `json:"name"`
	MAC  string `json:"mac"`
	MTU  int    `json:"mtu"` // bytes
	Up   bool   `json:"up"`
}

// RDMAAt is an RDMA device and where it is. Index and GUID are unknown, and NetNS empty, when no namespace that can be seen
// has the device.
type RDMAAt struct {
	Where
	rdmans.Device
	Uverbs int `json:"uverbs"` // N of uverbsN; -1: none
}

// Inventory lists the node's devices by PCI address, software ones last, wherever they are: it looks into every namespace
// that a process, a descriptor or a mount leads to.
func (k *Kernel) Inventory(ctx context.Context) ([]Device, error) {
	s, err := k.Open(ctx, "")
	if err != nil {
		return nil, err
	}
	devices, err := s.inventory(ctx)
	return devices, errors.Join(err, s.Close())
}

func (s *Session) inventory(ctx context.Context) ([]Device, error) {
	functions, err := s.functions()
	if err != nil {
		return nil, err
	}
	all := map[bus.ID]*Device{}
	for _, fn := range functions {
		if fn.VF() || fn.Aux != "" || fn.TotalVFs > 0 || len(fn.RDMA)+len(fn.Uverbs) > 0 {
			all[fn.ID()] = &Device{Function: fn, Links: []LinkAt{}, RDMA: []RDMAAt{}}
		}
	}
	uverbs, err := s.sys.Uverbs()
	if err != nil {
		return nil, err
	}
	var soft []Device
	scan := rdmans.Scan{Proc: s.kernel.Proc, Run: s.kernel.RunNetns, Deep: true}
	err = s.everywhere(ctx, scan, func(p *place, w Where) error {
		more, collectErr := s.collect(p, w, all, uverbs)
		soft = append(soft, more...)
		return collectErr
	})
	if err != nil {
		return nil, err
	}
	list := make([]Device, 0, len(all)+len(soft))
	for _, d := range all {
		d.addHidden()
		list = append(list, *d)
	}
	slices.SortFunc(list, func(a, b Device) int { return byID(a.Function, b.Function) })
	return append(list, soft...), nil
}

// functions lists the network functions of the node: PCI functions, then sub-functions.
func (s *Session) functions() ([]sysfs.Function, error) {
	functions, err := s.sys.Functions()
	if err != nil {
		return nil, err
	}
	subs, err := s.sys.SFs()
	return append(functions, subs...), err
}

// byID puts a sub-function after the function that it is on.
func byID(a, b sysfs.Function) int {
	return cmp.Or(cmp.Compare(a.PCI.String(), b.PCI.String()), cmp.Compare(a.Aux, b.Aux))
}

// addHidden adds the RDMA devices that no namespace showed but that have verbs devices.
func (d *Device) addHidden() {
	for _, u := range d.Uverbs {
		if !slices.ContainsFunc(d.RDMA, func(r RDMAAt) bool { return r.Uverbs == u.Number }) {
			d.RDMA = append(d.RDMA, RDMAAt{Device: rdmans.Device{Name: u.Device}, Uverbs: u.Number})
		}
	}
}

// everywhere calls f for the host's namespace and for every other that scan sees and that still lives by its turn.
func (s *Session) everywhere(ctx context.Context, scan rdmans.Scan, f func(*place, Where) error) error {
	if err := f(s.host, Where{NetNS: HostNS}); err != nil {
		return err
	}
	return s.each(ctx, scan, func(p *place, n rdmans.Namespace) error {
		return f(p, Where{NetNS: n.Name(), Holders: n.Holders})
	})
}

// each calls f for every namespace but the host's that scan sees and that still lives by its turn.
func (s *Session) each(ctx context.Context, scan rdmans.Scan, f func(*place, rdmans.Namespace) error) error {
	namespaces, err := scan.Namespaces(ctx)
	if err != nil {
		return err
	}
	for _, n := range namespaces {
		if ended := ctx.Err(); ended != nil {
			return fmt.Errorf("look into %s: %w", n.Name(), ended)
		}
		ns, err := n.Open()
		if errors.Is(err, rdmans.ErrNoNamespace) {
			continue
		}
		if err != nil {
			return err
		}
		p, err := newPlace(ns)
		if err != nil {
			return errors.Join(err, ns.Close())
		}
		err = f(p, n)
		if err = errors.Join(err, p.close()); err != nil {
			return err
		}
	}
	return nil
}

// collect adds what one namespace has to the devices, and gives the RDMA devices that have no function.
func (s *Session) collect(p *place, w Where, all map[bus.ID]*Device, uverbs []sysfs.Uverbs) ([]Device, error) {
	view, err := s.view(p)
	if err != nil {
		return nil, err
	}
	links, err := p.links.List()
	if err != nil {
		return nil, errors.Join(err, view.Close())
	}
	err = s.collectLinks(view, w, links, all)
	var soft []Device
	if err == nil {
		soft, err = s.collectRDMA(p, view, w, all, uverbs)
	}
	return soft, errors.Join(err, view.Close())
}

func (s *Session) collectLinks(view *sysfs.FS, w Where, links []link.Link, all map[bus.ID]*Device) error {
	for id, d := range all {
		fn, err := view.Device(id)
		if errors.Is(err, sysfs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, l := range link.Of(links, id, fn.Net) {
			d.Links = append(d.Links, LinkAt{Where: w, Name: l.Name, MAC: l.MAC, MTU: l.MTU, Up: l.Up})
		}
	}
	return nil
}

func (s *Session) collectRDMA(p *place, view *sysfs.FS, w Where, all map[bus.ID]*Device, uverbs []sysfs.Uverbs) ([]Device, error) {
	devices, err := s.ownRDMA(p)
	if err != nil {
		return nil, err
	}
	var soft []Device
	for _, r := range devices {
		parent, err := view.Parent(r.Name)
		if errors.Is(err, sysfs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		at := RDMAAt{Where: w, Device: r}
		if d := all[parent]; d != nil {
			at.Uverbs = number(d.Uverbs, r.Name)
			d.RDMA = append(d.RDMA, at)
			continue
		}
		at.Uverbs = number(uverbs, r.Name)
		soft = append(soft, Device{
			Function: sysfs.Function{PCI: parent.PCI, Aux: parent.Aux, Number: -1, NUMA: -1}, Links: []LinkAt{}, RDMA: []RDMAAt{at},
		})
	}
	return soft, nil
}

// ownRDMA lists the RDMA devices that are in a namespace: in shared mode all are the host's, and without RDMA there are none.
func (s *Session) ownRDMA(p *place) ([]rdmans.Device, error) {
	mode, err := p.rdma.Mode()
	if errors.Is(err, rdmans.ErrNoRDMA) || err == nil && mode == rdmans.Shared && p != s.host {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return p.rdma.Devices()
}
