// SPDX-License-Identifier: Apache-2.0

package sysfs_test

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
	"github.com/podfabric/podfabric/rdmans/sysfs"
	"github.com/podfabric/podfabric/rdmans/sysfs/sysfstest"
)

const node = "testdata/mlx5-node.txtar"

func tree(t *testing.T) (*sysfs.FS, string) {
	t.Helper()
	dir := sysfstest.Extract(t, node)
	f, err := sysfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f, dir
}

func addr(t *testing.T, s string) pci.Addr {
	t.Helper()
	if s == "" {
		return pci.Addr{}
	}
	a, err := pci.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// anyInode leaves the folder's inode to TestInode.
func anyInode() cmp.Option { return cmpopts.IgnoreFields(sysfs.Function{}, "Inode") }

// TestInode holds a function's inode against stat(2), and has it change when the function is made anew at its address.
func TestInode(t *testing.T) {
	t.Parallel()
	f, dir := tree(t)
	a := addr(t, "0000:3b:00.2")
	folder, err := filepath.EvalSymlinks(filepath.Join(dir, "bus/pci/devices", a.String()))
	if err != nil {
		t.Fatal(err)
	}
	var stat unix.Stat_t
	if err = unix.Stat(folder, &stat); err != nil {
		t.Fatal(err)
	}
	got, err := f.Function(a)
	if err != nil || got.Inode != stat.Ino || got.Inode == 0 {
		t.Errorf("inode is %d, want %d; %v", got.Inode, stat.Ino, err)
	}
	if err := os.Rename(folder, folder+".gone"); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(folder, os.DirFS(folder+".gone")); err != nil {
		t.Fatal(err)
	}
	if again, err := f.Function(a); err != nil || again.Inode == got.Inode {
		t.Errorf("made anew: inode is %d again; %v", again.Inode, err)
	}
}

func TestFunction(t *testing.T) {
	t.Parallel()
	f, _ := tree(t)
	pf := addr(t, "0000:3b:00.0")
	tests := []sysfs.Function{
		{
			PCI: pf, Class: 0x020000, Driver: "mlx5_core", Number: -1, TotalVFs: 16, NumVFs: 3, Net: []string{"ens1f0np0", "ens1f0npf0vf0"},
			RDMA: []string{"mlx5_0"}, Uverbs: []sysfs.Uverbs{{Number: 0, Device: "mlx5_0"}},
		},
		{
			PCI: addr(t, "0000:3b:00.2"), Class: 0x020000, Driver: "mlx5_core", PF: pf, Number: 0, Net: []string{"ens1f0v0"},
			RDMA: []string{"mlx5_2"}, Uverbs: []sysfs.Uverbs{{Number: 2, Device: "mlx5_2"}},
		},
		{
			PCI: addr(t, "0000:3b:00.3"), Class: 0x020000, Driver: "mlx5_core", PF: pf, Number: 1, NUMA: -1,
			Uverbs: []sysfs.Uverbs{{Number: 10, Device: "mlx5_3"}},
		},
		{PCI: addr(t, "0000:3b:01.4"), Class: 0x020000, Driver: "vfio-pci", PF: pf, Number: 10, NUMA: 1},
	}
	for _, want := range tests {
		got, err := f.Function(want.PCI)
		if err != nil {
			t.Errorf("%s: %v", want.PCI, err)
			continue
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), anyInode()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", want.PCI, diff)
		}
		if got.VF() != (want.PCI != pf) {
			t.Errorf("%s: VF %v", want.PCI, got.VF())
		}
	}
	all, err := f.Functions()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tests, all, cmpopts.EquateEmpty(), anyInode()); diff != "" {
		t.Errorf("functions (-want +got):\n%s", diff)
	}
}

// The text of a missing file must not get out: Multus takes it for an attachment that is gone.
func TestWhatDoesNotExist(t *testing.T) {
	t.Parallel()
	f, dir := tree(t)
	_, noFunction := f.Function(addr(t, "0000:ff:00.0"))
	_, noPorts := f.Ports("mlx5_9")
	_, escape := f.NodeGUID("../../..")
	_, noTree := sysfs.Open(filepath.Join(dir, "none"))
	_, noParent := f.Parent("mlx5_9")
	for name, err := range map[string]error{
		"function": noFunction, "ports": noPorts, "tree": noTree, "parent": noParent, "a name that leads out": escape,
	} {
		if err == nil || strings.Contains(err.Error(), "no such file or directory") {
			t.Errorf("%s: %v", name, err)
		}
		if name != "a name that leads out" && !errors.Is(err, sysfs.ErrNotExist) {
			t.Errorf("%s: %v, want %v", name, err, sysfs.ErrNotExist)
		}
	}
}

func TestUverbsAreOfTheWholeNode(t *testing.T) {
	t.Parallel()
	f, _ := tree(t)
	got, err := f.Uverbs()
	if err != nil {
		t.Fatal(err)
	}
	want := []sysfs.Uverbs{{Number: 0, Device: "mlx5_0"}, {Number: 2, Device: "mlx5_2"}, {Number: 10, Device: "mlx5_3"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPorts(t *testing.T) {
	t.Parallel()
	f, dir := tree(t)
	got, err := f.Ports("mlx5_2")
	if err != nil {
		t.Fatal(err)
	}
	want := []sysfs.Port{{
		Number: 1, LinkLayer: "Ethernet", State: "ACTIVE", RateMbps: 400000, TableSize: 4,
		GIDs: []sysfs.GID{
			{Index: 0, Addr: netip.MustParseAddr("fe80::254:ff:fe12:3456"), Type: "IB/RoCE v1", Netdev: "ens1f0v0"},
			{Index: 3, Addr: netip.MustParseAddr("::ffff:10.9.0.1"), Type: "RoCE v2", Netdev: "ens1f0v0"},
			{Index: 10, Addr: netip.MustParseAddr("fd00:9::1"), Type: "RoCE v2", Netdev: "ens1f0v0"},
		},
	}}
	same := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
	if diff := cmp.Diff(want, got, same); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	for name, text := range map[string]string{"state": "ACTIVE", "rate": "fast", "gids/3": "10.9.0.1.5"} {
		file := filepath.Join(dir, "class/infiniband/mlx5_2/ports/1", name)
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, content := range []string{text, string(before)} {
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Ports("mlx5_2"); (err == nil) != (content == string(before)) {
				t.Errorf("%s with %q: %v", name, content, err)
			}
		}
	}
}

func TestParentOfAnRDMADevice(t *testing.T) {
	t.Parallel()
	f, _ := tree(t)
	for device, want := range map[string]bus.ID{
		"mlx5_0": bus.PCI(addr(t, "0000:3b:00.0")), "mlx5_2": bus.PCI(addr(t, "0000:3b:00.2")), "rxe0": {},
	} {
		got, err := f.Parent(device)
		if err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", device, got, err, want)
		}
	}
	if guid, err := f.NodeGUID("mlx5_2"); guid != "0254:00ff:fe12:3456" || err != nil {
		t.Errorf("GUID %s, %v", guid, err)
	}
	if layer, err := f.LinkLayer("mlx5_2"); layer != "Ethernet" || err != nil {
		t.Errorf("link layer %s, %v", layer, err)
	}
	names, err := f.RDMADevices()
	if diff := cmp.Diff([]string{"mlx5_0", "mlx5_2", "rxe0"}, names); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
}

func TestUplinkIsNoRepresentor(t *testing.T) {
	t.Parallel()
	f, _ := tree(t)
	tests := []struct {
		names []string
		want  string
	}{
		{names: []string{"ens1f0npf0vf0", "ens1f0np0"}, want: "ens1f0np0"},
		{names: []string{"ens1f0npf0vf0"}},
		{names: []string{"ens1f0v0"}, want: "ens1f0v0"}, // its driver has no phys_port_name
		{},
	}
	for _, tt := range tests {
		got, err := f.Uplink(tt.names)
		if got != tt.want || err != nil {
			t.Errorf("%v: %q, %v, want %q", tt.names, got, err, tt.want)
		}
	}
}
