// SPDX-License-Identifier: Apache-2.0

//go:build lab

package exclusive_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// ctl runs podfabricctl and gives its output and status.
func ctl(t *testing.T, args ...string) (string, string) {
	t.Helper()
	out := node.Run(t, "sh", append([]string{"-c", `podfabricctl "$@" 2>&1; echo "status $?"`, "ctl"}, args...)...)
	i := strings.LastIndex(out, "status ")
	return out[:i], out[i:]
}

func TestShowFindsDevicesInPods(t *testing.T) {
	vf := node.VF(t, 1, 1)
	ib := node.IBDev(vf)
	pod := node.NewNS(t)
	c := cni.Call{Conf: network("rail0", vf, "10.9.0.7/24"), ContainerID: "shown", NetNS: pod.Path}
	c.Add(t)
	out, status := ctl(t, "show", "--json")
	if status != "status 0" || !json.Valid([]byte(out)) {
		t.Errorf("show --json: %s\n%s", status, out)
	}
	table, _ := ctl(t, "show")
	var row string
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, vf) {
			row = line
		}
	}
	for _, want := range []string{ib, "net1", "tests/shown"} {
		if !strings.Contains(row, want) {
			t.Errorf("show of a device in a pod lacks %s: %s", want, row)
		}
	}
	c.Del(t)
}

func TestRepairAfterALostDel(t *testing.T) {
	before := cni.Look(t)
	pod := node.NewNS(t)
	c := cni.Call{
		Conf: network("rail0", node.VF(t, 1, 1), "10.9.0.7/24"), ContainerID: "forgotten", NetNS: pod.Path,
		UID: "11111111-0000-4000-8000-000000000006",
	}
	c.Add(t)
	pod.Kill(t)

	out, status := ctl(t, "repair", "--dry-run")
	if status != "status 1" || !strings.Contains(out, "forgotten") {
		t.Errorf("repair --dry-run: %s\n%s", status, out)
	}
	if out, status := ctl(t, "repair"); status != "status 0" {
		t.Errorf("repair: %s\n%s", status, out)
	}
	before.Unchanged(t)
	if out, status := ctl(t, "repair", "--dry-run"); status != "status 0" {
		t.Errorf("repair --dry-run of a healthy node: %s\n%s", status, out)
	}
}

// A hole in the uverbs numbers blocks every device above it; repair closes it by bouncing an idle one.
func TestRepairClosesAHole(t *testing.T) {
	lower, vf := node.VF(t, 1, 1), node.VF(t, 1, 3)
	driver := "/sys/bus/pci/drivers/igbvf/"
	node.Write(t, driver+"unbind", lower)
	t.Cleanup(func() {
		node.Write(t, driver+"bind", lower)
		node.Wait(t, "the lower device back", func() bool { return node.IBDev(lower) != "" && node.Netdev(lower) != "" })
	})
	pod := node.NewNS(t)
	c := cni.Call{Conf: network("rail0", vf, "10.9.0.7/24"), ContainerID: "blocked", NetNS: pod.Path}
	c.AddFails(t, 104, "podfabricctl repair")
	if out, status := ctl(t, "repair"); status != "status 0" || !strings.Contains(out, "uverbs") {
		t.Errorf("repair: %s\n%s", status, out)
	}
	before := cni.Look(t)
	c.Add(t)
	c.Del(t)
	before.Unchanged(t)
}
