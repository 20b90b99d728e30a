// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// repair runs podfabricctl's repair and wants nothing of it to fail.
func (m *machine) repair(t testing.TB) []plugin.Finding {
	t.Helper()
	found, err := m.plugin.Repair(t.Context(), m, false)
	if err != nil {
		t.Errorf("repair: %v", err)
	}
	for _, f := range found {
		if f.Outcome == plugin.Failed {
			t.Errorf("repair failed: %+v", f)
		}
	}
	return found
}

// Functions lists those that have an RDMA device, as repair asks for them.
func (m *machine) Functions(context.Context) ([]bus.ID, error) {
	var out []bus.ID
	for _, id := range append(vfs(), vfAddr(0), vfAddr(2), vfAddr(softVF), otherPF(), subFunction(), vfioVF()) {
		if m.Where(id)[1] != "" {
			out = append(out, id)
		}
	}
	return out, nil
}

// Promised: kubelet sets nothing aside.
func (m *machine) Promised(context.Context, bus.ID) (bool, error) { return false, nil }

// Scratch makes a namespace that lives until end is called.
func (m *machine) Scratch(context.Context) (string, func(), error) {
	path := fmt.Sprintf("/scratch/%d", m.ticks.Add(1))
	m.AddNetNS(path)
	return path, func() { m.KillNetNS(path) }, nil
}
