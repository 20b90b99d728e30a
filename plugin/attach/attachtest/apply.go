// SPDX-License-Identifier: Apache-2.0

package attachtest

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/podfabric/podfabric/plugin/attach"
)

// apply looks whether the state after step holds, and if not makes one system call for it. Only calls change anything, and
// each counts itself.
func (s *Session) apply(step attach.Step, half bool) error {
	switch step := step.(type) {
	case attach.MoveLink:
		return s.moveLink(step, half)
	case attach.AddLink:
		return s.addLink(step)
	case attach.DelLink:
		return s.delLink(step)
	case attach.SetVF:
		return s.setVF(step)
	case attach.ResetFunction:
		return s.resetFunction(step)
	case attach.MoveRDMA:
		return s.moveRDMA(step)
	case attach.RenameRDMA:
		return s.renameRDMA(step)
	case attach.AddSoftRoCE:
		return s.addSoft(step)
	case attach.DelSoftRoCE:
		return s.delSoft(step)
	case attach.SetSysctl:
		return s.setSysctl(step)
	case attach.SetMAC:
		return s.setMAC(step)
	case attach.SetAltName:
		return s.setAltName(step)
	case attach.SetTraits:
		return s.setTraits(step)
	case attach.SetUp:
		return s.setUp(step)
	case attach.AddAddr:
		return s.addAddr(step)
	case attach.DelAddr:
		return s.delAddr(step)
	case attach.AddRoute:
		return s.addRoute(step)
	case attach.DelRoute:
		return s.delRoute(step)
	}
	return fmt.Errorf("apply %v: %w", step, attach.ErrConflict)
}

// call counts a state-changing system call.
func (k *Kernel) call() { k.changes++ }

func conflict(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, attach.ErrConflict)...)
}

func (s *Session) moveLink(step attach.MoveLink, half bool) error {
	k := s.k
	f := k.function(step.Device)
	if f == nil || f.link == nil {
		return conflict("find the netdev of %s", step.Device)
	}
	l, from, to := f.link, s.at(step.From.NS), s.at(step.To.NS)
	mtu := step.MTU[1]
	if to == nil {
		return fmt.Errorf("move %s: %w", l.name, attach.ErrNoNetNS)
	}
	if l.ns == to && l.name == step.To.Name && (mtu == 0 || l.mtu == mtu) {
		return nil
	}
	if l.ns != to && l.ns != from {
		return conflict("find the netdev of %s: it is %s", step.Device, s.from(l.ns))
	}
	return k.newlink(l, to, step.To.Name, mtu, half)
}

// newlink is one RTM_NEWLINK with namespace, name and MTU. On failure the link may have moved (style.md M4).
func (k *Kernel) newlink(l *link, ns *netns, name string, mtu int, half bool) error {
	k.call()
	taken := func(name string) bool { return k.taken(ns, name, l) }
	if l.ns != ns {
		first := l.name
		if taken(first) {
			if first = name; taken(first) {
				return fmt.Errorf("move %s: %w", l.name, syscall.EEXIST)
			}
		}
		if slices.ContainsFunc(l.alt, taken) {
			return fmt.Errorf("move %s with its alternative names %q: %w", l.name, l.alt, syscall.EEXIST)
		}
		k.relocate(l, ns, first)
		if half {
			return nil
		}
	}
	if mtu > l.maxMTU || mtu < 0 {
		return fmt.Errorf("set the MTU of %s: %w", l.name, syscall.EINVAL)
	}
	if mtu != 0 {
		k.setMTU(l, mtu)
	}
	if half {
		return nil
	}
	if taken(name) {
		return fmt.Errorf("rename %s: %w", l.name, syscall.EEXIST)
	}
	l.name = name
	k.syncGIDs()
	return nil
}

func (s *Session) moveRDMA(step attach.MoveRDMA) error {
	k := s.k
	i := slices.IndexFunc(k.rdma, func(d *device) bool {
		if step.Soft != "" {
			return d.soft && d.name == step.Soft
		}
		return d.index == step.Index && d.guid == step.GUID
	})
	if i < 0 {
		return conflict("find RDMA device %s", step.Name)
	}
	d, to := k.rdma[i], s.at(step.To)
	switch {
	case to == nil:
		return fmt.Errorf("move RDMA device %s: %w", d.name, attach.ErrNoNetNS)
	case d.ns == to:
		return nil
	case d.ns != s.at(step.From):
		return conflict("find RDMA device %s: it is %s", d.name, s.from(d.ns))
	}
	k.call()
	switch {
	case k.mode != attach.Exclusive:
		return fmt.Errorf("move RDMA device %s: %w", d.name, syscall.EOPNOTSUPP)
	case d.soft && k.noSoft != nil:
		return fmt.Errorf("move RDMA device %s: %w", d.name, k.noSoft)
	case k.deviceAt(to, d.name) != nil:
		return fmt.Errorf("move RDMA device %s: %w", d.name, syscall.EEXIST)
	}
	k.reregister(d, to)
	return nil
}

func (s *Session) renameRDMA(step attach.RenameRDMA) error {
	k := s.k
	i := slices.IndexFunc(k.rdma, func(d *device) bool { return d.index == step.Index })
	if i < 0 || k.rdma[i].ns != s.at(step.NS) {
		return conflict("find RDMA device %s", step.From)
	}
	d := k.rdma[i]
	switch d.name {
	case step.To:
		return nil
	case step.From:
	default:
		return conflict("rename RDMA device %s: it is called %s", step.From, d.name)
	}
	k.call()
	if k.deviceAt(d.ns, step.To) != nil {
		return fmt.Errorf("rename RDMA device %s: %w", d.name, syscall.EEXIST)
	}
	d.name = step.To
	return nil
}

// addSoft: the kernel makes an rxe in the initial namespace, wherever its netdev is, and one for each netdev at most.
func (s *Session) addSoft(step attach.AddSoftRoCE) error {
	k := s.k
	l := s.linkOf(step.Link)
	if l == nil {
		return conflict("find interface %s", step.Link)
	}
	for _, d := range k.rdma {
		if d.soft && d.name == step.Name && d.link == l {
			return nil
		}
	}
	k.call()
	if k.deviceAt(k.host, step.Name) != nil || slices.ContainsFunc(k.rdma, func(d *device) bool { return d.soft && d.link == l }) {
		return fmt.Errorf("make soft RDMA device %s: %w", step.Name, syscall.EEXIST)
	}
	k.newDevice(device{soft: true, link: l, name: step.Name, ns: k.host, guid: guidOf(l.address()), ports: 1, linkLayer: "Ethernet"})
	return nil
}

func (s *Session) delSoft(step attach.DelSoftRoCE) error {
	for _, d := range s.k.rdma {
		if !d.soft || d.name != step.Name {
			continue
		}
		if s.from(d.ns) == attach.Elsewhere {
			return conflict("find soft RDMA device %s", step.Name)
		}
		s.k.call()
		s.k.dropDevice(d)
		return nil
	}
	return nil
}

// linkOf finds the link of a place; nil when there is none, or no such namespace.
func (s *Session) linkOf(p attach.Place) *link {
	ns := s.at(p.NS)
	if ns == nil {
		return nil
	}
	return s.k.linkAt(ns, p.Name)
}
