// SPDX-License-Identifier: Apache-2.0

package kerneltest

import (
	"net/netip"
	"syscall"

	"github.com/podfabric/podfabric/plugin/attach"
)

// upper makes a link on the PF, in the pod.
func upper(s Seen, kind, name, mode, mac string) attach.AddLink {
	on := attach.Lower{Name: s.PF.Link.Name, Index: s.PF.Link.Index}
	return attach.AddLink{Kind: kind, Master: on, Link: pod(name), Mode: mode, MAC: mac}
}

// uppers are steps on links that are made on the PF.
func uppers() []Situation {
	const of, macvlan, ipvlan = "refuseLink", "macvlan", "ipvlan"
	plain := func(s Seen) attach.AddLink { return upper(s, macvlan, "net1", "bridge", macA) }
	l2 := func(s Seen) attach.AddLink { return upper(s, ipvlan, "net1", "l2", "") }
	step := func(what func(s Seen) attach.AddLink, change func(*attach.AddLink)) func(Seen) attach.Step {
		return func(s Seen) attach.Step {
			x := what(s)
			if change != nil {
				change(&x)
			}
			return x
		}
	}
	before := func(what func(s Seen) attach.AddLink, more ...func(s Seen) attach.Step) func(Seen) []attach.Step {
		return func(s Seen) []attach.Step {
			out := []attach.Step{what(s)}
			for _, m := range more {
				out = append(out, m(s))
			}
			return out
		}
	}
	second := func(x *attach.AddLink) { x.Link.Name = "net2" }
	address := netip.MustParsePrefix("10.9.0.7/24")
	return []Situation{
		{Name: "make a macvlan", Step: step(plain, nil)},
		{Name: "make an ipvlan", Step: step(l2, nil)},
		{Name: "make a passthru macvlan", Step: step(plain, func(x *attach.AddLink) { x.Mode, x.MAC = "passthru", "" })},
		{Name: "make a macvlan under a name that is taken at home", Step: func(s Seen) attach.Step {
			x := plain(s)
			x.Link.Name = s.PF.Link.Name
			return x
		}},
		{Name: "remove a macvlan", Before: before(plain), Step: func(s Seen) attach.Step { return plain(s).Reverse() }},
		{Name: "remove an ipvlan", Before: before(l2), Step: func(s Seen) attach.Step { return l2(s).Reverse() }},
		{
			Name: "make a macvlan under a taken name", Of: of, Errno: syscall.EEXIST, Step: step(plain, nil),
			Others: func(Seen) []attach.Place { return []attach.Place{pod("net1")} },
		},
		{
			Name: "make a macvlan with a group MAC", Of: of, Errno: syscall.EADDRNOTAVAIL,
			Step: step(plain, func(x *attach.AddLink) { x.MAC = "03:11:22:33:44:55" }),
		},
		{Name: "make an ipvlan beside a macvlan", Of: of, Errno: syscall.EBUSY, Before: before(plain), Step: step(l2, second)},
		{
			Name: "make a passthru macvlan beside another", Of: of, Errno: syscall.EINVAL, Before: before(plain),
			Step: step(plain, func(x *attach.AddLink) { x.Link.Name, x.Mode, x.MAC = "net2", "passthru", "" }),
		},
		{
			Name: "make a macvlan with a larger MTU than its master", Of: of, Errno: syscall.EINVAL,
			Step: step(plain, func(x *attach.AddLink) { x.MTU = 20000 }),
		},
		{
			Name: "set up a second macvlan of one MAC", Of: "refuseUp", Errno: syscall.EADDRINUSE,
			Before: before(plain, step(plain, second), just(attach.SetUp{Link: pod("net1"), To: true})), Step: just(attach.SetUp{Link: pod("net2"), To: true}),
		},
		{
			Name: "set the MAC of an ipvlan", Of: "refuseMAC", Errno: syscall.EOPNOTSUPP, Before: before(l2),
			Step: just(attach.SetMAC{Link: pod("net1"), To: macB}),
		},
		{
			Name: "give an ipvlan the address of another", Of: "addAddr", Errno: syscall.EADDRINUSE,
			Before: before(l2, step(l2, second), just(attach.AddAddr{Link: pod("net1"), Addr: address})),
			Step:   just(attach.AddAddr{Link: pod("net2"), Addr: address}),
		},
	}
}

// rdma are steps on RDMA devices.
func rdma() []Situation {
	move := func(f attach.Facts) attach.MoveRDMA {
		return attach.MoveRDMA{Index: f.RDMA.Index, GUID: f.RDMA.NodeGUID, Name: f.RDMA.Name, From: attach.Host, To: attach.Pod}
	}
	rename := func(f attach.Facts, ns attach.NS, to string) attach.RenameRDMA {
		return attach.RenameRDMA{Index: f.RDMA.Index, NS: ns, From: f.RDMA.Name, To: to}
	}
	const name = "pf0123456789"
	soft := attach.AddSoftRoCE{Name: name, Link: pod("net1")}
	softMove := attach.MoveRDMA{Soft: name, From: attach.Host, To: attach.Pod}
	third := func(more ...attach.Step) func(Seen) []attach.Step {
		return func(s Seen) []attach.Step { return append([]attach.Step{in(s.VFs[2], "net1", 0)}, more...) }
	}
	return []Situation{
		{Name: "move an RDMA device", Step: func(s Seen) attach.Step { return move(s.VFs[0]) }},
		{
			Name: "bring an RDMA device home", Before: func(s Seen) []attach.Step { return []attach.Step{move(s.VFs[0])} },
			Step: func(s Seen) attach.Step { return move(s.VFs[0]).Reverse() },
		},
		{Name: "rename an RDMA device", Step: func(s Seen) attach.Step { return rename(s.VFs[0], attach.Host, "other_7") }},
		{
			Name: "rename an RDMA device to a taken name", Of: "renameRDMA", Errno: syscall.EEXIST,
			Step: func(s Seen) attach.Step { return rename(s.VFs[0], attach.Host, s.VFs[1].RDMA.Name) },
		},
		{
			Name: "move an RDMA device to a taken name", Of: "moveRDMA", Errno: syscall.EEXIST,
			Before: func(s Seen) []attach.Step {
				return []attach.Step{move(s.VFs[1]), rename(s.VFs[1], attach.Pod, s.VFs[0].RDMA.Name)}
			},
			Step: func(s Seen) attach.Step { return move(s.VFs[0]) },
			Half: func(was, now attach.Facts) bool {
				return now.RDMA != nil && now.RDMA.NS == attach.Host && now.RDMA.Name == was.RDMA.Name
			},
		},
		{Name: "make a soft RoCE device", Before: third(), Step: just(soft)},
		{Name: "move a soft RoCE device", Before: third(soft), Step: just(softMove)},
		{Name: "remove a soft RoCE device", Before: third(soft, softMove), Step: just(soft.Reverse())},
		{
			Name: "make a second soft RoCE device on one link", Of: "addSoft", Errno: syscall.EEXIST, Before: third(soft),
			Step: just(attach.AddSoftRoCE{Name: "pfother", Link: pod("net1")}),
		},
	}
}

// settings are what a PF's driver holds for the first VF, and its reset.
func settings() []Situation {
	set := func(what attach.VFSetting, change func(*attach.VFState)) func(Seen) attach.Step {
		return func(s Seen) attach.Step {
			f := s.VFs[0]
			to := *f.VF
			change(&to)
			return attach.SetVF{PF: f.Function.PF, Number: f.Function.Number, What: what, From: *f.VF, To: to}
		}
	}
	const of = "refuseVF"
	given := set(attach.VFMAC, func(v *attach.VFState) { v.MAC = macA })
	return []Situation{
		{Name: "set a VLAN", Step: set(attach.VFVLAN, func(v *attach.VFState) { v.VLAN, v.QoS = 100, 3 })},
		{Name: "set an administrative MAC", Step: given},
		{Name: "set a rate", Step: set(attach.VFRate, func(v *attach.VFState) { v.MaxTxRate = 50 })},
		{Name: "set spoofchk", Step: set(attach.VFSpoofchk, func(v *attach.VFState) { v.Spoofchk = !v.Spoofchk })},
		{Name: "set trust", Step: set(attach.VFTrust, func(v *attach.VFState) { v.Trust = !v.Trust })},
		{Name: "set a link state", Of: of, Errno: syscall.EOPNOTSUPP, Step: set(attach.VFLinkState, func(v *attach.VFState) { v.LinkState = "enable" })},
		{Name: "set a least rate", Of: of, Errno: syscall.EINVAL, Step: set(attach.VFRate, func(v *attach.VFState) { v.MinTxRate, v.MaxTxRate = 10, 50 })},
		{
			Name: "set a VLAN of 802.1ad", Of: of, Errno: syscall.EPROTONOSUPPORT,
			Step: set(attach.VFVLAN, func(v *attach.VFState) { v.VLAN, v.Proto = 100, "802.1ad" }),
		},
		{Name: "set a VLAN that is none", Of: of, Errno: syscall.EINVAL, Step: set(attach.VFVLAN, func(v *attach.VFState) { v.VLAN = 5000 })},
		{Name: "set a group MAC", Of: of, Errno: syscall.EINVAL, Step: set(attach.VFMAC, func(v *attach.VFState) { v.MAC = "03:00:00:00:00:01" })},
		{
			Name: "set another MAC than the administrative one", Of: "refuseMAC", Errno: syscall.EADDRNOTAVAIL,
			Before: func(s Seen) []attach.Step { return []attach.Step{given(s)} },
			Step: func(s Seen) attach.Step {
				return attach.SetMAC{Link: s.VFs[0].Link.Place, From: s.VFs[0].Link.MAC, To: macB}
			},
			Half: func(was, now attach.Facts) bool { return now.Link != nil && now.Link.MAC == was.Link.MAC },
		},
		{Name: "reset a function", Before: func(s Seen) []attach.Step {
			return []attach.Step{attach.SetUp{Link: s.VFs[0].Link.Place, To: true}} // the emulated one's driver hangs otherwise
		}, Step: func(s Seen) attach.Step { return attach.ResetFunction{Device: s.VFs[0].Function.ID} }},
	}
}
