// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"strings"
	"syscall"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/podfabric/podfabric/ipam/lease"
	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/delegate"
	"github.com/podfabric/podfabric/plugin/kernel"
	"github.com/podfabric/podfabric/plugin/link"
	"github.com/podfabric/podfabric/plugin/lock"
	"github.com/podfabric/podfabric/plugin/printable"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/plugin/statedir"
	"github.com/podfabric/podfabric/rdmans"
)

// remedies give a code and a first sentence to errors that carry none of their own. The first that fits is taken.
func remedies() []struct {
	is     error
	code   uint
	remedy string
} {
	return []struct {
		is     error
		code   uint
		remedy string
	}{
		{attach.ErrOwnNetNS, netconf.CodeNetNS, "give CNI_NETNS the path of the pod's network namespace, not of the plugin's own"},
		{attach.ErrNoNetNS, netconf.CodeNetNS, "give CNI_NETNS the path of a living network namespace"},
		{record.ErrUnwritable, netconf.CodeIO, "make the state folder writable for root, and see that its file system is not full"},
		{lease.ErrUnwritable, netconf.CodeIO, "make the state folder writable for root, and see that its file system is not full"},
		{syscall.ENOSPC, netconf.CodeIO, "free space or inodes on the file system of the state folder"},
		{syscall.EROFS, netconf.CodeIO, "mount the file system of the state folder read-write"},
		{syscall.EIO, netconf.CodeIO, "look at the file system or the device that the details name: it does not answer"},
		{syscall.EMFILE, netconf.CodeIO, "raise the limit of open files of the container runtime"},
		{syscall.ENFILE, netconf.CodeIO, "raise the node's limit of open files: sysctl fs.file-max"},
		{record.ErrUnreadable, netconf.CodeIO, "look at the file that the details name, and remove it if it is not podfabric's"},
		{record.ErrClaimed, netconf.CodeTryLater, "delete the pod that has the device, or ask for another device"},
		{syscall.EADDRINUSE, netconf.CodeInUse, "give this attachment another MAC: another interface on the same master has it"},
		{link.ErrNameTaken, netconf.CodeNameTaken, "give this attachment another interface name: the pod has one of that name"},
		{link.ErrBusy, netconf.CodeInUse, "use another master or another mode: what the details name is in use in another way"},
		{link.ErrUnsupported, netconf.CodeDevice, "leave out the setting that the details name: the driver does not know it"},
		{kernel.ErrNotTaken, netconf.CodeDevice, "leave out the setting that the details name: the driver took it and did not do it"},
		{link.ErrRefused, netconf.CodeInvalid, "correct the value that the details name: the kernel refuses it"},
		{rdmans.ErrShared, netconf.CodeMode, "run podfabricctl mode set exclusive on the node, or set rdma.mode to share"},
		{rdmans.ErrUnsupported, netconf.CodeDevice, "use a device whose driver can do it, or set rdma.mode to off"},
		{rdmans.ErrNoRDMA, netconf.CodeNoRDMA, "load ib_core and the device's RDMA driver, or set rdma.mode to off"},
		{lock.ErrHeld, netconf.CodeTryLater, "wait for the other call to end, or end it; the runtime tries again by itself"},
		{delegate.ErrTimeout, netconf.CodeTryLater, "see why the address management plugin does not answer; the runtime tries again by itself"},
		{delegate.ErrNotFound, netconf.CodeDelegate, "install the address management plugin that ipam.type names into a folder of CNI_PATH"},
		{delegate.ErrNoIPs, netconf.CodeDelegate, "look at the address management plugin's configuration: it gave no address"},
		{delegate.ErrOutput, netconf.CodeDelegate, "look at the address management plugin that ipam.type names: what it printed is no CNI answer"},
		{attach.ErrConflict, netconf.CodeTryLater, "let the runtime try again: somebody else changed the device or its link meanwhile, as the details tell"},
		{context.DeadlineExceeded, netconf.CodeTryLater, "let the runtime try again; raise deadline in " + netconf.NodePath + " if this recurs"},
	}
}

// Answer turns any error into what a CNI caller reads: a code of the specification or of docs/errors.md, the remedy first.
func Answer(err error) *types.Error {
	if err == nil {
		return nil
	}
	if problem := (*netconf.Problem)(nil); errors.As(err, &problem) {
		// What was joined to the problem, such as an undo that failed, must not be lost.
		details := problem.Details()
		if rest := err.Error(); rest != problem.Error() {
			details = rest
		}
		return answer(problem.Code, problem.Remedy, details)
	}
	if failed := (*delegate.Error)(nil); errors.As(err, &failed) {
		code := failed.Code
		if code == 0 {
			code = netconf.CodeDelegate
		}
		return answer(code, "look at the address management plugin "+failed.Plugin, err.Error())
	}
	if disk := (*statedir.UnwritableError)(nil); errors.As(err, &disk) {
		return answer(netconf.CodeIO, disk.Remedy, strings.Replace(err.Error(), ": "+disk.Remedy, "", 1)) // said once is enough
	}
	if unreadable := (*record.UnreadableError)(nil); errors.As(err, &unreadable) {
		return answer(netconf.CodeIO, unreadable.Remedy(), err.Error())
	}
	for _, r := range remedies() {
		if errors.Is(err, r.is) {
			return answer(r.code, r.remedy, err.Error())
		}
	}
	return answer(netconf.CodeInternal, "look at the details and at the plugin's log; podfabricctl show and repair tell what is left", err.Error())
}

func answer(code uint, msg, details string) *types.Error {
	return types.NewError(code, harmless(msg), harmless(details))
}

// enoent is the text by which Multus takes a failed DEL as done (cni-anchors.md §1.6).
const enoent = "no such file or directory"

// harmless keeps that text from passing, and what does not print. Every place that makes a system call translates the one
// already, and netconf quotes what it found; but names of links and processes may come from a pod. This is the last gate.
func harmless(text string) string {
	text = strings.ReplaceAll(text, "N"+enoent[1:], enoent) // as strerror words it
	return printable.Text(strings.ReplaceAll(strings.ReplaceAll(text, enoent, "it does not exist"), "\n", "; "))
}
