// SPDX-License-Identifier: Apache-2.0

//go:build lab

package kill_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/node"
)

// combination is one death and what comes after it.
type combination struct {
	kind      *kind
	verb      string
	at        int // point of the run that was listed, from 1
	nth       int // of its kind. Where the record is another version's, DEL has more points, and this tells which
	point     point
	after     bool // the point was done
	inside    bool // it is a system call, of which nobody has read the answer
	aftermath *aftermath
}

func (c combination) side() string { return map[bool]string{false: "before", true: "after"}[c.after] }

func (c combination) String() string {
	return fmt.Sprintf("%s/%s/%s %d %s/%s", c.kind.name, c.verb, c.side(), c.at, c.point.kind, c.aftermath.short)
}

// isLook tells whether a point changes nothing. Of those one side is tried: the other is that of the point before or after.
func (p point) isLook() bool {
	return slices.Contains([]string{"Open", "Observe", "Links", "Behind", "Ports", "Close"}, p.kind)
}

// dull tells whether nothing can have been written since the point before.
func (p point) dull() bool { return slices.Contains([]string{"Open", "Links", "Behind"}, p.kind) }

// phase runs every kind that the RDMA mode allows, then what is still missing of the pairs of step and aftermath, then more.
func (h *harness) phase(t *testing.T, kinds []*kind, more func(t *testing.T, before []string)) {
	t.Helper()
	before := h.atRest(t)
	var all []combination
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			deaths := h.deaths(t, k, before)
			all = append(all, deaths...)
			for _, c := range deaths {
				for _, after := range h.choose(c) {
					c.aftermath = after
					h.try(t, c, before)
				}
			}
		})
	}
	t.Run("pairs", func(t *testing.T) {
		for _, c := range all {
			for _, after := range aftermaths() {
				if c.aftermath = after; !h.done.pair(c) {
					h.try(t, c, before)
				}
			}
		}
	})
	more(t, before)
	if diff := h.allDifferences(t, before); diff != nil {
		t.Errorf("dirty in the end: %q", diff)
	}
}

// atRest is the node's state, seen twice.
func (h *harness) atRest(t *testing.T) []string {
	t.Helper()
	h.renew(t)
	before := h.state(t, true)
	node.Wait(t, "the node at rest", func() bool {
		now := h.state(t, true)
		same := slices.Equal(before, now)
		before = now
		return same
	})
	return before
}

// deaths lists a kind's points, from a run that nothing happens to, with the sides that are tried.
func (h *harness) deaths(t *testing.T, k *kind, before []string) []combination {
	t.Helper()
	r := h.round(t, k)
	defer h.clear(t, r, before)
	points := map[string][]point{}
	r.bring(t, r.a)
	faulty(r.call(r.a), "", "").Add(t)
	points["ADD"] = readPoints(t)
	h.reached[k.name] = points["ADD"]
	if k.meanwhile != nil {
		k.meanwhile(t, r.a)
	}
	faulty(r.call(r.a), "", "").Del(t)
	points["DEL"] = readPoints(t)
	r.take(t, r.a)
	if diff := h.differences(t, before, patience); diff != nil {
		t.Fatalf("the node changed though nobody was killed: %q", diff)
	}
	var deaths []combination
	for _, verb := range []string{"ADD", "DEL"} {
		for i, p := range points[verb] {
			t.Logf("%s point %d: %s %s", verb, i+1, p.kind, p.text)
			last := i+1 == len(points[verb])
			if k.onlyDel && verb == "ADD" || !h.full && (p.dull() || p.kind == "Close" && !last) {
				continue
			}
			for _, after := range h.sides(p) {
				deaths = append(deaths, combination{kind: k, verb: verb, at: i + 1, nth: nth(points[verb], i), point: p, after: after})
			}
		}
	}
	return deaths
}

// sides are those of a point to die on: both, or of the steps one and the other in turn, since nothing is written between two steps.
func (h *harness) sides(p point) []bool {
	switch {
	case h.full:
		return []bool{false, true}
	case p.isLook():
		return []bool{false}
	}
	h.after = !h.after
	return []bool{h.after}
}

// choose gives what is to follow a death: everything, or the one that has followed deaths at such a step least often.
func (h *harness) choose(c combination) []*aftermath {
	all := aftermaths()
	if c.inside { // that is the program that is shipped, and no other
		all = slices.DeleteFunc(all, func(a *aftermath) bool { return a.writer != "" })
	}
	if h.full {
		return all
	}
	least := slices.MinFunc(all, func(x, y *aftermath) int {
		a, b := c, c
		a.aftermath, b.aftermath = x, y
		return cmp.Or(cmp.Compare(h.done.ofStep(a), h.done.ofStep(b)), cmp.Compare(h.done.ofKind(a), h.done.ofKind(b)))
	})
	return []*aftermath{least}
}

// try runs one combination and holds the node against what it was before.
func (h *harness) try(t *testing.T, c combination, before []string) {
	t.Helper()
	t.Run(c.String(), func(t *testing.T) {
		r := h.round(t, c.kind)
		defer h.clear(t, r, before)
		writer := c.aftermath.writer
		r.bring(t, r.a)
		if c.verb == "DEL" {
			made := r.call(r.a)
			if writer != "" {
				made.Plugin = "podfabric-" + writer
			}
			made.Add(t)
			if c.kind.meanwhile != nil {
				c.kind.meanwhile(t, r.a)
			}
			writer = ""
		}
		if writer != "" {
			writer = "+" + writer
		}
		if c.inside {
			r.killInside(t, c.verb, c.nth, c.point.kind)
		} else {
			r.kill(t, writer, c)
		}
		defer func() { h.done.add(c, !t.Failed()) }()
		c.aftermath.do(t, r)
		diff := h.differences(t, before, patience)
		for _, l := range diff {
			t.Errorf("dirty: %s", l)
		}
	})
}

// clear brings the node back to what it was if t has failed, so that the next combination says something of itself.
func (h *harness) clear(t *testing.T, r *round, before []string) {
	t.Helper()
	if !t.Failed() {
		return
	}
	for _, p := range []*pod{r.a, r.b} {
		p.dies(t)
		_, _ = r.call(p).Run(t, "DEL")
	}
	repair(t)
	r.take(t, r.a)
	h.renew(t)
	_ = os.Remove(listFile)
	if diff := h.differences(t, before, patience); diff != nil {
		t.Logf("the node cannot be brought back: %q", diff)
	}
}
