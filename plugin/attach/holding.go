// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/podfabric/podfabric/rdmans/bus"
)

// Holding says where a device is that is neither at home nor in the pod, and who keeps it there.
type Holding struct {
	What string // "netdev net1 of 0000:3b:00.2", "RDMA device mlx5_3"
	// NS is the namespace that has it, with a path by which it can be opened as long as its holder lives, if there is one; zero:
	// none that can be seen. The kernel may be taking it apart.
	NS NetNS
	// By are who keeps NS alive: "sleep (pid 71)" for a process in it, "sleep (pid 71, descriptor 5)", "sleep (pid 71,
	// socket 6)", "mount /run/netns/blue".
	By []string
	// Living: a process is in NS.
	Living bool
}

// Astray is a function of which something is in a namespace that is not the host's.
type Astray struct {
	Device bus.ID
	Held   []Holding
}

// Interface is a link in a namespace that is not the host's, whatever made it.
type Interface struct {
	Name  string       // "net1"
	MAC   string       // aa:bb:cc:dd:ee:ff
	Addrs []netip.Addr // of every scope
	Held  Holding      // What is "interface net1"
}

// By texts name at most this many; a pod may have hundreds of processes.
const namedHolders = 4

// String is for findings: "RDMA device mlx5_3 is in net:[4026532246], held by sleep (pid 71)".
func (h Holding) String() string {
	if h.NS.IsZero() {
		return h.What + " is in no namespace that can be seen"
	}
	return fmt.Sprintf("%s is in %s, held by %s", h.What, h.name(), few(h.By))
}

// name is that of the namespace itself, since a path may be another's by the time that somebody reads it.
func (h Holding) name() string { return fmt.Sprintf("net:[%d]", h.NS.Ino) }

// HeldBy says in one clause who holds what is away: "held by sleep (pid 71) in net:[4026532246]". It is empty for no holdings.
func HeldBy(all []Holding) string {
	var out []string
	for _, h := range all {
		text := "held by " + few(h.By) + " in " + h.name()
		if h.NS.IsZero() {
			text = "held in no namespace that can be seen"
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return strings.Join(out, ", ")
}

// Holders are the distinct holders of all holdings, in words for a remedy; empty when none is known.
func Holders(all []Holding) string {
	var out []string
	for _, h := range all {
		for _, by := range h.By {
			if !slices.Contains(out, by) {
				out = append(out, by)
			}
		}
	}
	if len(out) == 0 {
		return ""
	}
	return few(out)
}

// Inhabited tells whether one of the namespaces looks like a pod's: a mount leads to it, and a process lives in it.
func Inhabited(all []Holding) bool {
	return slices.ContainsFunc(all, func(h Holding) bool {
		return h.Living && slices.ContainsFunc(h.By, func(by string) bool { return strings.HasPrefix(by, "mount ") })
	})
}

func few(by []string) string {
	if len(by) > namedHolders {
		return fmt.Sprintf("%s and %d more", strings.Join(by[:namedHolders], ", "), len(by)-namedHolders)
	}
	return strings.Join(by, ", ")
}

// Hidden tells whether a device of the function is in neither of the namespaces at hand. A netdev that is nowhere may also be one that its driver has not made yet.
func Hidden(now Facts) bool {
	if now.Soft != nil && now.Soft.NS == Elsewhere || now.RDMA != nil && now.RDMA.NS == Elsewhere {
		return true
	}
	fn := now.Function
	if now.Master != nil || !fn.Exists || fn.Driver == "" || fn.Userspace() {
		return false
	}
	return now.Link == nil || now.Link.NS == Elsewhere
}
