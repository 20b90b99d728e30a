// SPDX-License-Identifier: Apache-2.0

//go:build lab

package kill_test

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// round is one attachment from its beginning to its end.
type round struct {
	kind *kind
	a, b *pod // whose attachment it is, and who may be handed the same device then
}

func (h *harness) round(t *testing.T, k *kind) *round {
	t.Helper()
	h.renew(t)
	h.next++
	r := &round{kind: k, a: h.pods[0], b: h.pods[1]}
	r.a.id, r.b.id = fmt.Sprintf("k%d-a", h.next), fmt.Sprintf("k%d-b", h.next)
	return r
}

func (r *round) call(p *pod) cni.Call {
	return cni.Call{Conf: r.kind.conf(p), ContainerID: p.id, NetNS: p.path}
}

// bring and take are the plugin before podfabric, if there is one.
func (r *round) bring(t *testing.T, p *pod) {
	t.Helper()
	if r.kind.bring != nil {
		r.kind.bring(t, p)
	}
}

func (r *round) take(t *testing.T, p *pod) {
	t.Helper()
	if r.kind.take != nil {
		r.kind.take(t, p)
	}
}

func (r *round) del(t *testing.T, p *pod) {
	t.Helper()
	r.call(p).Del(t)
}

// gc is a GC of the network that lists nobody.
func (r *round) gc(t *testing.T) {
	t.Helper()
	c := r.call(r.a)
	c.Conf = `{"cni.dev/valid-attachments":[],` + strings.TrimPrefix(c.Conf, "{")
	if _, failure := c.Run(t, "GC"); failure != nil {
		t.Errorf("GC: %s", failure.Text())
	}
}

// kill runs a verb that dies at the nth point of a kind, and wants it to be seen dying there.
func (r *round) kill(t *testing.T, writer string, c combination) {
	t.Helper()
	words := fmt.Sprintf("%s=%s:%d", c.side(), c.point.kind, c.nth)
	out, err := faulty(r.call(r.a), writer, words).Command(c.verb).CombinedOutput()
	t.Logf("%s, killed %s (%s): %v\n%s", c.verb, words, c.point.text, err, out)
	reached := readPoints(t)
	if !bySIGKILL(err) {
		t.Fatalf("%s ended with %v after %v; wanted it killed", c.verb, err, reached)
	}
	if len(reached) == 0 || reached[len(reached)-1].kind != c.point.kind || nth(reached, len(reached)-1) != c.nth {
		t.Fatalf("%s died at %v; wanted it %s", c.verb, reached, words)
	}
}

// nth counts the points of the kind of point i up to it.
func nth(points []point, i int) int {
	n := 0
	for _, p := range points[:i+1] {
		if p.kind == points[i].kind {
			n++
		}
	}
	return n
}

// bySIGKILL tells whether a process was ended by that signal.
func bySIGKILL(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// aftermath is what happens after a process was killed. Every one ends with the attachment gone.
type aftermath struct {
	name, short string
	// writer is the build of the program that was there before: it made the attachment, or was killed making it.
	writer string
	do     func(t *testing.T, r *round)
}

func aftermaths() []*aftermath {
	del := func(t *testing.T, r *round) {
		t.Helper()
		r.del(t, r.a)
		r.take(t, r.a)
	}
	dead := func(then func(t *testing.T, r *round)) func(t *testing.T, r *round) {
		return func(t *testing.T, r *round) {
			t.Helper()
			r.a.dies(t)
			then(t, r)
			r.take(t, r.a)
		}
	}
	return []*aftermath{
		{name: "DEL", short: "DEL", do: del},
		{name: "ADD again, then DEL", short: "ADD", do: func(t *testing.T, r *round) {
			t.Helper()
			// Killed late in ADD, or early in DEL, it leaves a whole attachment, and ADD is not idempotent.
			if _, failure := r.call(r.a).Run(t, "ADD"); failure != nil && (failure.Code != 7 || !strings.Contains(failure.Text(), "DEL the attachment")) {
				t.Errorf("ADD again: code %d: %s", failure.Code, failure.Text())
			}
			del(t, r)
		}},
		{name: "netns gone, DEL", short: "gone", do: dead(func(t *testing.T, r *round) { t.Helper(); r.del(t, r.a) })},
		{name: "netns gone, GC", short: "gone+GC", do: dead(func(t *testing.T, r *round) { t.Helper(); r.gc(t) })},
		{name: "GC, then DEL", short: "GC", do: func(t *testing.T, r *round) { t.Helper(); r.gc(t); del(t, r) }},
		{name: "repair, then DEL", short: "repair", do: func(t *testing.T, r *round) { t.Helper(); repair(t); del(t, r) }},
		{name: "netns gone, repair", short: "gone+repair", do: dead(func(t *testing.T, _ *round) { t.Helper(); repair(t) })},
		{name: "netns gone, ADD of another pod, DEL of both", short: "other", do: func(t *testing.T, r *round) {
			t.Helper()
			r.a.dies(t)
			r.take(t, r.a)
			r.bring(t, r.b)
			r.call(r.b).Add(t)
			r.del(t, r.a)
			r.del(t, r.b)
			r.take(t, r.b)
		}},
		{name: "made by an older program, DEL", short: "older", writer: "recordprev", do: del},
		{name: "made by a newer program, DEL", short: "newer", writer: "recordnext", do: del},
	}
}

// repair runs podfabricctl repair, which may find things that it cannot or must not put right while the pod lives.
func repair(t *testing.T) {
	t.Helper()
	out := node.Run(t, "sh", "-c", "podfabricctl repair 2>&1; echo status $?")
	t.Logf("repair: %s", out)
	if strings.HasSuffix(out, "status 2") {
		t.Errorf("repair failed: %s", out)
	}
}
