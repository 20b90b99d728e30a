// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

func outOf(dev bus.ID, id string) record.Out {
	return record.Out{
		Device: dev, Owner: attach.Owner{ContainerID: id, IfName: "net1"}, Pod: netconf.Pod{Namespace: "a", Name: id},
		NetNS:  attach.NetNS{Path: "/run/netns/" + id, Dev: 4, Ino: 7},
		Before: attach.Facts{Function: attach.Function{ID: dev, Exists: true}, VF: &attach.VFState{VLAN: 3}},
		Given:  attach.Given{Name: "net1", Moved: true, VF: &attach.VFState{VLAN: 100}},
	}
}

// TestOut: what is kept at a device is the last owner's to drop, and nobody else's; a file that cannot be read goes with whoever knows
// the device to be home.
func TestOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := record.New(dir)
	vf, sf := bus.PCI(pci.Addr{Bus: 0x3b, Function: 3}), bus.ID{Aux: "mlx5_core.sf.4"}
	if _, err := s.LoadOut(vf); !errors.Is(err, record.ErrNotFound) {
		t.Errorf("of none: %v", err)
	}
	for _, dev := range []bus.ID{vf, sf} {
		want := outOf(dev, "one")
		if err := errors.Join(s.SaveOut(outOf(dev, "zero")), s.SaveOut(want)); err != nil {
			t.Fatal(err)
		}
		got, err := s.LoadOut(dev)
		want.Version = got.Version
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("read back: %v (-want +got):\n%s", err, diff)
		}
	}
	if devs, err := s.Outs(); err != nil || !cmp.Equal(devs, []bus.ID{vf, sf}) {
		t.Errorf("list: %v, %v", devs, err)
	}
	if err := s.DropOut(attach.Owner{ContainerID: "zero", IfName: "net1"}, vf); err != nil {
		t.Error(err)
	}
	if _, err := s.LoadOut(vf); err != nil {
		t.Errorf("dropped by another: %v", err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "out", vf.String()+".json")
	must(os.WriteFile(filepath.Join(dir, "out", "."+vf.String()+".json77"), nil, 0o600))
	must(os.WriteFile(file, []byte(`{"version":1}`), 0o600))
	if _, err := s.LoadOut(vf); !errors.Is(err, record.ErrUnreadable) {
		t.Errorf("of one that says nothing: %v", err)
	}
	must(s.DropOut(attach.Owner{ContainerID: "zero", IfName: "net1"}, vf))
	must(s.DropOut(attach.Owner{ContainerID: "one", IfName: "net1"}, sf))
	must(s.DropOut(attach.Owner{ContainerID: "one", IfName: "net1"}, sf))
	if left, err := os.ReadDir(filepath.Join(dir, "out")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if rec := outOf(vf, "one").Record(); rec.Device != vf || rec.VF.VLAN != 100 || rec.Before.VF.VLAN != 3 || !rec.Moved {
		t.Errorf("as a record: %+v", rec)
	}
	bad := outOf(vf, "../one")
	if err := s.SaveOut(bad); !errors.Is(err, record.ErrOwner) {
		t.Errorf("of an owner that leaves its folder: %v", err)
	}
}

// TestLeftoversAge: what is younger than the moment asked for may be at work.
func TestLeftoversAge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := record.New(dir)
	if left, err := record.New(filepath.Join(dir, "none")).Leftovers(time.Now()); err != nil || len(left) > 0 {
		t.Errorf("of no store: %v, %v", left, err)
	}
	folder := filepath.Join(dir, "attachments/c")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, ".net1.json5"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if left, err := s.Leftovers(time.Now().Add(-time.Minute)); err != nil || len(left) > 0 {
		t.Errorf("younger: %v, %v", left, err)
	}
	left, err := s.Leftovers(time.Now().Add(time.Minute))
	if err != nil || len(left) != 1 || left[0].Owner != (attach.Owner{ContainerID: "c", IfName: "net1"}) {
		t.Fatalf("older: %+v, %v", left, err)
	}
	if err = errors.Join(s.Clear(left[0]), s.Clear(left[0])); err != nil {
		t.Error(err)
	}
	left, err = s.Leftovers(time.Now().Add(time.Minute))
	if err != nil || len(left) != 1 || left[0].Path != folder {
		t.Errorf("then: %+v, %v", left, err)
	}
}
