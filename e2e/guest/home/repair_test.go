// SPDX-License-Identifier: Apache-2.0

//go:build lab

package home_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// forget takes away record and claims, as somebody does who cleans up by hand.
func forget(t *testing.T) {
	t.Helper()
	for _, folder := range []string{"attachments", "claims", "pods", "fragments", "leases"} {
		if err := os.RemoveAll(filepath.Join(cni.StateDir, folder)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRecordLost: the pod ends and nothing is recorded of its device, whose VLAN would be the next pod's. Repair, the next pod's ADD and a
// late DEL each put all of it right.
func TestRecordLost(t *testing.T) {
	for name, do := range map[string]func(t *testing.T, old, next cni.Call){
		"repair": func(t *testing.T, _, _ cni.Call) {
			t.Helper()
			says(t, "1", "repair --dry-run", "of which nothing is recorded any more", "would", "set vlan of vf")
			says(t, "0", "repair", "repaired")
		},
		"ADD": func(t *testing.T, _, next cni.Call) { t.Helper(); next.Add(t); next.Del(t) },
		"DEL": func(t *testing.T, old, _ cni.Call) { t.Helper(); old.Del(t) },
	} {
		for _, vf := range []string{node.VF(t, 1, 0), node.VF(t, 1, 1)} {
			t.Run(name+" of "+vf, func(t *testing.T) {
				before, netdev, ib := cni.Look(t), node.Netdev(vf), node.IBDev(vf)
				pod := node.NewNS(t)
				old := cni.Call{Conf: network(vf, "10.9.0.7/24", `,"vlan":100,"mtu":1400,"mac":"02:00:00:00:09:07"`), ContainerID: "old", NetNS: pod.Path}
				next := cni.Call{Conf: network(vf, "10.9.0.8/24"), ContainerID: "next", NetNS: node.NewNS(t).Path}
				old.Add(t)
				forget(t)
				pod.Kill(t)
				node.Wait(t, "the devices home", func() bool { return node.Netdev(vf) != "" && (ib == "") == (node.IBDev(vf) == "") })
				do(t, old, next)
				if got := node.Netdev(vf); got != netdev {
					t.Errorf("netdev at home: %q, wanted %s", got, netdev)
				}
				before.Unchanged(t)
				says(t, "0", "repair --dry-run", "nothing to repair")
			})
		}
	}
}

// TestRecordOfALivingPodLost: whose pod lives keeps its device, and its DEL brings it home as it was.
func TestRecordOfALivingPodLost(t *testing.T) {
	before := cni.Look(t)
	vf := node.VF(t, 1, 1)
	pod := node.NewNS(t)
	old := cni.Call{Conf: network(vf, "10.9.0.7/24", vlan), ContainerID: "old", NetNS: pod.Path}
	next := cni.Call{Conf: network(vf, "10.9.0.8/24"), ContainerID: "next", NetNS: node.NewNS(t).Path}
	old.Add(t)
	forget(t)
	says(t, "1", "repair", "left", "tests/old", "delete the pod")
	next.AddFails(t, 11, "tests/old", "delete the pod")
	next.Del(t)
	old.Del(t)
	before.Unchanged(t)
}

// TestStateLost: somebody emptied the whole folder below a living pod, or another program gave the device away: nobody can tell which.
// It is told, and nothing is touched.
func TestStateLost(t *testing.T) {
	vf := node.VF(t, 1, 1)
	netdev, ib := node.Netdev(vf), node.IBDev(vf)
	names := filepath.Join(cni.StateDir, "names", vf)
	_ = os.Remove(names)
	before := cni.Look(t)
	pod := node.NewNS(t)
	node.Run(t, "rdma", "dev", "set", ib, "netns", pod.Name)
	node.Run(t, "ip", "link", "set", netdev, "netns", pod.Name, "name", "net1")
	moved := cni.Look(t)
	says(t, "0", "repair --dry-run", "nothing that repair may touch", "device "+vf, "noted", "mount "+pod.Path)
	says(t, "0", "repair", "noted")
	moved.Unchanged(t)
	cni.Call{Conf: network(vf, "10.9.0.8/24"), ContainerID: "next", NetNS: node.NewNS(t).Path}.AddFails(t, 11, "mount "+pod.Path)
	pod.Kill(t)
	node.Wait(t, "the devices home", func() bool { return node.Netdev(vf) != "" && node.IBDev(vf) != "" })
	node.Run(t, "ip", "link", "set", node.Netdev(vf), "name", netdev)
	before.Unchanged(t)
}

// TestRepairClearsFiles: what killed processes left goes.
func TestRepairClearsFiles(t *testing.T) {
	before := cni.Look(t)
	old := time.Now().Add(-time.Hour)
	for _, file := range []string{"attachments/gone/.net1.json77", "out/.0000:01:10.0.json5", "locks/device%200000:01:10.0"} {
		path := filepath.Join(cni.StateDir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	says(t, "1", "repair --dry-run", "cut short", "the process that held this lock was killed")
	says(t, "0", "repair", "repaired: remove it")
	before.Unchanged(t)
	locks, err := os.ReadDir(filepath.Join(cni.StateDir, "locks"))
	if err != nil || len(locks) > 0 {
		t.Errorf("locks are left: %v, %v", locks, err)
	}
	folder := filepath.Join(cni.StateDir, "attachments/gone")
	if err := os.Chtimes(folder, old, old); err != nil {
		t.Fatal(err)
	}
	if out, status := ctl(t, "repair"); status != "status 0" || !strings.Contains(out, "a folder without a record") {
		t.Errorf("repair: %s\n%s", status, out)
	}
}
