// SPDX-License-Identifier: Apache-2.0

package netconf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a document: deeper ones come from an attacker, not from a person.
const maxDepth = 100

// maxDocument bounds a document in bytes. etcd, and with it every NetworkAttachmentDefinition, ends at 1.5 MiB; the tree of 100 MiB
// would take 6 GB and longer than any deadline.
const maxDocument = 4 << 20

// shape is what a JSON value is.
type shape uint8

const (
	shapeNull shape = 1 << iota
	shapeBool
	shapeNumber
	shapeString
	shapeList
	shapeObject
)

// String names the shape as a person would.
func (s shape) String() string {
	var names []string
	for _, n := range []struct {
		s    shape
		name string
	}{
		{shapeNumber, "a number"},
		{shapeString, "a string"},
		{shapeBool, "true or false"},
		{shapeList, "a list"},
		{shapeObject, "an object"},
		{shapeNull, "null"},
	} {
		if s&n.s != 0 {
			names = append(names, n.name)
		}
	}
	return strings.Join(names, " or ")
}

// value is one JSON value with its place in the document. encoding/json alone would take "MTU" for "mtu", keep the last of
// two equal keys and say of a wrong type neither the key nor what stood there; so the document is read as a tree.
type value struct {
	shape   shape
	start   int    // offset of its first byte
	end     int    // offset behind its last byte
	text    string // of a string: its content; of a number: the literal
	yes     bool
	members []member
	items   []*value
}

// member is one key of an object, in the order of the document.
type member struct {
	name  string
	start int
	value *value
}

// get finds a key; nil when it is absent or null, which mean the same here as for every plugin that uses encoding/json. Of
// two equal keys the last one counts, likewise; Parse refuses such a document.
func (v *value) get(name string) *value {
	if v == nil {
		return nil
	}
	for _, m := range slices.Backward(v.members) {
		if m.name != name {
			continue
		}
		if m.value.shape == shapeNull {
			return nil
		}
		return m.value
	}
	return nil
}

// str is the content of a string, and empty for anything else and for nil.
func (v *value) str() string {
	if v == nil || v.shape != shapeString {
		return ""
	}
	return v.text
}

// found shows the value in a message: short, on one line, control characters escaped.
func (v *value) found() string {
	switch v.shape {
	case shapeString:
		return quote(v.text)
	case shapeNumber:
		return clip(v.text)
	case shapeBool:
		return strconv.FormatBool(v.yes)
	case shapeNull:
		return "null"
	case shapeList:
		return fmt.Sprintf("a list of %d", len(v.items))
	case shapeObject:
		return fmt.Sprintf("an object with %d keys", len(v.members))
	}
	return v.shape.String()
}

// quote makes any text fit to stand in a message.
func quote(s string) string { return strconv.Quote(clip(s)) }

// clip cuts long text between two characters; messages end up in events, which are cut themselves.
func clip(s string) string { return clipTo(s, 64) }

// clipTo is clip for most bytes.
func clipTo(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > most-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "..."
}

// document is one parsed JSON text.
type document struct {
	text      []byte
	root      *value
	duplicate *member // the second of two equal keys of one object, nil if there is none
}

// at gives line and column, both from 1, the column in bytes.
func (d *document) at(offset int) string {
	offset = max(0, min(offset, len(d.text)))
	line := bytes.Count(d.text[:offset], []byte{'\n'}) + 1
	column := offset - bytes.LastIndexByte(d.text[:offset], '\n')
	return fmt.Sprintf("line %d, column %d", line, column)
}

// parseDocument reads one JSON object and nothing behind it. name is what messages call the document.
func parseDocument(name string, text []byte) (*document, error) {
	d := &document{text: text}
	bad := func(remedy string, offset int, err error) error {
		return &Problem{Code: CodeDecode, Remedy: remedy, Field: name + ", " + d.at(offset), Err: err}
	}
	if len(text) > maxDocument {
		return nil, &Problem{
			Code: CodeDecode, Remedy: "make the text shorter", Field: name, Found: fmt.Sprintf("%d bytes", len(text)),
			Right: fmt.Sprintf("at most %d", maxDocument),
		}
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	var whole json.RawMessage
	err := dec.Decode(&whole)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return nil, bad("correct the JSON", int(syntax.Offset)-1, syntax)
	case errors.Is(err, io.EOF):
		return nil, bad("give a JSON object, the text is empty", len(text), nil)
	case err != nil:
		return nil, bad("complete the JSON, it ends too early", len(text), nil)
	}
	end := int(dec.InputOffset())
	if rest := bytes.TrimLeft(text[end:], " \t\r\n"); len(rest) > 0 {
		return nil, bad("keep one JSON document, something follows its end", len(text)-len(rest), nil)
	}
	b := builder{dec: json.NewDecoder(bytes.NewReader(text)), doc: d}
	b.dec.UseNumber()
	if d.root, err = b.value(0); err != nil {
		return nil, bad("correct the JSON", int(b.dec.InputOffset()), err)
	}
	if d.root.shape != shapeObject {
		return nil, &Problem{
			Code: CodeDecode, Remedy: "give a JSON object in { }", Field: name + ", " + d.at(d.root.start),
			Found: d.root.found(), Right: "an object",
		}
	}
	return d, nil
}

// errDeep refuses a document that nests too deep.
var errDeep = fmt.Errorf("lists and objects nest more than %d deep", maxDepth)

// builder makes the tree from the tokens of encoding/json.
type builder struct {
	dec *json.Decoder
	doc *document
}

// token reads one token and finds where it begins.
func (b *builder) token() (json.Token, int, error) {
	from := int(b.dec.InputOffset())
	t, err := b.dec.Token()
	if err != nil {
		return nil, from, fmt.Errorf("read token: %w", err)
	}
	for from < len(b.doc.text) && strings.IndexByte(" \t\r\n:,", b.doc.text[from]) >= 0 {
		from++
	}
	return t, from, nil
}

func (b *builder) value(depth int) (*value, error) {
	t, start, err := b.token()
	if err != nil {
		return nil, err
	}
	v := &value{start: start}
	switch t := t.(type) {
	case nil:
		v.shape = shapeNull
	case bool:
		v.shape, v.yes = shapeBool, t
	case json.Number:
		v.shape, v.text = shapeNumber, t.String()
	case string:
		v.shape, v.text = shapeString, t
	case json.Delim:
		if depth == maxDepth {
			return nil, errDeep
		}
		if v.shape = shapeList; t == '{' {
			v.shape = shapeObject
		}
		err = b.inside(v, depth+1)
	}
	v.end = int(b.dec.InputOffset())
	return v, err
}

// inside reads what stands between the brackets of v, the closing one included.
func (b *builder) inside(v *value, depth int) error {
	for b.dec.More() {
		var m member
		if v.shape == shapeObject {
			t, start, err := b.token()
			if err != nil {
				return err
			}
			m.name, _ = t.(string)
			m.start = start
		}
		item, err := b.value(depth)
		if err != nil {
			return err
		}
		if v.shape == shapeList {
			v.items = append(v.items, item)
			continue
		}
		m.value = item
		v.members = append(v.members, m)
	}
	if v.shape == shapeObject && b.doc.duplicate == nil {
		b.doc.duplicate = repeated(v.members)
	}
	_, _, err := b.token()
	return err
}

// repeated finds the second of two equal keys.
func repeated(members []member) *member {
	seen := make(map[string]bool, len(members))
	for i := range members {
		if seen[members[i].name] {
			return &members[i]
		}
		seen[members[i].name] = true
	}
	return nil
}
