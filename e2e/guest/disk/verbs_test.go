// SPDX-License-Identifier: Apache-2.0

//go:build lab

package disk_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
	"github.com/podfabric/podfabric/e2e/strace"
)

func ours(c strace.Call) bool { return c.Below(cni.StateDir) || c.Below("/var/lib/kubelet") }

// writes leaves out what is no other for a VF than for a macvlan: addresses, and who holds a lock.
func writes(c strace.Call) bool {
	locks := c.Below(cni.StateDir + "/locks")
	pool := c.Below(cni.StateDir+"/leases") || c.Path == cni.StateDir+"/locks/pool"
	return c.Write && ours(c) && !pool && (!locks || c.Name == "openat")
}

// owns is a call on what says whose a device is.
func owns(c strace.Call) bool {
	return c.Below(cni.StateDir+"/claims") || c.Below(cni.StateDir+"/attachments") || c.Below(cni.StateDir+"/names")
}

func both(a, b func(strace.Call) bool) func(strace.Call) bool {
	return func(c strace.Call) bool { return a(c) && b(c) }
}

func reads(c strace.Call) bool { return !c.Write }

// TestCallsFail runs two at a time, on VFs of their own.
func TestCallsFail(t *testing.T) {
	before := cni.Look(t)
	s := nextRound(t)
	t.Run("all", func(t *testing.T) {
		t.Run("with RDMA", func(t *testing.T) {
			t.Parallel()
			vf := node.VF(t, 1, 0)
			s.failInAdd(t, newPod(t, "fails01", vf, ranges))
			s.failInDel(t, newPod(t, "fails02", vf, delegate))
		})
		t.Run("without", func(t *testing.T) {
			t.Parallel()
			s.failInHealing(t, node.VF(t, 2, 0))
			s.failInGC(t, node.VF(t, 2, 1))
			s.failForAnother(t, node.VF(t, 2, 2))
		})
	})
	s.judge(t)
	before.Unchanged(t)
}

func (s *sweep) failInAdd(t *testing.T, p *pod) {
	t.Helper()
	s.run(t, trial{name: "ADD", verb: "ADD", pod: p}, writes, "ENOSPC", "EIO", "ENOSPC", "EROFS")
}

// After a DEL that failed the VF is at home, or the DEL says why it could not begin.
func (s *sweep) failInDel(t *testing.T, p *pod) {
	t.Helper()
	s.run(t, trial{name: "DEL", verb: "DEL", pod: p, prepare: func(t *testing.T) { t.Helper(); p.Add(t) }}, writes, "EIO", "ENOSPC", "EROFS")
}

// An ADD finds the VF as a dead pod left it.
func (s *sweep) failInHealing(t *testing.T, vf string) {
	t.Helper()
	p := newPod(t, "heals03", vf, ranges)
	s.run(t, trial{name: "healing", verb: "ADD", pod: p, prepare: func(t *testing.T) {
		t.Helper()
		dead := newPod(t, "dead04", vf, ranges)
		dead.Add(t)
		dead.die(t)
	}, finish: func(t *testing.T) {
		t.Helper()
		p.Del(t)
		// Had the ADD failed before it healed, the dead pod's DEL has it still to do.
		dead := p.Call
		dead.ContainerID, dead.UID, dead.NetNS = "dead04", uid+"04", ""
		dead.Del(t)
	}}, both(writes, owns), "EIO", "ENOSPC", "EROFS")
}

func (s *sweep) failInGC(t *testing.T, vf string) {
	t.Helper()
	p := newPod(t, "clear05", vf, ranges, `,"cni.dev/valid-attachments":[]`)
	p.Conf = strings.Replace(p.Conf, "rail0", "rail1", 1) // what is under way beside is on no list, and is not to be cleared up
	p.ns.Kill(t)
	s.run(t, trial{name: "GC", verb: "GC", pod: p, prepare: func(t *testing.T) {
		t.Helper()
		p.ns = node.NewNS(t)
		p.NetNS = p.ns.Path
		p.Add(t)
		p.die(t)
	}}, both(writes, owns), "EROFS", "EIO", "ENOSPC")
}

// The VF is a living pod's, whatever of that cannot be read.
func (s *sweep) failForAnother(t *testing.T, vf string) {
	t.Helper()
	owner, other := newPod(t, "owner06", vf, ranges), newPod(t, "other07", vf, ranges)
	owner.Add(t)
	has := owner.left(t)
	s.run(t, trial{name: "ADD of another's", verb: "ADD", pod: other, refused: true, code: 11, after: func(t *testing.T) {
		t.Helper()
		if now := owner.left(t); !slices.Equal(has, now) {
			t.Errorf("the owner has\n%s\nand had\n%s", strings.Join(now, "\n"), strings.Join(has, "\n"))
		}
		if link := owner.ns.Run(t, "ip", "-br", "link", "show", "net1"); !strings.Contains(link, "UP") {
			t.Errorf("in the owner's pod: %s", link)
		}
	}}, both(reads, ours), "EIO")
	owner.Del(t)
	owner.gone(t, "DEL of the owner")
}
