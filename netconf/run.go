// SPDX-License-Identifier: Apache-2.0

package netconf

import "net/netip"

// last gives the highest address of a prefix.
func last(p netip.Prefix) netip.Addr {
	bytes := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	a, _ := netip.AddrFromSlice(bytes)
	return a
}

// hosts gives the first and last address of a subnet that an interface may have. In IPv4 the lowest is the network's and the
// highest the broadcast's, but for /31 (RFC 3021) and /32; in IPv6 the lowest is the routers' anycast address (RFC 4291,
// 2.6.1), but for /127 (RFC 6164) and /128.
func hosts(subnet netip.Prefix) (netip.Addr, netip.Addr) {
	low, high := subnet.Masked().Addr(), last(subnet)
	if subnet.Addr().BitLen()-subnet.Bits() < 2 {
		return low, high
	}
	if low.Is4() {
		return low.Next(), high.Prev()
	}
	return low.Next(), high
}

// higher and lower give one of two addresses of one family.
func higher(a, b netip.Addr) netip.Addr {
	if a.Less(b) {
		return b
	}
	return a
}

func lower(a, b netip.Addr) netip.Addr {
	if a.Less(b) {
		return a
	}
	return b
}
