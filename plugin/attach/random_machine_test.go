// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// machine makes a node with two PFs, VFs, a sub-function, a VLAN, perhaps a bond, and points the configuration at something.
func (d dice) machine(c *netconf.Conf) *attachtest.Kernel {
	k := attachtest.New(pick(d, attach.Exclusive, attach.Exclusive, attach.Shared))
	k.AddPF(attachtest.PF{PCI: pf(), Link: "ens1f0", MTU: pick(d, 1500, 9000), RDMA: pick(d, "", "mlx5_0", "mlx5_0")})
	for n, id := range []bus.ID{vf(), otherVF(), plainVF()} {
		k.AddVF(attachtest.VF{
			ID: id, PF: pf(), Number: n, Link: pick(d, "ens1f0v", "eth") + string(rune('0'+n)), Up: d.odds(2),
			RDMA: pick(d, "", "mlx5_1"+string(rune('0'+n))),
		})
		if d.odds(2) {
			k.SetTraits(id, d.traits())
		}
		if d.odds(2) {
			v := leftover()
			v.MAC = pick(d, "", "02:00:00:00:bb:0"+string(rune('0'+n)))
			k.SetVFState(id, v)
		}
	}
	if d.odds(6) {
		k.Rebind(vf(), "vfio-pci")
	}
	k.AddPF(attachtest.PF{PCI: wholePF(), Link: "ens2f0", RDMA: pick(d, "", "mlx5_2")})
	k.AddSF(attachtest.SF{ID: sf(), PF: wholePF(), Link: "en3f0", RDMA: pick(d, "", "mlx5_3")})
	k.AddVLAN("ens1f0", "ens1f0.100", 100)
	k.AddNetNS(podPath)
	c.Device = pick(d, vf(), otherVF(), plainVF())
	switch c.Kind {
	case netconf.KindDevice:
		c.Device = pick(d, vf(), sf(), bus.PCI(wholePF()))
	case netconf.KindMacvlan, netconf.KindIPVlan:
		c.Device, c.Master.Name = bus.ID{}, pick(d, "ens1f0", "ens1f0.100", "ens2f0", "en3f0")
		if d.odds(2) {
			k.AddBond("bond0", "ens2f0", "en3f0")
			c.Master.Name = pick(d, "ens1f0", "bond0", "bond0")
		}
	case netconf.KindChained:
		c.Device = bus.ID{}
		switch d.IntN(5) {
		case 0:
			k.MakeMacvlan(podPath, "net1", pick(d, "ens1f0", "ens1f0.100"))
		case 1:
			k.MakeIpvlan(podPath, "net1", "ens2f0")
		case 2:
			k.AddVeth(podPath, "net1")
		default:
			k.Give(pick(d, otherVF(), plainVF(), sf()), podPath, "net1")
		}
	case netconf.KindVF:
	}
	return k
}

// everyDevice are the functions of machine.
func everyDevice() []bus.ID {
	return []bus.ID{pfID(), vf(), otherVF(), plainVF(), bus.PCI(wholePF()), sf()}
}

// Every attachment that passes the guard can be made and, from any point at which it is cut short, be taken back, by undoing or by
// Restore, with the pod alive or dead; on the way no RDMA device moves but the function's own.
func TestRandomAttachmentsLeaveNothing(t *testing.T) {
	t.Parallel()
	made := map[netconf.Kind]int{}
	for seed := range uint64(2000) {
		d := roll(seed)
		c := d.conf()
		p := planned{name: fmt.Sprint("seed ", seed), conf: c, addrs: d.addresses()}
		k := d.machine(&p.conf)
		if p.conf.RDMA.SoftRoCE && p.conf.RDMA.Mode != netconf.RDMAOff {
			p.soft = attach.SoftName(attach.Owner{ContainerID: "c1", IfName: "net1"})
		}
		if p.conf.Kind == netconf.KindChained {
			p.addrs = attach.Addresses{}
		}
		sc := &scene{planned: p, k: k, s: open(t, k, podPath)}
		sc.query = ask(t, sc.s, p)
		sc.before, sc.start = sc.observe(t, sc.s), k.Dump()
		if attach.Guard(p.conf, netconf.Node{}, "net1", sc.before) != nil {
			same(t, p.name+": refused", sc.start, k.Dump())
			continue
		}
		made[p.conf.Kind]++
		sc.steps = attach.Plan(p.conf, sc.before, p.addrs, p.soft)
		random(t, d, sc)
		if t.Failed() {
			t.Fatalf("%s: %+v\n%s", p.name, p.conf, lines(sc.steps))
		}
	}
	for _, kind := range []netconf.Kind{netconf.KindVF, netconf.KindDevice, netconf.KindMacvlan, netconf.KindIPVlan, netconf.KindChained} {
		if made[kind] < 80 {
			t.Errorf("only %d attachments of kind %s were made", made[kind], kind)
		}
	}
}

// random makes an attachment, or a part of it, and takes it back.
func random(t *testing.T, d dice, sc *scene) {
	t.Helper()
	start, want := wherever(sc), sc.start
	n := d.IntN(len(sc.steps) + 1)
	extent := pick(d, attachtest.Nothing, attachtest.Half, attachtest.Whole)
	sc.k.FailWith(n, extent, attachtest.ErrInjected)
	err := attach.Run(t.Context(), sc.s, sc.steps)
	sc.k.ClearFaults()
	if err == nil != (n == len(sc.steps)) {
		t.Errorf("failure at %d: %v", n, err)
	}
	if err == nil {
		stayed(t, sc, start)
		ending := d.IntN(3)
		if sc.conf.Kind == netconf.KindChained && ending > 0 {
			ending = 3 // what a pod does to the interface, and its death, are the other plugin's to put right
		}
		switch ending {
		case 0:
			if err := attach.Undo(t.Context(), sc.s, sc.steps); err != nil {
				t.Error(err)
			}
		case 1:
			spoil(sc)
			if own := sc.query.Device; sc.before.Link != nil && !own.IsZero() {
				sc.k.SetTraits(own, d.traits())
			}
		case 2:
			sc.k.KillNetNS(podPath)
			sc.s, want = open(t, sc.k, ""), without(sc.start, podPath)
		}
	}
	if err := sc.home(t, sc.s); err != nil {
		t.Error(err)
	}
	same(t, "state afterwards", want, sc.k.Dump())
	settled(t, sc, sc.s)
	stayed(t, sc, start)
}

// wherever tells where each device is.
func wherever(sc *scene) map[string]string {
	out := map[string]string{}
	for _, id := range everyDevice() {
		out[id.String()] = sc.k.Where(id)[1]
	}
	return out
}

// stayed checks that no RDMA device moved but the function's own, and that not when it is below a master.
func stayed(t *testing.T, sc *scene, start map[string]string) {
	t.Helper()
	now, was := wherever(sc), maps.Clone(start)
	if own := sc.query.Device; !own.IsZero() {
		delete(now, own.String())
		delete(was, own.String())
	}
	if diff := cmp.Diff(was, now); diff != "" {
		t.Errorf("RDMA devices (-want +got):\n%s", diff)
	}
}
