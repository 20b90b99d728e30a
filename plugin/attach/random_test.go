// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
)

// dice are repeatable: a failure is told with its seed.
type dice struct{ *rand.Rand }

func roll(seed uint64) dice { return dice{rand.New(rand.NewPCG(seed, 3))} }

// odds is true once in n.
func (d dice) odds(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

func (d dice) conf() netconf.Conf {
	c := conf()
	c.Kind = pick(d, netconf.KindVF, netconf.KindDevice, netconf.KindMacvlan, netconf.KindIPVlan, netconf.KindChained)
	c.RDMA.Mode = pick(d, netconf.RDMAAuto, netconf.RDMAAuto, netconf.RDMAMove, netconf.RDMAShare, netconf.RDMAOff)
	c.RDMA.SoftRoCE = d.odds(4)
	c.Macvlan.Mode = pick(d, netconf.MacvlanBridge, netconf.MacvlanPrivate, netconf.MacvlanVEPA, netconf.MacvlanPassthru)
	if c.Kind != netconf.KindChained && d.odds(3) {
		c.MTU.Bytes = pick(d, 1280, 1400, 1500)
	}
	if c.Kind == netconf.KindVF && d.odds(2) {
		everything(&c)
		for _, drop := range []func(){
			func() { c.MAC = "" }, func() { c.VF.VLAN, c.VF.QoS, c.VF.Proto = nil, nil, "" }, func() { c.VF.Spoofchk = nil },
			func() { c.VF.Trust = nil }, func() { c.VF.LinkState = "" }, func() { c.VF.MinTxRate = nil },
			func() { c.VF.Baseline = netconf.BaselineReset },
		} {
			if d.odds(2) {
				drop()
			}
		}
	}
	if (c.Kind == netconf.KindDevice || c.Kind == netconf.KindMacvlan && c.Macvlan.Mode != netconf.MacvlanPassthru) && d.odds(2) {
		c.MAC = "02:00:00:00:aa:09"
	}
	return c
}

func (d dice) addresses() attach.Addresses {
	v4, v6, dual := addressed()
	return pick(d, attach.Addresses{}, v4, v6, dual)
}

func (d dice) place(name string) attach.Place {
	return attach.Place{NS: pick(d, attach.Host, attach.Pod, attach.Elsewhere), Name: name}
}

// facts are of the kind, and else anything that could ever be seen.
func (d dice) facts(kind netconf.Kind) attach.Facts {
	f := good()
	f.Mode = pick(d, attach.Exclusive, attach.Shared, attach.NoRDMA)
	f.Link.Place, f.Link.Up, f.Link.MTU = d.place(pick(d, "ens1f0v4", "net1", "dev0")), d.odds(2), pick(d, 1400, 1500)
	f.Link.Traits = pick(d, nil, new(d.traits()), new(podTraits()))
	f.Link.Uppers = pick(d, nil, []attach.Upper{{Kind: "macvlan", Name: "mv0", Index: d.IntN(2)}})
	f.RDMA.NS, f.RDMA.Name, f.RDMA.Index = d.place("").NS, pick(d, "mlx5_4", "ibdev4"), uint32(d.IntN(2))
	f.HostRDMA, f.HostLinks = pick(d, nil, []string{"mlx5_4"}), pick(d, nil, []string{"ens1f0v4", "net1"})
	f.VF = &attach.VFState{MAC: "00:00:00:00:00:00", VLAN: d.IntN(2), Proto: "802.1q", Trust: d.odds(2), LinkState: "auto"}
	for _, drop := range []func(){
		func() { f.RDMA = nil }, func() { f.VF = nil }, func() { f.Function.VF, f.VF = false, nil }, func() { f.Function.Exists = false },
		func() { f.Function.Driver, f.Link, f.RDMA = "vfio-pci", nil, nil }, func() { f.Link = nil },
		func() { f.Soft = &attach.RDMA{Name: "pf0123456789", NS: d.place("").NS} },
	} {
		if d.odds(6) {
			drop()
		}
	}
	shared := kind == netconf.KindMacvlan || kind == netconf.KindIPVlan
	if shared || kind == netconf.KindChained && d.odds(2) {
		f.Master = &attach.Master{Name: "bond0", Index: 5, MTU: 9000, Type: "ether", RDMA: pick(d, nil, []string{"mlx5_4"}, []string{"mlx5_4", "mlx5_5"})}
		f.VF = nil
	}
	return f
}

// before makes of facts what they are before an attachment of the kind.
func before(kind netconf.Kind, f attach.Facts) attach.Facts {
	switch {
	case kind == netconf.KindMacvlan || kind == netconf.KindIPVlan:
		f.Link = nil
	case kind == netconf.KindChained:
		f.Link = &attach.Link{Place: attach.Place{NS: attach.Pod, Name: "net1"}, Type: "ether", Kind: "macvlan", MAC: "02:00:00:00:00:07", MTU: 1500}
	case f.Link != nil:
		f.Link = new(*f.Link)
		f.Link.NS = attach.Host
	}
	return f
}

// review.md 1: whatever a configuration says and whatever is there, an RDMA device moves only with its own function, and not one
// that is below a master. Of a link that another plugin made nothing is touched, and of a master neither.
func TestOnlyItsOwnDevicesAreTouched(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10000) {
		d := roll(seed)
		c := d.conf()
		f := d.facts(c.Kind)
		was := before(c.Kind, f)
		now := d.facts(c.Kind)
		now.Master = f.Master
		if seed%2 == 0 {
			now.LinkNS = attach.NetNS{Dev: 4, Ino: 5, Cookie: 6} // the attachment's link was found there
		}
		own := c.Kind == netconf.KindVF || c.Kind == netconf.KindDevice
		for _, s := range attach.Plan(c, was, d.addresses(), "pf0123456789") {
			touch(t, seed, c.Kind, own, was, was, s)
		}
		for _, s := range attach.Restore(was, now) {
			touch(t, seed, c.Kind, own, was, now, s)
		}
		if t.Failed() {
			return
		}
	}
}

func touch(t *testing.T, seed uint64, kind netconf.Kind, own bool, was, now attach.Facts, s attach.Step) {
	t.Helper()
	ok := own
	switch s := s.(type) {
	case attach.MoveRDMA:
		ok = s.Soft != "" || was.Master == nil && (own || kind == netconf.KindChained) && now.RDMA != nil && s.Index == now.RDMA.Index
	case attach.RenameRDMA:
		ok = was.Master == nil && (own || kind == netconf.KindChained) && now.RDMA != nil && s.Index == now.RDMA.Index
	case attach.AddSoftRoCE, attach.DelSoftRoCE:
		ok = true
	case attach.AddLink:
		ok = !own && kind != netconf.KindChained && s.Link.NS == attach.Pod
	case attach.DelLink:
		found := !own && s.Link.NS == attach.Elsewhere && s.In == now.LinkNS && !s.In.IsZero()
		ok = kind != netconf.KindChained && (found || s.Link.NS == attach.Pod && (!own || s.Link.Name == "mv0"))
	case attach.MoveLink:
		ok = own && s.Device == was.Function.ID
	case attach.SetVF:
		ok = own && now.Function.VF && was.VF != nil && s.PF == now.Function.PF && s.Number == now.Function.Number
	case attach.SetUp:
		ok = own || kind != netconf.KindChained && s.Link.NS == attach.Pod
	case attach.SetTraits:
		ok = own && s.Link.NS == attach.Host && was.Link != nil && was.Link.Traits != nil
	case attach.AddAddr:
		ok = kind != netconf.KindChained && s.Link.NS == attach.Pod
	case attach.AddRoute:
		ok = kind != netconf.KindChained && s.Link.NS == attach.Pod
	case attach.SetSysctl:
		ok = kind != netconf.KindChained && s.NS == attach.Pod || own && s.NS == attach.Host && strings.HasSuffix(s.Key, "/accept_dad")
	}
	if !ok {
		t.Errorf("seed %d, kind %s: %s\nbefore %+v\nnow %+v", seed, kind, s, was, now)
	}
}
