// SPDX-License-Identifier: Apache-2.0

//go:build lab

// Package portdown_test is about a rail whose cable is out: its GID table is full, its port is down, and NCCL would skip it
// without a word. It has a boot of its own, because an igb PF that goes down resets its VFs.
package portdown_test

import (
	"fmt"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

//lab:boot pfs=1 vfs=1 mode=exclusive rdmasim=all

func init() { node.Main() }

func TestMain(m *testing.M) { cni.Main(m) }

func network(t *testing.T, rdma string) string {
	t.Helper()
	return fmt.Sprintf(`{"cniVersion":"1.1.0","name":"rail0","type":"podfabric","deviceID":%q,"rdma":%s,
		"ipam":{"type":"static","addresses":[{"address":"10.9.0.7/24"}]}}`, node.VF(t, 1, 0), rdma)
}

func TestPortDown(t *testing.T) {
	node.Run(t, "ip", "link", "set", node.Netdev(node.PF(t, 1)), "down")
	before := cni.Look(t)
	pod := node.NewNS(t)
	// By default, and after 2 s, which the GID does not need.
	cni.Call{Conf: network(t, `{"wait":"2s"}`), ContainerID: "active", NetNS: pod.Path}.AddFails(t, 105, "DOWN", "rdma.wait")

	c := cni.Call{Conf: network(t, `{"wait":"30s","require":"gid"}`), ContainerID: "gid", NetNS: pod.Path}
	c.Add(t)
	doc, _ := c.Hint(t)
	if p := doc.Rails[0].RDMA; p.State != "DOWN" || p.GIDIndex == nil {
		t.Errorf("the hint says state %s, GID index %v; wanted DOWN and an index", p.State, p.GIDIndex)
	}
	if f := c.Check(t); f != nil {
		t.Errorf("CHECK of a port that is down: %s; it may come back by itself", f.Text())
	}
	c.Del(t)
	before.Unchanged(t)
}
