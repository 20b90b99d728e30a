// SPDX-License-Identifier: Apache-2.0

// Package ipam chooses addresses: which of a range may be given, which one is next, and which block of a subnet is a node's
// own. It is pure and never walks through a range, so that an IPv6 /64 costs no more than a /26; package lease keeps what
// was given on disk. It knows nothing of CNI.
package ipam

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// The errors of this package and of package lease.
var (
	// ErrRange: a range or a block cannot be what it says.
	ErrRange = errors.New("not a usable range")
	// ErrExhausted: every address of the ranges is in use. The error is an *ExhaustedError.
	ErrExhausted = errors.New("no address left")
	// ErrOutside: a requested address lies in none of the ranges, or is one that is never given.
	ErrOutside = errors.New("address is not one of the ranges'")
	// ErrTaken: a requested address is in use. The error is a *TakenError.
	ErrTaken = errors.New("address is in use")
)

// ExhaustedError is ErrExhausted with the numbers.
type ExhaustedError struct {
	Ranges []Range
	InUse  uint64 // addresses of Ranges that are leased
	Size   uint64 // addresses that Ranges can give in all
}

// Error names the ranges and the numbers.
func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("choose address: no address left in %s: %d of %d in use", e.names(), e.InUse, e.Size)
}

func (e *ExhaustedError) names() string {
	names := make([]string, 0, len(e.Ranges))
	for _, r := range e.Ranges {
		names = append(names, r.String())
	}
	return strings.Join(names, " or ")
}

// Unwrap gives ErrExhausted.
func (e *ExhaustedError) Unwrap() error { return ErrExhausted }

// TakenError is ErrTaken with who has the address.
type TakenError struct {
	Addr  netip.Addr
	Owner string
}

// Error names address and owner.
func (e *TakenError) Error() string {
	return fmt.Sprintf("give address %s: in use by %s", e.Addr, e.Owner)
}

// Unwrap gives ErrTaken.
func (e *TakenError) Unwrap() error { return ErrTaken }

// Range is a run of addresses of one subnet that this node may hand out.
type Range struct {
	Subnet  netip.Prefix   // gives the prefix length of the address, and the pool that leases are kept by
	First   netip.Addr     // inclusive; zero: the subnet's first
	Last    netip.Addr     // inclusive; zero: the subnet's last
	Gateway netip.Addr     // never given; zero: none
	Exclude []netip.Prefix // never given
}

// String gives the subnet, and the run when it is not the whole of it.
func (r Range) String() string {
	if !r.First.IsValid() && !r.Last.IsValid() {
		return r.Subnet.String()
	}
	first, last := r.ends()
	return fmt.Sprintf("%s (%s to %s)", r.Subnet, first, last)
}

// Check returns an error that wraps ErrRange when the range contradicts itself or leaves nothing to give.
func (r Range) Check() error {
	spans, err := r.spans()
	if err != nil {
		return err
	}
	if len(spans) == 0 {
		return fmt.Errorf("check range %s: everything in it is excluded, or is the network's, the broadcast's or the gateway's own: %w", r, ErrRange)
	}
	return nil
}

// Size is how many addresses the range can give; more than fit are the largest uint64. A range that Check refuses has none.
func (r Range) Size() uint64 {
	spans, err := r.spans()
	if err != nil {
		return 0
	}
	return size(spans)
}

// Contains tells whether the range can give the address.
func (r Range) Contains(a netip.Addr) bool {
	spans, err := r.spans()
	return err == nil && within(spans, a)
}

func within(spans []span, a netip.Addr) bool {
	return slices.ContainsFunc(spans, func(s span) bool { return s.contains(a) })
}

// ends gives First and Last with their defaults.
func (r Range) ends() (netip.Addr, netip.Addr) {
	first, last := r.First, r.Last
	if !first.IsValid() {
		first = r.Subnet.Masked().Addr()
	}
	if !last.IsValid() {
		last = lastOf(r.Subnet)
	}
	return first, last
}

// spans gives the runs of addresses that can be given, disjoint and ascending. Never given are: the subnet's own address
// (IPv4: the network, RFC 1122 3.2.1.3; IPv6: the subnet-router anycast address, RFC 4291 2.6.1) and the IPv4 broadcast,
// unless the subnet is a point-to-point link or a single address (RFC 3021, RFC 6164), the gateway, what is excluded.
func (r Range) spans() ([]span, error) {
	if !r.Subnet.IsValid() || r.Subnet != r.Subnet.Masked() {
		return nil, fmt.Errorf("check range: subnet %s has bits set beyond its length, or is none: %w", r.Subnet, ErrRange)
	}
	first, last := r.ends()
	for _, a := range []netip.Addr{first, last} {
		if !r.Subnet.Contains(a) {
			return nil, fmt.Errorf("check range: %s is not in subnet %s: %w", a, r.Subnet, ErrRange)
		}
	}
	if last.Less(first) {
		return nil, fmt.Errorf("check range: first %s is above last %s: %w", first, last, ErrRange)
	}
	spans := []span{{first, last}}
	if hostBits := r.Subnet.Addr().BitLen() - r.Subnet.Bits(); hostBits > 1 {
		spans = cut(spans, single(r.Subnet.Addr()))
		if r.Subnet.Addr().Is4() {
			spans = cut(spans, single(lastOf(r.Subnet)))
		}
	}
	if r.Gateway.IsValid() {
		spans = cut(spans, single(r.Gateway))
	}
	for _, x := range r.Exclude {
		if !x.IsValid() {
			return nil, fmt.Errorf("check range %s: an exclusion is no prefix: %w", r, ErrRange)
		}
		spans = cut(spans, span{x.Masked().Addr(), lastOf(x)})
	}
	return spans, nil
}
