// SPDX-License-Identifier: Apache-2.0

package nad

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxDepth bounds the nesting of a document.
const maxDepth = 100

var errDeep = fmt.Errorf("lists and objects nest more than %d deep", maxDepth)

// broken is why a text is no JSON.
type broken struct {
	offset int
	reason string
	open   *bracket // that is never closed; nil: it is not about one
}

// fault says where in the file that is.
func (b *broken) fault(t *Text, field string) *Fault {
	reason := b.reason
	if b.open != nil {
		reason = fmt.Sprintf("complete the JSON, it ends too early: the %c of line %d is never closed: %s",
			b.open.char, t.Line(b.open.offset), reason)
	}
	return &Fault{Line: t.Line(b.offset), Field: field, Reason: reason}
}

// parseJSON reads one JSON value and nothing behind it.
func parseJSON(text []byte) (*Value, *broken) {
	dec := json.NewDecoder(bytes.NewReader(text))
	var whole json.RawMessage
	err := dec.Decode(&whole)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		offset := max(0, int(syntax.Offset)-1)
		return nil, &broken{offset: offset, reason: remedy(text, offset, syntax.Error())}
	case errors.Is(err, io.EOF):
		return nil, &broken{offset: len(text), reason: "write a configuration: the text is empty"}
	case err != nil:
		return nil, unended(text)
	}
	end := int(dec.InputOffset())
	if rest := bytes.TrimLeft(text[end:], " \t\r\n"); len(rest) > 0 {
		offset := len(text) - len(rest)
		return nil, &broken{offset: offset, reason: remedy(text, offset, fmt.Sprintf(
			"invalid character %s after top-level value", character(rest)))}
	}
	b := builder{dec: json.NewDecoder(bytes.NewReader(text)), text: text}
	b.dec.UseNumber()
	root, err := b.value(0)
	if err != nil {
		return nil, &broken{offset: int(b.dec.InputOffset()), reason: "correct the JSON: " + err.Error()}
	}
	return root, nil
}

// builder makes the tree from the tokens of encoding/json.
type builder struct {
	dec  *json.Decoder
	text []byte
}

func (b *builder) token() (json.Token, int, error) {
	from := int(b.dec.InputOffset())
	t, err := b.dec.Token()
	if err != nil {
		return nil, from, fmt.Errorf("read token: %w", err)
	}
	for from < len(b.text) && strings.IndexByte(" \t\r\n:,", b.text[from]) >= 0 {
		from++
	}
	return t, from, nil
}

func (b *builder) value(depth int) (*Value, error) {
	t, start, err := b.token()
	if err != nil {
		return nil, err
	}
	v := &Value{Start: start}
	switch t := t.(type) {
	case nil:
		v.Shape = Null
	case bool:
		v.Shape, v.Yes = Bool, t
	case json.Number:
		v.Shape, v.Text = Number, t.String()
	case string:
		v.Shape, v.Text = String, t
	case json.Delim:
		if depth == maxDepth {
			return nil, errDeep
		}
		if v.Shape = List; t == '{' {
			v.Shape = Object
		}
		err = b.inside(v, depth+1)
	}
	v.End = int(b.dec.InputOffset())
	return v, err
}

func (b *builder) inside(v *Value, depth int) error {
	for b.dec.More() {
		var m Member
		if v.Shape == Object {
			t, start, err := b.token()
			if err != nil {
				return err
			}
			m.Name, _ = t.(string)
			m.Start = start
		}
		item, err := b.value(depth)
		if err != nil {
			return err
		}
		if v.Shape == List {
			v.Items = append(v.Items, item)
			continue
		}
		m.Value = item
		v.Members = append(v.Members, m)
	}
	_, _, err := b.token()
	return err
}
