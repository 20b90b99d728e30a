// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"bytes"
	"fmt"
	"strings"
)

// Limits of the loader (src/misc/param.cc): names and values are cut at 1023 bytes, and from 2.30 a line is read in pieces of
// 4095. The writer stays below them with room to spare.
const (
	maxText  = 1023
	maxPiece = 4095
	maxValue = 1000 // of a value that we write, bytes
	maxVar   = 100  // of a name that we write, bytes
)

// Setting is one line of nccl.conf and the reason that stands above it.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Reason string `json:"reason"`
}

// Render writes nccl.conf: the comments, then each setting below its reason. Every version of NCCL since 2.3 reads the same
// pairs from it: lines begin in column 0 and end in LF, nothing is quoted, and no comment holds an equals sign, since up to
// 2.25 a comment that does is a variable. Comments are cleaned; a setting that could be read in two ways is refused with
// ErrUnwritable.
func Render(comments []string, settings []Setting) ([]byte, error) {
	var b bytes.Buffer
	for _, c := range comments {
		writeComment(&b, c)
	}
	seen := map[string]bool{}
	for _, s := range settings {
		if !isSettingName(s.Name) || seen[s.Name] {
			return nil, fmt.Errorf("write name %q: %w", s.Name, ErrUnwritable)
		}
		seen[s.Name] = true
		if !writable(s.Value) {
			return nil, fmt.Errorf("write value %q of %s: %w", s.Value, s.Name, ErrUnwritable)
		}
		if s.Reason != "" {
			writeComment(&b, s.Reason)
		}
		b.WriteString(s.Name + "=" + s.Value + "\n")
	}
	return b.Bytes(), nil
}

// writable: printable ASCII without blanks at the ends (NCCL keeps them), and neither empty, which NCCL takes for unset.
func writable(v string) bool {
	if v == "" || len(v) >= maxValue || strings.TrimSpace(v) != v {
		return false
	}
	return !strings.ContainsFunc(v, func(r rune) bool { return r < 0x20 || r > 0x7e })
}

func writeComment(b *bytes.Buffer, text string) {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r == '=':
			return ':'
		case r < 0x20 || r > 0x7e:
			return '?'
		}
		return r
	}, text)
	b.WriteString(strings.TrimRight("# "+clean[:min(len(clean), maxValue)], " ") + "\n")
}

// Pair is a variable that NCCL sets from its file.
type Pair struct{ Name, Value string }

// ParseConf reads nccl.conf as version v does: which variables it sets, in order, the first of a name winning. No line is an
// error to NCCL, so none is here: what it takes for a name may hold blanks or a hash.
func ParseConf(v Version, text []byte) []Pair {
	var pairs []Pair
	seen := map[string]bool{}
	for _, line := range confLines(v, text) {
		if !v.Before(2, 26) && strings.HasPrefix(line, "#") {
			continue
		}
		line, _, _ = strings.Cut(line, "\x00")
		name, value, found := strings.Cut(line, "=")
		if !found || name == "" {
			continue
		}
		name, value = name[:min(len(name), maxText)], value[:min(len(value), maxText)]
		if !seen[name] {
			seen[name] = true
			pairs = append(pairs, Pair{name, value})
		}
	}
	return pairs
}

// confLines cuts a file as getline does, and from 2.30 as fgets into 4096 bytes with CR taken off.
func confLines(v Version, text []byte) []string {
	var lines []string
	for line := range bytes.Lines(text) {
		if v.Before(2, 30) {
			lines = append(lines, strings.TrimSuffix(string(line), "\n"))
			continue
		}
		for len(line) > 0 {
			n := min(len(line), maxPiece)
			piece := strings.TrimSuffix(string(line[:n]), "\n")
			lines = append(lines, strings.TrimSuffix(piece, "\r"))
			line = line[n:]
		}
	}
	return lines
}

// isSettingName tells whether a name can stand in the file: capitals, digits and underscores, a capital first, and so short that
// NCCL does not cut it. Not an expression: compiling one costs every start of the plugin.
func isSettingName(s string) bool {
	for i, c := range []byte(s) {
		capital := c >= 'A' && c <= 'Z'
		if !capital && (i == 0 || c != '_' && (c < '0' || c > '9')) {
			return false
		}
	}
	return s != "" && len(s) <= maxVar
}
