// SPDX-License-Identifier: Apache-2.0

//go:build lab

package vfset_test

import (
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// A VLAN joins those in it and keeps out the rest.
func TestVLANIsAWall(t *testing.T) {
	before := cni.Look(t)
	var calls []cni.Call
	join := func(pf, vf int, address, vlan string) *node.NS {
		pod := node.NewNS(t)
		c := cni.Call{
			Conf: network(node.VF(t, pf, vf), address+"/24", `,"vlan":`+vlan), ContainerID: pod.Name, NetNS: pod.Path,
		}
		c.Add(t)
		calls = append(calls, c)
		return pod
	}
	a := join(1, 0, "10.9.0.1", "100")
	join(2, 0, "10.9.0.2", "100")
	join(2, 1, "10.9.0.3", "200")
	join(1, 1, "10.9.0.4", "200")
	reach := func(address string) bool {
		_, err := a.Try("ping", "-c", "1", "-W", "1", address)
		return err == nil
	}
	node.Wait(t, "the pods of VLAN 100 to reach each other", func() bool { return reach("10.9.0.2") })
	for _, other := range []string{"10.9.0.3", "10.9.0.4"} {
		if reach(other) {
			t.Errorf("VLAN 100 reaches %s in VLAN 200", other)
		}
	}
	for _, c := range calls {
		c.Del(t)
	}
	before.Unchanged(t)
}

// The MTU that the network asks for carries packets of its size, and no larger.
func TestTrafficOfTheMTU(t *testing.T) {
	before := cni.Look(t)
	var calls []cni.Call
	var first *node.NS
	for i, address := range []string{"10.9.0.1", "10.9.0.2"} {
		pod := node.NewNS(t)
		c := cni.Call{Conf: network(node.VF(t, i+1, 0), address+"/24", `,"mtu":1400`), ContainerID: pod.Name, NetNS: pod.Path}
		c.Add(t)
		calls = append(calls, c)
		if first == nil {
			first = pod
		}
	}
	reach := func(size string) bool {
		_, err := first.Try("ping", "-c", "1", "-W", "1", "-M", "do", "-s", size, "10.9.0.2")
		return err == nil
	}
	// 20 bytes of IPv4 and 8 of ICMP.
	node.Wait(t, "1400 bytes to pass", func() bool { return reach("1372") })
	if reach("1373") {
		t.Error("1401 bytes pass")
	}
	for _, c := range calls {
		c.Del(t)
	}
	before.Unchanged(t)
}
