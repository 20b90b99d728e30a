// SPDX-License-Identifier: Apache-2.0

package ipam

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// uint128 is an address as a number; an IPv4 address is its 32 bits.
type uint128 struct{ hi, lo uint64 }

func number(a netip.Addr) uint128 {
	if a.Is4() {
		raw := a.As4()
		return uint128{0, uint64(binary.BigEndian.Uint32(raw[:]))}
	}
	raw := a.As16()
	return uint128{binary.BigEndian.Uint64(raw[:8]), binary.BigEndian.Uint64(raw[8:])}
}

// addr gives the address of 32 or 128 bits back.
func (n uint128) addr(length int) netip.Addr {
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:8], n.hi)
	binary.BigEndian.PutUint64(raw[8:], n.lo)
	if length == 32 {
		return netip.AddrFrom4([4]byte(raw[12:]))
	}
	return netip.AddrFrom16(raw)
}

func (n uint128) plus(m uint128) uint128 {
	lo, carry := bits.Add64(n.lo, m.lo, 0)
	hi, _ := bits.Add64(n.hi, m.hi, carry)
	return uint128{hi, lo}
}

func (n uint128) minus(m uint128) uint128 {
	lo, borrow := bits.Sub64(n.lo, m.lo, 0)
	hi, _ := bits.Sub64(n.hi, m.hi, borrow)
	return uint128{hi, lo}
}

// shifted is n times two to the power of by, which is below 128.
func shifted(n uint64, by int) uint128 {
	if by >= 64 {
		return uint128{n << (by - 64), 0}
	}
	// A shift by 64 gives 0 in Go, which is what by == 0 needs.
	return uint128{n >> (64 - by), n << by}
}
