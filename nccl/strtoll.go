// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"strconv"
	"strings"
)

// leadingInt is C's strtoll with base 0 or 10: leading blanks, a sign, as many digits as there are, nothing after them. No
// digits give 0. It returns false when the number does not fit, where C sets ERANGE.
func leadingInt(s string, base int) (int64, bool) {
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = strings.TrimPrefix(s[:1], "+"), s[1:]
	}
	if base == 0 {
		base, s = cBase(s)
	}
	end := 0
	for end < len(s) && digit(s[end]) < base {
		end++
	}
	if end == 0 {
		return 0, true
	}
	n, err := strconv.ParseInt(sign+s[:end], base, 64)
	return n, err == nil
}

// cBase takes C's prefixes for hexadecimal and octal off; "0x" without a digit after it is the number 0.
func cBase(s string) (int, string) {
	switch {
	case len(s) > 2 && s[0] == '0' && s[1]|0x20 == 'x' && digit(s[2]) < 16:
		return 16, s[2:]
	case s != "" && s[0] == '0':
		return 8, s
	}
	return 10, s
}

func digit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'z':
		return int(c|0x20-'a') + 10
	}
	return 255
}
