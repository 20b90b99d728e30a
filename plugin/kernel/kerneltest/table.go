// SPDX-License-Identifier: Apache-2.0

package kerneltest

import (
	"net/netip"
	"syscall"

	"github.com/podfabric/podfabric/plugin/attach"
)

const (
	macA = "02:11:22:33:44:55"
	macB = "02:11:22:33:44:66"
)

// pod is a place in the pod.
func pod(name string) attach.Place { return attach.Place{NS: attach.Pod, Name: name} }

// in is the way of a VF's netdev into the pod.
func in(f attach.Facts, name string, mtu int) attach.MoveLink {
	return attach.MoveLink{Device: f.Function.ID, From: f.Link.Place, To: pod(name), MTU: [2]int{f.Link.MTU, mtu}}
}

// inPod are steps after the first VF's netdev has come into the pod as net1.
func inPod(more ...attach.Step) func(Seen) []attach.Step {
	return func(s Seen) []attach.Step { return append([]attach.Step{in(s.VFs[0], "net1", 0)}, more...) }
}

// just is a step that depends on nothing.
func just(step attach.Step) func(Seen) attach.Step { return func(Seen) attach.Step { return step } }

// movedUnderItsOwnName: the netdev has gone and kept the name that it had.
func movedUnderItsOwnName(was, now attach.Facts) bool {
	return now.Link != nil && now.Link.NS == attach.Pod && now.Link.Name == was.Link.Name && now.Link.MTU == was.Link.MTU
}

// moves are those of a netdev, which may fail half done.
func moves() []Situation {
	const of = "newlink"
	move := func(mtu int) func(Seen) attach.Step {
		return func(s Seen) attach.Step { return in(s.VFs[0], "net1", mtu) }
	}
	taken := func(names ...string) func(Seen) []attach.Place {
		return func(Seen) []attach.Place {
			var out []attach.Place
			for _, name := range names {
				out = append(out, pod(name))
			}
			return out
		}
	}
	return []Situation{
		{Name: "move, rename and set the MTU", Step: move(1400)},
		{Name: "bring home", Before: inPod(), Step: func(s Seen) attach.Step { return in(s.VFs[0], "net1", 0).Reverse() }},
		{Name: "rename at home", Step: func(s Seen) attach.Step {
			step := in(s.VFs[0], "", 0)
			step.To = attach.Place{NS: attach.Host, Name: "other7"}
			return step
		}},
		{Name: "set the MTU alone", Step: func(s Seen) attach.Step {
			step := in(s.VFs[0], "", 1400)
			step.To = step.From
			return step
		}},
		{Name: "move to a taken name", Of: of, Errno: syscall.EEXIST, Others: taken("net1"), Step: move(0), Half: movedUnderItsOwnName},
		{Name: "move with too large an MTU", Of: of, Errno: syscall.EINVAL, Step: move(100000), Half: movedUnderItsOwnName},
		{Name: "move with both names taken", Of: of, Errno: syscall.EEXIST, Step: move(0), Others: func(s Seen) []attach.Place {
			return []attach.Place{pod("net1"), pod(s.VFs[0].Link.Name)}
		}},
		{
			Name: "move with its own name taken", Step: move(0),
			Others: func(s Seen) []attach.Place { return []attach.Place{pod(s.VFs[0].Link.Name)} },
		},
		{
			Name: "move with an alternative name taken", Of: of, Errno: syscall.EEXIST, Step: move(0), Others: taken("alt7"),
			Before: func(s Seen) []attach.Step {
				return []attach.Step{attach.SetAltName{Link: s.VFs[0].Link.Place, Name: "alt7", To: true}}
			},
			Half: func(was, now attach.Facts) bool { return now.Link != nil && now.Link.Place == was.Link.Place },
		},
		{Name: "rename at home to a taken name", Of: of, Errno: syscall.EEXIST, Step: func(s Seen) attach.Step {
			step := in(s.VFs[0], "", 0)
			step.To = s.VFs[1].Link.Place
			return step
		}},
	}
}

// links are steps on the VF's netdev in the pod.
func links() []Situation {
	at := pod("net1")
	four, other, six := netip.MustParsePrefix("10.9.0.1/24"), netip.MustParsePrefix("10.10.0.0/16"), netip.MustParsePrefix("fd00:9::1/64")
	via := netip.MustParseAddr("10.9.0.254")
	up, addr, onLink := attach.SetUp{Link: at, To: true}, attach.AddAddr{Link: at, Addr: four}, attach.AddRoute{Link: at, Dst: other}
	routed := attach.AddRoute{Link: at, Dst: other, Via: via}
	const ra, off = "net/ipv6/conf/net1/accept_ra", "net/ipv6/conf/net1/disable_ipv6"
	return []Situation{
		{Name: "set up", Before: inPod(), Step: just(up)},
		{Name: "set down", Before: inPod(up), Step: just(up.Reverse())},
		{Name: "set a MAC", Before: inPod(), Step: func(s Seen) attach.Step { return attach.SetMAC{Link: at, From: s.VFs[0].Link.MAC, To: macA} }},
		{Name: "write a sysctl", Before: inPod(), Step: just(attach.SetSysctl{NS: attach.Pod, Key: ra, To: "0"})},
		{Name: "give an alternative name", Before: inPod(), Step: just(attach.SetAltName{Link: at, Name: "alt7", To: true})},
		{
			Name: "take an alternative name", Before: inPod(attach.SetAltName{Link: at, Name: "alt7", To: true}),
			Step: just(attach.SetAltName{Link: at, Name: "alt7", From: true}),
		},
		{
			Name: "give a taken alternative name", Of: "setAltName", Errno: syscall.EEXIST, Before: inPod(),
			Step: just(attach.SetAltName{Link: at, Name: "lo", To: true}),
			Half: func(_, now attach.Facts) bool { return now.Link != nil && len(now.Link.AltNames) == 0 },
		},
		{Name: "set traits", Before: inPod(), Step: func(s Seen) attach.Step {
			to := *s.VFs[0].Link.Traits
			to.Alias, to.TxQueue = "of a pod", 77
			return attach.SetTraits{Link: at, From: *s.VFs[0].Link.Traits, To: to}
		}},
		{Name: "add an address", Before: inPod(), Step: just(addr)},
		{Name: "add an IPv6 address", Before: inPod(), Step: just(attach.AddAddr{Link: at, Addr: six})},
		{Name: "delete an address", Before: inPod(addr), Step: just(addr.Reverse())},
		{
			Name: "add an IPv6 address where there is no IPv6", Of: "addAddr", Errno: syscall.EACCES,
			Before: inPod(attach.SetSysctl{NS: attach.Pod, Key: off, To: "1"}), Step: just(attach.AddAddr{Link: at, Addr: six}), Half: inThePod,
		},
		{Name: "add a route on the link", Before: inPod(up), Step: just(onLink)},
		{Name: "add a route through a gateway", Before: inPod(up, addr), Step: just(routed)},
		{Name: "delete a route", Before: inPod(up, addr, routed), Step: just(routed.Reverse())},
		{Name: "add a route to a link that is down", Of: "addRoute", Errno: syscall.ENETDOWN, Before: inPod(), Step: just(onLink), Half: inThePod},
		{
			Name: "add a route through a gateway that is not there", Of: "addRoute", Errno: syscall.ENETUNREACH, Before: inPod(up), Step: just(routed),
			Half: inThePod,
		},
		{
			Name: "add a second route to one network", Of: "addRoute", Errno: syscall.EEXIST, Before: inPod(up, addr, onLink), Step: just(routed),
			Half: inThePod,
		},
	}
}

func inThePod(_, now attach.Facts) bool {
	return now.Link != nil && now.Link.Place == pod("net1")
}
