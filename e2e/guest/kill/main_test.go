// SPDX-License-Identifier: Apache-2.0

//go:build lab

// Package kill_test stops the plugin dead, by SIGKILL, before and after every call that it makes to the machine, and between the
// request of a system call and its answer; lets happen what may happen then; and holds the node against what it was. The points
// are listed by a run of each attachment (plugin/fault), so that a new step is covered the day it is written. docs/decisions/0012
// has the reasons.
package kill_test

import (
	"os"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// The first VF has no RDMA device, so that a soft one can be made on it. The second NIC loses its VFs to be a device as a whole. The
// RDMA mode is exclusive first, as it is booted, then shared.
//
//lab:boot pfs=2 vfs=4 mode=exclusive rdmasim=0000:01:00.0,0000:02:00.0,0000:01:10.2,0000:01:10.4,0000:01:10.6 seconds=2400 peers=plugins/host-local variants=faults,recordprev,recordnext,faults+recordprev,faults+recordnext

func init() { node.Main() }

func TestMain(m *testing.M) { cni.Main(m) }

// The combinations of kind, verb, point, side and aftermath: of all there are, the ones that e2e/guest/kill/plan_test.go picks,
// or with FULL=1 in the environment every one.
func TestKilled(t *testing.T) {
	h := newHarness(t, os.Getenv("FULL") == "1")
	t.Run("exclusive", func(t *testing.T) {
		kinds := exclusiveKinds(t)
		h.phase(t, kinds, func(t *testing.T, before []string) {
			t.Helper()
			h.middle(t, kinds, before, "vf, up at home")
			h.refusals(t, kinds, before)
			h.harnessSees(t, kinds, before)
			h.kernelUndoes(t, before, node.VF(t, 1, 2), node.VF(t, 1, 0))
		})
	})
	h.setShared(t)
	t.Run("shared", func(t *testing.T) {
		kinds := sharedKinds(t)
		h.phase(t, kinds, func(t *testing.T, before []string) {
			t.Helper()
			h.middle(t, kinds, before, "macvlan")
			h.refusals(t, kinds, before)
			h.harnessSees(t, kinds, before)
		})
	})
	h.table(t)
}
