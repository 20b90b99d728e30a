// SPDX-License-Identifier: Apache-2.0

package nad

import (
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The words of a NetworkAttachmentDefinition.
const (
	definitionKind    = "NetworkAttachmentDefinition"
	definitionVersion = "k8s.cni.cncf.io/v1"
)

// origin is the text that values came from.
type origin struct {
	text   *Text
	source source
	nodes  map[*Value]*yaml.Node // YAML only
	starts []int                 // YAML only: of the lines
	line   int                   // YAML only: of the file, on which the text begins
}

// documents sorts one value out.
func (o origin) documents(root *Value, depth int) []Document {
	yaml := o.source.node != nil
	own := source{text: o.source.text, node: o.source.node, start: root.Start, end: root.End}
	if depth > 0 && yaml {
		own.node = o.nodes[root]
	}
	d := Document{Line: o.text.Line(root.Start), source: &own}
	kind, version := root.Get("kind"), root.Get("apiVersion")
	switch {
	case root.Shape != Object && yaml:
		d.Fault = o.fault(root, "", "write a Kubernetes object: found "+root.Show())
		return []Document{d}
	case root.Shape != Object:
		d.Fault = o.fault(root, "", "give a JSON object in { }: found "+root.Show())
		return []Document{d}
	case strings.HasSuffix(kind.Str(), "List") && root.Get("items") != nil && depth < maxLists:
		list := []Document{}
		for _, item := range root.Get("items").Items {
			list = append(list, o.documents(item, depth+1)...)
		}
		return list
	case kind != nil || version != nil || root.Get("metadata") != nil:
		o.definition(&d, root)
	case yaml:
		d.Fault = o.fault(root, "", "write the configuration as JSON, or put it into a NetworkAttachmentDefinition: CNI reads no YAML")
	default:
		d.Config = o.text
		d.Config.Root = root
	}
	return []Document{d}
}

// maxLists bounds lists in lists.
const maxLists = 4

func (o origin) fault(at *Value, field, reason string) *Fault {
	return &Fault{Line: o.text.Line(at.Start), Field: field, Reason: reason}
}

// definition reads a Kubernetes object.
func (o origin) definition(d *Document, root *Value) {
	meta := root.Get("metadata")
	d.Name = meta.Get("name").Str()
	for _, group := range []string{"annotations", "labels"} {
		if v := meta.Get(group); v != nil {
			for _, m := range v.Members {
				d.Annotations = append(d.Annotations, Annotation{m.Name, m.Value.Text, o.text.Line(m.Start), group == "labels"})
			}
		}
	}
	if d.Fault = o.kind(d, root); d.Fault != nil {
		return
	}
	d.Definition = true
	if d.Fault = o.shape(d, root); d.Fault != nil {
		return
	}
	conf := root.Get("spec").Get("config")
	d.spec = conf
	if conf == nil || conf.Text == "" {
		return
	}
	t := &Text{Bytes: []byte(conf.Text), marks: []mark{{0, o.text.Line(conf.Start)}}}
	if o.nodes != nil {
		d.source.conf = o.nodes[conf]
		t.marks = scalarMarks(o.text.Bytes, o.starts, o.line, d.source.conf)
	}
	parsed, bad := parseJSON(t.Bytes)
	switch {
	case bad != nil:
		t.Fault = bad.fault(t, "spec.config")
		d.Remarks = behind(t.Bytes, bad)
	case parsed.Shape != Object:
		t.Fault = &Fault{Line: t.Line(parsed.Start), Field: "spec.config", Reason: "give a JSON object in { }: found " + parsed.Show()}
	default:
		t.Root = parsed
	}
	d.Config = t
}

// kind refuses what is no definition.
func (o origin) kind(d *Document, root *Value) *Fault {
	kind, version := root.Get("kind"), root.Get("apiVersion")
	switch word := kind.Str(); {
	case kind == nil:
		return o.fault(root, "kind", `add "kind: `+definitionKind+`": the object has no kind`)
	case word == definitionKind:
	case resembles(word, definitionKind):
		return o.fault(kind, "kind", fmt.Sprintf("write %s instead of %s", definitionKind, kind.Show()))
	default:
		d.Kind = word
		return o.fault(kind, "kind", fmt.Sprintf("give a NetworkAttachmentDefinition or a CNI configuration: this is a %s%s",
			word, renders(word)))
	}
	if version.Str() != definitionVersion {
		at := version
		if at == nil {
			at = root
		}
		return o.fault(at, "apiVersion", fmt.Sprintf("write apiVersion: %s, the only one of this kind: found %s",
			definitionVersion, version.Show()))
	}
	return nil
}

// renders says what becomes of another kind.
func renders(kind string) string {
	switch kind {
	case "SriovNetwork", "SriovIBNetwork", "OVSNetwork", "MacvlanNetwork", "HostDeviceNetwork", "IPoIBNetwork", "SpiderMultusConfig", "MultiNicNetwork":
		return ", from which its operator makes one: kubectl get net-attach-def -A -o yaml shows it"
	case "SriovNetworkNodePolicy", "SriovNetworkPoolConfig", "NicClusterPolicy", "IPPool", "CIDRPool", "SpiderIPPool":
		return ", which is no network"
	}
	return ""
}

// dnsName is what Kubernetes takes for a name (RFC 1123, subdomain).
var dnsName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// shape refuses what the API server refuses.
func (o origin) shape(d *Document, root *Value) *Fault {
	if field, at := root.Repeated(""); field != "" {
		return &Fault{Line: o.text.Line(at), Field: field, Reason: "write " + field + " once: it stands twice"}
	}
	meta, spec := root.Get("metadata"), root.Get("spec")
	name := meta.Get("name")
	switch {
	case meta == nil && root.Get("name") != nil:
		return o.fault(root.Get("name"), "metadata.name", "indent name below metadata: it stands beside it, so the object has no name")
	case meta == nil:
		return o.fault(root, "metadata", "add metadata with a name")
	case name == nil && meta.Get("generateName") == nil:
		return o.fault(meta, "metadata.name", "add a name to metadata")
	case name != nil && name.Shape != String:
		return o.fault(name, "metadata.name", "write metadata.name as a string, and render a template first: found "+name.Show())
	case name != nil && (len(d.Name) > 253 || !dnsName.MatchString(d.Name)):
		return o.fault(name, "metadata.name",
			fmt.Sprintf("name it with small letters, digits, - and . only: metadata.name, found %s", name.Show()))
	case spec != nil && spec.Shape != Object:
		return o.fault(spec, "spec", "write spec as an object with config in it: found "+spec.Show())
	}
	conf := spec.Get("config")
	if conf == nil {
		if f := o.misplaced(root, spec); f != nil {
			return f
		}
	}
	if conf != nil && conf.Shape != String {
		return o.fault(conf, "spec.config",
			fmt.Sprintf("write spec.config as a string with JSON in it (config: |): found %s, and the API takes a string "+
				"only", conf.Show()))
	}
	for _, group := range []string{"annotations", "labels"} {
		v := meta.Get(group)
		if v == nil {
			continue
		}
		for _, m := range v.Members {
			if m.Value.Shape != String {
				field := Below("metadata."+group, m.Name)
				return o.fault(m.Value, field, fmt.Sprintf("write %s as a string in quotes: found %s", field, m.Value.Show()))
			}
		}
	}
	return nil
}

// misplaced finds a configuration under another key than spec.config: the API server drops it.
func (o origin) misplaced(root, spec *Value) *Fault {
	for _, at := range []struct {
		path string
		v    *Value
	}{{"", root}, {"metadata", root.Get("metadata")}, {"spec", spec}} {
		if at.v == nil {
			continue
		}
		for _, m := range at.v.Members {
			text := m.Value.Shape == String && strings.HasPrefix(strings.TrimSpace(m.Value.Text), "{")
			if Distance(strings.ToLower(m.Name), "config") <= 2 && (text || m.Value.Shape == Object) {
				field := Below(at.path, m.Name)
				return o.fault(m.Value, field, "move the configuration to spec.config: the API knows no "+field)
			}
		}
	}
	return nil
}

// resembles tells a slip from another word: the same letters but for case, or a few of them wrong.
func resembles(word, right string) bool {
	return Distance(strings.ToLower(word), strings.ToLower(right)) <= len(right)/8
}

// Distance is Levenshtein's, in bytes.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
