// SPDX-License-Identifier: Apache-2.0

//go:build lab

package master_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// slots of a port of rdmasim (RDMASIM_GIDS), as of a ConnectX.
const slots = 128

// fill puts addresses on a link of the node until no slot of its GID table is free; the returned function takes them off again.
func fill(t *testing.T, netdev, ib string) func() {
	t.Helper()
	free := slots - len(table(t, ib))
	if free%2 != 0 {
		t.Fatalf("%d slots are free, and an address takes two", free)
	}
	batch := func(verb string, n int) {
		t.Helper()
		var lines strings.Builder
		for i := range n {
			fmt.Fprintf(&lines, "addr %s 10.200.0.%d/32 dev %s\n", verb, i+1, netdev)
		}
		file := filepath.Join(t.TempDir(), verb)
		if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		node.Run(t, "ip", "-batch", file)
	}
	batch("add", free/2)
	node.Wait(t, "a full GID table", func() bool { return len(table(t, ib)) == slots })
	return func() {
		t.Helper()
		batch("del", free/2)
		node.Wait(t, "free slots in the GID table", func() bool { return len(table(t, ib)) == slots-free })
	}
}

// The kernel leaves out a GID that has no slot, and says so in its log alone.
func TestFullTableIsNamed(t *testing.T) {
	netdev, ib := pf(t, 1)
	hostAt3(t, netdev, ib)
	empty := fill(t, netdev, ib)
	pod := node.NewNS(t)
	c := cni.Call{Conf: macvlan(netdev, "10.9.0.1/24"), ContainerID: "full", NetNS: pod.Path}
	c.AddFails(t, 105, "GID table of "+ib+" is full (128)")
	// Whoever needs no RDMA may come all the same.
	before := cni.Look(t)
	c.Conf = macvlan(netdev, "10.9.0.1/24", `,"rdma":{"require":"no"}`)
	c.Add(t)
	if doc, _ := c.Hint(t); doc.Rails[0].RDMA == nil || doc.Rails[0].RDMA.GIDIndex != nil {
		t.Errorf("the hint says %+v, wanted a port without an index", doc.Rails[0].RDMA)
	}
	c.Del(t)
	before.Unchanged(t)
	empty()
	c.Conf = macvlan(netdev, "10.9.0.1/24")
	c.Add(t)
	ofPod(t, c, ib, netdev, 1)
	c.Del(t)
}

// Of two equal GIDs nobody could tell which is whose: the node's and another pod's address are refused before anything changes.
func TestSameAddressTwice(t *testing.T) {
	netdev, ib := pf(t, 1)
	hostAt3(t, netdev, ib)
	pod, other := node.NewNS(t), node.NewNS(t)
	before := cni.Look(t)
	c := cni.Call{Conf: macvlan(netdev, "10.9.0.1/24"), ContainerID: "first", NetNS: pod.Path}
	c.Add(t)
	twin := cni.Call{Conf: macvlan(netdev, "10.9.0.1/24"), ContainerID: "twin", NetNS: other.Path}
	twin.AddFails(t, 11, "10.9.0.1", ib, fmt.Sprintf("index %d", only(t, ib, 1)))
	twin.Conf = macvlan(netdev, "10.9.0.250/24")
	twin.AddFails(t, 11, "10.9.0.250", ib, "index 3")
	ofPod(t, c, ib, netdev, 1)
	c.Del(t)
	before.Unchanged(t)
}
