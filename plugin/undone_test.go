// SPDX-License-Identifier: Apache-2.0

//test:norace

package plugin_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/attach"
)

// undoing is who takes back what a kind of step does, or what a step is that takes something back.
type undoing int

const (
	// byUs: a way back without this kind of step leaves something.
	byUs undoing = iota
	// byKernel: it goes with the link, so that a way back without it leaves nothing.
	byKernel
	// noState: it changes nothing that could be put back.
	noState
)

// undone is how the way back is tried without one kind of step.
type undone struct {
	step string
	by   undoing
	kind string           // the kind of attachment
	then func(m *machine) // what the pod does before the way back, which so needs the step
}

// undoings has every kind of step.
func undoings() []undone {
	const settings, dual = "VF with settings", "moved, dual, rail, MTU, up at home"
	traits := func(words string) func(m *machine) {
		return func(m *machine) {
			t := m.Traits(vfAddr(3))
			t.Flags += " " + words
			m.SetTraits(vfAddr(3), t)
		}
	}
	return []undone{
		{step: "MoveLink", kind: "moved"},
		{step: "AddLink", kind: "macvlan"}, // taken back by DelLink
		{step: "DelLink", kind: "macvlan"},
		{step: "SetVF", kind: settings},
		{step: "MoveRDMA", kind: "moved"},
		{step: "RenameRDMA", kind: "moved", then: func(m *machine) { m.RenameRDMA(vfAddr(3), "mine_0") }},
		{step: "SetMAC", kind: settings},
		{step: "SetAltName", kind: "moved", then: func(m *machine) { m.SetAltNames(vfAddr(3), "mine") }},
		{step: "SetTraits", kind: "moved", then: traits("promisc")},
		{step: "SetUp", kind: dual},
		// Of a link that comes home without ARP.
		{step: "SetSysctl", kind: "moved", then: traits("noarp")},
		// A link that changes its namespace takes them with it, and one that goes does too.
		{step: "SetSysctl", by: byKernel, kind: "ipvlan on a VLAN"},
		{step: "AddSoftRoCE", by: byKernel, kind: "soft"},
		{step: "DelSoftRoCE", by: byKernel, kind: "soft"},
		{step: "AddAddr", by: byKernel, kind: dual},
		{step: "DelAddr", by: byKernel, kind: "macvlan"},
		{step: "AddRoute", by: byKernel, kind: dual},
		{step: "DelRoute", by: byKernel, kind: dual},
		{step: "ResetFunction", by: noState, kind: settings},
	}
}

// back is the kind of step that takes back what one does.
func back(step string) string {
	if rest, ok := strings.CutPrefix(step, "Add"); ok {
		return "Del" + rest
	}
	return step
}

// stepKinds are the types that attach makes a Step of, from its source.
func stepKinds(t *testing.T) []string {
	t.Helper()
	var out []string
	files, err := filepath.Glob("attach/*.go")
	must(t, err)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		must(t, err)
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Name.Name != "isStep" {
				continue
			}
			if id, ok := f.Recv.List[0].Type.(*ast.Ident); ok {
				out = append(out, id.Name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// TestEveryStepIsUndone: the table says of every kind of step who takes it back.
func TestEveryStepIsUndone(t *testing.T) {
	t.Parallel()
	var have []string
	for _, u := range undoings() {
		have = append(have, u.step)
	}
	slices.Sort(have)
	if diff := cmp.Diff(stepKinds(t), slices.Compact(have)); diff != "" {
		t.Errorf("kinds of steps (-attach +table):\n%s", diff)
	}
}

// TestWayBackRemoved: without one kind of step on the way back the node is not as it was, and the product of kills says so. What the
// kernel takes back is clean all the same.
func TestWayBackRemoved(t *testing.T) {
	t.Parallel()
	for _, how := range undoings() {
		step := how.step
		if how.by == noState {
			continue
		}
		t.Run(step+"/"+how.kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				without := func(s attach.Step) bool { return kindOf(s) == back(step) }
				p := &product{
					kind: named(how.kind), verb: verbNamed("ADD"), hows: []strike{killed}, after: living()[:1], then: spoilt(how.then), skip: without,
				}
				p.run(t)
				t.Logf("%d of %d kills before a DEL without %s are dirty", len(p.dirt), p.runs, back(step))
				if dirty := len(p.dirt) > 0; dirty != (how.by == byUs) {
					t.Errorf("dirty is %t\n%s", dirty, strings.Join(p.dirt, "\n"))
				}
				if how.then != nil { // the step, and not what the pod did, makes the difference
					p = &product{kind: p.kind, verb: p.verb, hows: p.hows, after: p.after, then: p.then}
					p.run(t)
					for _, text := range p.dirt {
						t.Error(text)
					}
				}
			})
		})
	}
}

// spoilt does what a pod does to a device that it has.
func spoilt(do func(m *machine)) func(m *machine) {
	if do == nil {
		return nil
	}
	return func(m *machine) {
		if where := m.where(3); inside("pod1", where[0]) && inside("pod1", where[1]) {
			do(m)
		}
	}
}

func inside(pod, place string) bool { return strings.HasPrefix(place, netnsOf(pod)+"/") }

// TestUndoOfAddWithoutOneStep: also the undoing of an ADD that fails leaves nothing of what the kernel takes back.
func TestUndoOfAddWithoutOneStep(t *testing.T) {
	t.Parallel()
	for _, how := range undoings() {
		step := how.step
		if how.by != byKernel {
			continue
		}
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			k := named(how.kind)
			m := newMachine(t, k.mode)
			m.pod("pod1")
			before := m.state(t)
			n := m.callsOf(t, func() error { return m.add(t, k.request) })
			m.mustDel(t, k.request)
			for at := range n {
				m.trap.set(at, refused)
				m.trap.skip = func(s attach.Step) bool { return m.trap.hit != "" && kindOf(s) == back(step) }
				err := m.add(t, k.request)
				hit := m.trap.hit
				m.trap.clear()
				m.trap.skip = nil
				if err == nil || !m.same(t, "ADD that failed at "+hit+" and was undone without "+back(step), before) {
					t.Fatalf("%s: %v", hit, err)
				}
			}
		})
	}
}

// TestResetHasNoState: a reset is made once, by DEL, and there is nothing of it to take back.
func TestResetHasNoState(t *testing.T) {
	t.Parallel()
	k := named("VF with settings")
	m := newMachine(t, k.mode)
	m.pod("pod1")
	before := m.state(t)
	m.mustAdd(t, k.request)
	if n := m.Resets(k.device()); n != 0 {
		t.Errorf("%d resets by ADD", n)
	}
	m.mustDel(t, k.request)
	if n := m.Resets(k.device()); n != 1 {
		t.Errorf("%d resets by DEL", n)
	}
	if (attach.ResetFunction{}).Reverse() != nil {
		t.Error("a reset has a way back")
	}
	m.same(t, "DEL", before)
}

// TestRecordWrittenLate: were the record written after the change that it is of, a kill between the two would leave something, and
// the product of kills would say so.
func TestRecordWrittenLate(t *testing.T) {
	t.Parallel()
	for _, k := range wholes() {
		if k.before != nil || k.ipam == dualStatic && strings.Contains(k.keys, "master") {
			continue // nothing of podfabric's outlives the namespace but an RDMA device, which comes home by itself
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &product{kind: k, verb: verbNamed("ADD"), hows: []strike{killed}}
				for _, a := range dying() {
					if a.name == "netns died, GC" {
						p.after = append(p.after, a)
					}
				}
				p.onCall = func(what string) { late(t, p.m, strings.HasPrefix(what, "step ")) }
				p.run(t)
				t.Logf("%d of %d kills are dirty", len(p.dirt), p.runs)
				if len(p.dirt) == 0 {
					t.Error("a record that is written late is not noticed")
				}
			})
		})
	}
}

// late takes record and claim of pod1 away while a step is made, and puts them back when the steps are over.
func late(t *testing.T, m *machine, aside bool) {
	t.Helper()
	run, away := filepath.Join(m.dir, "run"), filepath.Join(m.dir, "late")
	if !aside {
		run, away = away, run
	}
	must(t, os.MkdirAll(filepath.Join(away, "attachments"), 0o700))
	must(t, os.MkdirAll(filepath.Join(away, "claims"), 0o700))
	files, err := filepath.Glob(filepath.Join(run, "attachments/cid-pod1"))
	must(t, err)
	claims, err := filepath.Glob(filepath.Join(run, "claims/*"))
	must(t, err)
	for _, claim := range claims {
		if target, _ := os.Readlink(claim); strings.Contains(target, "cid-pod1/") {
			files = append(files, claim)
		}
	}
	for _, file := range files {
		name, _ := filepath.Rel(run, file)
		must(t, os.Rename(file, filepath.Join(away, name)))
	}
}
