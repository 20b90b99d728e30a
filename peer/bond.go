// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"strconv"

	"github.com/podfabric/podfabric/nad"
)

// bond has the rules of bond-cni (bond/bond.go).
func (j *judge) bond(e Entry) {
	mode := get(e.Conf, "mode")
	if mode == nil || mode.Shape == nad.String && mode.Text == "" {
		j.reject(e.Conf, e.path("mode"), `add "mode", as "active-backup": bond has no default, and the kernel refuses an unknown mode`)
	}
	j.oneOf(e, "mode", "unknown bond mode", "balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb")
	j.bondLinks(e)
	miimon := get(e.Conf, "miimon")
	if _, err := strconv.Atoi(miimon.Str()); err != nil && (miimon == nil || miimon.Shape == nad.String) {
		at := miimon
		if at == nil {
			at = e.Conf
		}
		j.reject(at, e.path("miimon"), `write "miimon" as a string with a number of milliseconds, as "100": %s, found %s (Failed to convert `+
			`bondMiimon value)`, e.path("miimon"), miimon.Show())
	}
	j.within(e, "failOverMac", 2)
	j.mtu(e)
	if mode.Str() == "802.3ad" {
		j.warn(mode, e.path("mode"), "mode 802.3ad in a pod needs a switch that speaks LACP with each "+
			"pod's VFs (bond-cni#149); active-backup works")
	}
	j.note(e.Conf, e.path("type"), "RoCE GIDs follow the active link of a bond only")
}

// bondLinks judges the interfaces of a bond.
func (j *judge) bondLinks(e Entry) {
	links := get(e.Conf, "links")
	at, most := links, 0
	if links == nil {
		at = e.Conf
	} else {
		most = len(links.Items)
	}
	if links != nil && links.Shape != nad.List {
		return
	}
	if most < 2 {
		j.reject(at, e.path("links"), "name two interfaces in links: %s, found %d (Bonding requires at least two links)", e.path("links"), most)
		return
	}
	for i, item := range links.Items {
		if item.Shape != nad.Object || get(item, "name").Str() == "" {
			field := nad.Item(e.path("links"), i)
			j.reject(item, field, `write the link as {"name": "net1"}: %s, found %s (failed to find link name)`, field, item.Show())
		}
	}
}
