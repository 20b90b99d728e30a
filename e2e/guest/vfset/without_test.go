// SPDX-License-Identifier: Apache-2.0

//go:build lab

package vfset_test

import (
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// The PF's netdev is in another namespace, as host-device leaves it there.
func TestPFAway(t *testing.T) {
	pf, vf := node.PF(t, 2), node.VF(t, 2, 1)
	name := node.Netdev(pf)
	away, pod := node.NewNS(t), node.NewNS(t)
	home := func() {
		away.Run(t, "ip", "link", "set", name, "netns", "1")
		node.Run(t, "ip", "link", "set", name, "up")
		settled(t, pf)
		// A PF that goes down resets its VFs, which tell it their MACs when they come up again.
		for _, vf := range node.VFs(t, pf) {
			node.Run(t, "ip", "link", "set", node.Netdev(vf), "up")
			node.Run(t, "ip", "link", "set", node.Netdev(vf), "down")
		}
	}
	before := cni.Look(t)

	node.Run(t, "ip", "link", "set", name, "netns", away.Name)
	cni.Call{Conf: network(vf, "10.9.0.7/24", `,"vlan":100`), ContainerID: "away", NetNS: pod.Path}.AddFails(t, 11, "PF", pf)
	home()
	before.Unchanged(t)

	// It goes while a pod has the VF: DEL brings everything else home, and the next DEL the settings, when the PF can be asked again.
	c := cni.Call{Conf: network(vf, "10.9.0.7/24", `,"vlan":100,"rdma":{"require":"no"}`), ContainerID: "goes", NetNS: pod.Path}
	c.Add(t)
	node.Run(t, "ip", "link", "set", name, "netns", away.Name)
	if f := c.Check(t); f != nil {
		t.Errorf("CHECK while nobody can ask the PF: %s", f.Text())
	}
	c.Del(t)
	if node.IBDev(vf) == "" || node.Netdev(vf) == "" {
		t.Error("the VF is not home")
	}
	other := node.NewNS(t)
	next := c
	next.ContainerID, next.NetNS = "next", other.Path
	if _, f := next.Run(t, "ADD"); f == nil || f.Code != 11 {
		t.Errorf("ADD of a VF with another pod's VLAN: %v", f)
	}
	other.Kill(t)
	home()
	c.Del(t)
	before.Unchanged(t)
}
