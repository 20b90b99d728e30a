// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"fmt"
	"net/netip"
	"slices"
)

// Place says which set gives which of the requested addresses: one entry for each set, zero where it is free to choose.
// Each address takes one set that contains it. The error wraps ErrOutside when an address finds no set.
func Place(sets [][]Range, want []netip.Addr) ([]netip.Addr, error) {
	placed := make([]netip.Addr, len(sets))
	for _, a := range want {
		found := false
		for i, set := range sets {
			if !placed[i].IsValid() && slices.ContainsFunc(set, func(r Range) bool { return r.Contains(a) }) {
				placed[i], found = a, true
				break
			}
		}
		if !found {
			return nil, fmt.Errorf("place requested address %s: %w", a, ErrOutside)
		}
	}
	return placed, nil
}
