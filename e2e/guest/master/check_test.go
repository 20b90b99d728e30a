// SPDX-License-Identifier: Apache-2.0

//go:build lab

package master_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// What took the pod's connection away is an error of CHECK, in words that name it.
func TestCheckFinds(t *testing.T) {
	netdev, ib := pf(t, 1)
	before := cni.Look(t)
	for _, tt := range []struct {
		name  string
		harm  func(t *testing.T, pod *node.NS)
		texts []string
	}{
		{"the address removed", func(t *testing.T, pod *node.NS) {
			t.Helper()
			pod.Run(t, "ip", "addr", "del", "10.9.0.1/24", "dev", "net1")
			node.Wait(t, "the GID gone", func() bool { return len(indices(table(t, ib), 1)) == 0 })
		}, []string{"address 10.9.0.1/24 is gone", "GID of 10.9.0.1 is gone"}},
		{"the link deleted", func(t *testing.T, pod *node.NS) {
			t.Helper()
			pod.Run(t, "ip", "link", "del", "net1")
		}, []string{"net1", "macvlan", netdev, "is gone"}},
		{"the link on another master", func(t *testing.T, pod *node.NS) {
			t.Helper()
			second, _ := pf(t, 2)
			mac := show(t, pod, "net1").MAC
			pod.Run(t, "ip", "link", "del", "net1")
			node.Run(t, "ip", "link", "add", "link", second, "name", "net1", "address", mac, "netns", pod.Name, "type", "macvlan", "mode", "bridge")
		}, []string{"net1", netdev}},
		{"the link renamed", func(t *testing.T, pod *node.NS) {
			t.Helper()
			pod.Run(t, "ip", "link", "set", "net1", "down")
			pod.Run(t, "ip", "link", "set", "net1", "name", "mine")
		}, []string{"called mine"}},
		{"the namespace dead", func(t *testing.T, pod *node.NS) { t.Helper(); pod.Kill(t) }, []string{"namespace is gone"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := node.NewNS(t)
			c := cni.Call{Conf: macvlan(netdev, "10.9.0.1/24"), ContainerID: "checked", NetNS: pod.Path}
			c.Add(t)
			if f := c.Check(t); f != nil {
				t.Fatalf("CHECK of a healthy attachment: %s", f.Text())
			}
			tt.harm(t, pod)
			f := c.Check(t)
			for _, text := range tt.texts {
				if f == nil || f.Code != 102 || !strings.Contains(f.Text(), text) {
					t.Errorf("CHECK: %+v, wanted code 102 with %q", f, text)
				}
			}
			if out, status := ctl(t, "check", "checked"); status != "status 1" || !strings.Contains(out, "lost: ") {
				t.Errorf("podfabricctl check: %s\n%s", status, out)
			}
			c.Del(t)
			if has(pod) {
				pod.Run(t, "ip", "link", "del", "net1")
			}
		})
	}
	before.Unchanged(t)
}

// A GID can be gone though the address is there: another pod took the slots meanwhile.
func TestCheckFindsTheGIDGone(t *testing.T) {
	netdev, ib := pf(t, 1)
	hostAt3(t, netdev, ib)
	before := cni.Look(t)
	pod := node.NewNS(t)
	c := cni.Call{Conf: macvlan(netdev, "10.9.0.1/24"), ContainerID: "slotless", NetNS: pod.Path}
	c.Add(t)
	pod.Run(t, "ip", "addr", "del", "10.9.0.1/24", "dev", "net1")
	node.Wait(t, "the GID gone", func() bool { return len(indices(table(t, ib), 1)) == 0 })
	empty := fill(t, netdev, ib)
	pod.Run(t, "ip", "addr", "add", "10.9.0.1/24", "dev", "net1")
	f := c.Check(t)
	if f == nil || f.Code != 102 || !strings.Contains(f.Text(), "GID of 10.9.0.1 is gone from port 1 of "+ib) || strings.Contains(f.Text(), "address") {
		t.Errorf("CHECK: %+v, wanted code 102 for the GID alone", f)
	}
	c.Del(t)
	empty()
	before.Unchanged(t)
}

// A GID at another index is no loss: a running job has its own already. But the hint is old, so an operator should know.
func TestCheckWarnsOfAShiftedIndex(t *testing.T) {
	netdev, ib := pf(t, 1)
	hostAt3(t, netdev, ib)
	pod, other := node.NewNS(t), node.NewNS(t)
	before := cni.Look(t)
	c := cni.Call{Conf: macvlan(netdev, "10.9.0.1/24"), ContainerID: "shifted", NetNS: pod.Path}
	c.Add(t)
	was := only(t, ib, 1)
	if out, status := ctl(t, "check", "--all"); status != "status 0" {
		t.Errorf("podfabricctl check --all of a healthy node: %s\n%s", status, out)
	}
	pod.Run(t, "ip", "addr", "del", "10.9.0.1/24", "dev", "net1")
	node.Wait(t, "the GID gone", func() bool { return len(indices(table(t, ib), 1)) == 0 })
	thief := cni.Call{Conf: macvlan(netdev, "10.9.0.2/24"), ContainerID: "thief", NetNS: other.Path}
	thief.Add(t)
	if at := only(t, ib, 2); at != was {
		t.Fatalf("the other pod got index %d; this test wants it to get %d", at, was)
	}
	pod.Run(t, "ip", "addr", "add", "10.9.0.1/24", "dev", "net1")
	node.Wait(t, "the GID back", func() bool { return len(indices(table(t, ib), 1)) == 1 })
	if f := c.Check(t); f != nil {
		t.Errorf("CHECK: %s; a shifted index is a warning", f.Text())
	}
	out, status := ctl(t, "check", "--all")
	want := fmt.Sprintf("at index %d now, it was at %d", only(t, ib, 1), was)
	if status != "status 1" || !strings.Contains(out, want) || !strings.Contains(out, "tests/shifted") {
		t.Errorf("podfabricctl check --all: %s\n%s\nwanted %q", status, out, want)
	}
	thief.Del(t)
	c.Del(t)
	before.Unchanged(t)
}

func TestPortDown(t *testing.T) {
	netdev, ib := pf(t, 3)
	pod, other := node.NewNS(t), node.NewNS(t)
	c := cni.Call{Conf: macvlan(netdev, "10.9.0.1/24"), ContainerID: "portdown", NetNS: pod.Path}
	c.Add(t)
	node.Run(t, "ip", "link", "set", netdev, "down")
	before := cni.Look(t)
	if f := c.Check(t); f != nil {
		t.Errorf("CHECK of a port that is down: %s; it may come back by itself", f.Text())
	}
	out, status := ctl(t, "check", "portdown")
	if status != "status 1" || !strings.Contains(out, "port 1 of "+ib+" is DOWN") || !strings.Contains(out, "master "+netdev+" is down") {
		t.Errorf("podfabricctl check: %s\n%s", status, out)
	}
	// A pod that comes now would train over nothing.
	late := cni.Call{Conf: macvlan(netdev, "10.9.0.2/24", `,"rdma":{"wait":"2s"}`), ContainerID: "late", NetNS: other.Path}
	late.AddFails(t, 105, "DOWN", ib)
	before.Unchanged(t)
	node.Run(t, "ip", "link", "set", netdev, "up")
	node.Wait(t, "carrier", func() bool { return up(t, netdev) })
	node.Wait(t, "an active port", func() bool {
		out, status = ctl(t, "check", "portdown")
		return status == "status 0"
	})
	c.Del(t)
}
