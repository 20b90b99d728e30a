// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// TestManyUnreadable: after a downgrade no record may be readable, and every ADD of a device lists them all. Twice as many take twice as much,
// not four times.
func TestManyUnreadable(t *testing.T) { //nolint:paralleltest // allocations are counted, and those of others with them
	work := func(n int) float64 {
		s, dir := newStore(t)
		for i := range n {
			dev := bus.PCI(pci.Addr{Bus: 0x3b, Device: uint8(i / 8), Function: uint8(i % 8)})
			r := intent(owner(fmt.Sprintf("c%d", i)), dev)
			if err := errors.Join(s.Save(r), s.Claim(dev, r.Owner), s.SaveOut(outOf(dev, r.Owner.ContainerID))); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "attachments", r.Owner.ContainerID, r.Owner.IfName+".json"), []byte(`{"version":99}`), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		list := func() {
			_, errs := s.List()
			for _, err := range errs {
				e := (*record.UnreadableError)(nil)
				if !errors.As(err, &e) || e.Device.IsZero() || e.Pod.Name != e.Owner.ContainerID || !e.Newer {
					t.Fatalf("found %+v", err)
				}
			}
			if len(errs) != n {
				t.Fatalf("%d errors of %d records", len(errs), n)
			}
		}
		return testing.AllocsPerRun(1, list)
	}
	few, many := work(30), work(60)
	if many > 3*few {
		t.Errorf("%.0f allocations for 30 records, %.0f for 60", few, many)
	}
}
