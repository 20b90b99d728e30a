// SPDX-License-Identifier: Apache-2.0

//go:build lab

package crowd_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/node"
)

// TestUverbsNumbers moves RDMA devices of six VFs in and out of pods while holes open in the uverbs numbers and repair closes them. A pod that
// starts has the number that its container was promised, or does not start: code 104 while there is a hole below. When all is over
// no hole is left.
func TestUverbsNumbers(t *testing.T) {
	deadline(t, patient)
	functions, reg := vfs(t), newRegistry()
	plugs := plug(t, functions[:2])
	netdevs, ibdevs := homes(functions)
	var all sync.WaitGroup
	var still sync.RWMutex // held to write: no pod is there
	var over atomic.Bool
	var started, refused atomic.Int64
	for i, vf := range functions[2:8] {
		all.Go(func() {
			for n := 0; n < 2 || !over.Load(); n++ {
				still.RLock()
				if reg.numbered(t, fmt.Sprintf("uverbs-%d-%d", i, n), vf) {
					started.Add(1)
				} else {
					refused.Add(1)
				}
				still.RUnlock()
			}
		})
	}
	repairs := meanwhile(func() { reg.repair(t) })
	for _, p := range plugs {
		for range 3 { // a hole for a moment
			p.pull(t)
			p.push(t)
		}
		p.pull(t)
		// One for good. Repair moves no device that is set aside for a pod, so some must be free for it to close the hole.
		still.Lock()
		await(t, "repair to close the hole", func() bool { return steady(t, functions) })
		p.push(t) // above all others now
		still.Unlock()
	}
	over.Store(true)
	all.Wait()
	t.Logf("%d pods started, %d were refused, %d runs of repair meanwhile", started.Load(), refused.Load(), repairs())
	for _, p := range plugs {
		p.pull(t)
	}
	if found := reg.repair(t); slices.ContainsFunc(found, func(f finding) bool { return f.Outcome != "repaired" }) {
		t.Errorf("podfabricctl repair leaves %+v", found)
	}
	if found := reg.repair(t); len(found) > 0 {
		t.Errorf("podfabricctl repair after repair finds %+v", found)
	}
	if h := holes(t); len(h) > 0 {
		t.Errorf("the numbers %v are free, and higher ones are not", h)
	}
	if netdevs2, ibdevs2 := homes(functions); netdevs2 != netdevs || ibdevs2 != ibdevs {
		t.Errorf("at home were\n%s\n%s\nand are\n%s\n%s", netdevs, ibdevs, netdevs2, ibdevs2)
	}
	nothingLeft(t)
}

// numbered is the life of a pod that may be refused for its number. It tells whether it was not.
func (r *registry) numbered(t *testing.T, id, vf string) bool {
	t.Helper()
	p := newPod(t, id)
	defer p.end(t)
	number, ibdev := r.promise(t, vf), node.IBDev(vf)
	defer r.forget(t, vf)
	c := call{conf: ofVF(vf, ranged), id: id, netns: p.Path}
	add := c.start(t, "ADD")
	f := add.wait(t)
	if f == nil {
		p.holds(t, c, vf, ibdev, number)
		c.ok(t, "CHECK")
		if now := uverbs(t, vf); now != number {
			t.Errorf("%s is uverbs%d before the DEL of %s, and was promised as uverbs%d", vf, now, id, number)
		}
	} else {
		add.is(t, f, 104, "podfabricctl repair")
	}
	c.ok(t, "DEL")
	return f == nil
}

// stopper is a soft RoCE device that holds a number of a verbs device below those of the VFs.
type stopper struct{ name, netdev string }

// plug puts one in the place of each of these VFs' devices, which get higher numbers.
func plug(t *testing.T, vfs []string) []stopper {
	t.Helper()
	var out []stopper
	for i, vf := range vfs {
		s := stopper{fmt.Sprint("plug", i), fmt.Sprint("dummy", i)}
		node.Run(t, "ip", "link", "add", s.netdev, "type", "dummy")
		node.Run(t, "ip", "link", "set", s.netdev, "up")
		number := uverbs(t, vf)
		node.Write(t, "/sys/bus/pci/drivers/igbvf/unbind", vf)
		s.push(t)
		if at := numbers(t); !slices.Contains(at, number) {
			t.Errorf("%s was to become uverbs%d: %v", s.name, number, at)
		}
		node.Write(t, "/sys/bus/pci/drivers/igbvf/bind", vf)
		await(t, vf+" bound", func() bool { return node.Netdev(vf) != "" && node.IBDev(vf) != "" })
		// It tells its PF the MAC that it has chosen when it first comes up; see e2e/lab/prepare.
		node.Run(t, "ip", "link", "set", node.Netdev(vf), "up")
		node.Run(t, "ip", "link", "set", node.Netdev(vf), "down")
		t.Cleanup(func() { node.Run(t, "ip", "link", "del", s.netdev) })
		out = append(out, s)
	}
	return out
}

func (s stopper) push(t *testing.T) {
	t.Helper()
	node.Run(t, "rdma", "link", "add", s.name, "type", "rxe", "netdev", s.netdev)
}

func (s stopper) pull(t *testing.T) {
	t.Helper()
	node.Run(t, "rdma", "link", "del", s.name)
}

// numbers are those of all verbs devices, ascending.
func numbers(t *testing.T) []int {
	t.Helper()
	names, err := filepath.Glob("/sys/class/infiniband_verbs/uverbs*")
	must(t, err)
	var out []int
	for _, name := range names {
		var n int
		if _, err := fmt.Sscanf(filepath.Base(name), "uverbs%d", &n); err != nil {
			t.Fatal(name, err)
		}
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// holes are the free numbers below used ones. A device that moves has none for a moment.
func holes(t *testing.T) []int {
	t.Helper()
	used := numbers(t)
	var out []int
	for n := range used[len(used)-1] {
		if !slices.Contains(used, n) {
			out = append(out, n)
		}
	}
	return out
}

// steady tells whether none of these functions has a number above a free one, and so would lose it in a move. What is above them all,
// and moves nowhere, may leave a hole below itself.
func steady(t *testing.T, functions []string) bool {
	t.Helper()
	free := holes(t)
	return !slices.ContainsFunc(functions, func(vf string) bool {
		n := uverbs(t, vf)
		return n < 0 || len(free) > 0 && n > free[0]
	})
}

// homes are the names of functions' devices at home.
func homes(functions []string) (string, string) {
	var netdevs, ibdevs []string
	for _, vf := range functions {
		netdevs, ibdevs = append(netdevs, node.Netdev(vf)), append(ibdevs, node.IBDev(vf))
	}
	return strings.Join(netdevs, " "), strings.Join(ibdevs, " ")
}

// TestNumberOfTheFirstTry has the device of a pod change its number between two tries to make the pod. kubelet gives the container the
// device node of the first number, so that no try succeeds any more; another pod, to which the new one is promised, gets the device.
func TestNumberOfTheFirstTry(t *testing.T) {
	deadline(t, patient)
	functions, reg := vfs(t), newRegistry()
	slices.SortFunc(functions, func(a, b string) int { return uverbs(t, a) - uverbs(t, b) })
	low, vf := plug(t, functions[:1])[0], functions[2]
	first := newPod(t, "first")
	c := call{conf: ofVF(vf, ranged), id: "first", netns: first.Path, uid: podUID("a")}
	number := reg.promise(t, vf)
	failing := c
	failing.conf = strings.Replace(c.conf, `"type":"podfabric"`, `"type":"podfabric","hint":{"require":true}`, 1)
	add := failing.start(t, "ADD")
	add.is(t, add.wait(t), 108, "hint.require") // it has no volume
	c.ok(t, "DEL")

	low.pull(t)
	ibdev := node.IBDev(vf)
	node.Run(t, "rdma", "dev", "set", ibdev, "netns", first.Name)
	first.end(t)
	await(t, vf+" home from a dead pod", func() bool { return node.IBDev(vf) != "" && uverbs(t, vf) >= 0 })
	if now := uverbs(t, vf); now >= number {
		t.Fatalf("%s is uverbs%d and was uverbs%d, so that there is nothing to see", vf, now, number)
	}

	second := newPod(t, "second")
	c.id, c.netns = "second", second.Path
	add = c.start(t, "ADD")
	add.is(t, add.wait(t), 104, "delete the pod", fmt.Sprintf("given /dev/infiniband/uverbs%d", number))
	c.ok(t, "DEL")
	reg.forget(t, vf)

	c.uid = podUID("b")
	number, ibdev = reg.promise(t, vf), node.IBDev(vf)
	if c.ok(t, "ADD") {
		second.holds(t, c, vf, ibdev, number)
	}
	c.ok(t, "DEL")
	second.end(t)
	reg.forget(t, vf)
	reg.repair(t)
	nothingLeft(t)
}
