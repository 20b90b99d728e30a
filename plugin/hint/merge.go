// SPDX-License-Identifier: Apache-2.0

package hint

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/podfabric/podfabric/nccl"
	"github.com/podfabric/podfabric/netconf"
)

// pod is the hint of one sandbox: its attachments in rail order, and what follows from all of them together.
type pod struct {
	attachments list
	compute     list // those that enter NCCL's list if they have an RDMA device
	settings    Settings
	oldest      nccl.Version
	decision    nccl.Decision
	volumes     []string // emptyDirs named by any attachment, each once
	require     bool
	hasUID      bool
}

// merge is pure: it settles roles and order, and has package nccl decide.
func merge(all list) pod {
	all = slices.Clone(all)
	slices.SortFunc(all, railOrder)
	p := pod{attachments: all, volumes: volumes(all)}
	said := slices.ContainsFunc(all, func(f Fragment) bool { return f.Rail != nil || f.Settings.Role != netconf.RoleDefault })
	var rails []nccl.Rail
	for i, f := range all {
		p.attachments[i].Settings.Role = role(f, said)
		p.require = p.require || f.Settings.Require
		p.hasUID = p.hasUID || f.Pod.UID != ""
		if p.attachments[i].Settings.Role != netconf.RoleCompute {
			continue
		}
		p.compute = append(p.compute, p.attachments[i])
		if f.RDMA != nil {
			rails = append(rails, f.rail())
		}
	}
	opts := nccl.Options{}
	if len(p.compute) > 0 {
		p.settings = p.compute[0].Settings
		opts.FailClosed, opts.TrafficClass = p.settings.FailClosed, p.settings.TrafficClass
	}
	p.oldest = oldest(p.settings.NCCL)
	opts.Oldest = p.oldest
	p.decision = nccl.Decide(rails, opts)
	return p
}

// role settles what an attachment is: compute if its network says so or names a rail, or if no network of the pod says
// anything (design §9.7).
func role(f Fragment, said bool) netconf.Role {
	switch {
	case f.Settings.Role != netconf.RoleDefault:
		return f.Settings.Role
	case f.Rail != nil || !said:
		return netconf.RoleCompute
	}
	return netconf.RoleOther
}

// railOrder: by rail, those without one last, then by interface with net2 before net10.
func railOrder(a, b Fragment) int {
	switch {
	case a.Rail != nil && b.Rail == nil:
		return -1
	case a.Rail == nil && b.Rail != nil:
		return 1
	case a.Rail != nil && *a.Rail != *b.Rail:
		return cmp.Compare(*a.Rail, *b.Rail)
	}
	x, y := a.Owner.IfName, b.Owner.IfName
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y))
}

func volumes(all list) []string {
	var names []string
	for _, f := range all {
		if v := f.Settings.Volume; v != "" && !slices.Contains(names, v) {
			names = append(names, v)
		}
	}
	return names
}

// oldest reads the version that netconf has checked; anything else is the default.
func oldest(text string) nccl.Version {
	v, err := nccl.ParseVersion(strings.TrimPrefix(text, ">="))
	if err != nil {
		return nccl.Version{Major: 2, Minor: 21}
	}
	return v
}

// rail is what package nccl needs to know of an attachment with an RDMA device.
func (f Fragment) rail() nccl.Rail {
	r := nccl.Rail{
		Name: f.Owner.IfName, HCA: nccl.HCA{Device: f.RDMA.Device, Port: f.RDMA.Port},
		LinkLayer: f.RDMA.LinkLayer, Table: nccl.Table{Size: f.RDMA.TableSize},
		Want: f.addrs(), Shared: f.RDMA.Shared, PF: f.PF,
	}
	for _, g := range f.RDMA.GIDs {
		r.Table.List = append(r.Table.List, nccl.GID{Index: g.Index, Addr: g.Addr, Type: g.Type})
	}
	return r
}

// addrs lists the pod's addresses on the attachment, IPv4 first.
func (f Fragment) addrs() []netip.Addr {
	var four, six []netip.Addr
	for _, p := range f.Addresses {
		switch a := p.Addr().Unmap(); {
		case a.Is4():
			four = append(four, a)
		case !a.IsLinkLocalUnicast():
			six = append(six, a)
		}
	}
	return append(four, six...)
}

// check refuses what the networks' settings forbid. f is the attachment that is being added.
func (p pod) check(f Fragment) error {
	isCompute := slices.ContainsFunc(p.compute, func(c Fragment) bool { return c.Owner == f.Owner })
	for _, other := range p.compute {
		found := differences(other.Settings, f.Settings)
		if !isCompute || len(found) == 0 {
			continue
		}
		d := found[0]
		return &netconf.Problem{
			Code:   netconf.CodeInvalid,
			Remedy: fmt.Sprintf("set %s alike in networks %s and %s, since one pod has one hint", d.key, other.Network, f.Network),
			Field:  d.key,
			Found:  fmt.Sprintf("%s in %s and %s in %s", d.a, other.Network, d.b, f.Network),
			Err:    ErrConflict,
		}
	}
	if p.decision.NoRight != "" && p.settings.NoRight == netconf.NoRightFail {
		return &netconf.Problem{
			Code:   netconf.CodeHint,
			Remedy: "use VFs, whose GID tables are their own, or set hint.noRight to \"warn\"",
			Field:  "hint.noRight",
			Err:    fmt.Errorf("%w: %s", ErrNoRight, p.decision.NoRight),
		}
	}
	return nil
}

type difference struct{ key, a, b string }

// differences lists the settings that two networks of a pod say differently, in words.
func differences(a, b Settings) []difference {
	class := func(tc *int) string {
		if tc == nil {
			return "none"
		}
		return fmt.Sprint(*tc)
	}
	all := []difference{
		{"hint.volume", fmt.Sprintf("%q", a.Volume), fmt.Sprintf("%q", b.Volume)},
		{"hint.require", fmt.Sprint(a.Require), fmt.Sprint(b.Require)},
		{"hint.nccl", oldest(a.NCCL).String(), oldest(b.NCCL).String()},
		{"hint.noRight", noRight(a), noRight(b)},
		{"hint.failClosed", fmt.Sprint(a.FailClosed), fmt.Sprint(b.FailClosed)},
		{"hint.trafficClass", class(a.TrafficClass), class(b.TrafficClass)},
	}
	return slices.DeleteFunc(all, func(d difference) bool { return d.a == d.b })
}

func noRight(s Settings) string {
	return fmt.Sprintf("%q", cmp.Or(s.NoRight, netconf.NoRightWarn))
}
