// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"slices"
)

// Restore gives the steps from what is seen now to what was before. It is the way back of rollback, DEL, GC, healing and
// repair, and complete on its own: it asks nothing of how far an ADD or an earlier Restore came. before may come from a
// record, so the names taken at home are now's. What is away is not in the steps; Away tells.
//
// RDMA devices go home before their netdev: a netdev that leaves takes its GIDs with it and kills a soft device on it.
func Restore(before, now Facts) []Step {
	var steps []Step
	if now.Soft != nil && now.Soft.NS != Elsewhere {
		steps = append(steps, DelSoftRoCE{Name: now.Soft.Name})
	}
	if !now.Function.Exists {
		return steps
	}
	steps = append(steps, restoreRDMA(before, now)...)
	return append(steps, restoreLink(before, now)...)
}

// restoreRDMA brings home whatever device the function has in our pod; only one that is known gets its old name.
func restoreRDMA(before, now Facts) []Step {
	dev := now.RDMA
	if dev == nil || dev.NS == Elsewhere {
		return nil
	}
	want := dev.Name
	if before.RDMA != nil && !another(before, now) && !slices.Contains(now.HostRDMA, before.RDMA.Name) {
		want = before.RDMA.Name
	}
	var steps []Step
	name := dev.Name
	if dev.NS == Pod {
		if slices.Contains(now.HostRDMA, name) {
			// The kernel refuses a move onto a taken name, so it gets its new one in the pod.
			if want == name {
				want = free(now.HostRDMA, fmt.Sprintf("ibdev%d", dev.Index), "ibdev%d")
			}
			steps = append(steps, RenameRDMA{Index: dev.Index, NS: Pod, From: name, To: want})
			name = want
		}
		steps = append(steps, MoveRDMA{Index: dev.Index, GUID: dev.NodeGUID, Name: name, From: Pod, To: Host})
	}
	if name != want {
		steps = append(steps, RenameRDMA{Index: dev.Index, NS: Host, From: name, To: want})
	}
	return steps
}

func restoreLink(before, now Facts) []Step {
	link, was := now.Link, before.Link
	switch {
	case link == nil, link.NS == Elsewhere, link.NS == Host && (was == nil || another(before, now)):
		return nil
	case was == nil:
		was = &Link{} // what it was is lost; that it was not in the pod is certain
	}
	var steps []Step
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
	if mac {
		steps = append(steps, SetMAC{Link: home, From: link.MAC, To: was.MAC})
	}
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

// another tells whether the function's RDMA device is not the one of before: the function was made anew, or its driver bound
// again, and what was recorded is of a device that is no more [review.md 29]. A device in a namespace that cannot be seen
// shows neither index nor GUID, and is taken for the same.
func another(before, now Facts) bool {
	was, is := before.RDMA, now.RDMA
	if was == nil || is == nil || is.NS == Elsewhere {
		return false
	}
	known := was.NodeGUID != "" && is.NodeGUID != ""
	return was.Index != is.Index || known && was.NodeGUID != is.NodeGUID
}

// Away names, in words, what of before is neither at home nor in the pod: what the kernel is still bringing home from a
// namespace that died, or what a process elsewhere holds. Empty: there is nothing to wait for. A function that is gone, has
// lost its driver or got another one has nothing left that could come.
func Away(before, now Facts) []string {
	var out []string
	if now.Soft != nil && now.Soft.NS == Elsewhere {
		out = append(out, "soft RDMA device "+now.Soft.Name)
	}
	if !now.Function.Exists || now.Function.Driver != before.Function.Driver {
		return out
	}
	if before.RDMA != nil && now.Mode != NoRDMA && (now.RDMA == nil || now.RDMA.NS == Elsewhere) {
		// While the kernel moves a device, its uverbs number is gone for a moment and with it all that can be seen.
		out = append(out, fmt.Sprintf("RDMA device %s (index %d)", before.RDMA.Name, before.RDMA.Index))
	}
	if before.Link != nil && (now.Link == nil || now.Link.NS == Elsewhere) {
		out = append(out, "netdev "+before.Link.Name+" of "+now.Function.ID.String())
	}
	return out
}

// Held tells whether the netdev of before may still be in use with the addresses that it has: it is in the pod, or in a namespace
// that cannot be seen.
func Held(before, now Facts) bool {
	if !now.Function.Exists || now.Function.Driver != before.Function.Driver || before.Link == nil {
		return now.Link != nil && now.Link.NS == Pod
	}
	return now.Link == nil || now.Link.NS != Host
}

// Notes are warnings about what Restore left otherwise than before; now are the facts after its steps.
func Notes(before, now Facts) []string {
	pci := before.Function.ID.String()
	if !now.Function.Exists {
		if before.Link == nil {
			return nil
		}
		return []string{"function " + pci + " is gone; there was nothing to restore"}
	}
	if another(before, now) {
		return []string{fmt.Sprintf("function %s has another RDMA device now (index %d, was %d); its settings were left as they are",
			pci, now.RDMA.Index, before.RDMA.Index)}
	}
	var out []string
	if was, is := before.Link, now.Link; was != nil && is != nil && is.NS == Host && was.NS == Host {
		if is.Name != was.Name {
			out = append(out, kept("netdev of "+pci, is.Name, was.Name, now.HostLinks))
		}
		if is.MTU != was.MTU && homeMTU(*was, before.Function, now.Function) == 0 {
			out = append(out, fmt.Sprintf("netdev %s of %s has MTU %d, not %d as before: its PF has %d now",
				is.Name, pci, is.MTU, was.MTU, now.Function.PFMTU))
		}
	}
	if was, is := before.RDMA, now.RDMA; was != nil && is != nil && is.NS == Host && is.Name != was.Name {
		out = append(out, kept("RDMA device of "+pci, is.Name, was.Name, now.HostRDMA))
	}
	return out
}

func kept(what, name, home string, taken []string) string {
	if slices.Contains(taken, home) {
		return fmt.Sprintf("%s keeps the name %s: its own, %s, is taken by another device", what, name, home)
	}
	return fmt.Sprintf("%s is called %s, not %s as before", what, name, home)
}
