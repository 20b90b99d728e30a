// SPDX-License-Identifier: Apache-2.0

//go:build lab

package kill_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
	"github.com/podfabric/podfabric/plugin/kernel"
)

const (
	// patience is how long the kernel has to end what it does by itself, before a difference counts.
	patience = 10 * time.Second
	// hostLocalDir is where host-local keeps who has which address.
	hostLocalDir = "/var/lib/cni/networks/rail0"
)

// harness is the node, its two pods, and what has been tried so far.
type harness struct {
	full  bool
	pods  [2]*pod
	fresh kernel.NetNSState // of a pod that has nothing
	next  int               // number of the next container
	after bool              // the side of the last step that was tried
	done  tally
	// refused are the ways and sorts of step that were refused.
	refused map[string]bool
	reached map[string][]point // by ADD of each kind
}

func newHarness(t *testing.T, full bool) *harness {
	t.Helper()
	h := &harness{full: full, refused: map[string]bool{}, reached: map[string][]point{}}
	// The kernel waits for all processors to have been idle on every move of a link and every end of a namespace, which is most of what a
	// combination takes. It need not wait so patiently.
	node.Write(t, "/sys/kernel/rcu_expedited", "1")
	// Without addresses of the kernel's own making, which come seconds after a link does, the node is at rest sooner.
	for _, file := range glob(t, "/proc/sys/net/ipv6/conf/*/addr_gen_mode") {
		node.Write(t, file, "1")
	}
	node.Write(t, "/sys/bus/pci/devices/"+node.PF(t, 2)+"/sriov_numvfs", "0")
	for _, n := range []int{1, 2} {
		node.Run(t, "ip", "-6", "addr", "flush", "dev", node.Netdev(node.PF(t, n)), "scope", "link")
	}
	node.Run(t, "ip", "link", "set", node.Netdev(node.VF(t, 1, 1)), "up")
	return h
}

// setShared sets the other RDMA mode, which the kernel allows while there is no namespace but the node's.
func (h *harness) setShared(t *testing.T) {
	t.Helper()
	for i, p := range h.pods {
		if p != nil {
			p.dies(t)
		}
		h.pods[i] = nil
	}
	node.Wait(t, "the pods gone", func() bool {
		_, err := node.Try("rdma", "system", "set", "netns", "shared")
		return err == nil
	})
}

// renew makes the pods that are not there; one that nothing is left in serves again.
func (h *harness) renew(t *testing.T) {
	t.Helper()
	for i, p := range h.pods {
		if p == nil || !p.alive {
			h.pods[i] = newPod(t, "pod-"+string(rune('a'+i)))
		}
	}
}

// state is the node in lines, sorted: all that a snapshot and the plugin's folder have, the delegate's leases, and what the pods
// have more or less than a fresh one. The sysctls are in it if all is asked for.
func (h *harness) state(t *testing.T, all bool) []string {
	t.Helper()
	look := kernel.New().Brief
	if all {
		look = kernel.New().Snapshot
	}
	snap, err := look(context.Background())
	if err != nil {
		t.Fatalf("look at the node: %v", err)
	}
	var lines []string
	for _, p := range h.pods {
		now, seen := snap.NetNS[p.path]
		delete(snap.NetNS, p.path)
		if !seen {
			continue
		}
		if h.fresh.Sysctls == nil && all {
			h.fresh = now
		}
		for _, l := range kernel.Diff(wrapped(h.fresh), wrapped(now)) {
			lines = append(lines, p.name+": "+l)
		}
	}
	lines = append(lines, snap.Lines()...)
	for _, f := range cni.Files(t) {
		lines = append(lines, "file "+f)
	}
	for _, f := range glob(t, hostLocalDir+"/*") {
		if base := filepath.Base(f); base != "lock" && !strings.HasPrefix(base, "last_reserved_ip") {
			lines = append(lines, "lease of host-local "+base)
		}
	}
	if !all {
		lines = slices.DeleteFunc(lines, isSysctl)
	}
	slices.Sort(lines)
	return lines
}

// isSysctl tells whether a line of a state is one of those that only the whole has.
func isSysctl(line string) bool { return strings.Contains(line, ".sysctls") }

func wrapped(n kernel.NetNSState) kernel.Snapshot {
	return kernel.Snapshot{NetNS: map[string]kernel.NetNSState{"pod": n}}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// differences gives what is not as in want once the kernel has come to rest, "- " what is missing and "+ " what is too much.
func (h *harness) differences(t *testing.T, want []string, wait time.Duration) []string {
	t.Helper()
	want = slices.DeleteFunc(slices.Clone(want), isSysctl)
	return until(wait, func() []string { return compare(want, h.state(t, false)) })
}

// allDifferences is differences with the sysctls. It takes longer, so that it follows many combinations.
func (h *harness) allDifferences(t *testing.T, want []string) []string {
	t.Helper()
	return until(patience, func() []string { return compare(want, h.state(t, true)) })
}

func until(wait time.Duration, look func() []string) []string {
	for end := time.Now().Add(wait); ; time.Sleep(20 * time.Millisecond) {
		if diff := look(); len(diff) == 0 || time.Now().After(end) {
			return diff
		}
	}
}

func compare(want, now []string) []string {
	var diff []string
	for _, l := range want {
		if _, found := slices.BinarySearch(now, l); !found {
			diff = append(diff, "- "+l)
		}
	}
	for _, l := range now {
		if _, found := slices.BinarySearch(want, l); !found {
			diff = append(diff, "+ "+l)
		}
	}
	return diff
}

// point is one place where a process can die.
type point struct{ kind, text string }

// listFile is where a run leaves its points.
const listFile = "/run/points"

// readPoints gives the points that the last run reached, and forgets them.
func readPoints(t *testing.T) []point {
	t.Helper()
	text, err := os.ReadFile(listFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(listFile); err != nil {
		t.Fatal(err)
	}
	var points []point
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		if len(fields) != 3 || fields[0] != fmt.Sprint(len(points)+1) {
			t.Fatalf("point %d reads %q", len(points)+1, line)
		}
		points = append(points, point{fields[1], fields[2]})
	}
	return points
}

// faulty makes the call's process one that is compiled with plugin/fault.
func faulty(c cni.Call, writer, words string) cni.Call {
	c.Plugin = "podfabric-faults" + writer
	c.Env = []string{"PODFABRIC_FAULT=list=" + listFile + " " + words}
	return c
}
