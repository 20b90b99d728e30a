// SPDX-License-Identifier: Apache-2.0

package nad

import (
	"bytes"
	"slices"
	"strings"
)

// Mended reads a broken text as its author may have meant it: brackets closed, commas between values put in, trailing ones, comments and
// all behind the first value left out. nil when that makes no JSON either. What is found in it can only be said beside the fault, never instead of it;
// its places mean nothing.
func Mended(text []byte) *Value {
	const most = 1 << 20
	if len(text) > most {
		return nil
	}
	root, _ := parseJSON(mend(text))
	return root
}

// mend does the repairs.
func mend(text []byte) []byte {
	text = []byte(strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "\uFEFF", "").Replace(string(text)))
	var out []byte
	var open []byte
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"':
			out = withComma(out)
			end := stringEnd(text, i)
			out = append(out, text[i:end]...)
			i = end - 1
			continue
		case c == '#' || bytes.HasPrefix(text[i:], []byte("//")):
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
			continue
		case c == '{' || c == '[':
			out = withComma(out)
			open = append(open, c)
		case c == '}' || c == ']':
			out = withoutComma(out)
			for len(open) > 0 && open[len(open)-1] != opener(c) {
				out = append(out, closer(open[len(open)-1]))
				open = open[:len(open)-1]
			}
			if len(open) == 0 {
				return out
			}
			if open = open[:len(open)-1]; len(open) == 0 {
				return append(out, c)
			}
		}
		out = append(out, c)
	}
	out = withoutComma(out)
	for _, c := range slices.Backward(open) {
		out = append(out, closer(c))
	}
	return out
}

// stringEnd is the offset behind a string that begins at an offset; strings end with their line at the latest.
func stringEnd(text []byte, start int) int {
	for i := start + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		case '\n':
			return i
		}
	}
	return len(text)
}

// withComma adds the comma that lacks before a string, an object or a list behind a value that is complete.
func withComma(out []byte) []byte {
	trimmed := bytes.TrimRight(out, " \t\r\n")
	if len(trimmed) == 0 || bytes.IndexByte([]byte(",:{["), trimmed[len(trimmed)-1]) >= 0 {
		return out
	}
	return append(out, ',')
}

func withoutComma(out []byte) []byte {
	if trimmed := bytes.TrimRight(out, " \t\r\n"); bytes.HasSuffix(trimmed, []byte(",")) {
		return trimmed[:len(trimmed)-1]
	}
	return out
}
