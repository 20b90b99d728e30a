// SPDX-License-Identifier: Apache-2.0

//go:build lab

package kill_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
)

// minimum is how many combinations there must be, at least, for a run of everything to say something.
const minimum = 300

// tally counts combinations.
type tally struct {
	rows  []row
	clean int
	dirty int
}

// row is one combination that was seen to die.
type row struct {
	combination
	clean bool
}

func (d *tally) add(c combination, clean bool) {
	d.rows = append(d.rows, row{c, clean})
	if clean {
		d.clean++
	} else {
		d.dirty++
	}
}

func (d *tally) count(keep func(row) bool) int {
	n := 0
	for _, r := range d.rows {
		if keep(r) {
			n++
		}
	}
	return n
}

func (d *tally) ofStep(c combination) int {
	return d.count(func(r row) bool { return r.point.kind == c.point.kind && r.aftermath.short == c.aftermath.short })
}

func (d *tally) ofKind(c combination) int {
	return d.count(func(r row) bool { return r.kind.name == c.kind.name && r.aftermath.short == c.aftermath.short })
}

// pair tells whether a death at such a step had this aftermath.
func (d *tally) pair(c combination) bool { return d.ofStep(c) > 0 }

// table prints what was tried. Lines with the mark are shown by the runner of the tests even if all is well.
func (h *harness) table(t *testing.T) {
	t.Helper()
	h.print("kind and verb", func(r row) string { return r.kind.name + ", " + r.verb })
	h.print("step", func(r row) string { return r.point.kind })
	fmt.Printf("| %d combinations, %d clean, %d dirty\n", len(h.done.rows), h.done.clean, h.done.dirty)
	if narrowed := flag.Lookup("test.run").Value.String() != ""; len(h.done.rows) < minimum && !narrowed {
		t.Errorf("only %d combinations, wanted %d", len(h.done.rows), minimum)
	}
}

// print shows how often each aftermath followed a death, by what key tells of it.
func (h *harness) print(title string, key func(row) string) {
	all := aftermaths()
	line := fmt.Sprintf("| %-30s %6s", title, "points")
	for _, a := range all {
		line += fmt.Sprintf(" %*s", width(a), a.short)
	}
	fmt.Println(line)
	var names []string
	for _, r := range h.done.rows {
		if !slices.Contains(names, key(r)) {
			names = append(names, key(r))
		}
	}
	for _, name := range names {
		points, dirty := map[string]bool{}, 0
		for _, r := range h.done.rows {
			if key(r) == name {
				points[fmt.Sprint(r.kind.name, r.verb, r.at)] = true
				if !r.clean {
					dirty++
				}
			}
		}
		line := fmt.Sprintf("| %-30s %6d", name, len(points))
		for _, a := range all {
			n := h.done.count(func(r row) bool { return key(r) == name && r.aftermath.short == a.short })
			line += fmt.Sprintf(" %*d", width(a), n)
		}
		verdict := "clean"
		if dirty > 0 {
			verdict = fmt.Sprintf("%d DIRTY", dirty)
		}
		fmt.Println(line + "  " + verdict)
	}
}

func width(a *aftermath) int { return max(len(a.short), 4) }
