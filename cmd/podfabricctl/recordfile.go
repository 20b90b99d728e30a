// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"

	"github.com/podfabric/podfabric/plugin/kernel"
	"github.com/podfabric/podfabric/rdmans"
)

// netlinkFacts is the file netlink.json.
type netlinkFacts struct {
	Mode  string          `json:"mode"` // empty: no RDMA subsystem
	Links []netlinkLink   `json:"links"`
	RDMA  []rdmans.Device `json:"rdma"`
}

type netlinkLink struct {
	Name   string `json:"name"`
	MAC    string `json:"mac"`
	MTU    int    `json:"mtu"` // bytes
	Up     bool   `json:"up"`
	Parent string `json:"parent"` // PCI address
}

// netlink takes the devices of hardware out of a snapshot.
func (t *tape) netlink(snap kernel.Snapshot) netlinkFacts {
	host := snap.NetNS[kernel.HostNS]
	f := netlinkFacts{Mode: snap.Mode, Links: []netlinkLink{}, RDMA: []rdmans.Device{}}
	for name, l := range host.Links {
		if !l.Parent.IsZero() {
			f.Links = append(f.Links, netlinkLink{
				Name: t.mask.names(name), MAC: t.mask.mac(l.MAC), MTU: l.MTU, Up: l.Up, Parent: l.Parent.String(),
			})
		}
	}
	for _, d := range host.RDMA {
		d.NodeGUID = t.mask.guid(d.NodeGUID)
		f.RDMA = append(f.RDMA, d)
	}
	slices.SortFunc(f.Links, func(a, b netlinkLink) int { return strings.Compare(a.Parent+a.Name, b.Parent+b.Name) })
	slices.SortFunc(f.RDMA, func(a, b rdmans.Device) int { return int(a.Index) - int(b.Index) })
	return f
}

// archive puts all into one text.
func (t *tape) archive(facts []byte) []byte {
	a := &txtar.Archive{Comment: []byte("Recorded by podfabricctl record, version " + version + ". Addresses are replaced, PCI addresses and names are not.\n")}
	var links strings.Builder
	for _, name := range sorted(t.links) {
		fmt.Fprintf(&links, "%s -> %s\n", t.shown(name), t.shown(t.links[name]))
	}
	a.Files = append(a.Files, txtar.File{Name: "symlinks", Data: []byte(links.String())}, txtar.File{Name: "netlink.json", Data: append(facts, '\n')})
	for _, name := range sorted(t.files) {
		a.Files = append(a.Files, txtar.File{Name: t.shown(name), Data: []byte(t.shown(t.files[name]) + "\n")})
	}
	return txtar.Format(a)
}

// shown gives a name or a text as it stands in the archive: a pod may have renamed an interface that came home since, and a text
// that begins like the head of a file would be one.
func (t *tape) shown(s string) string {
	s = printable(t.mask.names(s))
	if rest, found := strings.CutPrefix(s, "-- "); found {
		return `\u002d- ` + rest
	}
	return s
}

func sorted(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
