// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/link"
	"github.com/podfabric/podfabric/rdmans"
)

// Apply ensures the state after a step (attach.Kernel). It looks first, and makes one system call that changes something, or
// none. Errors wrap attach.ErrConflict, or the sentinels of link and rdmans.
func (s *Session) Apply(ctx context.Context, step attach.Step) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("apply a step: %w", err)
	}
	switch v := step.(type) {
	case attach.MoveLink:
		return s.moveLink(v)
	case attach.AddLink:
		return s.addLink(v)
	case attach.DelLink:
		return s.delLink(v)
	case attach.SetVF:
		return s.setVF(ctx, v)
	case attach.ResetFunction:
		return s.resetFunction(ctx, v)
	case attach.MoveRDMA:
		return s.moveRDMA(v)
	case attach.RenameRDMA:
		return s.renameRDMA(v)
	case attach.AddSoftRoCE:
		return s.addSoft(v)
	case attach.DelSoftRoCE:
		return s.delSoft(v)
	case attach.SetSysctl:
		return s.setSysctl(v)
	case attach.SetMAC:
		return s.setMAC(v)
	case attach.SetAltName:
		return s.setAltName(v)
	case attach.SetTraits:
		return s.setTraits(v)
	case attach.SetUp:
		return s.setUp(v)
	case attach.AddAddr:
		return s.addAddr(v)
	case attach.DelAddr:
		return s.delAddr(v)
	case attach.AddRoute:
		return s.addRoute(v)
	case attach.DelRoute:
		return s.delRoute(v)
	}
	return fmt.Errorf("apply %T: %w", step, errors.ErrUnsupported)
}

// named finds the link that a step works on. It must be where the step has it.
func (s *Session) named(at attach.Place) (*place, link.Link, error) {
	p, err := s.in(at.NS)
	if err != nil {
		return nil, link.Link{}, err
	}
	l, err := p.links.ByName(at.Name)
	if errors.Is(err, link.ErrNotFound) {
		return nil, link.Link{}, fmt.Errorf("%w: %w", attach.ErrConflict, err)
	}
	return p, l, err
}

func (s *Session) setSysctl(v attach.SetSysctl) error {
	p, err := s.in(v.NS)
	if err != nil {
		return err
	}
	now, err := p.links.Sysctl(v.Key)
	if errors.Is(err, link.ErrNotFound) && strings.HasPrefix(v.Key, ipv6Keys) {
		if _, all := p.links.Sysctl(ipv6Keys + "all/forwarding"); errors.Is(all, link.ErrNotFound) {
			return nil // a kernel without IPv6 does none of it
		}
	}
	if err != nil || now == v.To {
		return err
	}
	return p.links.SetSysctl(v.Key, v.To)
}

const ipv6Keys = "net/ipv6/conf/"

func (s *Session) setMAC(v attach.SetMAC) error {
	p, l, err := s.named(v.Link)
	if err != nil || l.MAC == v.To {
		return err
	}
	return p.links.SetMAC(l.Index, v.To)
}

func (s *Session) setAltName(v attach.SetAltName) error {
	p, l, err := s.named(v.Link)
	if err != nil || slices.Contains(l.AltNames, v.Name) == v.To {
		return err
	}
	return p.links.SetAltName(l.Index, v.Name, v.To)
}

func (s *Session) setTraits(v attach.SetTraits) error {
	p, l, err := s.named(v.Link)
	if err != nil || attach.Traits(l.Traits) == v.To {
		return err
	}
	return p.links.SetTraits(l.Index, l.Traits, link.Traits(v.To))
}

func (s *Session) setUp(v attach.SetUp) error {
	p, l, err := s.named(v.Link)
	if err != nil || l.Up == v.To {
		return err
	}
	return p.links.SetUp(l.Index, v.To)
}

func (s *Session) addAddr(v attach.AddAddr) error {
	p, l, err := s.named(v.Link)
	if err != nil {
		return err
	}
	addrs, err := p.links.Addrs(l.Index)
	if err != nil || slices.ContainsFunc(addrs, func(a link.Addr) bool { return a.Prefix == v.Addr }) {
		return err
	}
	return p.links.AddAddr(l.Index, v.Addr)
}

// delAddr has nothing to do when the link is not there: its addresses went with it.
func (s *Session) delAddr(v attach.DelAddr) error {
	p, l, err := s.named(v.Link)
	if errors.Is(err, attach.ErrConflict) {
		return nil
	}
	if err != nil {
		return err
	}
	addrs, err := p.links.Addrs(l.Index)
	if err != nil || !slices.ContainsFunc(addrs, func(a link.Addr) bool { return a.Prefix == v.Addr }) {
		return err
	}
	return p.links.DelAddr(l.Index, v.Addr)
}

func (s *Session) addRoute(v attach.AddRoute) error {
	p, l, err := s.named(v.Link)
	if err != nil {
		return err
	}
	there, err := hasRoute(p, l, link.Route{Dst: v.Dst.Masked(), Via: v.Via})
	if err != nil || there {
		return err
	}
	return p.links.AddRoute(l.Index, v.Dst, v.Via)
}

// delRoute has nothing to do when the link is not there or down: its routes went with it.
func (s *Session) delRoute(v attach.DelRoute) error {
	p, l, err := s.named(v.Link)
	if errors.Is(err, attach.ErrConflict) {
		return nil
	}
	if err != nil {
		return err
	}
	there, err := hasRoute(p, l, link.Route{Dst: v.Dst.Masked(), Via: v.Via})
	if err != nil || !there {
		return err
	}
	return p.links.DelRoute(l.Index, v.Dst, v.Via)
}

func hasRoute(p *place, l link.Link, want link.Route) (bool, error) {
	routes, err := p.links.Routes(l.Index)
	return slices.ContainsFunc(routes, func(r link.Route) bool { return r.Dst == want.Dst && r.Via == want.Via }), err
}

// moveLink finds the netdev by its function in the namespace it is to be in, then in the other: a move that failed half done
// leaves it in the first under the name it had in the second.
func (s *Session) moveLink(v attach.MoveLink) error {
	to, err := s.in(v.To.NS)
	if err != nil {
		return err
	}
	change := link.Change{Name: v.To.Name, NetNS: -1}
	at := to
	l, found, err := s.linkOf(to, v.Device)
	if err != nil {
		return err
	}
	if !found && v.From.NS != v.To.NS {
		if at, err = s.in(v.From.NS); err != nil {
			return err
		}
		if l, found, err = s.linkOf(at, v.Device); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("netdev of %s is neither in %s nor in %s: %w", v.Device, v.To.NS, v.From.NS, attach.ErrConflict)
	}
	if v.MTU[1] != l.MTU {
		change.MTU = v.MTU[1]
	}
	if at == to {
		if l.Name == v.To.Name && change.MTU == 0 {
			return nil
		}
		return at.links.Move(l.Index, change)
	}
	return to.ns.WithFD(func(fd int) error {
		change.NetNS = fd
		return at.links.Move(l.Index, change)
	})
}

func (s *Session) renameRDMA(v attach.RenameRDMA) error {
	p, err := s.in(v.NS)
	if err != nil {
		return err
	}
	devices, err := p.rdma.Devices()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(devices, func(d rdmans.Device) bool { return d.Index == v.Index })
	if i < 0 {
		return fmt.Errorf("RDMA device %d is not in %s: %w", v.Index, v.NS, attach.ErrConflict)
	}
	if devices[i].Name == v.To {
		return nil
	}
	return p.rdma.Rename(v.Index, v.To)
}
