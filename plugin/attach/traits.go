// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"strings"
)

// Traits are what a link takes along when it changes its namespace, and what a pod with CAP_NET_ADMIN may have changed there: a VF that
// came home promiscuous would show the next pod, and whatever that one trusts, its neighbours' traffic.
// What else a pod may change the kernel clears on a move (decisions/0013).
type Traits struct {
	Flags     string `json:"flags,omitempty"` // IFF_* but up, as "multicast promisc": words, sorted, one space between
	Alias     string `json:"alias,omitempty"`
	Group     uint32 `json:"group,omitempty"`
	TxQueue   uint32 `json:"txQueue"`             // length, in packets
	LinkMode  string `json:"linkMode,omitempty"`  // "default", "dormant"
	Broadcast string `json:"broadcast,omitempty"` // hardware address; empty where the driver makes its own, as of IPoIB
	GSO       uint32 `json:"gso,omitempty"`       // bytes that the stack puts together at most; 0: not known, as of the next
	GSOSegs   uint32 `json:"gsoSegs,omitempty"`
	GRO       uint32 `json:"gro,omitempty"`
	GSOIPv4   uint32 `json:"gsoIPv4,omitempty"`
	GROIPv4   uint32 `json:"groIPv4,omitempty"`
	XDP       string `json:"xdp,omitempty"` // how a program is attached: "native", "generic"; empty: there is none
}

// noARP is the flag that the kernel looks at when it makes the IPv6 settings of a link that is new in a namespace.
const noARP = "noarp"

func (t Traits) has(flag string) bool {
	for word := range strings.FieldsSeq(t.Flags) {
		if word == flag {
			return true
		}
	}
	return false
}

// Changes says in words what differs in to: "flags multicast promisc -> multicast, group 42 -> 0".
func (t Traits) Changes(to Traits) string {
	var out []string
	add := func(what string, from, to any) {
		if from != to {
			out = append(out, fmt.Sprintf("%s %v -> %v", what, from, to))
		}
	}
	quoted := func(s string) string { return fmt.Sprintf("%q", s) }
	add("flags", orNone(t.Flags), orNone(to.Flags))
	add("alias", quoted(t.Alias), quoted(to.Alias)) // whatever a pod wrote there
	add("group", t.Group, to.Group)
	add("transmit queue", t.TxQueue, to.TxQueue)
	add("link mode", orNone(t.LinkMode), orNone(to.LinkMode))
	add("broadcast", orNone(t.Broadcast), orNone(to.Broadcast))
	add("GSO", t.GSO, to.GSO)
	add("GSO segments", t.GSOSegs, to.GSOSegs)
	add("GRO", t.GRO, to.GRO)
	add("GSO of IPv4", t.GSOIPv4, to.GSOIPv4)
	add("GRO of IPv4", t.GROIPv4, to.GROIPv4)
	add("XDP", orNone(t.XDP), orNone(to.XDP))
	return strings.Join(out, ", ")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// wanted are the traits to give a link at home that has those of now: the ones it had. What was not known then, or is not
// known now, stays, and so does a program that replaced the node's own, which cannot be given back.
func (t Traits) wanted(now Traits) Traits {
	for _, word := range [][2]*string{{&t.LinkMode, &now.LinkMode}, {&t.Broadcast, &now.Broadcast}} {
		if *word[0] == "" || *word[1] == "" {
			*word[0] = *word[1]
		}
	}
	if t.XDP != "" {
		t.XDP = now.XDP
	}
	for _, size := range [][2]*uint32{
		{&t.GSO, &now.GSO},
		{&t.GSOSegs, &now.GSOSegs},
		{&t.GRO, &now.GRO},
		{&t.GSOIPv4, &now.GSOIPv4},
		{&t.GROIPv4, &now.GROIPv4},
	} {
		if *size[0] == 0 || *size[1] == 0 {
			*size[0] = *size[1]
		}
	}
	return t
}

// minIPv6 is the MTU below which a link has no IPv6 (IPV6_MIN_MTU).
const minIPv6 = 1280

// restoreTraits puts the traits of a link right that is home by then, with an MTU of mtu bytes. The kernel has switched duplicate
// address detection off on one that came with noarp, and leaves it so when the flag goes; so that comes first, while the flag
// tells of it.
func restoreTraits(was, now Link, home Place, mtu int) []Step {
	if was.Traits == nil || now.Traits == nil {
		return nil
	}
	to := was.Traits.wanted(*now.Traits)
	if to == *now.Traits {
		return nil
	}
	var steps []Step
	if now.Traits.has(noARP) && !to.has(noARP) && mtu >= minIPv6 {
		steps = append(steps, SetSysctl{NS: home.NS, Key: "net/ipv6/conf/" + home.Name + "/accept_dad", From: "-1", To: "1"})
	}
	return append(steps, SetTraits{Link: home, From: *now.Traits, To: to})
}
