// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"testing"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

func TestGuardLetsPassOfEachKind(t *testing.T) {
	t.Parallel()
	none := func(changeConf, changeNode, changeFact) {}
	softly := func(c changeConf, _ changeNode, f changeFact) {
		c.RDMA.Mode, c.RDMA.SoftRoCE, f.Mode, f.RDMA = netconf.RDMAAuto, true, attach.Exclusive, nil
		if f.Master != nil {
			f.Master.RDMA = nil
		}
	}
	tests := []struct {
		name   string
		base   base
		change func(changeConf, changeNode, changeFact)
	}{
		{"all VF settings", asking, func(c changeConf, _ changeNode, _ changeFact) { everything(c); c.VF.FLR = true }},
		{"no settings, in switchdev mode", asking, func(c changeConf, _ changeNode, f changeFact) {
			c.VF, f.VF, f.Function.ESwitch = netconf.VFSettings{}, nil, "switchdev"
		}},
		{"no settings and the PF away", asking, func(c changeConf, _ changeNode, f changeFact) {
			c.VF, f.VF, f.Function.PFLink = netconf.VFSettings{}, nil, ""
		}},
		{"a program's VF with addresses only", program, func(c changeConf, _ changeNode, _ changeFact) { c.VF = netconf.VFSettings{} }},
		{"a program's VF, uio", program, func(_ changeConf, _ changeNode, f changeFact) { f.Function.Driver = "igb_uio" }},
		{"a PF", whole, none},
		{"a VF as a device", whole, func(c changeConf, _ changeNode, f changeFact) { c.Device, f.Function = vf(), good().Function }},
		{"a PF in use that the owner gives away", whole, func(_ changeConf, n changeNode, f changeFact) {
			n.OverrideGuards = []bus.ID{pfID()}
			f.Link.InUse, f.Function.NumVFs, f.RDMA.Users = []string{"it carries the default route"}, 8, []string{"a (pid 1)"}
		}},
		{"a listed PF", whole, func(_ changeConf, n changeNode, _ changeFact) { n.Allow.PFs = []pci.Addr{pf()} }},
		{"a sub-function of a listed PF", sub, func(_ changeConf, n changeNode, _ changeFact) { n.Allow.PFs = []pci.Addr{pf()} }},
		{"any card, without RDMA", whole, func(_ changeConf, _ changeNode, f changeFact) { f.Function.Driver, f.RDMA = "virtio-pci", nil }},
		{"a macvlan", onMaster, none},
		{"an ipvlan", onMaster, func(c changeConf, _ changeNode, _ changeFact) { c.Kind = netconf.KindIPVlan }},
		{"a macvlan, share asked for", onMaster, func(c changeConf, _ changeNode, _ changeFact) { c.RDMA.Mode = netconf.RDMAShare }},
		{"a macvlan in an exclusive node without RDMA", onMaster, func(c changeConf, _ changeNode, f changeFact) {
			c.RDMA.Mode, f.Mode, f.RDMA.Users = netconf.RDMAOff, attach.Exclusive, []string{"a (pid 1)"}
		}},
		{"a macvlan on a card without RDMA in an exclusive node", onMaster, func(_ changeConf, _ changeNode, f changeFact) {
			f.Mode, f.RDMA, f.Master.RDMA = attach.Exclusive, nil, nil
		}},
		{"a macvlan on a dummy, no modules", onMaster, func(c changeConf, _ changeNode, f changeFact) {
			c.RDMA.Mode, f.Mode, f.RDMA, f.Master.RDMA, f.Function = netconf.RDMAOff, attach.NoRDMA, nil, nil, attach.Function{}
		}},
		{"a bond of two without RDMA", onMaster, func(c changeConf, _ changeNode, f changeFact) {
			c.RDMA.Mode, f.Master.RDMA = netconf.RDMAOff, []string{"mlx5_0", "mlx5_1"}
		}},
		{"a macvlan in use by others, numbers with a hole", onMaster, func(_ changeConf, _ changeNode, f changeFact) {
			f.RDMA.Users, f.Uverbs = []string{"a (pid 1)"}, []int{2}
		}},
		{"a macvlan with its master's MTU", onMaster, func(c changeConf, _ changeNode, _ changeFact) { c.MTU.Bytes = 9000 }},
		{"a macvlan with the MTU of its master, by word", onMaster, func(c changeConf, _ changeNode, _ changeFact) { c.MTU.FromPF = true }},
		{"a listed master", onMaster, func(_ changeConf, n changeNode, _ changeFact) { n.Allow.Masters = []string{"ens1f0"} }},
		{"soft RoCE on a macvlan", onMaster, softly},
		{"chained behind a VF", behindVF, none},
		{"chained behind a VF that the node uses", behindVF, func(_ changeConf, _ changeNode, f changeFact) { f.Link.InUse = []string{"anything"} }},
		{"chained behind a VF that is named", behindVF, func(c changeConf, _ changeNode, _ changeFact) { c.Device = vf() }},
		{"chained, moved by rdma-cni, RDMA off", behindVF, func(c changeConf, _ changeNode, f changeFact) { c.RDMA.Mode, f.RDMA.NS = netconf.RDMAOff, attach.Pod }},
		{"chained behind InfiniBand, RDMA off", behindVF, func(c changeConf, _ changeNode, f changeFact) {
			c.RDMA.Mode, f.Link.Type, f.RDMA.LinkLayer = netconf.RDMAOff, "infiniband", "InfiniBand"
		}},
		{"chained behind a macvlan", behindMacvlan, none},
		{"chained behind a macvlan whose card is named", behindMacvlan, func(c changeConf, _ changeNode, _ changeFact) { c.Device = pfID() }},
		{"chained behind a macvlan on a card that is not listed: it is no device of the pod", behindMacvlan, func(_ changeConf, n changeNode, _ changeFact) {
			n.Allow.PFs = []pci.Addr{}
		}},
		{"chained behind a veth, RDMA off", behindVeth, none},
		{"chained behind a veth, with Multus' deviceID", behindVeth, func(c changeConf, _ changeNode, _ changeFact) { c.Device = vf() }},
		{"soft RoCE behind a veth", behindVeth, softly},
		{"soft RoCE behind a macvlan", behindMacvlan, softly},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, f := tt.base()
			n := netconf.Node{}
			tt.change(&c, &n, &f)
			if err := attach.Guard(c, n, "net1", f); err != nil {
				t.Error(err)
			}
		})
	}
	for name, b := range bases() {
		if c, f := b(); attach.Guard(c, netconf.Node{}, "net1", f) != nil {
			t.Errorf("%s is refused", name)
		}
	}
}
