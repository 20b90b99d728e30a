// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		plan     string
		change   func(*attachtest.Kernel)
		seen     func(*attach.Facts, []attach.Port)
		errs     []string
		warnings []string
	}{
		{name: "as it was", plan: "exclusive"},
		{name: "as it was, shared", plan: "shared"},
		{name: "as it was, two addresses", plan: "exclusive-dual-routes"},
		{name: "as it was, soft", plan: "soft-roce"},
		{name: "as it was, off", plan: "exclusive-off"},
		{name: "as it was, no address", plan: "exclusive-no-address"},
		{
			name: "function gone", plan: "exclusive", change: func(k *attachtest.Kernel) { k.RemoveFunction(vf()) },
			errs: []string{"function 0000:3b:10.0 is gone"},
		},
		{
			name: "netdev lost", plan: "exclusive", seen: func(f *attach.Facts, _ []attach.Port) { f.Link = nil },
			errs: []string{"netdev of 0000:3b:10.0 is in no namespace that can be seen"},
		},
		{
			name: "driver bound again", plan: "exclusive", change: func(k *attachtest.Kernel) { k.Rebind(vf(), "") },
			errs: []string{"netdev of 0000:3b:10.0 is at home, not in the pod", "RDMA device of 0000:3b:10.0 is at home, not in the pod"},
		},
		{
			name: "driver bound again, shared", plan: "shared",
			change: func(k *attachtest.Kernel) { k.Rebind(vf(), "") },
			errs: []string{
				"netdev of 0000:3b:10.0 is at home, not in the pod", "function 0000:3b:10.0 has another RDMA device now, mlx5_1",
			},
		},
		{
			name: "netdev elsewhere", plan: "exclusive-off", seen: func(f *attach.Facts, _ []attach.Port) { f.Link.NS = attach.Elsewhere },
			errs: []string{"netdev of 0000:3b:10.0 is in another network namespace, not in the pod"},
		},
		{
			name: "renamed", plan: "exclusive-off", change: func(k *attachtest.Kernel) { k.RenameLink(vf(), "mine") },
			errs: []string{"netdev of 0000:3b:10.0 is called mine in the pod, not net1"},
		},
		{
			name: "address gone", plan: "exclusive-off", change: func(k *attachtest.Kernel) { k.FlushAddrs(vf()) },
			errs: []string{"address 10.1.0.5/24 is gone from net1"},
		},
		{
			name: "address gone, and its GID", plan: "exclusive", change: func(k *attachtest.Kernel) { k.FlushAddrs(vf()) },
			errs: []string{"address 10.1.0.5/24 is gone from net1", "GID of 10.1.0.5 is gone from port 1 of mlx5_1"},
		},
		{
			name: "no carrier", plan: "exclusive", change: func(k *attachtest.Kernel) { k.SetCarrier(vf(), false) },
			warnings: []string{"port 1 of mlx5_1 is DOWN"},
		},
		{
			name: "down, another MAC", plan: "exclusive-off", change: func(k *attachtest.Kernel) { k.SetLink(vf(), "02:de:ad:be:ef:00", 0, false) },
			warnings: []string{"interface net1 is down", "interface net1 has MAC 02:de:ad:be:ef:00, not 02:54:00:3b:10:00"},
		},
		{
			name: "GID drifted", plan: "exclusive", seen: func(_ *attach.Facts, p []attach.Port) { p[0].GIDs[3].Index = 9 },
			warnings: []string{"GID of 10.1.0.5 on port 1 of mlx5_1 is at index 9 now, it was at 3"},
		},
		{
			name: "GID is v1 now", plan: "exclusive", seen: func(_ *attach.Facts, p []attach.Port) { p[0].GIDs[3].Type = v1 },
			errs: []string{"GID of 10.1.0.5 is gone from port 1 of mlx5_1"},
		},
		{
			name: "port gone", plan: "exclusive", seen: func(_ *attach.Facts, p []attach.Port) { p[0].Number = 2 },
			errs: []string{"RDMA port 1 is gone"},
		},
		{
			name: "RDMA device gone", plan: "exclusive", change: func(k *attachtest.Kernel) { k.RemoveRDMA("mlx5_1") },
			errs: []string{"RDMA device of 0000:3b:10.0 is gone"},
		},
		{
			name: "RDMA device gone, shared", plan: "shared", change: func(k *attachtest.Kernel) { k.RemoveRDMA("mlx5_1") },
			errs: []string{"RDMA device of 0000:3b:10.0 is gone"},
		},
		{
			name: "RDMA device moved on", plan: "exclusive", seen: func(f *attach.Facts, _ []attach.Port) { f.RDMA.NS = attach.Elsewhere },
			errs: []string{"RDMA device of 0000:3b:10.0 is in another network namespace, not in the pod"},
		},
		{
			name: "RDMA device made anew", plan: "exclusive", seen: func(f *attach.Facts, _ []attach.Port) { f.RDMA.Index = 77 },
			errs: []string{"function 0000:3b:10.0 has another RDMA device now, mlx5_1"},
		},
		{
			name: "another name and number", plan: "exclusive", seen: func(f *attach.Facts, _ []attach.Port) { f.RDMA.Name, f.RDMA.Uverbs = "mine_0", 9 },
			warnings: []string{
				"RDMA device mlx5_1 is called mine_0 now", "RDMA device mine_0 has uverbs9 now, and the container was given uverbs1",
			},
		},
		{
			name: "soft device gone", plan: "soft-roce", change: func(k *attachtest.Kernel) { k.RemoveRDMA("pfca3ed83f20") },
			errs: []string{"soft RDMA device pfca3ed83f20 is gone"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sc := play(t, plan(t, tt.plan))
			if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
				t.Fatal(err)
			}
			w := promised(t, sc)
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

// promised is what ADD would record. The index of an IPv4 address' GID is 3 on a device and 1 more on soft RoCE's default
// entry, which is v2 alone (lab/README.md fact 6).
func promised(t *testing.T, sc *scene) attach.Want {
	t.Helper()
	w := attach.Want{
		IfName: "net1", Before: recorded(t, sc.before), Addrs: sc.addrs.Prefixes(), Moved: attach.MovesRDMA(sc.steps), Soft: sc.soft,
	}
	now, ports := present(t, sc)
	if sc.conf.RDMA.Mode == "off" || now.RDMA == nil && now.Soft == nil {
		return w
	}
	index := 3
	if sc.soft != "" {
		index = 1
	}
	for _, p := range ports {
		for _, a := range sc.addrs.Prefixes() {
			if a.Addr().Is4() {
				w.GIDs = append(w.GIDs, attach.WantGID{Port: p.Number, Index: index, Addr: netip.AddrFrom16(a.Addr().As16())})
			}
		}
	}
	return w
}

func present(t *testing.T, sc *scene) (attach.Facts, []attach.Port) {
	t.Helper()
	now := sc.observe(t, sc.s)
	dev := now.RDMA
	if sc.soft != "" {
		dev = now.Soft
	}
	if dev == nil {
		return now, nil
	}
	ports, err := sc.s.Ports(t.Context(), attach.Pod, dev.Name)
	if err != nil {
		return now, nil // not in the pod
	}
	return now, ports
}
