// SPDX-License-Identifier: Apache-2.0

// Package peer knows what the configurations of other CNI plugins mean: their keys and types, what they refuse, what they pass
// over in silence, and what of it podfabric can take over. It is pure, and looks at texts alone. Its rules are those of the
// plugins' own sources (sriov-cni 2.10, rdma-cni 1.6, ib-sriov-cni 1.3, containernetworking/plugins 1.10, whereabouts 0.9,
// nvidia-k8s-ipam, spiderpool 1.0, Multus 4.2).
package peer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/podfabric/podfabric/nad"
)

// Ours is the type of our own plugin.
const Ours = "podfabric"

// Level is how much a finding weighs.
type Level uint8

// The levels.
const (
	Note   Level = iota // true and worth a line, no surprise
	Warn                // loads, and will surprise its author
	Reject              // cannot be loaded, or no attachment can succeed
)

// Finding is one thing to be said about a network.
type Finding struct {
	Level Level
	Field string // "plugins[0].ipam.subnet", "metadata.annotations.…"; may be empty
	At    int    // offset in the configuration; -1: it is about Line
	Line  int    // of the file, if At is -1
	Text  string // of a Reject: the remedy first
}

// Network is a configuration and what stands around it.
type Network struct {
	Definition  bool   // a NetworkAttachmentDefinition: Multus adds name and device
	Name        string // of the definition
	Annotations []nad.Annotation
	Config      *nad.Value // an object
	// Installed tells which plugins the node has; nil: not known.
	Installed func(name string) bool
}

// Entry is one plugin of a network.
type Entry struct {
	Conf *nad.Value
	Type string
	Path string // "plugins[0]"; empty for a configuration that is no list
}

// Report is what there is to be said about a network.
type Report struct {
	Findings []Finding // in the order in which the runtime and the plugins would come across them
	Ignored  []string  // keys without effect, with their paths
	Link     string    // the kind of attachment that Convert chooses; empty: none
	Entries  []Entry   // the plugins; empty if they cannot be read
}

// Judge reads a network as the runtime and its plugins would. Of entries of type podfabric it judges only their place in the list.
func Judge(n Network) Report {
	j := &judge{n: n}
	if j.top(); len(j.entries) > 0 {
		j.types()
		j.resource()
		for _, e := range j.entries {
			j.entry(e)
		}
		j.chain()
	}
	return Report{Findings: j.findings, Ignored: j.ignored, Link: j.link(), Entries: j.entries}
}

// judge is a network on its way.
type judge struct {
	n        Network
	list     bool
	version  string // cniVersion; empty: none
	entries  []Entry
	findings []Finding
	texts    map[string]bool // of the findings
	ignored  []string
}

func (j *judge) add(level Level, at *nad.Value, field, format string, args ...any) {
	offset := 0
	if at != nil {
		offset = at.Start
	}
	text := fmt.Sprintf(format, args...)
	if j.texts[text] {
		return
	}
	if j.texts == nil {
		j.texts = map[string]bool{}
	}
	j.texts[text] = true
	j.findings = append(j.findings, Finding{Level: level, Field: field, At: offset, Text: text})
}

func (j *judge) reject(at *nad.Value, field, format string, args ...any) {
	j.add(Reject, at, field, format, args...)
}

func (j *judge) warn(at *nad.Value, field, format string, args ...any) {
	j.add(Warn, at, field, format, args...)
}

func (j *judge) note(at *nad.Value, field, format string, args ...any) {
	j.add(Note, at, field, format, args...)
}

// ignore notes a key without effect and warns of it, unless it is a remark.
func (j *judge) ignore(at *nad.Value, field, why string) {
	j.ignored = append(j.ignored, field)
	level := Warn
	switch name := strings.ToLower(field[strings.LastIndexByte(field, '.')+1:]); {
	case strings.HasPrefix(name, "_"), strings.HasPrefix(name, "//"), name == "comment", name == "description":
		level = Note // nobody expects an effect
	}
	shown := field
	if strings.ContainsAny(field, " \t") {
		shown = nad.Quote(field)
	}
	j.add(level, at, field, "%s has no effect: %s", shown, why)
}

// about warns of a line outside the configuration.
func (j *judge) about(line int, field, format string, args ...any) {
	j.findings = append(j.findings, Finding{Level: Warn, Field: field, At: -1, Line: line, Text: fmt.Sprintf(format, args...)})
}

// get finds a key as encoding/json does: by its letters, whatever their case; the exact one before others.
func get(v *nad.Value, name string) *nad.Value {
	if exact := v.Get(name); exact != nil || v == nil {
		return exact
	}
	for _, m := range slices.Backward(v.Members) {
		if strings.EqualFold(m.Name, name) && m.Value.Shape != nad.Null {
			return m.Value
		}
	}
	return nil
}

// path joins the place of an entry and a key of it.
func (e Entry) path(key string) string { return nad.Below(e.Path, key) }

// maker tells whether a plugin makes or moves the pod's interface.
func maker(kind string) bool {
	switch kind {
	case "sriov", "ib-sriov", "macvlan", "ipvlan", "host-device", "ipoib", "bridge", "ptp", "vlan", "dummy", "tap", "bond", "ovs",
		"accelerated-bridge", "macvtap":
		return true
	}
	return false
}

// main is the entry that makes the interface; nil if none is known to.
func (j *judge) main() *Entry {
	for i := range j.entries {
		if maker(j.entries[i].Type) {
			return &j.entries[i]
		}
	}
	return nil
}

// has finds the first entry of a type from an index on; -1 if there is none.
func (j *judge) has(kind string, from int) int {
	for i := from; i < len(j.entries); i++ {
		if j.entries[i].Type == kind {
			return i
		}
	}
	return -1
}

// link is the kind that Convert would choose.
func (j *judge) link() string {
	if len(j.entries) == 0 {
		return ""
	}
	return kindOf(j.entries[0])
}

// kindOf is the kind of attachment that takes the place of a plugin.
func kindOf(e Entry) string {
	switch e.Type {
	case "sriov":
		return "vf"
	case "macvlan":
		return "macvlan"
	case "ipvlan":
		if mode := get(e.Conf, "mode"); mode == nil || mode.Str() == "l2" || mode.Str() == "" {
			return "ipvlan"
		}
	case "host-device":
		return "device"
	}
	return ""
}
