// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// vanishings are what may happen to a function below a living pod. Each gives whether a function is at its address afterwards.
func vanishings() map[string]func(m *machine, k kind) bool {
	anew := func(m *machine, k kind, rdma string) bool {
		dev := k.device()
		m.RemoveFunction(dev)
		m.AddVF(attachtest.VF{
			ID: dev, PF: vfAddr(0).PCI, Number: int(dev.PCI.Function) - 2, Link: "eth9", MAC: "02:aa:00:00:00:09", RDMA: rdma, Up: true,
		})
		chosen := m.VFState(dev)
		chosen.VLAN, chosen.Trust = 100, true // as the pod's were, by chance
		m.SetVFState(dev, chosen)
		return true
	}
	return map[string]func(m *machine, k kind) bool{
		"removed":                          func(m *machine, k kind) bool { m.RemoveFunction(k.device()); return false },
		"made anew":                        func(m *machine, k kind) bool { return anew(m, k, "mlx5_x") },
		"made anew without an RDMA device": func(m *machine, k kind) bool { return anew(m, k, "") },
		"bound to a program's driver":      func(m *machine, k kind) bool { m.Rebind(k.device(), "vfio-pci"); return true },
	}
}

// TestVanished: a function vanishes below a living pod, or another comes to its address: whoever takes the attachment back succeeds, frees
// all that it held, and leaves what is there now as it is. The next pod gets that.
func TestVanished(t *testing.T) {
	t.Parallel()
	ends := map[string]func(t *testing.T, m *machine, r request){
		"DEL":          func(t *testing.T, m *machine, r request) { t.Helper(); m.mustDel(t, r) },
		"DEL, dead":    func(t *testing.T, m *machine, r request) { t.Helper(); m.KillNetNS(netnsOf(r.pod)); m.mustDel(t, r) },
		"GC":           func(t *testing.T, m *machine, r request) { t.Helper(); m.KillNetNS(netnsOf(r.pod)); must(t, m.gc(t)) },
		"the next pod": func(_ *testing.T, m *machine, r request) { m.KillNetNS(netnsOf(r.pod)) },
		"repair": func(t *testing.T, m *machine, r request) {
			t.Helper()
			m.KillNetNS(netnsOf(r.pod))
			for _, f := range m.findings(t, false) {
				if f.Kind != plugin.FindAttachment && f.Kind != plugin.FindUverbs || f.Outcome != plugin.Repaired {
					t.Errorf("repair: %+v", f)
				}
			}
		},
	}
	for how, vanish := range vanishings() {
		for end, do := range ends {
			for _, k := range some("moved", "shared", "off", "VF with settings") {
				t.Run(how+"/"+end+"/"+k.name, func(t *testing.T) {
					t.Parallel()
					m := newMachine(t, k.mode)
					m.pod("pod1")
					m.pod("pod2")
					m.mustAdd(t, k.request)
					there := vanish(m, k)
					before := m.of(k.device())
					do(t, m, k.request)
					next := request{pod: "pod2", of: k.device(), more: rdmaOff}
					err := m.add(t, next)
					m.mustDel(t, next)
					switch {
					case !there:
						answered(t, err, 11, "does not exist")
					case how == "bound to a program's driver": // it has no interface for addresses
					case err != nil:
						t.Errorf("ADD of the next pod: %v", err)
					}
					m.mustDel(t, k.request)
					if how != "bound to a program's driver" {
						if diff := cmp.Diff(before, m.of(k.device())); diff != "" {
							t.Errorf("what came to the address (-before +after):\n%s", diff)
						}
					}
					for _, file := range m.files(t, "run") {
						if strings.Contains(file, "cid-pod1") || strings.Contains(file, "cid-pod2") || strings.Contains(file, "/"+k.device().String()) {
							t.Errorf("left: %s", file)
						}
					}
				})
			}
		}
	}
}

// of is what the machine says of one function and what it has, but for what changes with every move.
func (m *machine) of(dev bus.ID) []string {
	var out []string
	for line := range strings.Lines(m.Dump()) {
		if strings.Contains(line, dev.String()) {
			out = append(out, line)
		}
	}
	return out
}
