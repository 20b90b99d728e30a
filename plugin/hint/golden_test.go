// SPDX-License-Identifier: Apache-2.0

package hint_test

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/hint"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	uid     = "6f1c1c9e-0000-4000-8000-000000000001"
	sandbox = "c1"
)

// attachment is rail n of a pod with a VF of its own: net<n> on mlx5_<n>, the table as mlx5 fills it.
func attachment(n int, addrs ...string) hint.Fragment {
	name := string(rune('0' + n))
	rail := n - 1
	seen := hint.Seen{
		Conf: netconf.Conf{
			Name: "rail" + name, Kind: netconf.KindVF, Rail: &rail,
			Hint: netconf.Hint{Volume: "podfabric", NCCL: "2.21", NoRight: netconf.NoRightWarn},
			Request: netconf.Request{
				ContainerID: sandbox, IfName: "net" + name, Pod: netconf.Pod{Namespace: "ml", Name: "worker-0", UID: uid},
			},
		},
		Facts: attach.Facts{
			Mode: attach.Exclusive,
			Function: attach.Function{
				ID: bus.PCI(pci.Addr{Bus: uint8(0x3a + n), Function: 2}), Exists: true, VF: true, PF: pci.Addr{Bus: uint8(0x3a + n)}, NUMA: 0,
			},
			Link: &attach.Link{MTU: 9000},
			RDMA: &attach.RDMA{Name: "mlx5_" + name, Uverbs: 4 + n},
		},
		Ports: []attach.Port{{
			Device: "mlx5_" + name, Number: 1, LinkLayer: "Ethernet", State: "ACTIVE", RateMbps: 400000, TableSize: 256,
			GIDs: []attach.GID{
				{Index: 0, Addr: netip.MustParseAddr("fe80::ff:fe00:1"), Type: "IB/RoCE v1", Netdev: "net" + name},
				{Index: 1, Addr: netip.MustParseAddr("fe80::ff:fe00:1"), Type: "RoCE v2", Netdev: "net" + name},
			},
		}},
	}
	for i, a := range addrs {
		p := netip.MustParsePrefix(a)
		gid := netip.AddrFrom16(p.Addr().As16())
		seen.Addrs = append(seen.Addrs, p)
		seen.Ports[0].GIDs = append(seen.Ports[0].GIDs,
			attach.GID{Index: 2 + 2*i, Addr: gid, Type: "IB/RoCE v1", Netdev: "net" + name},
			attach.GID{Index: 3 + 2*i, Addr: gid, Type: "RoCE v2", Netdev: "net" + name})
	}
	return hint.NewFragment(seen)
}

// macvlan makes an attachment share its port: the node's address before it in the table.
func macvlan(f hint.Fragment) hint.Fragment {
	f.Kind, f.Mode, f.VF, f.PF = netconf.KindMacvlan, attach.Shared, -1, pci.Addr{}
	f.RDMA.Shared = true
	for i := range f.RDMA.GIDs {
		if f.RDMA.GIDs[i].Index > 1 {
			f.RDMA.GIDs[i].Index += 2
		}
	}
	host := netip.MustParseAddr("::ffff:10.1.0.1")
	f.RDMA.GIDs = append(f.RDMA.GIDs, hint.GID{Index: 2, Addr: host, Type: "IB/RoCE v1"}, hint.GID{Index: 3, Addr: host, Type: "RoCE v2"})
	return f
}

func storage(f hint.Fragment) hint.Fragment {
	f.Network, f.Rail = "storage", nil
	return f
}

// samePF puts an attachment on the PF of the first one.
func samePF(f hint.Fragment) hint.Fragment {
	f.PCI, f.PF, f.VF = pci.Addr{Bus: 0x3b, Function: 3}, pci.Addr{Bus: 0x3b}, 1
	return f
}

func softRoCE(f hint.Fragment) hint.Fragment {
	f.RDMA.Soft, f.RDMA.Device, f.RDMA.RateMbps, f.MTU = true, "pf0123456789", 1000, 1500
	f.RDMA.GIDs = []hint.GID{
		{Index: 0, Addr: netip.MustParseAddr("fe80::ff:fe00:1"), Type: "RoCE v2"},
		{Index: 1, Addr: netip.MustParseAddr("::ffff:10.1.0.5"), Type: "RoCE v2"},
	}
	return f
}

func noRDMA(f hint.Fragment) hint.Fragment {
	f.RDMA = nil
	f.Warnings = []string{"rdma.mode is off"}
	return f
}

func everything(f hint.Fragment) hint.Fragment {
	tc := 106
	f.Settings.FailClosed, f.Settings.TrafficClass, f.Settings.NCCL = true, &tc, ">=2.18"
	return f
}

// The two files of each shape that a pod can have. The expected ones were read against design §5 and nccl.md, not only
// written by -update.
func TestGolden(t *testing.T) {
	t.Parallel()
	schema := loadSchema(t)
	tests := []struct {
		name  string
		parts []hint.Fragment
	}{
		{"vf-ipv4", []hint.Fragment{attachment(1, "10.1.0.5/24")}},
		{"vf-ipv6", []hint.Fragment{attachment(1, "2001:db8::5/64")}},
		{"vf-dual-stack", []hint.Fragment{attachment(1, "2001:db8::5/64", "10.1.0.5/24")}},
		{"two-rails", []hint.Fragment{attachment(2, "10.2.0.5/24"), attachment(1, "10.1.0.5/24")}},
		{"one-shared-rail", []hint.Fragment{macvlan(attachment(1, "10.1.0.5/24"))}},
		{"one-shared-rail-ipv6", []hint.Fragment{macvlan(attachment(1, "2001:db8::5/64"))}},
		{"several-shared-rails", []hint.Fragment{macvlan(attachment(1, "10.1.0.5/24")), macvlan(attachment(2, "10.2.0.5/24"))}},
		{"storage-and-compute", []hint.Fragment{storage(attachment(1, "10.9.0.5/24")), attachment(2, "10.2.0.5/24")}},
		{"storage-alone", []hint.Fragment{storage(attachment(1, "10.9.0.5/24"))}},
		{"no-address", []hint.Fragment{attachment(1)}},
		{"no-rdma", []hint.Fragment{noRDMA(attachment(1, "10.1.0.5/24"))}},
		{"soft-roce", []hint.Fragment{softRoCE(attachment(1, "10.1.0.5/24"))}},
		{"two-vfs-of-one-pf", []hint.Fragment{attachment(1, "10.1.0.5/24"), samePF(attachment(2, "10.2.0.5/24"))}},
		{"all-options", []hint.Fragment{everything(attachment(1, "10.1.0.5/24"))}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, "podfabric")
			for _, f := range tt.parts {
				n.put(t, f)
			}
			got := txtar.Format(&txtar.Archive{Files: []txtar.File{
				{Name: "nccl.conf", Data: n.host(t, "nccl.conf")}, {Name: "fabric.json", Data: n.host(t, "fabric.json")},
			}})
			for _, bad := range schema.check(n.host(t, "fabric.json")) {
				t.Error(bad)
			}
			golden := filepath.Join("testdata", tt.name+".txtar")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil { //nolint:gosec // in the repository
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
