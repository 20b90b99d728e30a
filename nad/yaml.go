// SPDX-License-Identifier: Apache-2.0

package nad

import (
	"bytes"
	"regexp"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"
)

// chunk is one document of a stream, as text.
type chunk struct {
	text []byte
	line int // of the file, on which it begins
}

// chunks cuts a stream at its "---" and "..." lines. No scalar can have such a line in it: YAML ends or refuses it there.
func chunks(text []byte) []chunk {
	var list []chunk
	line, begin, beginLine := 1, 0, 1
	cut := func(end, next, nextLine int) {
		if hasContent(text[begin:end]) {
			list = append(list, chunk{text[begin:end], beginLine})
		}
		begin, beginLine = next, nextLine
	}
	for offset := 0; offset < len(text); line++ {
		end := len(text)
		if i := bytes.IndexByte(text[offset:], '\n'); i >= 0 {
			end = offset + i + 1
		}
		switch this := text[offset:end]; {
		case marker(this, "---"):
			cut(offset, offset, line)
		case marker(this, "..."):
			cut(offset, end, line+1)
		}
		offset = end
	}
	cut(len(text), len(text), line)
	return list
}

func marker(line []byte, word string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(word))
	return ok && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0)
}

// hasContent leaves out documents of comments, directives and markers alone.
func hasContent(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("---")))
		if len(line) > 0 && line[0] != '#' && line[0] != '%' {
			return true
		}
	}
	return false
}

// yamlError takes the message out of the library's, whose lines are those of where it was, not of where the mistake is.
var yamlError = regexp.MustCompile(`^yaml: (?:line [0-9]+: )?`)

// parseYAML reads one document.
func parseYAML(text []byte) (*yaml.Node, string) {
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, yamlError.ReplaceAllString(err.Error(), "")
	}
	return &node, ""
}

// yamlFaultLine finds the line of a mistake, from 1: the last of the fewest lines that have it.
func yamlFaultLine(text []byte, message string) int {
	var ends []int
	for offset := 0; ; {
		i := bytes.IndexByte(text[offset:], '\n')
		if i < 0 {
			break
		}
		offset += i + 1
		ends = append(ends, offset)
	}
	const most = 1 << 20
	if len(text) > most {
		return 1
	}
	return 1 + sort.Search(len(ends), func(i int) bool {
		_, got := parseYAML(text[:ends[i]])
		return got == message
	})
}

// yamlAdvice says what to do about a message of the library.
func yamlAdvice(message string) string {
	for _, a := range [][2]string{
		{"cannot start any token", "indent with spaces, a tab is no indentation, and quote text that begins with a special character"},
		{"tab character", "indent with spaces, a tab is no indentation"},
		{"control characters", "remove the control character"},
		{"UTF-8", "save the file as UTF-8"},
		{"mapping values are not allowed", "quote the text, indent the key as its neighbours, or escape the quotes inside a quoted string"},
		{"did not find expected key", "indent the key as its neighbours, quote text with special characters, and escape the quotes inside a quoted string"},
		{"did not find expected '-' indicator", "indent the entries of the list alike"},
		{"unexpected end of stream", "close the quote that begins here"},
		{"unexpected document indicator", "close the quote that begins above"},
		{"could not find expected ':'", "write : behind the key, or indent the text below its key"},
		{"did not find expected node content", "write a value, or close the bracket"},
		{"did not find expected ',' or", "close the bracket, or write a comma"},
	} {
		if strings.Contains(message, a[0]) {
			return a[1]
		}
	}
	return "correct the YAML"
}

// maxNodes bounds a document, aliases counted as often as they are used.
const maxNodes = 1 << 20

// reader turns YAML nodes into values.
type reader struct {
	source []byte
	starts []int // of the lines
	left   int   // nodes that may still come
	nodes  map[*Value]*yaml.Node
}

// value gives the tree of a node; nil when it is too deep or too large.
func (r *reader) value(n *yaml.Node, depth int) *Value {
	if r.left--; depth > maxDepth || r.left < 0 {
		return nil
	}
	if n.Kind == yaml.AliasNode {
		return r.value(n.Alias, depth+1)
	}
	v := &Value{Start: r.start(n.Line)}
	v.End = v.Start
	r.nodes[v] = n
	switch n.Kind { //nolint:exhaustive // aliases are gone, and a document holds no documents
	case yaml.SequenceNode:
		v.Shape = List
		for _, c := range n.Content {
			item := r.value(c, depth+1)
			if item == nil {
				return nil
			}
			v.Items = append(v.Items, item)
		}
	case yaml.MappingNode:
		v.Shape = Object
		return r.mapping(v, n, depth)
	case yaml.ScalarNode:
		r.scalar(v, n)
	}
	return v
}

func (r *reader) start(line int) int {
	if line < 1 || line > len(r.starts) {
		return 0
	}
	return r.starts[line-1]
}

func (r *reader) mapping(v *Value, n *yaml.Node, depth int) *Value {
	var merged []*Value
	for i := 0; i+1 < len(n.Content); i += 2 {
		item := r.value(n.Content[i+1], depth+1)
		if item == nil {
			return nil
		}
		if n.Content[i].ShortTag() == "!!merge" {
			merged = append(append(merged, item), item.Items...) // an object, or a list of them
			continue
		}
		v.Members = append(v.Members, Member{Name: n.Content[i].Value, Start: r.start(n.Content[i].Line), Value: item})
	}
	known := make(map[string]bool, len(v.Members))
	for _, m := range v.Members {
		known[m.Name] = true
	}
	for _, from := range merged { // of two that are merged, the first counts
		own := len(v.Members)
		for _, m := range from.Members {
			if !known[m.Name] {
				v.Members = append(v.Members, m)
			}
		}
		for _, m := range v.Members[own:] {
			known[m.Name] = true
		}
	}
	return v
}

func (*reader) scalar(v *Value, n *yaml.Node) {
	v.Text = n.Value
	switch n.ShortTag() {
	case "!!null":
		v.Shape = Null
	case "!!bool":
		v.Shape, v.Yes = Bool, strings.EqualFold(n.Value, "true")
	case "!!int", "!!float":
		v.Shape = Number
	default:
		v.Shape = String
	}
}
