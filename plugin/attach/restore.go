// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"slices"

	"github.com/podfabric/podfabric/netconf"
)

// Restore gives the steps from what is seen now to what was before. It is the way back of rollback, DEL, GC, healing and
// repair, and complete on its own: it asks nothing of how far an ADD or an earlier Restore came. before may come from a
// record, so the names taken at home are now's. What is away is not in the steps; Away tells.
//
// RDMA devices go home before their netdev: a netdev that leaves takes its GIDs with it and kills a soft device on it.
//
// The facts before tell what is the attachment's: with a master, the link that was made and nothing of the function's; with the
// link in the pod already, which another plugin brought there, the RDMA device alone.
func Restore(before, now Facts) []Step {
	var steps []Step
	if now.Soft != nil && now.Soft.NS != Elsewhere {
		steps = append(steps, DelSoftRoCE{Name: now.Soft.Name})
	}
	switch {
	case before.Master != nil:
		return append(steps, restoreOwn(before, now)...)
	case !now.Function.Exists:
		return steps
	case chained(before):
		if before.RDMA == nil || before.RDMA.NS != Host {
			return steps // whoever brought it into the pod takes it home
		}
		return append(steps, restoreRDMA(before, now)...)
	}
	steps = append(steps, restoreRDMA(before, now)...)
	return append(steps, restoreLink(before, now)...)
}

// chained tells whether facts before an attachment are those of an interface that another plugin made.
func chained(before Facts) bool { return before.Link != nil && before.Link.NS == Pod }

// restoreOwn removes the link that was made on a master, wherever it was seen. With the pod's namespace it dies by itself.
func restoreOwn(before, now Facts) []Step {
	if chained(before) || now.Link == nil || now.Link.NS != Pod && (now.Link.NS != Elsewhere || now.LinkNS.IsZero()) {
		return nil
	}
	s := DelLink{
		Kind: now.Link.Kind, Master: Lower{Name: before.Master.Name, Index: before.Master.Index}, Link: now.Link.Place, MAC: now.Link.MAC,
		Index: now.Link.Index, In: now.LinkNS,
	}
	if s.Kind == string(netconf.KindIPVlan) {
		s.MAC = "" // its master's, which every ipvlan on it has
	}
	return []Step{s}
}

// restoreRDMA brings home whatever device the function has in our pod; only one that is known gets its old name.
func restoreRDMA(before, now Facts) []Step {
	dev := now.RDMA
	if dev == nil || dev.NS == Elsewhere {
		return nil
	}
	want := dev.Name
	if before.RDMA != nil && before.RDMA.Name != "" && !another(before, now) && !slices.Contains(now.HostRDMA, before.RDMA.Name) {
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

// another tells whether the function is not the one of before, or its RDMA device is not: it was made anew, or its driver bound
// again, and what was recorded is of a device that is no more [review.md 29]. A device in a namespace that cannot be seen
// shows neither index nor GUID, and is taken for the same.
func another(before, now Facts) bool {
	if Anew(before.Function, now.Function) {
		return true
	}
	was, is := before.RDMA, now.RDMA
	if was == nil || is == nil || is.NS == Elsewhere {
		return false
	}
	known := was.NodeGUID != "" && is.NodeGUID != ""
	return was.Index != is.Index || known && was.NodeGUID != is.NodeGUID
}

// Anew tells whether a function came to the address of another one that is no more, as after two writes to sriov_numvfs. An older
// program's record does not know.
func Anew(was, is Function) bool { return was.Inode != 0 && is.Inode != 0 && was.Inode != is.Inode }
