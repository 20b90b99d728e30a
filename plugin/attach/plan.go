// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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

// OwnMAC is the MAC of an attachment's own macvlan when nobody gives one: locally administered, unicast, and the same for the
// same attachment every time, so that it tells whose a link in the pod is, whatever the pod calls it.
func OwnMAC(o Owner) string {
	sum := sha256.Sum256([]byte(o.String()))
	return fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", sum[0], sum[1], sum[2], sum[3], sum[4])
}

// Plan gives the steps that make the attachment of c in the pod. What can be refused is refused by Guard before. soft names
// the soft RoCE device, if the configuration wants one.
//
// The order is settings of the VF, link, RDMA device, addresses, up, routes; so the exact reverse takes the RDMA device home
// before its netdev. No step moves an RDMA device but the function's own and the soft one made here; what is below a master
// stays at home [review.md 1]. Of a chained attachment link and addresses are those of the plugin before.
func Plan(c netconf.Conf, f Facts, a Addresses, soft string) []Step {
	pod := Place{NS: Pod, Name: c.Request.IfName}
	switch {
	case c.Kind == netconf.KindChained:
		return planRDMA(c, f, pod, soft)
	case shares(c.Kind):
		return slices.Concat([]Step{addLink(c, f, pod)}, planRDMA(c, f, pod, soft), planSysctls(c, a, pod), planAddresses(a, pod))
	case f.Link == nil:
		// Bound to a driver that gives the function to a program: the PF is all there is to set.
		return planVF(c, f)
	}
	return slices.Concat(planLink(c, f, pod), planRDMA(c, f, pod, soft), planSysctls(c, a, pod), planAddresses(a, pod))
}

// shares tells whether attachments of the kind are links of their own on a master that stays at home.
func shares(k netconf.Kind) bool { return k == netconf.KindMacvlan || k == netconf.KindIPVlan }

// planLink brings the function's netdev into the pod.
func planLink(c netconf.Conf, f Facts, pod Place) []Step {
	var steps []Step
	if f.Link.Up {
		// A move takes the link down without saying so; as a step of its own, its reverse brings it up again at home.
		steps = append(steps, SetUp{Link: f.Link.Place, From: true, To: false})
	}
	vf, admin := parted(planVF(c, f))
	steps = append(steps, vf...)
	steps = append(steps, MoveLink{Device: f.Function.ID, From: f.Link.Place, To: pod, MTU: [2]int{f.Link.MTU, mtu(c.MTU, f)}})
	if c.MAC != "" && c.MAC != f.Link.MAC {
		steps = append(steps, SetMAC{Link: pod, From: f.Link.MAC, To: c.MAC})
	}
	return append(steps, admin...)
}

// addLink makes the attachment's own link.
func addLink(c netconf.Conf, f Facts, pod Place) Step {
	s := AddLink{Kind: string(c.Kind), Link: pod, Mode: "l2"}
	if f.Master != nil {
		s.Master = Lower{Name: f.Master.Name, Index: f.Master.Index}
	}
	if !c.MTU.FromPF {
		s.MTU = c.MTU.Bytes // what a new link has by itself is its master's
	}
	if c.Kind != netconf.KindMacvlan {
		return s
	}
	s.Mode = cmp.Or(string(c.Macvlan.Mode), string(netconf.MacvlanBridge))
	if c.Macvlan.BCQueueLen != nil {
		s.BCQueueLen = *c.Macvlan.BCQueueLen
	}
	if s.Mode != string(netconf.MacvlanPassthru) {
		s.MAC = cmp.Or(c.MAC, OwnMAC(Owner{ContainerID: c.Request.ContainerID, IfName: c.Request.IfName}))
	}
	return s
}

// planAddresses gives the interface its addresses, brings it up and sets the routes, which need it up.
func planAddresses(a Addresses, pod Place) []Step {
	var steps []Step
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

// moves tells whether the function's own RDMA device is to go into the pod. One below a master is not the attachment's own.
func moves(c netconf.Conf, f Facts) bool {
	if shares(c.Kind) || f.Master != nil || f.RDMA == nil || f.Mode != Exclusive || wantsSoft(c) {
		return false
	}
	return c.RDMA.Mode == netconf.RDMAAuto || c.RDMA.Mode == netconf.RDMAMove
}

// planSysctls keeps router advertisements from giving a rail a second default route, and GIDs below those of its own
// addresses [review.md 39]. An interface without addresses of ours is left to whoever wants it to configure itself.
func planSysctls(c netconf.Conf, a Addresses, pod Place) []Step {
	if len(a.Addrs) == 0 {
		return nil
	}
	key := func(name string) string { return "net/ipv6/conf/" + pod.Name + "/" + name }
	var steps []Step
	switch {
	case slices.ContainsFunc(a.Addrs, func(x netconf.Address) bool { return x.Prefix.Addr().Is6() }):
		// Runtimes switch IPv6 off in namespaces of clusters that have none of their own.
		steps = append(steps, SetSysctl{NS: pod.NS, Key: key("disable_ipv6"), To: "0"})
	case shares(c.Kind):
		// 1 is "none". A link-local address that nobody needs would take slots of the GID table that all pods on the master share:
		// with it 32 pods fill 128 slots, without it 40 take 82 [review.md lab 11].
		steps = append(steps, SetSysctl{NS: pod.NS, Key: key("addr_gen_mode"), To: "1"})
	}
	return append(steps,
		SetSysctl{NS: pod.NS, Key: key("accept_ra"), To: "0"},
		SetSysctl{NS: pod.NS, Key: key("autoconf"), To: "0"})
}
