// SPDX-License-Identifier: Apache-2.0

package nad

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Encode writes a value as JSON, indented, keys in their order. It ends without a line break.
func Encode(v *Value) []byte {
	var b bytes.Buffer
	encode(&b, v, "")
	return b.Bytes()
}

func encode(b *bytes.Buffer, v *Value, indent string) {
	switch v.Shape {
	case Null:
		b.WriteString("null")
	case Bool:
		fmt.Fprint(b, v.Yes)
	case Number:
		b.WriteString(v.Text)
	case String:
		b.Write(quoted(v.Text))
	case List:
		encodeAll(b, len(v.Items), "[", "]", indent, func(i int, deeper string) { encode(b, v.Items[i], deeper) })
	case Object:
		encodeAll(b, len(v.Members), "{", "}", indent, func(i int, deeper string) {
			b.Write(quoted(v.Members[i].Name))
			b.WriteString(": ")
			encode(b, v.Members[i].Value, deeper)
		})
	}
}

func encodeAll(b *bytes.Buffer, n int, open, end, indent string, one func(i int, deeper string)) {
	b.WriteString(open)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n" + indent + "  ")
		one(i, indent+"  ")
	}
	if n > 0 {
		b.WriteString("\n" + indent)
	}
	b.WriteString(end)
}

func quoted(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) != nil { // strings cannot fail
		return []byte(`""`)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// Replace writes the document with another configuration in place of its own: YAML stays YAML, JSON stays JSON, and all else in
// it as it is. It ends with a line break.
func (d *Document) Replace(conf *Value) ([]byte, error) {
	text := Encode(conf)
	switch {
	case !d.Definition:
		return append(text, '\n'), nil
	case d.source.node == nil:
		out := append(bytes.Clone(d.source.text[d.source.start:d.spec.Start]), quoted(string(text))...)
		return append(append(out, d.source.text[d.spec.End:d.source.end]...), '\n'), nil
	case d.source.conf == nil:
		return nil, fmt.Errorf("write %s: its spec.config is not in the file", d.Name)
	}
	old := *d.source.conf
	defer func() { *d.source.conf = old }()
	*d.source.conf = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.LiteralStyle, Value: string(text) + "\n"}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(d.source.node); err != nil {
		return nil, fmt.Errorf("write %s: %w", d.Name, err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("write %s: %w", d.Name, err)
	}
	return []byte(strings.TrimRight(b.String(), "\n") + "\n"), nil
}
