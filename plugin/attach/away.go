// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"slices"
)

// Away names, in words, what of before is neither at home nor in the pod: what the kernel is still bringing home from a
// namespace that died, or what a process elsewhere holds; and a PF that has to be asked. Empty: there is nothing to wait for. A function that is gone, was
// made anew, has lost its driver or got another one has nothing left that could come.
func Away(before, now Facts) []string {
	var out []string
	if now.Soft != nil && now.Soft.NS == Elsewhere {
		out = append(out, "soft RDMA device "+now.Soft.Name)
	}
	if before.Master == nil && Anew(before.Function, now.Function) {
		return out
	}
	if before.VF != nil && now.VF == nil && now.Function.VF {
		// A VLAN that stays would be the next pod's.
		out = append(out, fmt.Sprintf("PF %s, through which the settings of %s are put back", before.Function.PF, now.Function.ID))
	}
	if before.Master != nil && !chained(before) && now.Link != nil && now.Link.NS == Elsewhere {
		out = append(out, now.Link.Kind+" on "+before.Master.Name)
	}
	if before.Master != nil || !now.Function.Exists || now.Function.Driver != before.Function.Driver {
		return out // a link on a master that is seen nowhere died with its namespace
	}
	if chained(before) && (before.RDMA == nil || before.RDMA.NS != Host) {
		return out
	}
	if before.RDMA != nil && now.Mode != NoRDMA && (now.RDMA == nil || now.RDMA.NS == Elsewhere) {
		// While the kernel moves a device, its uverbs number is gone for a moment and with it all that can be seen.
		out = append(out, fmt.Sprintf("RDMA device %s (index %d)", before.RDMA.Name, before.RDMA.Index))
	}
	if before.Link != nil && !chained(before) && (now.Link == nil || now.Link.NS == Elsewhere) {
		out = append(out, "netdev "+before.Link.Name+" of "+now.Function.ID.String())
	}
	return out
}

// Held tells whether the netdev of before may still be in use with the addresses that it has: it is in the pod, or in a namespace
// that cannot be seen. Addresses of a chained attachment are none of its own.
func Held(before, now Facts) bool {
	if chained(before) {
		return false
	}
	if before.Master != nil {
		return now.Link != nil && now.Link.NS != Host
	}
	if !now.Function.Exists || Anew(before.Function, now.Function) || now.Function.Driver != before.Function.Driver || before.Link == nil {
		return now.Link != nil && now.Link.NS == Pod
	}
	return now.Link == nil || now.Link.NS != Host
}

// Notes are warnings about what Restore left otherwise than before; now are the facts after its steps.
func Notes(before, now Facts) []string {
	pci := before.Function.ID.String()
	if before.Master != nil || before.Function.ID.IsZero() {
		return nil // nothing was taken from home
	}
	if !now.Function.Exists {
		return []string{"function " + pci + " is gone; there was nothing to restore"}
	}
	if Anew(before.Function, now.Function) {
		return []string{fmt.Sprintf("function %s was made anew since; its settings were left as they are", pci)}
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
