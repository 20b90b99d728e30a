// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/podfabric/podfabric/netconf"
)

// userspace refuses what needs an interface or an RDMA device of a function that a program drives.
func (g guard) userspace() *netconf.Problem {
	r := g.conf.RDMA
	p := &netconf.Problem{Code: netconf.CodeDevice, Right: "nothing that needs an interface"}
	switch {
	case g.conf.MTU.FromPF || g.conf.MTU.Bytes != 0:
		p.Field, p.Found = "mtu", fmt.Sprint(g.conf.MTU.Bytes)
		if g.conf.MTU.FromPF {
			p.Found = `"pf"`
		}
	case r.SoftRoCE:
		p.Field, p.Found = "rdma.softRoCE", "true"
	case r.Mode == netconf.RDMAMove || r.Mode == netconf.RDMAShare:
		p.Field, p.Found = "rdma.mode", fmt.Sprintf("%q", r.Mode)
	case r.Require == netconf.RequireActive || r.Require == netconf.RequireGID:
		p.Field, p.Found = "rdma.require", fmt.Sprintf("%q", r.Require)
	default:
		return nil
	}
	fn := g.facts.Function
	p.Remedy = fmt.Sprintf("remove %s, or bind the virtual function to its network driver: one bound to %s has neither interface "+
		"nor RDMA device", p.Field, fn.Driver)
	p.Found += fmt.Sprintf(" for %s, which is bound to %s", fn.ID, fn.Driver)
	return p
}

// pf refuses settings that the PF cannot take now. Without any, nobody asks it.
func (g guard) pf() *netconf.Problem {
	if !g.conf.AsksPF() {
		return nil
	}
	fn := g.facts.Function
	p := &netconf.Problem{Code: netconf.CodeDevice, Field: "PF " + fn.PF.String() + " of " + fn.ID.String()}
	switch {
	case fn.PFLink == "":
		p.Code = netconf.CodeTryLater
		p.Remedy = "bring the PF's netdev home: the settings of a virtual function are made through it"
		p.Found, p.Right = "no netdev in the node's network namespace", "its netdev at home"
	case fn.ESwitch == "switchdev":
		p.Remedy = "set the PF's embedded switch to legacy mode, or remove the VF settings and let the VF's representor do it: " +
			"in switchdev mode the PF takes none"
		p.Found, p.Right = "eswitch mode switchdev", "devlink dev eswitch set pci/"+fn.PF.String()+" mode legacy"
	case g.facts.VF == nil:
		p.Remedy = "remove the VF settings, or update the PF's driver: it does not tell what it holds for this virtual function"
		p.Found = fmt.Sprintf("no VF %d on %s", fn.Number, fn.PFLink)
	default:
		return nil
	}
	return p
}

// sibling finds another VF with the MAC that this one is to have: the PF's switch gives frames to whichever it learned last.
func (g guard) sibling() *netconf.Problem {
	mac, field := g.conf.MAC, "mac"
	if mac == "" {
		field = "MAC of " + g.pci()
		switch link, state := g.facts.Link, g.facts.VF; {
		case link != nil:
			mac = link.MAC
		case state != nil:
			mac = state.MAC
		}
	}
	if mac == "" || mac == noMAC {
		return nil
	}
	for _, n := range slices.Sorted(maps.Keys(g.facts.Siblings)) {
		if strings.EqualFold(g.facts.Siblings[n], mac) {
			return &netconf.Problem{
				Code: netconf.CodeInvalid, Remedy: "give each virtual function of a PF a MAC of its own",
				Field: field, Found: fmt.Sprintf("%s, which VF %d of %s has too", mac, n, g.facts.Function.PFLink),
			}
		}
	}
	return nil
}

func (g guard) resets() *netconf.Problem {
	if !g.conf.VF.FLR || g.facts.Function.Resets {
		return nil
	}
	return &netconf.Problem{
		Code: netconf.CodeDevice, Remedy: "remove vf.flr: this virtual function cannot be reset on its own",
		Field: "vf.flr", Found: "true for " + g.pci(), Right: "a function with a file reset in its folder below /sys/bus/pci/devices",
	}
}
