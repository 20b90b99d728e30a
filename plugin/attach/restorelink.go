// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"cmp"
	"fmt"
	"slices"
)

// restoreLink removes what the pod put on the netdev and brings that home, then the settings of a VF back and the netdev up, in
// this order: a pod that still holds the netdev must not lose its VLAN first.
func restoreLink(before, now Facts) []Step {
	link, was := now.Link, before.Link
	switch {
	case link == nil, link.NS == Elsewhere, link.NS == Host && (was == nil || another(before, now)):
		return restoreVF(before, now)
	case was == nil:
		was = &Link{} // what it was is lost; that it was not in the pod is certain
	}
	steps := dropUppers(*was, *link)
	home := Place{NS: Host, Name: homeName(*was, now)}
	up := link.Up && link.NS == Host // a move takes a link down
	mac := was.MAC != "" && link.MAC != was.MAC
	if up && (link.Name != home.Name || mac) {
		// Not every kernel renames a link that is up, nor lets every driver change its MAC.
		steps = append(steps, SetUp{Link: link.Place, From: true, To: false})
		up = false
	}
	for _, name := range strange(*was, now) {
		steps = append(steps, SetAltName{Link: link.Place, Name: name, From: true})
	}
	mtu := homeMTU(*was, before.Function, now.Function)
	if link.Place != home || mtu != 0 && link.MTU != mtu {
		steps = append(steps, MoveLink{Device: now.Function.ID, From: link.Place, To: home, MTU: [2]int{link.MTU, mtu}})
	}
	steps = append(steps, restoreTraits(*was, *link, home, cmp.Or(mtu, link.MTU))...)
	vf, admin := parted(restoreVF(before, now))
	steps = append(steps, vf...)
	if mac {
		admin = restoreMACs(admin, SetMAC{Link: home, From: link.MAC, To: was.MAC})
	}
	steps = append(steps, admin...)
	for _, name := range was.AltNames {
		if !slices.Contains(link.AltNames, name) && !slices.Contains(now.HostLinks, name) {
			steps = append(steps, SetAltName{Link: home, Name: name, To: true})
		}
	}
	if up != was.Up {
		steps = append(steps, SetUp{Link: home, From: up, To: was.Up})
	}
	return steps
}

// dropUppers removes the links that a pod has put on its netdev. A move leaves them on it, and while the pod's namespace lives they take
// part in what the next pod does with the netdev, behind its VLAN and with its trust.
func dropUppers(was, now Link) []Step {
	var steps []Step
	for _, u := range now.Uppers {
		if !slices.ContainsFunc(was.Uppers, func(w Upper) bool { return w.Index == u.Index && w.Kind == u.Kind }) {
			steps = append(steps, DelLink{Kind: u.Kind, Link: Place{NS: Pod, Name: u.Name}, Index: u.Index})
		}
	}
	return steps
}

// homeName is the name to give a link at home: the one it had; if another device has that now, the one it has; and for one still
// in the pod, whose name may be taken too, the lowest devN, as the kernel itself does it.
func homeName(was Link, now Facts) string {
	name, taken := now.Link.Name, now.HostLinks
	if now.Link.NS == Host {
		ours := strange(was, now)
		taken = slices.DeleteFunc(slices.Clone(taken), func(n string) bool { return slices.Contains(ours, n) })
	}
	switch {
	case was.NS == Host && (now.Link.Place == was.Place || !slices.Contains(taken, was.Name)):
		return was.Name
	case now.Link.NS == Host || !slices.Contains(taken, name):
		return name
	}
	return free(taken, "dev0", "dev%d")
}

// strange are the alternative names that a link must not bring home: those it did not have there, which a pod gave it, since the
// kernel refuses to move a link that has a name of another one, and to rename it to one that is its own already; and those
// that another link at home has now.
func strange(was Link, now Facts) []string {
	return slices.DeleteFunc(slices.Clone(now.Link.AltNames), func(name string) bool {
		return slices.Contains(was.AltNames, name) && (now.Link.NS == Host || !slices.Contains(now.HostLinks, name))
	})
}

// homeMTU is the MTU to go home with, 0 to leave it. Where the PF's was lowered meanwhile, the driver may refuse the old one, and
// with it the whole way home, for ever.
func homeMTU(was Link, before, now Function) int {
	if now.PFMTU != 0 && now.PFMTU < before.PFMTU && was.MTU > now.PFMTU {
		return 0
	}
	return was.MTU
}

// free gives first, or the first name of the pattern that is not taken.
func free(taken []string, first, pattern string) string {
	name := first
	for n := 0; slices.Contains(taken, name); n++ {
		name = fmt.Sprintf(pattern, n)
	}
	return name
}
