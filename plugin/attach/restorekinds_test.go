// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/attach"
)

// RDMA devices go home before their netdev, a soft one is removed before it, and the settings of a VF come back between the netdev
// and its MAC. With the namespace dead, the kernel has brought hardware home under the pod's names, and what was made is gone.
func TestRestoreOfEachKind(t *testing.T) {
	t.Parallel()
	const (
		vf0    = " of vf 0 of 0000:3b:00.0: "
		rdma   = "move rdma mlx5_1 (index 1) pod -> host\n"
		home   = "move link 0000:3b:10.0 pod/net1 -> host/ens1f0v0, mtu 1500 -> 1500\n"
		rename = "move link 0000:3b:10.0 host/net1 -> host/ens1f0v0, mtu 1500 -> 1500\n"
		sets   = "set vlan" + vf0 + "100 qos 3 proto 802.1ad -> 0 qos 0 proto 802.1q\n" +
			"set rate" + vf0 + "100 to 1000 Mb/s -> 0 to 0 Mb/s\n" +
			"set spoofchk" + vf0 + "off -> on\n" +
			"set trust" + vf0 + "on -> off\n" +
			"set link_state" + vf0 + "enable -> auto\n"
		mac = "set mac" + vf0 + "02:00:00:00:aa:01 -> 00:00:00:00:00:00\n" +
			"set mac of host/ens1f0v0 02:00:00:00:aa:01 -> 02:54:00:3b:10:00\n"
		vlan = "set vlan" + vf0 + "0 qos 0 proto 802.1q -> 7 qos 1 proto 802.1ad\n"
	)
	tests := map[string]struct{ alive, dead string }{
		"exclusive": {rdma + home, rename},
		"soft-roce-dual-mtu-up": {
			"del soft rdma pfca3ed83f20\nmove link 0000:3b:10.2 pod/net1 -> host/ens1f0v2, mtu 9000 -> 1500\nset host/ens1f0v2 up\n",
			"move link 0000:3b:10.2 host/net1 -> host/ens1f0v2, mtu 9000 -> 1500\nset host/ens1f0v2 up\n",
		},
		"shared":         {home, rename},
		"vf-settings":    {rdma + home + sets + mac, rename + sets + mac},
		"vf-one-setting": {home + vlan, rename + vlan},
		"device-sf": {
			"move rdma mlx5_3 (index 3) pod -> host\nmove link mlx5_core.sf.4 pod/net1 -> host/en3f0pf0sf88, mtu 1500 -> 1500\n",
			"move link mlx5_core.sf.4 host/net1 -> host/en3f0pf0sf88, mtu 1500 -> 1500\n",
		},
		"macvlan":          {alive: "del macvlan pod/net1, mac 02:ca:3e:d8:3f:20\n"},
		"macvlan-passthru": {alive: "del macvlan pod/net1, mac 02:54:00:3b:10:02\n"},
		"macvlan-soft-roce": {
			alive: "del soft rdma pfca3ed83f20\ndel macvlan pod/net1, mac 02:ca:3e:d8:3f:20\n",
		},
		"ipvlan":            {alive: "del ipvlan pod/net1\n"},
		"chained-vf":        {alive: rdma},
		"chained-vf-shared": {},
		"chained-macvlan":   {},
		"chained-soft-roce": {alive: "del soft rdma pfca3ed83f20\n"},
	}
	for name, tt := range tests {
		for _, dies := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/dies-%t", name, dies), func(t *testing.T) {
				t.Parallel()
				sc := play(t, plan(t, name))
				if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
					t.Fatal(err)
				}
				s, want := sc.s, tt.alive
				if dies {
					sc.k.KillNetNS(podPath)
					s, want = open(t, sc.k, ""), tt.dead
				}
				got := lines(attach.Restore(recorded(t, sc.before), sc.observe(t, s)))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("steps (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// Settings of a VF are a wall around whoever has it. They stay while its netdev is in a namespace that a stray process holds, and come
// back when it is home.
func TestRestoreLeavesTheSettingsOfAVFThatIsAway(t *testing.T) {
	t.Parallel()
	sc := play(t, plan(t, "vf-one-setting"))
	if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
		t.Fatal(err)
	}
	given := sc.k.VFState(vf())
	sc.k.HoldNetNS(podPath, -1)
	host := open(t, sc.k, "")
	if err := sc.home(t, host); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(given, sc.k.VFState(vf())); diff != "" {
		t.Errorf("settings while it is away (-want +got):\n%s", diff)
	}
	if away := attach.Away(recorded(t, sc.before), sc.observe(t, host)); len(away) != 1 {
		t.Errorf("away %v", away)
	}
	sc.k.KillNetNS(podPath)
	if err := sc.home(t, host); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(leftover(), sc.k.VFState(vf())); diff != "" {
		t.Errorf("settings at home (-want +got):\n%s", diff)
	}
}

// What happens to the devices below a master is no debt of an attachment on it.
func TestAwayOfALinkOnAMaster(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"macvlan", "chained-macvlan"} {
		sc := play(t, plan(t, name))
		if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
			t.Fatal(err)
		}
		sc.k.RemoveRDMA("mlx5_0")
		if away := attach.Away(recorded(t, sc.before), sc.observe(t, sc.s)); len(away) != 0 {
			t.Errorf("%s: away %v", name, away)
		}
	}
}

// A name that the kernel gave to a master's device, and one that a link had in a pod, are none to give or to keep.
func TestHomedOfOtherKinds(t *testing.T) {
	t.Parallel()
	_, seen := onMaster()
	seen.RDMA.Index, seen.RDMA.Name = 4, "ibdev4"
	home := seen
	home.RDMA = new(*seen.RDMA)
	home.RDMA.Name = "mlx5_0"
	if got := attach.Homed(seen, home).RDMA.Name; got != "ibdev4" {
		t.Errorf("the master's RDMA device is called %s", got)
	}
	_, wasInPod := behindVF()
	stray := good()
	stray.Link.Name, wasInPod.Link.Name = "net1", "net7"
	if got := attach.Homed(stray, wasInPod).Link.Name; got != "net1" {
		t.Errorf("the link is called %s", got)
	}
}
