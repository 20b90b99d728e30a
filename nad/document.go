// SPDX-License-Identifier: Apache-2.0

// Package nad reads files in which people keep network configurations: NetworkAttachmentDefinitions as YAML or JSON, several in a
// file or in a list, and CNI configurations and lists of plugins as JSON. Of everything in them it knows the line of the file,
// through the folding, quoting and escaping of a configuration inside a YAML string. It is pure: bytes in, values out.
package nad

import (
	"bytes"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ResourceName is the annotation by which Multus knows which resource of the pod has the device.
const ResourceName = "k8s.v1.cni.cncf.io/resourceName"

// Document is one network in a file, or something else that stands where one should.
type Document struct {
	Line int // where it begins, from 1
	// Fault is why this is no network; nil if it is one, though its configuration may still be broken (Config.Fault).
	Fault *Fault
	// Definition tells a NetworkAttachmentDefinition from a bare configuration.
	Definition  bool
	Name        string // metadata.name
	Annotations []Annotation
	// Config is the CNI configuration; nil with a Fault, and for a definition that has none.
	Config *Text
	// Kind is that of another Kubernetes object.
	Kind string
	// Remarks are what else is wrong with a document that has a Fault.
	Remarks []string

	source *source
	spec   *Value // spec.config, nil if absent
}

// Bystander tells an object that has nothing to do with networks, as the Pod in an example.
func (d *Document) Bystander() bool { return d.Kind != "" && renders(d.Kind) == "" }

// Annotation is one of a definition's metadata. Labels are among them: what stands under the wrong heading is to be found.
type Annotation struct {
	Key, Value string
	Line       int
	Label      bool
}

// source is where a document came from, for writing it back.
type source struct {
	text       []byte
	start, end int        // JSON: of the object in the text
	node       *yaml.Node // nil: JSON
	conf       *yaml.Node // the node of spec.config
}

// YAML tells whether the document was written so.
func (d *Document) YAML() bool { return d.source != nil && d.source.node != nil }

// Read reads a file. The name tells JSON from YAML by its ending; where it does not ("-", ".txt"), the text does. There is always
// at least one document: an empty file is one with a Fault.
func Read(name string, text []byte) []Document {
	bom := bytes.HasPrefix(text, []byte("\uFEFF"))
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	list := read(name, text)
	if !bom {
		return list
	}
	for i := range list {
		if d := &list[i]; d.Fault == nil && !d.Definition {
			// kubectl passes over the mark; libcni reads bare configurations with encoding/json, which does not.
			d.Fault = &Fault{Line: 1, Reason: "remove the byte order mark before the first character: the runtime's JSON reader refuses it"}
			d.Config = nil
		}
	}
	return list
}

func read(name string, text []byte) []Document {
	first := bytes.TrimLeft(text, " \t\r\n")
	braces := len(first) > 0 && (first[0] == '{' || first[0] == '[' || bytes.HasPrefix(first, []byte("//")) || bytes.HasPrefix(first, []byte("/*")))
	switch ext := strings.ToLower(path.Ext(name)); {
	case ext == ".json" || ext == ".conf" || ext == ".conflist":
		return readJSON(text)
	case len(first) == 0:
		return []Document{{Line: 1, Fault: &Fault{Line: 1, Reason: "write a network: the file is empty"}}}
	case braces:
		list := readJSON(text)
		if len(list) != 1 || list[0].Fault == nil || list[0].Kind != "" {
			return list
		}
		// YAML may begin with a brace too, but only a Kubernetes object may be YAML.
		if other := readYAML(text); len(other) > 0 && (other[0].Definition || other[0].Kind != "") {
			return other
		}
		return list
	}
	return readYAML(text)
}

func readJSON(text []byte) []Document {
	t := &Text{Bytes: text, marks: plainMarks(text, 1)}
	root, bad := parseJSON(text)
	if bad != nil {
		t.Fault = bad.fault(t, "")
		return []Document{{Line: 1, Config: t, Fault: t.Fault, Remarks: behind(text, bad)}}
	}
	o := origin{text: t, source: source{text: text}}
	return o.documents(root, 0)
}

// behind looks at what follows a complete value.
func behind(text []byte, bad *broken) []string {
	if !strings.Contains(bad.reason, "after top-level value") {
		return nil
	}
	if c := text[bad.offset]; c != '{' && c != '[' {
		return nil
	}
	if _, second := parseJSON(text[bad.offset:]); second != nil {
		return []string{"the second document is broken too: " + second.reason}
	}
	return nil
}

func readYAML(text []byte) []Document {
	list := []Document{}
	some := false
	for _, c := range chunks(text) {
		t := &Text{Bytes: c.text, marks: plainMarks(c.text, c.line)}
		node, message := parseYAML(c.text)
		if node == nil {
			line := c.line - 1 + yamlFaultLine(c.text, message)
			list = append(list, Document{Line: c.line, Fault: &Fault{Line: line, Reason: yamlAdvice(message) + ": YAML: " + message}})
			continue
		}
		if len(node.Content) == 0 {
			continue
		}
		r := reader{source: c.text, starts: starts(t), left: maxNodes, nodes: map[*Value]*yaml.Node{}}
		root := r.value(node.Content[0], 0)
		if root == nil {
			list = append(list, Document{Line: c.line, Fault: &Fault{Line: c.line, Reason: "make the document smaller, it nests too deep or is too large"}})
			continue
		}
		if root.Shape == Null {
			continue
		}
		some = true
		o := origin{text: t, source: source{text: c.text, node: node}, nodes: r.nodes, starts: r.starts, line: c.line}
		list = append(list, o.documents(root, 0)...)
	}
	if len(list) == 0 && !some {
		return []Document{{Line: 1, Fault: &Fault{Line: 1, Reason: "write a network: there is no document in the file"}}}
	}
	return list
}

// starts are the offsets of a text's lines.
func starts(t *Text) []int {
	list := make([]int, len(t.marks))
	for i, m := range t.marks {
		list[i] = m.offset
	}
	return list
}
