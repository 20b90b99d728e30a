// SPDX-License-Identifier: Apache-2.0

//go:build lab

package crowd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
	"github.com/podfabric/podfabric/e2e/tally"
)

// TestTwoHundredVFs attaches and detaches VFs with their RDMA devices 200 times, and counts what the kernel holds before and after.
// Every second pod ends before its DEL; every tenth ADD fails when all is done but the hint, which has no volume
// to go to, and is undone.
func TestTwoHundredVFs(t *testing.T) {
	const cycles = 200
	deadline(t, patient)
	functions := vfs(t)[:4]
	// Once for what is made once.
	for i, vf := range functions {
		cycle(t, fmt.Sprint("first-", i), vf, i)
	}
	before, all, own, slabs := cni.Look(t), rdmaState(t), tally.Own(t), tally.Slabs(t)
	begin := time.Now()
	var workers sync.WaitGroup
	for worker, vf := range functions {
		workers.Go(func() {
			for n := range cycles / len(functions) {
				cycle(t, fmt.Sprintf("leak-%d-%d", worker, n), vf, n)
			}
		})
	}
	workers.Wait()
	t.Logf("%d cycles in %v", cycles, time.Since(begin).Round(time.Millisecond))
	before.Unchanged(t)
	tally.Settles(t, func() string { return own.Grown(tally.Own(t), 0) })
	tally.Settles(t, func() string { return all.Grown(rdmaState(t), 0) })
	tally.Settles(t, func() string { return slabs.Grown(tally.Slabs(t), cycles/3) })
	nothingLeft(t)
}

func cycle(t *testing.T, id, vf string, n int) {
	t.Helper()
	p := newPod(t, id)
	c := call{ofVF(vf, []string{ranged, ranged, delegated}[n%3]), id, p.Path}
	if n%10 == 9 {
		c.conf = strings.Replace(c.conf, `"type":"podfabric"`, `"type":"podfabric","hint":{"require":true}`, 1)
		c.refused(t, "ADD", 108, "hint.require")
	} else {
		c.ok(t, "ADD")
	}
	if n%2 == 0 {
		p.end(t)
		c.ok(t, "DEL")
		return
	}
	c.ok(t, "DEL")
	p.end(t)
}

// rdmaState counts RDMA devices, verbs devices and GIDs at home.
func rdmaState(t *testing.T) tally.Tally {
	t.Helper()
	out := tally.Tally{"RDMA devices": len(node.RDMA(t, nil)), "verbs devices": len(numbers(t)), "free numbers below": len(holes(t))}
	types, err := filepath.Glob("/sys/class/infiniband/*/ports/*/gid_attrs/types/*")
	must(t, err)
	for _, file := range types {
		if _, err := os.ReadFile(file); err == nil { // EINVAL: an empty slot
			out["GIDs"]++
		}
	}
	return out
}
