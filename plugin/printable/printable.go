// SPDX-License-Identifier: Apache-2.0

// Package printable makes texts fit for a terminal and a log. Much of what the plugin prints was chosen by a pod: names of
// interfaces and processes, words of an annotation. An escape sequence in one would speak to the terminal of whoever reads the
// message, and a character that turns the direction of writing would make it read as another.
package printable

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text gives s with every character that does not print, as unicode.IsPrint tells, written as \uXXXX. Newlines and tabs stay.
// What is no UTF-8 becomes U+FFFD. A JSON document means the same afterwards, since such characters can only stand in its
// strings, where that is how they are written.
func Text(s string) string {
	if clean(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if fine(r) {
			b.WriteRune(r)
			continue
		}
		if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
			escape(&b, high)
			escape(&b, low)
			continue
		}
		escape(&b, r)
	}
	return b.String()
}

// clean spares almost every text the copy.
func clean(s string) bool {
	for _, r := range s {
		if !fine(r) || r == utf8.RuneError {
			return false
		}
	}
	return true
}

func fine(r rune) bool { return unicode.IsPrint(r) || r == '\n' || r == '\t' }

func escape(b *strings.Builder, r rune) {
	const digits = "0123456789abcdef"
	b.WriteString(`\u`)
	for shift := 12; shift >= 0; shift -= 4 {
		b.WriteByte(digits[r>>shift&0xf])
	}
}

// Writer passes on what is written to it as Text. Each call must end between two characters, as those of package fmt and of
// log/slog do.
func Writer(w io.Writer) io.Writer { return writer{w} }

type writer struct{ to io.Writer }

// Write tells of all or nothing: what was written is longer than what was given.
func (w writer) Write(text []byte) (int, error) {
	if _, err := io.WriteString(w.to, Text(string(text))); err != nil {
		return 0, err //nolint:wrapcheck // whoever wrote knows what
	}
	return len(text), nil
}
