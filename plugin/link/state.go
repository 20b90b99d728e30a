// SPDX-License-Identifier: Apache-2.0

package link

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// RouteLines gives every route of the namespace but those of the local table, which follow from the addresses, as sorted text;
// name turns the index of a netdev into its name.
func (c *Conn) RouteLines(name func(int) string) ([]string, error) {
	lines := []string{}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := dump(func() ([]netlink.Route, error) {
			return c.h.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
		})
		if err != nil {
			return nil, translate("list routes", err)
		}
		for _, r := range routes {
			if r.Table != unix.RT_TABLE_LOCAL {
				lines = append(lines, routeLine(r, name))
			}
		}
	}
	slices.Sort(lines)
	return lines, nil
}

func routeLine(r netlink.Route, name func(int) string) string {
	var line strings.Builder
	fmt.Fprintf(&line, "table %d type %d %s metric %d scope %d proto %d", r.Table, r.Type, r.Dst, r.Priority, r.Scope, r.Protocol)
	if r.LinkIndex != 0 {
		line.WriteString(" dev " + name(r.LinkIndex))
	}
	if r.Gw != nil {
		line.WriteString(" via " + r.Gw.String())
	}
	if r.Src != nil {
		line.WriteString(" src " + r.Src.String())
	}
	for _, hop := range r.MultiPath {
		fmt.Fprintf(&line, " hop dev %s via %s", name(hop.LinkIndex), hop.Gw)
	}
	return line.String()
}

// RuleLines gives the policy rules of the namespace in their order, as text.
func (c *Conn) RuleLines() ([]string, error) {
	lines := []string{}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		rules, err := dump(func() ([]netlink.Rule, error) { return c.h.RuleList(family) })
		if err != nil {
			return nil, translate("list rules", err)
		}
		for _, r := range rules {
			mask := ""
			if r.Mask != nil {
				mask = "/" + strconv.Itoa(int(*r.Mask))
			}
			lines = append(lines, fmt.Sprintf("family %d priority %d type %d from %v to %v iif %q oif %q mark %d%s table %d",
				family, r.Priority, r.Type, r.Src, r.Dst, r.IifName, r.OifName, r.Mark, mask, r.Table))
		}
	}
	return lines, nil
}

// Sysctls reads every per-interface setting of IPv4 and IPv6 of the namespace, by key. Those that cannot be read are left out
// (an unset stable_secret gives EIO).
func (c *Conn) Sysctls() (map[string]string, error) {
	values := map[string]string{}
	err := c.enter(func() error {
		for _, family := range []string{"ipv4", "ipv6"} {
			dir := "/proc/sys/net/" + family + "/conf"
			if err := readTree(dir, "net/"+family+"/conf", values); err != nil {
				return err
			}
		}
		return nil
	})
	return values, err
}
