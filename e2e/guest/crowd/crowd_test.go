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
// for what another has, and nothing that the others do may get in its way, but for one thing: a device that the kernel sends home takes
// no lock, and may swap uverbs numbers with another on its way. A pod whose number is lost so does not start. A third of the pods end
// before their DEL, and a third never get one.
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
	before.Permuted(t)
	nothingLeft(t)
}

// live is the life of a pod with a VF, or with a macvlan.
func (r *registry) live(t *testing.T, c call, vf string, way int) {
	t.Helper()
	p := newPod(t, c.id)
	c.netns = p.Path
	r.list(c.id)
	if vf == "" {
		c.ok(t, "ADD")
	} else {
		c.uid = r.liveOn(t, c, p, vf)
		defer r.forget(t, vf)
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

// liveOn has a VF attached to a pod and gives the pod's UID. One whose VF lost its number on the way is deleted, and its owner makes another.
func (r *registry) liveOn(t *testing.T, c call, p pod, vf string) string {
	t.Helper()
	for n := 0; ; n++ {
		c.uid = podUID(fmt.Sprint(c.id, n))
		// One that a pod before left without a DEL comes home in the kernel's time.
		await(t, "the RDMA device of "+vf+" at home", func() bool { return node.IBDev(vf) != "" })
		number, ibdev := r.promise(t, vf), node.IBDev(vf)
		added, lost := c.added(t, vf, number)
		if added {
			p.holds(t, c, vf, ibdev, number)
			c.ok(t, "CHECK")
		}
		if !lost {
			return c.uid
		}
		t.Logf("%s: %s is uverbs%d, and was promised as uverbs%d", c.id, vf, uverbs(t, vf), number)
		r.forget(t, vf)
	}
}

// added calls ADD as a runtime does for a pod whose device was promised to it by a number. What the kernel sends home leaves its number
// for a moment, and an ADD that would get that one is refused, and tried again with the device nodes of the first time. Where the
// device has another number by then the pod is refused again, and to be deleted. It tells whether ADD succeeded, else whether that is why.
func (c call) added(t *testing.T, vf string, number int) (bool, bool) {
	t.Helper()
	for end := time.Now().Add(patient); ; {
		lost := uverbs(t, vf) != number
		add := c.start(t, "ADD")
		f := add.wait(t)
		switch {
		case f == nil:
			return true, false
		case f.Code != 104 || time.Now().After(end):
			t.Errorf("%s: code %d: %s\n%s", add.what, f.Code, f.Text(), add.stderr.Bytes())
			return false, false
		}
		c.ok(t, "DEL")
		if lost {
			return false, true
		}
	}
}
