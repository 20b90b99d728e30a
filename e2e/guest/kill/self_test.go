// SPDX-License-Identifier: Apache-2.0

//go:build lab

package kill_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// short is how long a node is looked at that is expected to stay dirty.
const short = time.Second

// undone says what the way home must take back, step by step, and by which attachment that is seen. Without it the harness must call
// the node dirty, else it would not see either that the product forgot it.
func undone(kinds []*kind) map[string]*kind {
	found := map[string]*kind{}
	for step, name := range map[string]string{
		"MoveLink": "vf, up at home", "MoveRDMA": "vf, up at home", "SetUp": "vf, up at home", "SetVF": "vf with settings",
		"SetMAC": "vf with settings", "RenameRDMA": "vf, renamed by its pod", "SetAltName": "vf, renamed by its pod", "SetTraits": "vf, renamed by its pod",
		"DelLink": "macvlan",
	} {
		if i := slices.IndexFunc(kinds, func(k *kind) bool { return k.name == name }); i >= 0 {
			found[step] = kinds[i]
		}
	}
	return found
}

// harnessSees leaves the undoing of one kind of step out after another, and writes the record late, and wants each called dirty.
func (h *harness) harnessSees(t *testing.T, kinds []*kind, before []string) {
	t.Helper()
	for step, k := range undone(kinds) {
		t.Run("without the undoing of "+step, func(t *testing.T) {
			r := h.round(t, k)
			defer h.clear(t, r, before)
			r.bring(t, r.a)
			r.call(r.a).Add(t)
			if k.meanwhile != nil {
				k.meanwhile(t, r.a)
			}
			keep(t)
			_, _ = faulty(r.call(r.a), "", "omit="+step).Run(t, "DEL") // it may well fail
			readPoints(t)
			h.mustBeDirty(t, "without the undoing of "+step, k, r, before)
		})
	}
	for _, k := range kinds {
		// Whose a macvlan is its MAC tells, and who must take a chained device home another plugin's record.
		if !strings.HasPrefix(k.name, "vf") && k.name != "device" || k.onlyDel {
			continue
		}
		t.Run("record written late, "+k.name, func(t *testing.T) {
			r := h.round(t, k)
			defer h.clear(t, r, before)
			cmd := faulty(r.call(r.a), "", "late after=MoveLink:1").Command("ADD")
			if out, err := cmd.CombinedOutput(); !bySIGKILL(err) {
				t.Fatalf("ADD ended with %v; wanted it killed: %s", err, out)
			}
			readPoints(t)
			setAside(t)
			_, _ = r.call(r.a).Run(t, "DEL") // it may well fail
			h.mustBeDirty(t, "record written late", k, r, before)
		})
	}
}

// keptDir holds what is needed to put a node right that was left dirty on purpose: the records as they were before.
const keptDir = "/run/kept"

// keep copies the records.
func keep(t *testing.T) {
	t.Helper()
	node.Run(t, "mkdir", "-p", keptDir)
	for _, folder := range []string{"attachments", "claims", "names", "out"} {
		node.Run(t, "cp", "-a", filepath.Join(cni.StateDir, folder), keptDir)
	}
}

// setAside takes away what a writer that comes late has not written when it is killed.
func setAside(t *testing.T) {
	t.Helper()
	node.Run(t, "mkdir", "-p", keptDir)
	for _, folder := range glob(t, cni.StateDir+"/*.late") {
		if err := os.Rename(folder, filepath.Join(keptDir, strings.TrimSuffix(filepath.Base(folder), ".late"))); err != nil {
			t.Fatal(err)
		}
	}
}

// putBack brings the records back.
func putBack(t *testing.T) {
	t.Helper()
	for _, folder := range glob(t, keptDir+"/*") {
		kept := filepath.Join(cni.StateDir, filepath.Base(folder))
		if err := errors.Join(os.RemoveAll(kept), os.Rename(folder, kept)); err != nil {
			t.Fatal(err)
		}
	}
}

// mustBeDirty wants differences, and then puts the node right with what the product needs for it.
func (h *harness) mustBeDirty(t *testing.T, what string, k *kind, r *round, before []string) {
	t.Helper()
	diff := h.differences(t, before, short)
	t.Logf("%s, %s: %q", what, k.name, diff)
	fmt.Printf("| %-45s %-25s %s\n", what, k.name, map[bool]string{true: "dirty, as it must be", false: "CLEAN"}[len(diff) > 0])
	if len(diff) == 0 {
		t.Errorf("%s: the harness calls %s clean", what, k.name)
	}
	putBack(t)
	r.del(t, r.a)
	r.take(t, r.a)
	if diff := h.differences(t, before, patience); diff != nil {
		t.Errorf("the node cannot be brought back: %q", diff)
	}
}

// kernelUndoes proves that some steps need no undoing: the kernel takes addresses, routes and sysctls off a link that changes its
// namespace, and they go with a link that is removed, and a soft RoCE device with the link below it.
func (h *harness) kernelUndoes(t *testing.T, before []string, vf, soft string) {
	t.Helper()
	r := h.round(t, &kind{})
	name, rxe := node.Netdev(vf), node.Netdev(soft)
	node.Run(t, "ip", "link", "set", name, "netns", r.a.name, "name", "net1")
	r.a.run(t, "ip", "addr", "add", "10.9.0.7/24", "dev", "net1")
	r.a.run(t, "ip", "link", "set", "net1", "up")
	r.a.run(t, "ip", "route", "add", "10.60.0.0/16", "via", "10.9.0.1")
	r.a.run(t, "sh", "-c", "echo 0 >/proc/sys/net/ipv6/conf/net1/accept_ra; echo 0 >/proc/sys/net/ipv6/conf/net1/autoconf")
	node.Run(t, "ip", "link", "set", rxe, "netns", r.b.name, "name", "net1")
	r.b.run(t, "rdma", "link", "add", "soft0", "type", "rxe", "netdev", "net1")
	if diff := h.differences(t, before, 0); diff == nil {
		t.Error("nothing changed")
	}
	r.a.run(t, "ip", "link", "set", "net1", "netns", "1", "name", name)
	r.b.run(t, "ip", "link", "set", "net1", "netns", "1", "name", rxe)
	if diff := h.differences(t, before, patience); diff != nil {
		t.Errorf("left by the kernel: %q", diff)
	}
	for _, step := range []string{"AddAddr", "AddRoute", "SetSysctl", "AddSoftRoCE"} {
		fmt.Printf("| %-45s %-25s %s\n", "without the undoing of "+step, "a link that leaves", "clean: the kernel undoes it with the move")
	}
}
