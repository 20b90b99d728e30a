// SPDX-License-Identifier: Apache-2.0

//go:build lab

package master_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// Whatever a pod does with its interface, and however it ends, nothing of it is left.
func TestDel(t *testing.T) {
	netdev, ib := pf(t, 1)
	for _, tt := range []struct {
		name, kind string
		meanwhile  func(t *testing.T, pod *node.NS)
	}{
		{"plain", "macvlan", func(*testing.T, *node.NS) {}},
		{"renamed", "macvlan", func(t *testing.T, pod *node.NS) {
			t.Helper()
			pod.Run(t, "ip", "link", "set", "net1", "down")
			pod.Run(t, "ip", "link", "set", "net1", "name", "mine")
		}},
		{"another MAC", "macvlan", func(t *testing.T, pod *node.NS) {
			t.Helper()
			pod.Run(t, "ip", "link", "set", "net1", "address", "02:00:00:00:00:99")
		}},
		{"renamed, and another link has its name", "macvlan", func(t *testing.T, pod *node.NS) {
			t.Helper()
			pod.Run(t, "ip", "link", "set", "net1", "down")
			pod.Run(t, "ip", "link", "set", "net1", "name", "mine")
			pod.Run(t, "ip", "link", "add", "net1", "type", "dummy")
			t.Cleanup(func() {
				if !has(pod, "net1") {
					t.Error("DEL took a link that the pod made itself")
				}
				pod.Run(t, "ip", "link", "del", "net1")
			})
		}},
		{"gone", "macvlan", func(t *testing.T, pod *node.NS) { t.Helper(); pod.Run(t, "ip", "link", "del", "net1") }},
		{"plain", "ipvlan", func(*testing.T, *node.NS) {}},
		{"gone", "ipvlan", func(t *testing.T, pod *node.NS) { t.Helper(); pod.Run(t, "ip", "link", "del", "net1") }},
	} {
		t.Run(tt.kind+" "+tt.name, func(t *testing.T) {
			pod := node.NewNS(t)
			c := cni.Call{Conf: on(tt.kind, strconv.Quote(netdev), "10.9.0.1/24"), ContainerID: "leaves", NetNS: pod.Path}
			before := cni.Look(t)
			c.Add(t)
			tt.meanwhile(t, pod)
			c.Del(t)
			c.Del(t)
			if out := pod.Run(t, "ip", "-o", "link", "show", "type", tt.kind); out != "" {
				t.Errorf("left in the pod: %s", out)
			}
			node.Wait(t, "the GID gone", func() bool { return len(indices(table(t, ib), 10, 9, 0, 1)) == 0 })
			if !has(pod, "net1") {
				before.Unchanged(t)
			}
		})
	}
}

// Each ADD fails later than the one before, and none leaves anything.
func TestFailuresHalfWay(t *testing.T) {
	netdev, ib := pf(t, 1)
	t.Run("the name is taken", func(t *testing.T) {
		pod := node.NewNS(t)
		pod.Run(t, "ip", "link", "add", "net1", "type", "dummy")
		cni.Call{Conf: macvlan(netdev, "10.9.0.1/24"), ContainerID: "taken", NetNS: pod.Path}.AddFails(t, 107, "net1")
	})
	t.Run("the address", func(t *testing.T) {
		pod := node.NewNS(t)
		// The kernel refuses an IPv6 address on a link whose MTU is below 1280, which no fact tells beforehand.
		c := cni.Call{Conf: macvlan(netdev, "2001:db8::7/64", `,"mtu":1000`), ContainerID: "address", NetNS: pod.Path}
		before := cni.Look(t)
		if _, failure := c.Run(t, "ADD"); failure == nil {
			t.Error("ADD succeeded")
		}
		before.Unchanged(t)
	})
	t.Run("the route", func(t *testing.T) {
		pod := node.NewNS(t)
		cni.Call{
			Conf:        macvlan(netdev, "", `,"ipam":{"type":"static","addresses":[{"address":"10.9.0.1/24"}],"routes":[{"dst":"10.50.0.0/16","gw":"192.0.2.1"}]}`),
			ContainerID: "route", NetNS: pod.Path,
		}.AddFails(t, 7, "192.0.2.1")
	})
	t.Run("the hint", func(t *testing.T) {
		pod := node.NewNS(t)
		cni.Call{
			Conf: macvlan(netdev, "10.9.0.1/24", `,"hint":{"require":true}`), ContainerID: "hint", NetNS: pod.Path,
			UID: "11111111-0000-4000-8000-000000000011",
		}.AddFails(t, 108, "podfabric")
	})
	node.Wait(t, "the GIDs of failed pods gone", func() bool { return len(table(t, ib)) == 2 })
}

// recorded tells whether an attachment is on the plugin's books.
func recorded(id string) bool {
	_, err := os.Stat(filepath.Join(cni.StateDir, "attachments", id, "net1.json"))
	return err == nil
}

func TestGC(t *testing.T) {
	netdev, ib := pf(t, 1)
	alive, dead := node.NewNS(t), node.NewNS(t)
	before := cni.Look(t)
	living := cni.Call{Conf: macvlan(netdev, "10.9.0.1/24"), ContainerID: "living", NetNS: alive.Path}
	gone := cni.Call{Conf: macvlan(netdev, "10.9.0.2/24"), ContainerID: "gone", NetNS: dead.Path}
	living.Add(t)
	gone.Add(t)
	dead.Kill(t)
	gc := func(keys string) {
		t.Helper()
		c := cni.Call{Conf: `{"cniVersion":"1.1.0","name":"rail0","type":"podfabric"` + keys + `}`, ContainerID: "any"}
		if _, failure := c.Run(t, "GC"); failure != nil {
			t.Errorf("GC: %s", failure.Text())
		}
	}
	list := func(key string, ids ...string) string {
		entries := []map[string]string{}
		for _, id := range ids {
			entries = append(entries, map[string]string{"containerID": id, "ifname": "net1"})
		}
		text, _ := json.Marshal(entries)
		return `,"` + key + `":` + string(text)
	}
	gc("")
	if !recorded("gone") || !recorded("living") {
		t.Error("GC without a list did something")
	}
	gc(list("cni.dev/valid-attachments", "living", "gone"))
	if !recorded("gone") || !recorded("living") {
		t.Error("GC took what is in the list")
	}
	gc(`,"cni.dev/valid-attachments":[],"name":"other"`)
	if !recorded("gone") {
		t.Error("GC of another network took it")
	}
	gc(list("cni.dev/attachments"))
	if recorded("gone") {
		t.Error("GC left what the runtime forgot and whose namespace is dead")
	}
	if !recorded("living") || !has(alive, "net1") {
		t.Error("GC took a living attachment")
	}
	ofPod(t, living, ib, netdev, 1)
	if f := living.Check(t); f != nil {
		t.Errorf("CHECK after GC: %s", f.Text())
	}
	living.Del(t)
	before.Unchanged(t)
}

func TestStatus(t *testing.T) {
	netdev, _ := pf(t, 1)
	c := cni.Call{Conf: macvlan(netdev, "10.9.0.1/24"), ContainerID: "status"}
	if _, failure := c.Run(t, "STATUS"); failure != nil {
		t.Errorf("STATUS: %s", failure.Text())
	}
	cni.WithNode(t, `"rails":17`)
	if _, failure := c.Run(t, "STATUS"); failure == nil || failure.Code != 50 {
		t.Errorf("STATUS with a broken node.json: %+v, wanted code 50", failure)
	}
}
