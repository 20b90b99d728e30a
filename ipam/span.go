// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"math"
	"math/bits"
	"net/netip"
)

// span is a run of addresses of one family, both ends inclusive.
type span struct{ lo, hi netip.Addr }

func single(a netip.Addr) span { return span{a, a} }

func (s span) contains(a netip.Addr) bool {
	return a.BitLen() == s.lo.BitLen() && s.lo.Compare(a) <= 0 && a.Compare(s.hi) <= 0
}

// cut takes hole out of ascending, disjoint spans.
func cut(spans []span, hole span) []span {
	var left []span
	for _, s := range spans {
		if hole.lo.BitLen() != s.lo.BitLen() || hole.hi.Less(s.lo) || s.hi.Less(hole.lo) {
			left = append(left, s)
			continue
		}
		if s.lo.Less(hole.lo) {
			left = append(left, span{s.lo, hole.lo.Prev()})
		}
		if hole.hi.Less(s.hi) {
			left = append(left, span{hole.hi.Next(), s.hi})
		}
	}
	return left
}

// size is the number of addresses, or the largest uint64 if there are more.
func size(spans []span) uint64 {
	var total uint64
	for _, s := range spans {
		n := number(s.hi).minus(number(s.lo))
		if n.hi != 0 || n.lo == math.MaxUint64 {
			return math.MaxUint64
		}
		sum, carry := bits.Add64(total, n.lo+1, 0)
		if carry != 0 {
			return math.MaxUint64
		}
		total = sum
	}
	return total
}

// at gives the n-th address of the spans, counted from 0; n must be below size.
func at(spans []span, n uint64) netip.Addr {
	for _, s := range spans {
		if in := size([]span{s}); n >= in {
			n -= in
			continue
		}
		return number(s.lo).plus(uint128{0, n}).addr(s.lo.BitLen())
	}
	return netip.Addr{}
}

// lastOf gives the highest address of a prefix.
func lastOf(p netip.Prefix) netip.Addr {
	raw := p.Masked().Addr().AsSlice()
	for i := range raw {
		switch keep := p.Bits() - 8*i; {
		case keep <= 0:
			raw[i] = 0xff
		case keep < 8:
			raw[i] |= 0xff >> keep
		}
	}
	a, _ := netip.AddrFromSlice(raw)
	return a
}

// Block is the part of subnet that belongs to the node of that index: the index-th block of prefix length perNode. It
// returns an error that wraps ErrRange when subnet holds no such block; two indices never give the same address.
func Block(subnet netip.Prefix, perNode int, index uint64) (netip.Prefix, error) {
	if !subnet.IsValid() || subnet != subnet.Masked() {
		return netip.Prefix{}, fmt.Errorf("cut node block: subnet %s has bits set beyond its length, or is none: %w", subnet, ErrRange)
	}
	all := subnet.Addr().BitLen()
	if perNode < subnet.Bits() || perNode > all {
		return netip.Prefix{}, fmt.Errorf("cut node block: /%d is not between the /%d of subnet %s and /%d: %w",
			perNode, subnet.Bits(), subnet, all, ErrRange)
	}
	if room := perNode - subnet.Bits(); room < 64 && index>>room != 0 {
		return netip.Prefix{}, fmt.Errorf("cut node block: subnet %s holds %d blocks of /%d, and the node's index, counted from 0, is %d: %w",
			subnet, uint64(1)<<room, perNode, index, ErrRange)
	}
	base := number(subnet.Addr()).plus(shifted(index, all-perNode))
	return netip.PrefixFrom(base.addr(all), perNode), nil
}
