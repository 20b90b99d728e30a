// SPDX-License-Identifier: Apache-2.0

//go:build lab

package master_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// Whatever a pod does with its interface, and however it ends, nothing of it is left.
func TestDel(t *testing.T) {
	netdev, ib := pf(t, 1)
	before := cni.Look(t)
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
				if !has(pod) {
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
			c.Add(t)
			tt.meanwhile(t, pod)
			c.Del(t)
			c.Del(t)
			if out := pod.Run(t, "ip", "-o", "link", "show", "type", tt.kind); out != "" {
				t.Errorf("left in the pod: %s", out)
			}
			node.Wait(t, "the GID gone", func() bool { return len(indices(table(t, ib), 1)) == 0 })
		})
	}
	before.Unchanged(t)
}

// Each ADD fails later than the one before, and none leaves anything.
func TestFailuresHalfWay(t *testing.T) {
	netdev, ib := pf(t, 1)
	before := cni.Look(t)
	t.Run("the name is taken", func(t *testing.T) {
		pod := node.NewNS(t)
		pod.Run(t, "ip", "link", "add", "net1", "type", "dummy")
		cni.Call{Conf: macvlan(netdev, "10.9.0.1/24"), ContainerID: "taken", NetNS: pod.Path}.Refused(t, 107, "net1")
	})
	t.Run("the address", func(t *testing.T) {
		pod := node.NewNS(t)
		// The kernel has no IPv6 at all on a link whose MTU is below 1280: neither the sysctls nor the address.
		c := cni.Call{Conf: macvlan(netdev, "2001:db8::7/64", `,"mtu":1000`), ContainerID: "address", NetNS: pod.Path}
		if _, failure := c.Run(t, "ADD"); failure == nil {
			t.Error("ADD succeeded")
		}
		empty(t, pod)
	})
	t.Run("the route", func(t *testing.T) {
		pod := node.NewNS(t)
		cni.Call{
			Conf:        macvlan(netdev, "", `,"ipam":{"type":"static","addresses":[{"address":"10.9.0.1/24"}],"routes":[{"dst":"10.50.0.0/16","gw":"192.0.2.1"}]}`),
			ContainerID: "route", NetNS: pod.Path,
		}.Refused(t, 7, "192.0.2.1")
		empty(t, pod)
	})
	t.Run("the hint", func(t *testing.T) {
		pod := node.NewNS(t)
		cni.Call{
			Conf: macvlan(netdev, "10.9.0.1/24", `,"hint":{"require":true}`), ContainerID: "hint", NetNS: pod.Path,
			UID: "11111111-0000-4000-8000-000000000011",
		}.Refused(t, 108, "podfabric")
		empty(t, pod)
	})
	node.Wait(t, "the GIDs of failed pods gone", func() bool { return len(table(t, ib)) == 2 })
	before.Unchanged(t)
}

// empty wants a pod to have nothing but its loopback.
func empty(t *testing.T, pod *node.NS) {
	t.Helper()
	if links := pod.Run(t, "ip", "-br", "link"); !strings.HasPrefix(links, "lo ") || strings.Contains(links, "\n") {
		t.Errorf("left in the pod: %s", links)
	}
}

// recorded tells whether an attachment is on the plugin's books.
func recorded(id string) bool {
	_, err := os.Stat(filepath.Join(cni.StateDir, "attachments", id, "net1.json"))
	return err == nil
}

func TestGC(t *testing.T) {
	netdev, ib := pf(t, 1)
	alive := node.NewNS(t)
	before := cni.Look(t)
	dead := node.NewNS(t)
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
	if !recorded("living") || !has(alive) {
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

// No other attachment stumbles over what a lost DEL left of one without a device, so that repair is who finds it.
func TestRepairAfterALostDel(t *testing.T) {
	netdev, _ := pf(t, 1)
	before := cni.Look(t)
	pod := node.NewNS(t)
	c := cni.Call{
		Conf: macvlan(netdev, "", `,"ipam":{"type":"range","subnet":"10.9.0.0/24","scope":"node"}`), ContainerID: "forgotten", NetNS: pod.Path,
		UID: "11111111-0000-4000-8000-000000000013",
	}
	c.Add(t)
	if out, status := ctl(t, "repair", "--dry-run"); status != "status 0" {
		t.Errorf("repair --dry-run while the pod lives: %s\n%s", status, out)
	}
	pod.Kill(t)
	if out, status := ctl(t, "repair", "--dry-run"); status != "status 1" || !strings.Contains(out, "forgotten") {
		t.Errorf("repair --dry-run: %s\n%s", status, out)
	}
	if out, status := ctl(t, "repair"); status != "status 0" {
		t.Errorf("repair: %s\n%s", status, out)
	}
	before.Unchanged(t)
}
