// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/attach"
)

// Facts that no run of the fake comes to by itself.
func TestRestoreFromFacts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		now  func(*attach.Facts)
		want string
	}{
		{name: "nothing changed", now: func(*attach.Facts) {}},
		{
			name: "only the MTU differs", now: func(f *attach.Facts) { f.Link.MTU = 1400 },
			want: "move link 0000:3b:10.0 host/ens1f0v4 -> host/ens1f0v4, mtu 1400 -> 1500\n",
		},
		{
			name: "a new RDMA device keeps its name, though the old one's is free",
			now:  func(f *attach.Facts) { f.RDMA.Index, f.RDMA.Name = 9, "mlx5_9" },
		},
		{
			name: "same index after a reload, another GUID: a new device",
			now: func(f *attach.Facts) {
				f.RDMA.NodeGUID, f.RDMA.Name, f.Link.Name = "0254:00ff:fe3b:9999", "mlx5_9", "eth7"
			},
		},
		{
			name: "the netdev is home first; of an RDMA device that is away neither index nor GUID are seen",
			now: func(f *attach.Facts) {
				f.Link.Name, f.RDMA = "net1", &attach.RDMA{Name: "mlx5_4", NS: attach.Elsewhere, Uverbs: 2}
			},
			want: "move link 0000:3b:10.0 host/net1 -> host/ens1f0v4, mtu 1500 -> 1500\n",
		},
		{
			name: "a new RDMA device in the pod goes home too, under its own name",
			now:  func(f *attach.Facts) { f.RDMA.Index, f.RDMA.Name, f.RDMA.NS = 9, "mlx5_9", attach.Pod },
			want: "move rdma mlx5_9 (index 9) pod -> host\n",
		},
		{
			name: "a soft device that is away is not to be deleted from here",
			now:  func(f *attach.Facts) { f.Soft = &attach.RDMA{Name: "pf0123456789", NS: attach.Elsewhere} },
		},
		{
			name: "a soft device of a function that is gone",
			now: func(f *attach.Facts) {
				f.Soft = &attach.RDMA{Name: "pf0123456789", NS: attach.Host}
				f.Function.Exists = false
			},
			want: "del soft rdma pf0123456789\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before, now := good(), good()
			now.HostLinks, now.HostRDMA = []string{"ens1f0", "lo"}, []string{"mlx5_0"}
			tt.now(&now)
			if diff := cmp.Diff(tt.want, lines(attach.Restore(recorded(t, before), now))); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// While the kernel moves a device nothing of it can be seen for a moment; that must be waited for, and nothing else.
func TestAway(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		now  func(*attach.Facts)
		want []string
	}{
		{name: "home", now: func(*attach.Facts) {}},
		{name: "RDMA in between", now: func(f *attach.Facts) { f.RDMA = nil }, want: []string{"RDMA device mlx5_4 (index 4)"}},
		{name: "RDMA modules unloaded", now: func(f *attach.Facts) { f.RDMA, f.Mode = nil, attach.NoRDMA }},
		{name: "netdev in between", now: func(f *attach.Facts) { f.Link = nil }, want: []string{"netdev ens1f0v4 of 0000:3b:10.0"}},
		{name: "in the pod: what a step failed to move is an error, not away", now: func(f *attach.Facts) { f.Link.NS, f.RDMA.NS = attach.Pod, attach.Pod }},
		{name: "driver unbound", now: func(f *attach.Facts) { f.Function.Driver, f.Link, f.RDMA = "", nil, nil }},
		{name: "function gone", now: func(f *attach.Facts) { f.Function.Exists, f.Link, f.RDMA = false, nil, nil }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			now := good()
			tt.now(&now)
			if diff := cmp.Diff(tt.want, attach.Away(recorded(t, good()), now)); diff != "" {
				t.Errorf("away (-want +got):\n%s", diff)
			}
		})
	}
	now := good()
	now.Link.Name = "net1"
	want := []string{"netdev of 0000:3b:10.0 is called net1, not ens1f0v4 as before"}
	if diff := cmp.Diff(want, attach.Notes(good(), now)); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}
