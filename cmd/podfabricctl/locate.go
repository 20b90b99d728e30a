// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// under joins a place in a document and a key below it.
func under(path, key string) string {
	switch {
	case path == "":
		return key
	case key == "":
		return path
	}
	return path + "." + key
}

// lineAt gives the line, from 1, on which the thing at a path as "ipam.ranges[0][1].subnet" begins; of what is not there, the
// line of what it would be in. 0 when the document cannot be read.
func lineAt(text []byte, path string) int {
	l := locator{dec: json.NewDecoder(bytes.NewReader(text)), text: text, lines: map[string]int{}}
	if l.value("") != nil {
		return 0
	}
	for ; path != ""; path = parent(path) {
		if line, ok := l.lines[path]; ok {
			return line
		}
	}
	return l.lines[""]
}

// parent cuts the last key or index off.
func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}

// locator notes where each value of a document begins.
type locator struct {
	dec   *json.Decoder
	text  []byte
	lines map[string]int
}

func (l *locator) value(path string) error {
	from := int(l.dec.InputOffset())
	t, err := l.dec.Token()
	if err != nil {
		return fmt.Errorf("read token: %w", err)
	}
	for from < len(l.text) && strings.IndexByte(" \t\r\n:,", l.text[from]) >= 0 {
		from++
	}
	if _, known := l.lines[path]; !known {
		l.lines[path] = bytes.Count(l.text[:from], []byte{'\n'}) + 1
	}
	open, _ := t.(json.Delim)
	switch open {
	case '{':
		return l.inside(func(int) (string, error) {
			t, err := l.dec.Token()
			name, _ := t.(string)
			return under(path, name), err
		})
	case '[':
		return l.inside(func(i int) (string, error) { return fmt.Sprintf("%s[%d]", path, i), nil })
	}
	return nil
}

// inside walks the members of an object or a list.
func (l *locator) inside(next func(i int) (string, error)) error {
	for i := 0; l.dec.More(); i++ {
		path, err := next(i)
		if err != nil {
			return err
		}
		if err := l.value(path); err != nil {
			return err
		}
	}
	_, err := l.dec.Token()
	if err != nil {
		return fmt.Errorf("read token: %w", err)
	}
	return nil
}
