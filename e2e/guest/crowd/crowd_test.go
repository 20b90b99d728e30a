// SPDX-License-Identifier: Apache-2.0

//go:build lab

package crowd_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// lot is how many pods come at once: one for each VF, the others have macvlans.
const lot = 64

// TestCrowd has 64 pods come and go at once, on 14 VFs and 50 macvlans, while GC and repair run. Every ADD must succeed: nobody asks
// for what another has, and nothing that the others do may get in its way, but for one thing: what the kernel sends home leaves its
// number for a moment, and an ADD that would get that one is refused, and tried again by the runtime. A third of the pods end before their
// DEL, and a third never get one.
func TestCrowd(t *testing.T) {
	deadline(t, patient)
	before := cni.Look(t)
	functions, reg := vfs(t), newRegistry()
	rounds := meanwhile(func() {
		reg.gc(t)
		reg.repair(t)
	})
	var all sync.WaitGroup
	for slot := range lot {
		all.Go(func() {
			for life := range 2 {
				if life > 0 && slot >= len(functions) && slot%4 > 0 {
					continue // one macvlan in four comes back, so that ADDs meet DELs
				}
				ipam := []string{ranged, ranged, delegated}[(slot+life)%3]
				c := call{id: fmt.Sprintf("crowd-%d-%d", slot, life)}
				if slot < len(functions) {
					c.conf = ofVF(functions[slot], ipam)
					reg.live(t, c, functions[slot], slot+life)
				} else {
					c.conf = onPF(t, ipam)
					reg.live(t, c, "", slot+life)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d runs of GC and of repair meanwhile", rounds())
	reg.gc(t)
	before.Unchanged(t)
	nothingLeft(t)
}

// added calls ADD as a runtime does for a pod whose device was promised to it, and tells whether it succeeded in the end.
func (r *registry) added(t *testing.T, c call) bool {
	t.Helper()
	for end := time.Now().Add(patient); ; {
		add := c.start(t, "ADD")
		f := add.wait(t)
		if f == nil {
			return true
		}
		if f.Code != 104 || time.Now().After(end) {
			t.Errorf("%s: code %d: %s\n%s", add.what, f.Code, f.Text(), add.stderr.Bytes())
			return false
		}
		c.ok(t, "DEL")
	}
}

// live is the life of a pod with a VF, or with a macvlan.
func (r *registry) live(t *testing.T, c call, vf string, way int) {
	t.Helper()
	p := newPod(t, c.id)
	c.netns = p.Path
	r.list(c.id)
	number, ibdev := -1, ""
	if vf != "" {
		// One that a pod before left without a DEL comes home in the kernel's time.
		await(t, "the RDMA device of "+vf+" at home", func() bool { return node.IBDev(vf) != "" })
		number, ibdev = r.promise(t, vf), node.IBDev(vf)
		defer r.forget(t, vf)
	}
	if r.added(t, c) && vf != "" {
		p.holds(t, c, vf, ibdev, number)
		c.ok(t, "CHECK")
	}
	r.unlist(c.id)
	switch way % 3 {
	case 0:
		c.ok(t, "DEL")
		p.end(t)
	case 1:
		p.end(t)
		c.ok(t, "DEL")
	default:
		p.end(t) // and no DEL, ever
	}
}
