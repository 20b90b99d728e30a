// SPDX-License-Identifier: Apache-2.0

package link

import (
	"fmt"
	"slices"
)

// Uses says in words what the namespace does with a netdev that taking it away would break, one sentence each: "it carries the
// default route", "it is a port of bridge br0", "macvlan mv0 sits on it", "it carries address 10.0.0.5/24". links are the
// namespace's. What sits on it in another namespace cannot be seen from here.
func (c *Conn) Uses(l Link, links []Link) ([]string, error) {
	var uses []string
	for _, other := range links {
		switch {
		case l.Master != 0 && other.Index == l.Master:
			uses = append(uses, fmt.Sprintf("it is a port of %s %s", other.Kind, other.Name))
		case other.Lower == l.Index && l.Lower != other.Index: // two that point at each other are a pair
			uses = append(uses, fmt.Sprintf("%s %s sits on it", other.Kind, other.Name))
		}
	}
	addrs, err := c.Addrs(l.Index)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		// An address that the kernel made up from a router's word is nobody's decision.
		if a.Scope == 0 && (!a.Dynamic || a.Prefix.Addr().Is4()) {
			uses = append(uses, "it carries address "+a.Prefix.String())
		}
	}
	if !l.Up {
		return uses, nil // the kernel drops the routes of a link that goes down
	}
	routes, err := c.Routes(l.Index)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(routes, func(r Route) bool { return r.Dst.Bits() == 0 }) {
		uses = append(uses, "it carries the default route")
	}
	return uses, nil
}
