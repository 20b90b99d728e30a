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
// it as it is, but for aliases, whose anchors may stand in another document: they are written out. It ends with a line break.
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
	put := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.LiteralStyle, Value: string(text) + "\n"}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(written(d.source.node, d.source.conf, put)); err != nil {
		return nil, fmt.Errorf("write %s: %w", d.Name, err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("write %s: %w", d.Name, err)
	}
	return []byte(strings.TrimRight(b.String(), "\n") + "\n"), nil
}

// written copies a tree with one node replaced, and every alias and merged key written out. Reading has bounded what that can come to.
func written(n, old, put *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n == old {
		return put
	}
	c := *n
	c.Anchor, c.Content = "", nil
	var merged []*yaml.Node
	for i, item := range n.Content {
		item = written(item, old, put)
		if n.Kind == yaml.MappingNode && i%2 == 1 && n.Content[i-1].ShortTag() == "!!merge" {
			if merged = append(merged, item); item.Kind == yaml.SequenceNode {
				merged = append(merged, item.Content...)
			}
			c.Content = c.Content[:len(c.Content)-1] // the key
			continue
		}
		c.Content = append(c.Content, item)
	}
	for _, from := range merged {
		if from.Kind == yaml.MappingNode {
			c.Content = append(c.Content, absent(c.Content, from.Content)...)
		}
	}
	return &c
}

// absent are the keys and values of a mapping that another one does not have.
func absent(have, from []*yaml.Node) []*yaml.Node {
	var out []*yaml.Node
	known := make(map[string]bool, len(have)/2)
	for k := 0; k < len(have); k += 2 {
		known[have[k].Value] = true
	}
	for i := 0; i+1 < len(from); i += 2 {
		if !known[from[i].Value] {
			out = append(out, from[i], from[i+1])
		}
	}
	return out
}
