// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
)

// kept is what a record holds of a kind after ADD.
func kept(t *testing.T, sc *scene) attach.Want {
	t.Helper()
	now, ports := present(t, sc)
	w := attach.Want{
		Kind: sc.conf.Kind, IfName: "net1", Before: recorded(t, sc.before), Own: sc.query.Own, VF: now.VF, Addrs: sc.addrs.Prefixes(),
		Moved: attach.MovesRDMA(sc.steps), Soft: sc.soft,
	}
	if sc.conf.Kind == "device" {
		w.Own.MAC = sc.conf.MAC
	}
	if sc.conf.RDMA.Mode == "off" {
		return w
	}
	for _, p := range ports {
		for _, g := range p.GIDs {
			if g.Type == attach.RoCEv2 && sc.addrs.Has(g.Addr) {
				w.GIDs = append(w.GIDs, attach.WantGID{Port: p.Number, Index: g.Index, Addr: g.Addr})
			}
		}
	}
	return w
}

func TestDiffOfEachKind(t *testing.T) {
	t.Parallel()
	type K = *attachtest.Kernel
	type row struct {
		name     string
		plan     string
		change   func(K)
		seen     func(*attach.Facts, []attach.Port)
		errs     []string
		warnings []string
	}
	tests := []row{
		{
			name: "macvlan gone", plan: "macvlan", change: func(k K) { k.DelPodLink(podPath, "net1") },
			errs: []string{"interface net1, macvlan on master ens1f0, is gone from the pod", "GID of 10.1.0.5 is gone from port 1 of mlx5_0"},
		},
		{
			name: "ipvlan gone", plan: "ipvlan", change: func(k K) { k.DelPodLink(podPath, "net1") },
			errs: []string{"interface net1, ipvlan on master ens1f0, is gone from the pod", "GID of 10.1.0.5 is gone from port 1 of mlx5_0"},
		},
		{
			name: "macvlan renamed", plan: "macvlan-exclusive-off", change: func(k K) { k.RenamePodLink(podPath, "net1", "mine") },
			errs: []string{"interface net1 is called mine in the pod, not net1"},
		},
		{
			name: "macvlan with another MAC", plan: "macvlan-exclusive-off", change: func(k K) { k.SetPodMAC(podPath, "net1", "02:de:ad:be:ef:00") },
			warnings: []string{"interface net1 has MAC 02:de:ad:be:ef:00, not 02:ca:3e:d8:3f:20"},
		},
		{
			name: "macvlan down", plan: "macvlan", change: func(k K) { k.SetPodUp(podPath, "net1", false) },
			warnings: []string{"interface net1 is down"},
		},
		{
			name: "PF down", plan: "macvlan", change: func(k K) { k.SetLink(pfID(), "", 0, false) },
			warnings: []string{"master ens1f0 is down", "port 1 of mlx5_0 is DOWN"},
		},
		{
			name: "PF without carrier", plan: "ipvlan", change: func(k K) { k.SetCarrier(pfID(), false) },
			warnings: []string{"port 1 of mlx5_0 is DOWN"},
		},
		{
			name: "PF gone with all on it", plan: "macvlan", change: func(k K) { k.RemoveFunction(pfID()) },
			errs: []string{"master ens1f0 is gone"},
		},
		{
			name: "on another master", plan: "macvlan", seen: func(f *attach.Facts, _ []attach.Port) { f.Master.Name, f.Master.Index = "ens2f0", 99 },
			errs: []string{"interface net1 is on master ens2f0, not on ens1f0"},
		},
		{
			name: "master renamed", plan: "macvlan", seen: func(f *attach.Facts, _ []attach.Port) { f.Master.Name = "rail0" },
		},
		{
			name: "RDMA device of the master made anew", plan: "macvlan", seen: func(f *attach.Facts, _ []attach.Port) { f.RDMA.Index = 77 },
			errs: []string{"master ens1f0 has another RDMA device now, mlx5_0"},
		},
		{
			name: "RDMA device of the master gone", plan: "macvlan", change: func(k K) { k.RemoveRDMA("mlx5_0") },
			errs: []string{"RDMA device of master ens1f0 is gone"},
		},
		{
			name: "a bond's RDMA device gone", plan: "ipvlan-bond", change: func(k K) { k.RemoveRDMA("mlx5_2") },
			errs: []string{"RDMA device of master bond0 is gone"},
		},
		{
			name: "GID drifted on a shared table", plan: "macvlan", seen: func(_ *attach.Facts, p []attach.Port) {
				i := slices.IndexFunc(p[0].GIDs, func(g attach.GID) bool { return g.Type == v2 && g.Netdev == "net1" })
				p[0].GIDs[i].Index = 40
			},
			warnings: []string{"GID of 10.1.0.5 on port 1 of mlx5_0 is at index 40 now, it was at 3"},
		},
		{
			name: "VLAN changed", plan: "vf-settings", change: func(k K) { k.SetVFState(vf(), attach.VFState{VLAN: 7}) },
			errs: []string{
				"vlan of function 0000:3b:10.0 is 7 qos 0 proto 802.1q, not 100 qos 3 proto 802.1ad",
				"mac of function 0000:3b:10.0 is 00:00:00:00:00:00, not 02:00:00:00:aa:01",
			},
			warnings: []string{
				"rate of function 0000:3b:10.0 is 0 to 0 Mb/s, not 100 to 1000 Mb/s", "trust of function 0000:3b:10.0 is off, not on",
				"link_state of function 0000:3b:10.0 is auto, not enable",
			},
		},
		{
			name: "a MAC that the pod gave and the VF told its PF", plan: "vf-one-setting", change: func(k K) {
				v := k.VFState(vf())
				v.MAC = "02:de:ad:be:ef:00"
				k.SetVFState(vf(), v)
				k.SetPodMAC(podPath, "net1", v.MAC)
			},
			warnings: []string{"interface net1 has MAC 02:de:ad:be:ef:00, not 02:54:00:3b:10:00"},
		},
		{
			name: "spoofchk changed", plan: "vf-one-setting", change: func(k K) {
				v := k.VFState(vf())
				v.Spoofchk = true
				k.SetVFState(vf(), v)
			},
			warnings: []string{"spoofchk of function 0000:3b:10.0 is on, not off"},
		},
		{
			name: "own MAC changed, and the PF away", plan: "vf-settings", change: func(k K) {
				k.SetLink(vf(), "02:de:ad:be:ef:00", 0, true)
				k.AddNetNS("/run/netns/other")
				k.Give(pfID(), "/run/netns/other", "eth9")
			},
			warnings: []string{
				"interface net1 has MAC 02:de:ad:be:ef:00, not 02:00:00:00:aa:01",
				"the VF settings of 0000:3b:10.0 cannot be read: the netdev of its PF is not at home",
			},
		},
		{
			name: "a program's function bound again", plan: "vf-userspace", change: func(k K) { k.Rebind(plainVF(), "") },
			errs: []string{`function 0000:3b:10.2 is not bound to vfio-pci any more, but to "mlx5_core"`},
		},
		{
			name: "a program's function with another VLAN", plan: "vf-userspace", change: func(k K) {
				v := k.VFState(plainVF())
				v.VLAN = 1
				k.SetVFState(plainVF(), v)
			},
			errs: []string{"vlan of function 0000:3b:10.2 is 1 qos 3 proto 802.1ad, not 100 qos 3 proto 802.1ad"},
		},
		{
			name: "a sub-function gone", plan: "device-sf", change: func(k K) { k.RemoveFunction(sf()) },
			errs: []string{"function mlx5_core.sf.4 is gone"},
		},
		{
			name: "a chained VF moved away", plan: "chained-vf", change: func(k K) { k.Give(vf(), "", "ens1f0v0") },
			errs:     []string{"netdev of 0000:3b:10.0 is at home, not in the pod", "GID of 10.1.0.5 is gone from port 1 of mlx5_1"},
			warnings: []string{"port 1 of mlx5_1 is DOWN"},
		},
		{
			name: "the address of a chained VF gone", plan: "chained-vf", change: func(k K) { k.FlushAddrs(vf()) },
			errs: []string{"address 10.1.0.5/24 is gone from net1", "GID of 10.1.0.5 is gone from port 1 of mlx5_1"},
		},
		{
			name: "a chained macvlan gone", plan: "chained-macvlan", change: func(k K) { k.DelPodLink(podPath, "net1") },
			errs: []string{"interface net1, macvlan on master ens1f0, is gone from the pod", "GID of 10.1.0.5 is gone from port 1 of mlx5_0"},
		},
		{
			name: "a chained veth gone", plan: "chained-soft-roce", change: func(k K) { k.DelPodLink(podPath, "net1") },
			errs: []string{"interface net1 is in no namespace that can be seen", "soft RDMA device pfca3ed83f20 is gone"},
		},
	}
	for _, p := range slices.Concat(settings(), upper(), chains()) {
		tests = append(tests, row{name: "as it was, " + p.name, plan: p.name})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := plan(t, tt.plan)
			sc := play(t, p)
			if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
				t.Fatal(err)
			}
			w := kept(t, sc)
			if tt.change != nil {
				tt.change(sc.k)
			}
			now, ports := present(t, sc)
			if tt.seen != nil {
				tt.seen(&now, ports)
			}
			errs, warnings := attach.Diff(w, now, ports)
			if diff := cmp.Diff(tt.errs, errs); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.warnings, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
