// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Rest is how long an address should lie idle before it is given again: peers keep neighbour entries and queue pairs to
// the one who had it. It is a preference, not a promise.
const Rest = 60 * time.Second

// State is what Choose must know of the pools behind its ranges.
type State struct {
	InUse map[netip.Addr]bool
	// Freed says since when addresses are free that were in use before; one that is missing was never given, as far as is
	// known.
	Freed map[netip.Addr]time.Time
	// Cursor holds, for each of the ranges by its place, the address given last; none: the search starts at a random place,
	// so that a node that has forgotten everything in a reboot does not begin with the addresses it gave last time.
	Cursor []netip.Addr
	Random func(n uint64) uint64 // from 0 to n-1; n > 0
	Now    time.Time
}

// Choice is the next address.
type Choice struct {
	Addr    netip.Prefix // with the length of its subnet
	Gateway netip.Addr   // of its range; zero: none
	Range   int          // place of its range in the list
	Warning string       // one sentence when the address had no rest; else empty
}

// Choose gives the next address out of any of the ranges: the first one behind the cursor that was never given, range after
// range, else the one that is free for the longest time. It costs time in the number of addresses in use or freed, not in
// the size of the ranges. When all are in use the error is an *ExhaustedError.
func Choose(ranges []Range, s State) (Choice, error) {
	all := make([][]span, len(ranges))
	for i, r := range ranges {
		spans, err := r.spans()
		if err != nil {
			return Choice{}, err
		}
		all[i] = spans
	}
	for i, spans := range all {
		if a, ok := s.fresh(spans, i); ok {
			return choice(ranges, i, a), nil
		}
	}
	i, a := s.rested(all)
	if i < 0 {
		return Choice{}, exhausted(ranges, all, s)
	}
	c := choice(ranges, i, a)
	if idle := s.Now.Sub(s.Freed[a]); idle < Rest {
		c.Warning = fmt.Sprintf("address %s was given although it was freed only %s ago: nothing else is free in %s",
			a, max(idle, 0).Round(time.Second), ranges[i])
	}
	return c, nil
}

func choice(ranges []Range, i int, a netip.Addr) Choice {
	return Choice{Addr: netip.PrefixFrom(a, ranges[i].Subnet.Bits()), Gateway: ranges[i].Gateway, Range: i}
}

// fresh finds the first address behind the cursor that is neither in use nor was given before. Every step but the last
// passes one that is, or the end of a span.
func (s State) fresh(spans []span, i int) (netip.Addr, bool) {
	n := size(spans)
	if n == 0 {
		return netip.Addr{}, false
	}
	begin := spans[0].lo
	if i < len(s.Cursor) && s.Cursor[i].IsValid() {
		begin = s.Cursor[i].Next()
	} else if s.Random != nil {
		begin = at(spans, s.Random(n))
	}
	// The spans from begin to the end, then those from the start to begin.
	var turn []span
	for _, p := range spans {
		if !begin.IsValid() || p.hi.Less(begin) {
			continue
		}
		turn = append(turn, span{maxAddr(p.lo, begin), p.hi})
	}
	turn = append(turn, spans...)
	for _, p := range turn {
		for a := p.lo; p.contains(a); a = a.Next() {
			if _, freed := s.Freed[a]; !freed && !s.InUse[a] {
				return a, true
			}
		}
	}
	return netip.Addr{}, false
}

func maxAddr(a, b netip.Addr) netip.Addr {
	if a.Less(b) {
		return b
	}
	return a
}

// rested finds the address that is free for the longest time; of equal ones the lowest. The place is -1 when there is none.
func (s State) rested(all [][]span) (int, netip.Addr) {
	place, best := -1, netip.Addr{}
	for a, since := range s.Freed {
		if s.InUse[a] {
			continue
		}
		i := slices.IndexFunc(all, func(spans []span) bool { return within(spans, a) })
		if i < 0 {
			continue
		}
		if place < 0 || cmp.Or(since.Compare(s.Freed[best]), a.Compare(best)) < 0 {
			place, best = i, a
		}
	}
	return place, best
}

func exhausted(ranges []Range, all [][]span, s State) error {
	if len(ranges) == 0 {
		return fmt.Errorf("choose address: %w", errors.Join(ErrRange, errors.New("there is no range to choose from")))
	}
	e := &ExhaustedError{Ranges: ranges}
	for _, spans := range all {
		e.Size += size(spans)
	}
	for a, used := range s.InUse {
		if used && slices.ContainsFunc(all, func(spans []span) bool { return within(spans, a) }) {
			e.InUse++
		}
	}
	return e
}
