// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"

	"github.com/podfabric/podfabric/netconf"
)

// Addresses are what an attachment's interface is to have. Gateways are settled: a route without Via is on the link.
type Addresses struct {
	Addrs  []netconf.Address
	Routes []netconf.Route
}

// Prefixes gives the addresses with their lengths, in the order in which they were handed out; nil when there are none.
func (a Addresses) Prefixes() []netip.Prefix {
	var out []netip.Prefix
	for _, addr := range a.Addrs {
		out = append(out, addr.Prefix)
	}
	return out
}

// Has tells whether addr is one of the addresses; a GID's ::ffff:a.b.c.d is the same as a.b.c.d.
func (a Addresses) Has(addr netip.Addr) bool {
	return slices.ContainsFunc(a.Addrs, func(x netconf.Address) bool { return x.Prefix.Addr().Unmap() == addr.Unmap() })
}

// SoftName is the name of the soft RoCE device of an attachment: "pf" and ten hexadecimal digits of SHA-256. An rxe has no
// PCI parent and no index known beforehand, so that the name alone tells whose it is.
func SoftName(o Owner) string {
	sum := sha256.Sum256([]byte(o.String()))
	return "pf" + hex.EncodeToString(sum[:5])
}

// Plan gives the steps that attach the function of f to the pod. What can be refused is refused by Guard before. soft names
// the soft RoCE device, if the configuration wants one.
//
// The order is link, RDMA device, addresses, up, routes; so the exact reverse takes the RDMA device home before its netdev.
// No step moves an RDMA device but the function's own and the soft one made here.
func Plan(c netconf.Conf, f Facts, a Addresses, soft string) []Step {
	if f.Link == nil {
		return nil
	}
	pod := Place{NS: Pod, Name: c.Request.IfName}
	var steps []Step
	if f.Link.Up {
		// A move takes the link down without saying so; as a step of its own, its reverse brings it up again at home.
		steps = append(steps, SetUp{Link: f.Link.Place, From: true, To: false})
	}
	steps = append(steps, MoveLink{Device: f.Function.ID, From: f.Link.Place, To: pod, MTU: [2]int{f.Link.MTU, mtu(c.MTU, f)}})
	steps = append(steps, planRDMA(c, f, pod, soft)...)
	steps = append(steps, planSysctls(a, pod)...)
	for _, addr := range a.Addrs {
		steps = append(steps, AddAddr{Link: pod, Addr: addr.Prefix})
	}
	steps = append(steps, SetUp{Link: pod, From: false, To: true})
	for _, r := range a.Routes {
		steps = append(steps, AddRoute{Link: pod, Dst: r.Dst, Via: r.Via})
	}
	return steps
}

// MovesRDMA tells whether steps bring the function's own RDMA device into the pod. A soft one does not count.
func MovesRDMA(steps []Step) bool {
	return slices.ContainsFunc(steps, func(s Step) bool {
		m, ok := s.(MoveRDMA)
		return ok && m.Soft == "" && m.To == Pod
	})
}

// mtu is what the pod's interface is to have, in bytes; 0 leaves it.
func mtu(m netconf.MTU, f Facts) int {
	if m.FromPF {
		return f.Function.PFMTU
	}
	return m.Bytes
}

func planRDMA(c netconf.Conf, f Facts, pod Place, soft string) []Step {
	switch {
	case wantsSoft(c):
		var steps []Step
		if f.Soft != nil {
			// An orphan of this very attachment, perhaps on another netdev.
			steps = append(steps, DelSoftRoCE{Name: soft})
		}
		return append(steps, AddSoftRoCE{Name: soft, Link: pod}, MoveRDMA{Soft: soft, Name: soft, From: Host, To: Pod})
	case moves(c, f):
		return []Step{MoveRDMA{Index: f.RDMA.Index, GUID: f.RDMA.NodeGUID, Name: f.RDMA.Name, From: Host, To: Pod}}
	}
	return nil
}

// wantsSoft tells whether a soft RoCE device is to be made.
func wantsSoft(c netconf.Conf) bool { return c.RDMA.SoftRoCE && c.RDMA.Mode != netconf.RDMAOff }

// moves tells whether the function's own RDMA device is to go into the pod.
func moves(c netconf.Conf, f Facts) bool {
	if f.RDMA == nil || f.Mode != Exclusive || wantsSoft(c) {
		return false
	}
	return c.RDMA.Mode == netconf.RDMAAuto || c.RDMA.Mode == netconf.RDMAMove
}

// planSysctls keeps router advertisements from giving a rail a second default route, and GIDs below those of its own
// addresses [review.md 39]. An interface without addresses of ours is left to whoever wants it to configure itself.
func planSysctls(a Addresses, pod Place) []Step {
	if len(a.Addrs) == 0 {
		return nil
	}
	key := func(name string) string { return "net/ipv6/conf/" + pod.Name + "/" + name }
	var steps []Step
	if slices.ContainsFunc(a.Addrs, func(x netconf.Address) bool { return x.Prefix.Addr().Is6() }) {
		// Runtimes switch IPv6 off in namespaces of clusters that have none of their own.
		steps = append(steps, SetSysctl{NS: pod.NS, Key: key("disable_ipv6"), To: "0"})
	}
	return append(steps,
		SetSysctl{NS: pod.NS, Key: key("accept_ra"), To: "0"},
		SetSysctl{NS: pod.NS, Key: key("autoconf"), To: "0"})
}
