// SPDX-License-Identifier: Apache-2.0

package sysfs_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/sysfs"
	"github.com/podfabric/podfabric/rdmans/sysfs/sysfstest"
)

func subFunctions(t *testing.T) (*sysfs.FS, string) {
	t.Helper()
	dir := sysfstest.Extract(t, "testdata/mlx5-sf.txtar")
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

func TestSubFunction(t *testing.T) {
	t.Parallel()
	f, _ := subFunctions(t)
	pf := addr(t, "0000:3b:00.0")
	want := []sysfs.Function{
		{
			PCI: pf, Aux: "mlx5_core.sf.4", Class: 0x020000, Driver: "mlx5_core.sf", Number: -1, NUMA: 1, Net: []string{"ens1f0s88"},
			RDMA: []string{"mlx5_8"}, Uverbs: []sysfs.Uverbs{{Number: 8, Device: "mlx5_8"}},
		},
		{
			PCI: pf, Aux: "mlx5_core.sf.5", Class: 0x020000, Driver: "mlx5_core.sf", Number: -1, NUMA: 1,
			Uverbs: []sysfs.Uverbs{{Number: 9, Device: "mlx5_9"}},
		},
	}
	got, err := f.SFs()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), anyInode()); diff != "" {
		t.Errorf("sub-functions (-want +got):\n%s", diff)
	}
	for i, id := range []bus.ID{{Aux: "mlx5_core.sf.4"}, {Aux: "mlx5_core.sf.5"}} {
		one, oneErr := f.Device(id)
		if diff := cmp.Diff(want[i], one, cmpopts.EquateEmpty(), anyInode()); diff != "" || oneErr != nil || one.ID() != id || one.VF() {
			t.Errorf("%s, %v (-want +got):\n%s", id, oneErr, diff)
		}
	}
	on, err := f.Device(bus.PCI(pf))
	if err != nil || !on.Resets || on.ID() != bus.PCI(pf) || on.Aux != "" {
		t.Errorf("PF %+v, %v", on, err)
	}
	functions, err := f.Functions()
	if err != nil || len(functions) != 1 {
		t.Errorf("PCI functions %v, %v", functions, err)
	}
}

func TestWhereDevicesAre(t *testing.T) {
	t.Parallel()
	f, _ := subFunctions(t)
	sf, pf := bus.ID{Aux: "mlx5_core.sf.4"}, bus.PCI(addr(t, "0000:3b:00.0"))
	for id, want := range map[bus.ID]string{
		sf: "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/mlx5_core.sf.4", pf: "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0",
	} {
		if got, err := f.Path(id); got != want || err != nil {
			t.Errorf("%s at %s, %v, want %s", id, got, err, want)
		}
	}
	for name, want := range map[string]bus.ID{"ens1f0s88": sf, "ens1f0np0": pf, "ens1f0npf0sf88": pf, "lo": {}} {
		if got, err := f.NetDevice(name); got != want || err != nil {
			t.Errorf("device of %s: %s, %v, want %s", name, got, err, want)
		}
	}
	for name, want := range map[string]bus.ID{"mlx5_8": sf, "mlx5_0": pf} {
		if got, err := f.Parent(name); got != want || err != nil {
			t.Errorf("device of %s: %s, %v, want %s", name, got, err, want)
		}
	}
	for name, want := range map[string]bool{"ens1f0npf0sf88": true, "ens1f0np0": false, "ens1f0s88": false, "lo": false} {
		if got, err := f.Representor(name); got != want || err != nil {
			t.Errorf("%s is a representor: %t, %v", name, got, err)
		}
	}
}

func TestDevicesThatAreNotThere(t *testing.T) {
	t.Parallel()
	f, dir := subFunctions(t)
	none := bus.ID{Aux: "mlx5_core.sf.77"}
	_, device := f.Device(none)
	_, where := f.Path(none)
	_, netdev := f.NetDevice("none")
	for name, err := range map[string]error{"device": device, "path": where, "netdev": netdev} {
		if !errors.Is(err, sysfs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A sub-function that is on no PCI function is of a bus that nobody here knows.
	link := filepath.Join(dir, "bus/auxiliary/devices/other.sf.1")
	if err := os.Symlink("../../../devices/virtual/other.sf.1", link); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Device(bus.ID{Aux: "other.sf.1"}); !errors.Is(err, sysfs.ErrSyntax) {
		t.Errorf("on no PCI function: %v", err)
	}
}
