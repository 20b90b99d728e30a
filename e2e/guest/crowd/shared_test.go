// SPDX-License-Identifier: Apache-2.0

//go:build lab

package crowd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
	"github.com/podfabric/podfabric/plugin/hint"
)

// TestCrowdOfASharedNode has pods come and go at once in shared mode, where the GIDs of all macvlans are in the one table of the NIC:
// each pod is told the index that has its own address, whoever comes and goes beside it.
func TestCrowdOfASharedNode(t *testing.T) {
	mode(t, "shared")
	t.Cleanup(func() { mode(t, "exclusive") })
	deadline(t, patient)
	before := cni.Look(t)
	functions, reg, pf := vfs(t), newRegistry(), node.IBDev(node.PF(t, 1))
	macvlan := strings.Replace(onPF(t, ranged), `{"mode":"off"}`, `{"wait":"2m"}`, 1)
	gcs := meanwhile(func() { reg.gc(t) })
	var all sync.WaitGroup
	for slot := range 14 {
		all.Go(func() {
			p := newPod(t, fmt.Sprint("shared-", slot))
			c, ibdev := call{conf: macvlan, id: p.Name, netns: p.Path}, pf
			if slot < 7 {
				c.conf, ibdev = ofVF(functions[slot], ranged), node.IBDev(functions[slot])
			}
			reg.list(c.id)
			if c.ok(t, "ADD") {
				ownIndex(t, c, ibdev)
				c.ok(t, "CHECK")
			}
			reg.unlist(c.id)
			if slot%2 == 0 {
				p.end(t)
				c.ok(t, "DEL")
				return
			}
			c.ok(t, "DEL")
			p.end(t)
		})
	}
	all.Wait()
	t.Logf("%d runs of GC meanwhile", gcs())
	// A DEL does not wait for ever for what a dead namespace still has; then GC ends what it began.
	await(t, "all VFs at home", func() bool {
		return !slices.ContainsFunc(functions, func(vf string) bool { return node.Netdev(vf) == "" })
	})
	reg.gc(t)
	before.Unchanged(t)
	nothingLeft(t)
}

// mode sets that of the RDMA subsystem, which the kernel refuses while a namespace is left; dead ones go in the kernel's time.
func mode(t *testing.T, to string) {
	t.Helper()
	await(t, "the mode "+to, func() bool {
		_, err := node.Try("rdma", "system", "set", "netns", to)
		return err == nil
	})
}

// ownIndex holds the index that a pod was told against the kernel's table.
func ownIndex(t *testing.T, c call, ibdev string) {
	t.Helper()
	var doc hint.Document
	if err := readJSON(filepath.Join(cni.StateDir, "pods", c.id, "fabric.json"), &doc); err != nil {
		t.Errorf("pod %s: %v", c.id, err)
		return
	}
	rail := doc.Rails[0]
	if rail.RDMA == nil || rail.RDMA.Device != ibdev || rail.RDMA.GIDIndex == nil || len(rail.Addresses) != 1 {
		t.Errorf("pod %s: the hint tells of %+v", c.id, rail)
		return
	}
	port := filepath.Join("/sys/class/infiniband", ibdev, "ports/1")
	gid, err := os.ReadFile(fmt.Sprintf("%s/gids/%d", port, *rail.RDMA.GIDIndex))
	kind, typeErr := os.ReadFile(fmt.Sprintf("%s/gid_attrs/types/%d", port, *rail.RDMA.GIDIndex))
	four := rail.Addresses[0].Addr().As4()
	want := fmt.Sprintf("0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x", four[0], four[1], four[2], four[3])
	if got := strings.TrimSpace(string(gid)); got != want || strings.TrimSpace(string(kind)) != "RoCE v2" || err != nil || typeErr != nil {
		t.Errorf("pod %s: GID %d of %s is %s %s, %v, %v, wanted %s", c.id, *rail.RDMA.GIDIndex, ibdev, kind, got, err, typeErr, want)
	}
}
