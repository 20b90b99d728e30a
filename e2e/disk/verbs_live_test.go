// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/podfabric/podfabric/e2e/strace"
)

// The tests of this file call alone, which makes them parallel.

// boot empties what does not outlive a boot.
func boot(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(stateDir); err != nil {
		t.Fatal(err)
	}
}

// pod is a request of a pod that has a volume for the hint.
func pod(t *testing.T, id, ipam string) *request {
	t.Helper()
	r := &request{id: id, netns: netns(t, id), ipam: ipam}
	if err := os.MkdirAll(fmt.Sprintf(volume, r.uid()), 0o777); err != nil {
		t.Fatal(err)
	}
	return r
}

func ours(c strace.Call) bool {
	return c.Below(stateDir) || c.Below("/var/lib/kubelet") || c.Path == nodeFile
}

func writes(c strace.Call) bool { return c.Write && ours(c) }

func reads(c strace.Call) bool { return !c.Write && ours(c) }

// adding is an ADD right after a boot.
func adding(r *request) trial {
	return trial{verb: "ADD", request: r, undone: true, prepare: boot, finish: func(t *testing.T) { t.Helper(); r.plain(t, "DEL") }}
}

// deleting is a DEL of what an ADD made.
func deleting(r *request) trial {
	return trial{
		verb: "DEL", request: r, whole: true,
		prepare: func(t *testing.T) { t.Helper(); boot(t); r.plain(t, "ADD") },
		finish:  func(t *testing.T) { t.Helper(); r.plain(t, "DEL") },
	}
}

// collecting is a GC after the pod's namespace died.
func collecting(t *testing.T, ipam string) trial {
	t.Helper()
	r := &request{id: "pod1", ipam: ipam}
	n := 0
	return trial{
		verb: "GC", request: r, whole: true,
		prepare: func(t *testing.T) {
			t.Helper()
			boot(t)
			r.netns = netns(t, r.id)
			// The link of a dead pod keeps its MAC from the next for a moment.
			n++
			r.more = fmt.Sprintf(`,"cni.dev/valid-attachments":[],"mac":"02:00:00:00:%02x:%02x"`, n/256, n%256)
			r.plain(t, "ADD")
			shell(t, "ip", "netns", "del", r.id)
		},
		finish: func(t *testing.T) { t.Helper(); r.plain(t, "GC") },
	}
}

// healing is an ADD after one that was killed when all but its last record was written.
func healing(t *testing.T, r *request) trial {
	t.Helper()
	boot(t)
	a := r.run(t, "ADD", nil, "")
	r.plain(t, "DEL")
	calls := slices.DeleteFunc(strace.Parse(a.trace), func(c strace.Call) bool {
		return c.Name != "renameat" || !c.Below(stateDir+"/attachments")
	})
	if len(calls) != 2 {
		t.Fatalf("ADD wrote its record %d times: %v", len(calls), calls)
	}
	return trial{
		verb: "ADD", request: r,
		prepare: func(t *testing.T) {
			t.Helper()
			boot(t)
			r.killed(t, "ADD", calls[1])
			if _, err := os.Stat(filepath.Join(stateDir, "attachments", r.id, "net1.json")); err != nil {
				t.Fatal(err)
			}
		},
		finish: func(t *testing.T) { t.Helper(); r.plain(t, "DEL") },
	}
}

func TestWriteFailsInAdd(t *testing.T) { //nolint:paralleltest // see above
	if alone(t) {
		adding(pod(t, "pod1", "")).run(t, writes)
	}
}

func TestWriteFailsInAddWithDelegate(t *testing.T) { //nolint:paralleltest // see above
	if alone(t) {
		adding(pod(t, "pod1", hostLocal)).run(t, writes)
	}
}

func TestWriteFailsInDel(t *testing.T) { //nolint:paralleltest // see above
	if alone(t) {
		deleting(pod(t, "pod1", "")).run(t, writes)
	}
}

func TestWriteFailsInDelWithDelegate(t *testing.T) { //nolint:paralleltest // see above
	if alone(t) {
		deleting(pod(t, "pod1", hostLocal)).run(t, writes)
	}
}

func TestWriteFailsInGC(t *testing.T) { //nolint:paralleltest // see above
	if alone(t) {
		collecting(t, hostLocal).run(t, writes)
	}
}

func TestWriteFailsInHealing(t *testing.T) { //nolint:paralleltest // see above
	if alone(t) {
		healing(t, pod(t, "pod1", "")).run(t, writes)
	}
}

func TestReadFailsInAdd(t *testing.T) { //nolint:paralleltest // see above
	if !alone(t) {
		return
	}
	// Another pod's attachment, hint and address must come through it.
	pod(t, "pod1", "").plain(t, "ADD")
	tr := adding(pod(t, "pod2", ""))
	tr.prepare = nil
	tr.request.plain(t, "ADD")
	tr.request.plain(t, "DEL")
	tr.run(t, reads)
}

func TestReadFailsInDel(t *testing.T) { //nolint:paralleltest // see above
	if alone(t) {
		deleting(pod(t, "pod1", "")).run(t, reads)
	}
}

func TestReadFailsInGC(t *testing.T) { //nolint:paralleltest // see above
	if alone(t) {
		collecting(t, "").run(t, reads)
	}
}

func TestReadFailsInHealing(t *testing.T) { //nolint:paralleltest // see above
	if alone(t) {
		healing(t, pod(t, "pod1", "")).run(t, reads)
	}
}

// An attachment that is there is not made again, whatever of it cannot be read.
func TestReadFailsInAddAgain(t *testing.T) { //nolint:paralleltest // see above
	if !alone(t) {
		return
	}
	r := pod(t, "pod1", "")
	r.plain(t, "ADD")
	trial{verb: "ADD", request: r, refused: true, code: 7, undone: true}.run(t, reads)
}

// A pod that lives keeps what it has, whatever of it cannot be read.
func TestReadFailsInGCOfLiving(t *testing.T) { //nolint:paralleltest // see above
	if !alone(t) {
		return
	}
	r := pod(t, "pod1", "")
	r.plain(t, "ADD")
	r.more = `,"cni.dev/valid-attachments":[]`
	trial{verb: "GC", request: r, whole: true, undone: true}.run(t, reads)
}
