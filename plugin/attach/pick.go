// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/podfabric/podfabric/netconf"
)

// loopback is the type of a link that nothing can sit on or be given away, as ip(8) prints it.
const loopback = "loopback"

// Pick finds the one link at home that a selector means. None and several are refused, and so is the link of the node's default
// route, unless it is named or the node's owner gave its device away: a pattern must not take the node off its network.
func Pick(sel netconf.Selector, n netconf.Node, links []Candidate) (Candidate, error) {
	hits := slices.DeleteFunc(slices.Clone(links), func(c Candidate) bool { return !selects(sel, c) })
	switch {
	case len(hits) == 0:
		return Candidate{}, &netconf.Problem{
			Code:   netconf.CodeTryLater,
			Remedy: "name a link that the node has; if the node has just booted, the runtime tries again by itself",
			Field:  sel.Key, Found: wanted(sel) + ", which no link of the node is", Right: near(sel, links),
		}
	case len(hits) > 1:
		return Candidate{}, &netconf.Problem{
			Code: netconf.CodeInvalid, Remedy: "say which link is meant, by its name perhaps: exactly one must fit",
			Field: sel.Key, Found: wanted(sel) + ", which fits " + list(hits), Right: "one link",
		}
	case hits[0].Type == loopback:
		return Candidate{}, &netconf.Problem{
			Code: netconf.CodeDevice, Remedy: "name a network card or a link on one: nothing can sit on the loopback, and nobody can have it",
			Field: sel.Key, Found: wanted(sel), Right: near(sel, links),
		}
	case hits[0].Default && sel.Name == "" && !n.Overrides(hits[0].Device):
		return Candidate{}, &netconf.Problem{
			Code: netconf.CodeInUse,
			Remedy: "name the link if it is really meant, for the node's default route leads through it, or list its device in " +
				"overrideGuards of " + netconf.NodePath,
			Field: sel.Key, Found: wanted(sel) + ", which is " + list(hits), Right: "a link without the default route",
		}
	}
	return hits[0], nil
}

// selects tells whether a link is one that sel means. Patterns mean PFs, not their VFs, whose names begin alike. MAC and path mean
// hardware: a VLAN and a bond have the MAC of what is below them.
func selects(sel netconf.Selector, c Candidate) bool {
	switch {
	case sel.Name != "":
		return c.Name == sel.Name || slices.Contains(c.AltNames, sel.Name)
	case !sel.PCI.IsZero():
		return c.Device.PCI == sel.PCI
	case sel.RDMA != "":
		return slices.Contains(c.RDMA, sel.RDMA)
	case len(sel.PFNames) > 0:
		return hardware(c) && !c.VF && slices.ContainsFunc(sel.PFNames, func(pattern string) bool {
			ok, err := path.Match(pattern, c.Name)
			return err == nil && ok
		})
	case sel.MAC != "":
		return hardware(c) && strings.EqualFold(c.MAC, sel.MAC)
	}
	return sel.Path != "" && hardware(c) && path.Clean(c.Path) == path.Clean(sel.Path)
}

func hardware(c Candidate) bool { return !c.Device.IsZero() }

// wanted says in words what a selector looks for.
func wanted(sel netconf.Selector) string {
	switch {
	case sel.Name != "":
		return fmt.Sprintf("%q", sel.Name)
	case !sel.PCI.IsZero():
		return "PCI device " + sel.PCI.String()
	case sel.RDMA != "":
		return "RDMA device " + sel.RDMA
	case len(sel.PFNames) > 0:
		return fmt.Sprintf("PF named as %q", sel.PFNames)
	case sel.MAC != "":
		return "MAC " + sel.MAC
	}
	return "path " + sel.Path
}

// near says what could have been meant: by name any link but a VF's, else hardware.
func near(sel netconf.Selector, links []Candidate) string {
	could := slices.DeleteFunc(slices.Clone(links), func(c Candidate) bool {
		return c.Type == loopback || c.VF || sel.Name == "" && !hardware(c)
	})
	if len(could) == 0 {
		return "a link of the node, which has none that would do"
	}
	return "one of " + list(could)
}

// most is how many links a message names: kubelet cuts long events.
const most = 8

// list names links with all that a selector may go by.
func list(links []Candidate) string {
	var out []string
	for i, c := range links {
		if i == most {
			out = append(out, fmt.Sprintf("%d more", len(links)-most))
			break
		}
		text := c.Name
		if hardware(c) {
			text += " (" + strings.Join(append([]string{c.Device.String()}, c.RDMA...), ", ") + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}
