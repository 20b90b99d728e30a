// SPDX-License-Identifier: Apache-2.0

// Package pci holds the address of a PCI function as a value. It parses text once, at the edge, so that nothing inside
// compares or re-parses strings; it reads no files.
package pci

import (
	"errors"
	"fmt"
)

// ErrSyntax is wrapped by every error of Parse.
var ErrSyntax = errors.New("not a PCI address of the form dddd:bb:dd.f")

// Addr names a PCI function, as sysfs does below /sys/bus/pci/devices. It is comparable and its zero value is no address
// that a network function can have (a host bridge sits there).
type Addr struct {
	Domain   uint32 // VMD and Hyper-V use domains above 0xffff
	Bus      uint8
	Device   uint8 // 0 to 31
	Function uint8 // 0 to 7
}

// Parse reads the form that the kernel prints and that every device plugin hands out: 0000:3b:00.2. Upper-case digits are
// taken; a short form without the domain is not, since it would be a guess.
func Parse(s string) (Addr, error) {
	var a Addr
	domain := 0
	for domain < len(s) && s[domain] != ':' {
		domain++
	}
	rest := s[domain:]
	if domain < 4 || domain > 8 || len(rest) != len(":bb:dd.f") || rest[3] != ':' || rest[6] != '.' {
		return Addr{}, fmt.Errorf("%q: %w", s, ErrSyntax)
	}
	d, ok1 := hex(s[:domain])
	b, ok2 := hex(rest[1:3])
	v, ok3 := hex(rest[4:6])
	f, ok4 := hex(rest[7:8])
	if !ok1 || !ok2 || !ok3 || !ok4 || v > 31 || f > 7 {
		return Addr{}, fmt.Errorf("%q: %w", s, ErrSyntax)
	}
	a.Domain, a.Bus, a.Device, a.Function = d, uint8(b), uint8(v), uint8(f)
	return a, nil
}

// hex reads at most eight hexadecimal digits and nothing else: strconv would also take signs and underscores.
func hex(s string) (uint32, bool) {
	var n uint32
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		n = n<<4 | uint32(c)
	}
	return n, len(s) > 0
}

// String gives the kernel's form.
func (a Addr) String() string {
	return fmt.Sprintf("%04x:%02x:%02x.%d", a.Domain, a.Bus, a.Device, a.Function)
}

// IsZero tells whether a is the zero value, which stands for "no function".
func (a Addr) IsZero() bool { return a == Addr{} }

// MarshalText makes JSON hold the kernel's form; the zero value becomes the empty string.
func (a Addr) MarshalText() ([]byte, error) {
	if a.IsZero() {
		return nil, nil
	}
	return []byte(a.String()), nil
}

// UnmarshalText is Parse, with the empty string for the zero value.
func (a *Addr) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*a = Addr{}
		return nil
	}
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*a = parsed
	return nil
}
