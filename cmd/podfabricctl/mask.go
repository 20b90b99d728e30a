// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// mask replaces addresses, each by the same one every time. What is derived from a MAC stays derived from its replacement, so
// that code which relies on that still works on a record.
type mask struct {
	macs  map[[6]byte][6]byte
	guids map[uint64]uint64
	ips   map[netip.Addr]netip.Addr
}

func newMask() *mask {
	return &mask{macs: map[[6]byte][6]byte{}, guids: map[uint64]uint64{}, ips: map[netip.Addr]netip.Addr{}}
}

// octets replaces a MAC: 02:00:00:00:00:01 and so on. All zeros and all ones stay.
func (m *mask) octets(b [6]byte) [6]byte {
	if b == [6]byte{} || b == [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff} {
		return b
	}
	b[0] |= 2 // an EUI-64 does not tell how this bit was
	if _, known := m.macs[b]; !known {
		n := len(m.macs) + 1
		m.macs[b] = [6]byte{2, 0, 0, byte(n >> 16), byte(n >> 8), byte(n)}
	}
	return m.macs[b]
}

// mac replaces aa:bb:cc:dd:ee:ff; what is none, as the longer address of an IPoIB link, is cut out.
func (m *mask) mac(s string) string {
	raw, err := hex.DecodeString(strings.ReplaceAll(s, ":", ""))
	if err != nil || len(raw) != 6 {
		return ""
	}
	b := m.octets([6]byte(raw))
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4], b[5])
}

// id replaces a GUID or the lower half of an IPv6 address. One made from a MAC (EUI-64, RFC 4291 appendix A; with or without the
// flipped bit) is made from its replacement.
func (m *mask) id(v uint64) uint64 {
	if v == 0 || v == ^uint64(0) {
		return v
	}
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], v)
	if b[3] == 0xff && b[4] == 0xfe {
		flip := b[0] & 2
		r := m.octets([6]byte{b[0], b[1], b[2], b[5], b[6], b[7]})
		return binary.BigEndian.Uint64([]byte{r[0]&^2 | flip, r[1], r[2], 0xff, 0xfe, r[3], r[4], r[5]})
	}
	if _, known := m.guids[v]; !known {
		m.guids[v] = 0x0200_0000_0000_0000 | uint64(len(m.guids)+1)
	}
	return m.guids[v]
}

// guid replaces a node GUID as sysfs prints it.
func (m *mask) guid(s string) string {
	raw, err := hex.DecodeString(strings.ReplaceAll(s, ":", ""))
	if err != nil || len(raw) != 8 {
		return ""
	}
	v := m.id(binary.BigEndian.Uint64(raw))
	return fmt.Sprintf("%04x:%04x:%04x:%04x", v>>48, v>>32&0xffff, v>>16&0xffff, v&0xffff)
}

// gid replaces an entry of a GID table: IPv4 by 198.18.0.1 and so on (RFC 2544), global IPv6 by 2001:db8::1 and so on (RFC 3849),
// link-local ones by their interface identifier.
func (m *mask) gid(s string) string {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return ""
	}
	b := a.As16()
	switch {
	case a.IsUnspecified():
	case a.IsLinkLocalUnicast() && !a.Is4In6():
		binary.BigEndian.PutUint64(b[8:], m.id(binary.BigEndian.Uint64(b[8:])))
	default:
		b = m.ip(a).As16()
	}
	var groups []string
	for i := 0; i < len(b); i += 2 {
		groups = append(groups, fmt.Sprintf("%02x%02x", b[i], b[i+1]))
	}
	return strings.Join(groups, ":")
}

func (m *mask) ip(a netip.Addr) netip.Addr {
	if r, known := m.ips[a]; known {
		return r
	}
	n := len(m.ips) + 1
	r := netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 13: byte(n >> 16), 14: byte(n >> 8), 15: byte(n)})
	if a.Is4In6() {
		r = netip.AddrFrom16([16]byte{10: 0xff, 11: 0xff, 12: 198, 13: 18, 14: byte(n >> 8), 15: byte(n)})
	}
	m.ips[a] = r
	return r
}

// macName is the name that udev gives a netdev after its MAC.
var macName = regexp.MustCompile(`\benx([0-9a-f]{12})\b`)

// names replaces MACs in names of netdevs, wherever in a text they stand.
func (m *mask) names(s string) string {
	return macName.ReplaceAllStringFunc(s, func(name string) string {
		return "enx" + strings.ReplaceAll(m.mac(name[len("enx"):]), ":", "")
	})
}
