// SPDX-License-Identifier: Apache-2.0

package netconf_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/netconf"
)

// each joins n texts made by f, which is given their number in two parts.
func each(n int, f string) string {
	list := make([]string, 0, n)
	for i := range n {
		list = append(list, fmt.Sprintf(f, i/256, i%256))
	}
	return strings.Join(list, ",")
}

// TestParseRefusesSize: a network at each limit is taken, one above is refused, and DEL reads either.
func TestParseRefusesSize(t *testing.T) {
	t.Parallel()
	static := func(n, routes int) string {
		return vf(`,"ipam":{"type":"static","addresses":[` + each(n, `{"address":"10.%d.%d.1/24"}`) + `],"routes":[` + each(routes, `{"dst":"11.%d.%d.0/24"}`) + `]}`)
	}
	ranges := func(sets, alternatives int) string {
		set := make([]string, 0, sets)
		for i := range sets {
			set = append(set, "["+each(alternatives, fmt.Sprintf(`{"subnet":"%d.%%d.%%d.0/24","scope":"node"}`, 10+i))+"]")
		}
		return vf(`,"ipam":{"type":"range","ranges":[` + strings.Join(set, ",") + `]}`)
	}
	text := func(n int) string {
		short := vf(`,"strange":""`)
		return vf(`,"strange":"` + strings.Repeat("a", n-len(short)) + `"`)
	}
	for name, test := range map[string]struct{ most, more, field string }{
		"bytes":     {text(256 << 10), text(256<<10 + 1), "network configuration"},
		"values":    {vf(`,"strange":[` + each(1600, "[%d,%d]") + `]`), vf(`,"strange":[` + each(1700, "[%d,%d]") + `]`), "network configuration"},
		"addresses": {static(32, 0), static(33, 0), "ipam.addresses"},
		"routes":    {static(1, 1000), static(1, 1001), "ipam.routes"},
		"sets":      {ranges(32, 1), ranges(33, 1), "ipam.ranges"},
		"ranges":    {ranges(1, 1000), ranges(1, 1001), "ipam.ranges[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := netconf.Parse(raw(test.most), netconf.Node{}); err != nil {
				t.Errorf("at the limit: %v", err)
			}
			_, err := netconf.Parse(raw(test.more), netconf.Node{})
			if p := problem(t, err); p.Code != netconf.CodeInvalid || p.Field != test.field || !strings.Contains(p.Remedy, "smaller") {
				t.Errorf("above it: %v", p)
			}
			if _, err = netconf.ParseTeardown(raw(test.more)); err != nil {
				t.Errorf("DEL: %v", err)
			}
		})
	}
}

// TestParseWarnsOfSoMuch: a thousand unknown keys are not a thousand lines in every log and hint.
func TestParseWarnsOfSoMuch(t *testing.T) {
	t.Parallel()
	keys := make([]string, 0, 1000)
	for i := range 1000 {
		keys = append(keys, fmt.Sprintf(`"strange%d":1`, i))
	}
	c, err := netconf.Parse(raw(vf(","+strings.Join(keys, ","))), netconf.Node{})
	if err != nil || len(c.Warnings) != 51 || !strings.Contains(c.Warnings[50], "more") {
		t.Errorf("%d warnings, %v", len(c.Warnings), err)
	}
}
