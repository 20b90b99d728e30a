// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/attach"
)

// What is made for a pod has no state worth bringing back, and what is set through a PF goes back to what it was.
func TestStepsAndTheirReverses(t *testing.T) {
	t.Parallel()
	at := attach.Place{NS: attach.Pod, Name: "net1"}
	master := attach.Lower{Name: "ens1f0", Index: 3}
	from := attach.VFState{MAC: "00:00:00:00:00:00", Proto: "802.1q", Spoofchk: true, LinkState: "auto"}
	set := func(what attach.VFSetting) attach.Step {
		return attach.SetVF{PF: pf(), Number: 4, What: what, From: from, To: leftover()}
	}
	const vf4 = " of vf 4 of 0000:3b:00.0: "
	tests := []struct {
		step          attach.Step
		text, reverse string
	}{
		{
			attach.AddLink{Kind: "macvlan", Master: master, Link: at, Mode: "private", MAC: "02:00:00:00:00:01", MTU: 9000, BCQueueLen: 1},
			"add macvlan pod/net1 on ens1f0, mode private, mac 02:00:00:00:00:01, mtu 9000, bcqueuelen 1", "del macvlan pod/net1, mac 02:00:00:00:00:01",
		},
		{attach.AddLink{Kind: "ipvlan", Master: master, Link: at, Mode: "l2"}, "add ipvlan pod/net1 on ens1f0, mode l2", "del ipvlan pod/net1"},
		{attach.DelLink{Kind: "macvlan", Link: at, MAC: "02:00:00:00:00:01"}, "del macvlan pod/net1, mac 02:00:00:00:00:01", ""},
		{attach.ResetFunction{Device: vf()}, "reset function 0000:3b:10.0", ""},
		{
			set(attach.VFVLAN), "set vlan" + vf4 + "0 qos 0 proto 802.1q -> 7 qos 1 proto 802.1ad",
			"set vlan" + vf4 + "7 qos 1 proto 802.1ad -> 0 qos 0 proto 802.1q",
		},
		{
			set(attach.VFMAC), "set mac" + vf4 + "00:00:00:00:00:00 -> 02:00:00:00:bb:01",
			"set mac" + vf4 + "02:00:00:00:bb:01 -> 00:00:00:00:00:00",
		},
		{set(attach.VFRate), "set rate" + vf4 + "0 to 0 Mb/s -> 5 to 50 Mb/s", "set rate" + vf4 + "5 to 50 Mb/s -> 0 to 0 Mb/s"},
		{set(attach.VFSpoofchk), "set spoofchk" + vf4 + "on -> off", "set spoofchk" + vf4 + "off -> on"},
		{set(attach.VFTrust), "set trust" + vf4 + "off -> on", "set trust" + vf4 + "on -> off"},
		{set(attach.VFLinkState), "set link_state" + vf4 + "auto -> disable", "set link_state" + vf4 + "disable -> auto"},
		{
			attach.SetTraits{Link: at, From: attach.Traits{Flags: "multicast", TxQueue: 1000}, To: attach.Traits{Flags: "multicast", Group: 3}},
			"set traits of pod/net1: group 0 -> 3, transmit queue 1000 -> 0", "set traits of pod/net1: group 3 -> 0, transmit queue 0 -> 1000",
		},
		{attach.AddSoftRoCE{Name: "pf0123456789", Link: at}, "add soft rdma pf0123456789 on pod/net1", "del soft rdma pf0123456789"},
		{attach.DelSoftRoCE{Name: "pf0123456789"}, "del soft rdma pf0123456789", ""},
		{attach.AddAddr{Link: at, Addr: address("10.0.0.1/24").Prefix}, "add address 10.0.0.1/24 to pod/net1", "del address 10.0.0.1/24 from pod/net1"},
	}
	for _, tt := range tests {
		reverse := ""
		if back := tt.step.Reverse(); back != nil {
			reverse = back.String()
		}
		if diff := cmp.Diff([]string{tt.text, tt.reverse}, []string{tt.step.String(), reverse}); diff != "" {
			t.Errorf("step and reverse (-want +got):\n%s", diff)
		}
		if back := tt.step.Reverse(); back != nil && back.Reverse() != nil && back.Reverse() != tt.step {
			t.Errorf("%s became %s", tt.step, back.Reverse())
		}
	}
}

// The settings are applied in sriov-cni's order, and only those that differ.
func TestVFSteps(t *testing.T) {
	t.Parallel()
	fn := good().Function
	from := attach.VFState{MAC: "00:00:00:00:00:00", Proto: "802.1q", Spoofchk: true, LinkState: "auto"}
	const vf4 = " of vf 4 of 0000:3b:00.0: "
	want := "set vlan" + vf4 + "0 qos 0 proto 802.1q -> 7 qos 1 proto 802.1ad\n" +
		"set mac" + vf4 + "00:00:00:00:00:00 -> 02:00:00:00:bb:01\n" +
		"set rate" + vf4 + "0 to 0 Mb/s -> 5 to 50 Mb/s\n" +
		"set spoofchk" + vf4 + "on -> off\n" +
		"set trust" + vf4 + "off -> on\n" +
		"set link_state" + vf4 + "auto -> disable\n"
	if diff := cmp.Diff(want, lines(attach.VFSteps(fn, from, leftover()))); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	to := from
	to.QoS, to.MinTxRate = 2, 5
	want = "set vlan" + vf4 + "0 qos 0 proto 802.1q -> 0 qos 2 proto 802.1q\nset rate" + vf4 + "0 to 0 Mb/s -> 5 to 0 Mb/s\n"
	if diff := cmp.Diff(want, lines(attach.VFSteps(fn, from, to))); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}
