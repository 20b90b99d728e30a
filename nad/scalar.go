// SPDX-License-Identifier: Apache-2.0

package nad

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// scalarMarks finds for each byte of a YAML scalar's value the line that it stands on. The YAML library gives the value and where
// it begins; so the scalar is read here once more, by the rules of its style. Should the two not agree in a single byte, every
// byte is said to stand where the scalar begins: a line may be vague, never wrong.
func scalarMarks(source []byte, starts []int, line int, node *yaml.Node) []mark {
	s := scalar{source: source, at: offsetOf(source, starts, node), line: line + node.Line - 1, want: node.Value}
	begin := []mark{{0, s.line}}
	if s.at < 0 {
		return begin
	}
	s.properties()
	s.marks = []mark{{0, s.line}}
	switch {
	case node.Style&yaml.LiteralStyle != 0:
		s.block(true)
	case node.Style&yaml.FoldedStyle != 0:
		s.block(false)
	case node.Style&yaml.SingleQuotedStyle != 0:
		s.at++
		s.flow('\'')
	case node.Style&yaml.DoubleQuotedStyle != 0:
		s.at++
		s.flow('"')
	default:
		s.flow(0)
	}
	if string(s.got) != node.Value {
		return begin
	}
	return s.marks
}

// offsetOf is where a node begins in its source, in bytes; -1: not in it. starts are the offsets of the source's lines.
func offsetOf(source []byte, starts []int, node *yaml.Node) int {
	if node.Line < 1 || node.Line > len(starts) {
		return -1
	}
	offset := starts[node.Line-1]
	for range node.Column - 1 {
		_, size := utf8.DecodeRune(source[offset:])
		if size == 0 {
			return -1
		}
		offset += size
	}
	return offset
}

// scalar is one on its way.
type scalar struct {
	source []byte
	at     int // the next byte
	line   int // the line of the file that it is on
	want   string
	got    []byte
	marks  []mark
}

// peek is the next byte, 0 at the end.
func (s *scalar) peek() byte {
	if s.at < len(s.source) {
		return s.source[s.at]
	}
	return 0
}

func (s *scalar) full() bool { return len(s.got) >= len(s.want) }

// put adds to the value what stands on the line at hand.
func (s *scalar) put(text string) {
	if s.marks[len(s.marks)-1].line != s.line {
		s.marks = append(s.marks, mark{len(s.got), s.line})
	}
	s.got = append(s.got, text...)
}

// properties passes over an anchor and a tag before the scalar.
func (s *scalar) properties() {
	for s.peek() == '&' || s.peek() == '!' {
		for s.at < len(s.source) && !blank(s.peek()) && !lineBreak(s.peek()) {
			s.at++
		}
		for blank(s.peek()) || lineBreak(s.peek()) {
			s.skip()
		}
	}
}

// skip passes one byte and counts lines.
func (s *scalar) skip() {
	if s.peek() == '\n' {
		s.line++
	}
	s.at++
}

func blank(c byte) bool     { return c == ' ' || c == '\t' }
func lineBreak(c byte) bool { return c == '\n' || c == '\r' }

// flow reads a plain or quoted scalar.
func (s *scalar) flow(quote byte) {
	for s.at < len(s.source) && !s.full() {
		c := s.peek()
		switch {
		case blank(c) || lineBreak(c):
			s.fold()
		case quote == '\'' && c == '\'':
			if !bytes.HasPrefix(s.source[s.at:], []byte("''")) {
				return
			}
			s.put("'")
			s.at += 2
		case quote == '"' && c == '"':
			return
		case quote == '"' && c == '\\':
			s.escape()
		default:
			s.put(string(s.source[s.at : s.at+1]))
			s.at++
		}
	}
}

// fold reads white space: it stays inside a line, and around a line's end it becomes one space or the empty lines' breaks.
func (s *scalar) fold() {
	start := s.at
	for blank(s.peek()) {
		s.at++
	}
	if !lineBreak(s.peek()) {
		s.put(string(s.source[start:s.at]))
		return
	}
	breaks, line := 0, s.line
	for blank(s.peek()) || lineBreak(s.peek()) {
		if s.peek() == '\n' {
			breaks++
		}
		s.skip()
	}
	after := s.line
	s.line = line
	if breaks == 1 {
		s.put(" ")
	}
	for range breaks - 1 {
		s.line++
		s.put("\n")
	}
	s.line = after
}

// escape reads what follows a backslash.
func (s *scalar) escape() {
	s.at++
	c := s.peek()
	s.at++
	if lineBreak(c) {
		s.at--
		if c == '\r' {
			s.at++
		}
		s.skip()
		for blank(s.peek()) {
			s.at++
		}
		return
	}
	if digits := strings.IndexByte("xuU", c); digits >= 0 {
		s.code([]int{2, 4, 8}[digits])
		return
	}
	const names, values = "0abtnvfre\t\" /\\N_LP", "\x00\a\b\t\n\v\f\r\x1b\t\" /\\\u0085\u00a0\u2028\u2029"
	if i := strings.IndexByte(names, c); i >= 0 {
		s.put(string([]rune(values)[i]))
	}
}

// code reads a character by its number.
func (s *scalar) code(digits int) {
	r := rune(0)
	for range digits {
		d := strings.IndexByte("0123456789abcdef", lower(s.peek()))
		if d < 0 {
			return
		}
		r = r<<4 | rune(d)
		s.at++
	}
	s.put(string(r))
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'F' {
		return c + 'a' - 'A'
	}
	return c
}
