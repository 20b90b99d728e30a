// SPDX-License-Identifier: Apache-2.0

//go:build lab

package master_test

import (
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// bond makes an active-backup bond of links and gives its name. Afterwards the links are as they were.
func bond(t *testing.T, name string, ports ...string) string {
	t.Helper()
	for _, p := range ports {
		mac := show(t, nil, p).MAC
		node.Run(t, "ip", "link", "set", p, "down")
		t.Cleanup(func() {
			node.Run(t, "ip", "link", "set", p, "down")
			node.Run(t, "ip", "link", "set", p, "address", mac)
			node.Run(t, "ip", "link", "set", p, "up")
			node.Wait(t, "carrier on "+p, func() bool { return up(t, p) })
		})
	}
	node.Run(t, "ip", "link", "add", name, "type", "bond", "mode", "active-backup", "miimon", "100")
	t.Cleanup(func() { node.Run(t, "ip", "link", "del", name) })
	for _, p := range ports {
		node.Run(t, "ip", "link", "set", p, "master", name)
	}
	node.Run(t, "ip", "link", "set", name, "up")
	for _, p := range ports {
		node.Wait(t, "carrier on "+p, func() bool { return up(t, p) })
	}
	node.Wait(t, ports[0]+" to carry the bond's traffic", func() bool {
		_, err := node.Try("ip", "link", "set", name, "type", "bond", "active_slave", ports[0])
		return err == nil
	})
	return name
}

// up tells whether a link has carrier; a dummy's state is unknown, and it has.
func up(t *testing.T, name string) bool {
	t.Helper()
	state := show(t, nil, name).State
	return state == "UP" || state == "UNKNOWN"
}

// A bond counts as its one RDMA device; with two nobody could say which one carries the traffic.
func TestBond(t *testing.T) {
	first, ib := pf(t, 2)
	second, other := pf(t, 3)
	t.Run("one RDMA device", func(t *testing.T) {
		link(t, "spare", "spare type dummy")
		name := bond(t, "bond1", first, "spare")
		pod := node.NewNS(t)
		before := cni.Look(t)
		home := watch(t, node.PF(t, 2))
		c := cni.Call{Conf: macvlan(name, "10.9.0.1/24"), ContainerID: "bonded", NetNS: pod.Path}
		c.Add(t)
		ofPod(t, c, ib, name, 1)
		if f := c.Check(t); f != nil {
			t.Errorf("CHECK: %s", f.Text())
		}
		c.Del(t)
		home()
		before.Unchanged(t)
	})
	t.Run("two RDMA devices", func(t *testing.T) {
		name := bond(t, "bond2", first, second)
		pod := node.NewNS(t)
		c := cni.Call{Conf: macvlan(name, "10.9.0.1/24"), ContainerID: "two", NetNS: pod.Path}
		c.AddFails(t, 102, ib, other, name, "rdma.mode")
		c.Conf = macvlan(name, "10.9.0.1/24", `,"rdma":{"mode":"off"}`)
		before := cni.Look(t)
		c.Add(t)
		if doc, settings := c.Hint(t); doc.Rails[0].RDMA != nil || len(settings) != 0 {
			t.Errorf("with rdma.mode off the hint says %+v, %q", doc.Rails[0].RDMA, settings)
		}
		c.Del(t)
		before.Unchanged(t)
	})
}
