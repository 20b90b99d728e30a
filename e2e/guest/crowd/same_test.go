// SPDX-License-Identifier: Apache-2.0

//go:build lab

package crowd_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
	"github.com/podfabric/podfabric/plugin/record"
)

// TestOneDeviceTwoPods has two pods ask for one device at the same moment, seven times over: one gets it, the other is told who has it,
// and the DEL that follows the failed ADD leaves it alone.
func TestOneDeviceTwoPods(t *testing.T) {
	deadline(t, patient)
	before := cni.Look(t)
	var all sync.WaitGroup
	for i, vf := range vfs(t)[:7] {
		all.Go(func() {
			ibdev, number := node.IBDev(vf), uverbs(t, vf)
			var calls [2]call
			var pods [2]pod
			var adds [2]*process
			var won []int
			for n := range calls {
				pods[n] = newPod(t, fmt.Sprintf("same-%d-%d", i, n))
				calls[n] = call{conf: ofVF(vf, []string{ranged, delegated}[(i+n)%2]), id: pods[n].Name, netns: pods[n].Path}
			}
			for n, c := range calls {
				adds[n] = c.start(t, "ADD")
			}
			for n, p := range adds {
				if f := p.wait(t); f == nil {
					won = append(won, n)
				} else {
					p.is(t, f, 11, calls[1-n].id, vf)
				}
			}
			if len(won) == 1 {
				n := won[0]
				calls[1-n].ok(t, "DEL")
				pods[n].holds(t, calls[n], vf, ibdev, number)
				calls[n].ok(t, "CHECK")
			} else {
				t.Errorf("%s: ADD succeeded for the pods %v of 0 and 1\n%s\n%s", vf, won, adds[0].stderr.Bytes(), adds[1].stderr.Bytes())
			}
			for n, c := range calls {
				c.ok(t, "DEL")
				pods[n].end(t)
			}
		})
	}
	all.Wait()
	before.Unchanged(t)
	nothingLeft(t)
}

// TestOldPodGoesWhileNewComes hands one VF from pod to pod, the DEL of the old one at the same time as the ADD of the new one: in
// both orders, with the old pod's namespace dying before or between, and with a DEL of the old one that comes once more when all is
// over. The new one gets the VF in the end, and keeps it. No other device is on its way meanwhile: two that the kernel sends home at
// once, each from a dead namespace, may come back with each other's numbers.
func TestOldPodGoesWhileNewComes(t *testing.T) {
	deadline(t, patient)
	before := cni.Look(t)
	vf := vfs(t)[3]
	ibdev, number := node.IBDev(vf), uverbs(t, vf)
	next := func(n int) (pod, call) {
		p := newPod(t, fmt.Sprint("turn-", n))
		return p, call{conf: ofVF(vf, []string{ranged, delegated}[n%2]), id: p.Name, netns: p.Path}
	}
	old, c := next(0)
	c.ok(t, "ADD")
	for n := range 2 * handOvers {
		p, d := next(n + 1)
		handOver(t, old, c, d, n%handOvers)
		p.holds(t, d, vf, ibdev, number)
		d.ok(t, "CHECK")
		old, c = p, d
	}
	c.ok(t, "DEL")
	old.end(t)
	before.Unchanged(t)
	nothingLeft(t)
}

// handOvers is how many ways there are of handing a device over.
const handOvers = 6

// handOver ends one pod and has the other get its device.
func handOver(t *testing.T, old pod, c, d call, way int) {
	t.Helper()
	begun := make(chan struct{})
	var both sync.WaitGroup
	both.Go(func() {
		if way == 3 || way == 4 { // the namespace ends first
			old.end(t)
		}
		if way == 2 || way == 4 { // ADD first: it is refused while the old pod lives, and brings the device home itself if not
			<-begun
		}
		del := c.start(t, "DEL")
		if way == 5 { // the namespace ends under the hands of DEL
			old.end(t)
		}
		if f := del.wait(t); f != nil {
			t.Errorf("%s: code %d: %s\n%s", del.what, f.Code, f.Text(), del.stderr.Bytes())
		}
		if way < 3 {
			old.end(t)
		}
	})
	both.Go(func() {
		if way == 0 {
			await(t, "the DEL of "+c.id+" on its way", func() bool {
				var rec record.Record
				err := readJSON(filepath.Join(cni.StateDir, "attachments", c.id, "net1.json"), &rec)
				return err != nil || rec.State == record.Deleting
			})
		}
		add := d.start(t, "ADD")
		close(begun)
		for f := add.wait(t); f != nil; f = add.wait(t) {
			again := f.Code == 11 || f.Code == 104 // what the kernel sends home leaves its number for a moment
			if !again {
				t.Errorf("%s: code %d: %s\n%s", add.what, f.Code, f.Text(), add.stderr.Bytes())
			}
			d.ok(t, "DEL") // as the runtime does after a failed ADD, before kubelet tries again
			if !again {
				return
			}
			add = d.start(t, "ADD")
		}
	})
	both.Wait()
	// A runtime may repeat itself, and its path to the old namespace may lead to the new one by now.
	c.ok(t, "DEL")
	c.netns = d.netns
	c.ok(t, "DEL")
}
