// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/podfabric/podfabric/rdmans/pci"
)

// EthernetLink is the link layer of a RoCE port, as sysfs words it.
const EthernetLink = "Ethernet"

// Rail is one port that a pod is to compute over.
type Rail struct {
	Name      string       // for reasons: the interface in the pod
	HCA       HCA          // as the pod sees it
	LinkLayer string       // EthernetLink, or "InfiniBand", where there is no GID to choose
	Table     Table        // as a process in the pod sees it
	Want      []netip.Addr // the pod's addresses on this rail; empty: there is none
	Shared    bool         // other pods' entries are in the table or can come into it
	PF        pci.Addr     // of a VF; zero: not a VF
}

// Options are what a network's configuration asks of the hint.
type Options struct {
	Oldest       Version // that must read it right; zero: 2.21
	FailClosed   bool    // NCCL must stop rather than fall back to TCP
	TrafficClass *int    // 0 to 255; nil: say nothing
}

// Decision is what to write for a pod, and why.
type Decision struct {
	Settings []Setting
	Comments []string // why nothing, or less than one might look for, is set
	Warnings []string // one sentence each
	// NoRight says why no known setting makes NCCL pick the intended GID on every rail; empty when one does.
	NoRight string
}

// Decide gives the settings for the compute rails of one pod, in their order. A setting of GIDs is given only when Simulate,
// for every version from the oldest on, picks the intended entry on every rail with it, over the tables as they are and, on
// shared ports, as other pods can make them. Where none does it gives no such setting: a wrong one makes NCCL use another
// pod's address or fall back to TCP, both without a word.
func Decide(rails []Rail, opts Options) Decision {
	if opts.Oldest == (Version{}) {
		opts.Oldest = Version{Major: 2, Minor: 21}
	}
	if len(rails) == 0 {
		return Decision{Comments: []string{"no attachment of this pod is a compute rail with an RDMA device, so nothing is set"}}
	}
	var d Decision
	hcas := make([]HCA, len(rails))
	for i, r := range rails {
		hcas[i] = r.HCA
	}
	list, err := HCAList(hcas)
	if err != nil {
		d.NoRight = fmt.Sprintf("the rails cannot be named to NCCL: %v", err)
		d.giveUp()
		return d
	}
	d.set(VarHCA, list, "exactly the ports of this pod's compute rails, in rail order")
	d.gids(rails, opts.Oldest)
	if opts.FailClosed {
		d.set(VarNet, "IB", "failClosed: NCCL stops rather than use TCP when it finds no RDMA device")
	}
	if opts.TrafficClass != nil {
		d.set(VarTC, strconv.Itoa(*opts.TrafficClass), "trafficClass of the network")
	}
	d.split(rails)
	return d
}

func (d *Decision) set(name, value, reason string) {
	d.Settings = append(d.Settings, Setting{name, value, reason})
}

// giveUp turns NoRight into what a reader of the files sees.
func (d *Decision) giveUp() {
	d.Comments = append(d.Comments, "no GID setting: "+d.NoRight)
	d.Warnings = append(d.Warnings, d.NoRight)
}

// split keeps NCCL from making one NIC of two functions of one PF: it would plan with twice the wire's speed, and the peer
// may have another number of them. The pair is what all versions take: from 2.24 the first counts and the second alone
// would end init, before that the second counts.
func (d *Decision) split(rails []Rail) {
	seen := map[pci.Addr]string{}
	for _, r := range rails {
		first, twice := seen[r.PF]
		if twice && !r.PF.IsZero() {
			reason := fmt.Sprintf("%s and %s are functions of one PF, %s, and must not be fused into one NIC", first, r.Name, r.PF)
			d.set(VarMergeLevel, "LOC", reason)
			d.set(VarMergeNICs, "0", "the same for versions before 2.24")
			d.Warnings = append(d.Warnings, fmt.Sprintf("%s and %s share the wire of PF %s", first, r.Name, r.PF))
			return
		}
		seen[r.PF] = r.Name
	}
}

// gids adds the setting that makes NCCL pick the right entries, if one is needed and one exists.
func (d *Decision) gids(rails []Rail, oldest Version) {
	rails = d.withGIDs(rails)
	if len(rails) == 0 {
		return
	}
	for _, r := range rails {
		if len(r.intended(false)) == 0 && len(r.intended(true)) == 0 {
			d.NoRight = fmt.Sprintf("%s has no RoCE v2 GID of the pod's addresses on %s", r.Name, r.HCA)
			d.giveUp()
			return
		}
	}
	settings, why := propose(rails, oldest)
	if why == "" {
		why = disagreement(rails, oldest, settings)
	}
	if why != "" {
		d.NoRight = why
		d.giveUp()
		return
	}
	if len(settings) == 0 {
		d.Comments = append(d.Comments, fmt.Sprintf("no GID setting: NCCL %s and newer picks the right entry by itself", oldest))
	}
	d.Settings = append(d.Settings, settings...)
	if settings != nil && settings[0].Name == VarGIDIndex && rails[0].Shared {
		d.Warnings = append(d.Warnings, "the GID index holds until the port's table is rebuilt; NCCL 2.21 needs no index")
	}
}

// withGIDs drops the rails on which there is no GID to choose.
func (d *Decision) withGIDs(rails []Rail) []Rail {
	var eth []Rail
	for _, r := range rails {
		switch {
		case r.LinkLayer != EthernetLink:
			d.Comments = append(d.Comments, fmt.Sprintf("%s is %s, where no GID is chosen", r.Name, r.LinkLayer))
		case len(r.Want) == 0:
			why := r.Name + " has no address, so there is no GID that NCCL should pick on it"
			d.Comments = append(d.Comments, why)
			d.Warnings = append(d.Warnings, why)
		default:
			eth = append(eth, r)
		}
	}
	return eth
}

// intended lists the indices that are right on a rail in one family, ascending as the table is.
func (r Rail) intended(six bool) []int {
	var list []int
	for _, g := range r.Table.List {
		for _, w := range r.Want {
			if g.Type == RoCEv2 && w.Unmap() == g.Addr.Unmap() && w.Unmap().Is6() == six {
				list = append(list, g.Index)
			}
		}
	}
	return list
}

// propose gives the settings that the rails call for, or in words why there are none. Neither: none is needed.
func propose(rails []Rail, oldest Version) ([]Setting, string) {
	four, six, shared := true, true, 0
	for _, r := range rails {
		four = four && len(r.intended(false)) > 0
		six = six && len(r.intended(true)) > 0
		if r.Shared {
			shared++
		}
	}
	switch {
	case shared > 0 && len(rails) > 1:
		return nil, fmt.Sprintf("%s shared by pods: %d rails need %d address ranges and NCCL takes one; use VFs, whose tables are their own",
			strings.Join(sharedNames(rails), ", "), len(rails), len(rails))
	case oldest.Before(2, 21), !four && !six:
		return oneIndex(rails, oldest)
	case shared > 0:
		return oneRange(rails[0], !four), ""
	case !four:
		return []Setting{{VarAddrFamily, "AF_INET6", "the rails have IPv6 addresses only, and NCCL looks for IPv4"}}, ""
	}
	return nil, ""
}

func sharedNames(rails []Rail) []string {
	var names []string
	for _, r := range rails {
		if r.Shared {
			names = append(names, r.HCA.String())
		}
	}
	return names
}

// oneIndex: the only setting that versions before 2.21 know, and the only one for rails of different families.
func oneIndex(rails []Rail, oldest Version) ([]Setting, string) {
	cause := fmt.Sprintf("NCCL %s knows only one index for all devices", oldest)
	if !oldest.Before(2, 21) {
		cause = "the rails have addresses of different families"
	}
	var each []string
	for _, r := range rails {
		each = append(each, fmt.Sprintf("%s %v", r.HCA, append(r.intended(false), r.intended(true)...)))
	}
	for _, six := range []bool{false, true} {
		for _, index := range rails[0].intended(six) {
			if everywhere(rails, index) {
				return []Setting{{VarGIDIndex, strconv.Itoa(index), cause + ", and it is equal on all rails"}}, ""
			}
		}
	}
	return nil, cause + ", and no index is right on all rails: " + strings.Join(each, ", ")
}

func everywhere(rails []Rail, index int) bool {
	for _, r := range rails {
		if !r.right(index) {
			return false
		}
	}
	return true
}

// right tells whether an index holds an intended entry.
func (r Rail) right(index int) bool {
	return slices.Contains(r.intended(false), index) || slices.Contains(r.intended(true), index)
}

// oneRange names the pod's exact address: whatever other pods put into the table lies outside.
func oneRange(r Rail, six bool) []Setting {
	var addr netip.Addr
	for _, g := range r.Table.List {
		if g.Index == r.intended(six)[0] {
			addr = g.Addr.Unmap()
		}
	}
	value := netip.PrefixFrom(addr, addr.BitLen()).String()
	list := []Setting{{VarAddrRange, value, "the table of " + r.HCA.String() + " is shared by pods, and this is the pod's own address"}}
	if six {
		list = append(list, Setting{VarAddrFamily, "AF_INET6", "the range is IPv6"})
	}
	return list
}
