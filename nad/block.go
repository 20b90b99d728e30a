// SPDX-License-Identifier: Apache-2.0

package nad

import (
	"bytes"
	"slices"
)

// block reads a literal or folded scalar from its header on.
func (s *scalar) block(literal bool) {
	explicit := false
	for s.at < len(s.source) && !lineBreak(s.peek()) {
		explicit = explicit || s.peek() >= '1' && s.peek() <= '9'
		if s.peek() == '#' {
			break
		}
		s.at++
	}
	for s.at < len(s.source) && s.peek() != '\n' {
		s.at++
	}
	s.skip()
	from := *s
	if !explicit {
		s.lines(literal, s.indentation())
		return
	}
	// What the header's number is added to is not known here: the right sum is the one that gives the value.
	for indent := range 64 {
		*s = from
		s.got, s.marks = nil, slices.Clone(from.marks)
		if s.lines(literal, indent); string(s.got) == s.want {
			return
		}
	}
}

// indentation is that of the first line with text in it.
func (s *scalar) indentation() int {
	for line := range bytes.Lines(s.source[min(s.at, len(s.source)):]) {
		if text := bytes.TrimLeft(line, " "); len(bytes.TrimRight(text, "\r\n")) > 0 {
			return len(line) - len(text)
		}
	}
	return 0
}

// lines reads the lines of a block with this indentation.
func (s *scalar) lines(literal bool, indent int) {
	pending, blankBefore := 0, false // breaks that are not in the value yet; whether the line before began with white space
	first := true
	for s.at < len(s.source) && !s.full() {
		text, _, _ := bytes.Cut(s.source[s.at:], []byte("\n"))
		size := len(text)
		text = bytes.TrimSuffix(text, []byte("\r"))
		spaces := len(text) - len(bytes.TrimLeft(text, " "))
		switch {
		case spaces < indent && spaces == len(text): // an empty line
			pending++
		case spaces < indent:
			s.breaks(pending)
			return
		case len(text) == indent:
			pending++
		default:
			text = text[indent:]
			blankNow := blank(text[0])
			if !literal && !first && pending > 0 && !blankBefore && !blankNow {
				if pending--; pending == 0 {
					s.put(" ")
				}
			}
			s.breaks(pending)
			s.put(string(text))
			pending, blankBefore, first = 1, blankNow, false
		}
		s.at += size
		s.skip()
	}
	s.breaks(pending)
}

// breaks puts line breaks, as many as the value has room for: how many of the last ones count is the header's choice.
func (s *scalar) breaks(n int) {
	for range n {
		if s.full() {
			return
		}
		s.put("\n")
	}
}
