// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// verdict takes what would have failed a test.
type verdict struct {
	testing.TB
	said []string
}

// stop ends what a verdict is of.
type stop struct{}

func (v *verdict) of(fn func()) {
	defer func() {
		if r := recover(); r != nil && r != (stop{}) {
			panic(r)
		}
	}()
	fn()
}

func (v *verdict) Helper() {}

func (v *verdict) Error(args ...any) { v.said = append(v.said, fmt.Sprint(args...)) }

func (v *verdict) Errorf(format string, args ...any) {
	v.said = append(v.said, fmt.Sprintf(format, args...))
}

func (v *verdict) Fatal(args ...any) {
	v.Error(args...)
	panic(stop{})
}

func (v *verdict) Fatalf(format string, args ...any) {
	v.Errorf(format, args...)
	panic(stop{})
}

// tally adds up products.
type tally struct {
	mu   sync.Mutex
	all  []*product
	rows []string
}

func (s *tally) add(p *product) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, p)
}

// log prints the table and the sum.
func (s *tally) log(t *testing.T) {
	t.Helper()
	steps := map[string]bool{}
	combinations, runs, dirty := 0, 0, 0
	s.rows = append(s.rows, fmt.Sprintf("%-34s %-22s %7s %7s %10s %13s %6s %6s", "kind", "verb", "points", "states", "aftermaths", "combinations", "run", "dirty"))
	order := map[string]int{}
	for i, k := range kinds() {
		order[k.name] = i
	}
	slices.SortStableFunc(s.all, func(a, b *product) int { return order[a.kind.name] - order[b.kind.name] })
	for _, p := range s.all {
		n := p.points
		if p.all {
			n *= len(p.after)
		}
		combinations, runs, dirty = combinations+n, runs+p.runs, dirty+len(p.dirt)
		s.rows = append(s.rows, fmt.Sprintf("%-34s %-22s %7d %7d %10d %13d %6d %6d",
			p.kind.name, p.verb.name, p.points, len(p.states), len(p.after), n, p.runs, len(p.dirt)))
		for step := range p.steps {
			steps[step] = true
		}
	}
	t.Logf("kinds × verbs × points × aftermaths:\n%s", strings.Join(s.rows, "\n"))
	t.Logf("%d kinds of steps were struck; %d combinations were run, the others leave a state that was", len(steps), runs)
	t.Logf("%d combinations, %d clean, %d dirty", combinations, combinations-dirty, dirty)
}
