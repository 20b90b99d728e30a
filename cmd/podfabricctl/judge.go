// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/podfabric/podfabric/netconf"
)

// judging is one file on its way: whose, for which node, and where in the file the text at hand comes from.
type judging struct {
	file  string
	node  netconf.Node
	known bool
	whole []byte // the file
	path  string // place of the text at hand in it, as "items[3].spec.config"; empty: the text is the file
	inner bool   // the text at hand is inside a string of the file, so that it has no lines of its own
	spun  bool   // keys were put into the text at hand, so that places in it mean nothing

	name     string // of the list or definition it belongs to; empty: its own
	resource bool   // Multus adds a device of this resource
}

// resourceName is the annotation by which Multus knows which resource of the pod has the device.
const resourceName = "k8s.v1.cni.cncf.io/resourceName"

// errYAML is said of a whole input.
var errYAML = errors.New("YAML is not read yet; convert it: kubectl get net-attach-def NAME -o json, or yq -o json")

// judge reads one file. The error is errYAML.
func judge(j judging, text []byte) ([]verdict, error) {
	if looksYAML(j.file, text) {
		return nil, fmt.Errorf("%s: %w", j.file, errYAML)
	}
	j.whole = text
	return j.document(text), nil
}

// document judges any JSON object that can hold networks.
func (j judging) document(text []byte) []verdict {
	p, ok := probeOf(text)
	if !ok {
		return []verdict{j.parse(text)} // netconf says what it is, or where it is broken
	}
	switch {
	case strings.HasSuffix(p.kind, "List"):
		list := []verdict{}
		for i, item := range p.items {
			in := j
			in.path = fmt.Sprintf("items[%d]", i)
			list = append(list, in.document(item)...)
		}
		return list
	case p.kind == "NetworkAttachmentDefinition":
		return j.definition(p)
	case p.kind != "":
		return []verdict{j.rejected("kind", fmt.Sprintf("give a NetworkAttachmentDefinition or a CNI configuration: this is a %q", p.kind))}
	case p.plugins != nil:
		return j.list(p)
	}
	return []verdict{j.network(text, p.typ)}
}

// definition judges what Multus would hand on.
func (j judging) definition(p probe) []verdict {
	j.name = p.metaName
	j.resource = p.annotated != ""
	if strings.TrimSpace(p.config) == "" {
		j.path = under(j.path, "spec")
		return []verdict{j.rejected("spec.config", "write the network's configuration into spec.config: without it Multus looks for a file on each node")}
	}
	j.path, j.inner = under(j.path, "spec.config"), true
	return j.document([]byte(p.config))
}

// list judges the podfabric entries of a list of plugins, as libcni would call them.
func (j judging) list(p probe) []verdict {
	var out []verdict
	if p.name != "" {
		j.name = p.name
	}
	for i, entry := range p.plugins {
		e, ok := probeOf(entry)
		if !ok || e.typ == nil || *e.typ != ourType {
			continue
		}
		in := j
		in.spun = true
		if !in.inner {
			in.path = under(j.path, fmt.Sprintf("plugins[%d]", i))
		}
		out = append(out, in.network(inject(entry, p.nameAsWasPut, p.version, i > 0), e.typ))
	}
	if out == nil {
		v := j.verdict(warn)
		v.Warnings = append(v.Warnings, "no entry of plugins is of type podfabric; others are not judged")
		out = []verdict{v}
	}
	return out
}

const ourType = "podfabric"

// inject does what libcni does to an entry of a list before it calls the plugin. The text stays as it is where it can, so that a
// key that stands in it twice is found.
func inject(entry, name, version json.RawMessage, behind bool) []byte {
	keys := object(entry)
	add := map[string]json.RawMessage{}
	for key, value := range map[string]json.RawMessage{"name": name, "cniVersion": version} {
		if value != nil {
			add[key] = value
		}
	}
	if behind {
		add["prevResult"] = json.RawMessage(`{}`)
	}
	for key := range add {
		if _, taken := keys[key]; taken {
			maps.Copy(keys, add)
			out, err := json.Marshal(keys)
			if err != nil {
				return entry
			}
			return out
		}
	}
	return splice(entry, add)
}

// splice puts keys in front of an object's own.
func splice(object []byte, add map[string]json.RawMessage) []byte {
	head, err := json.Marshal(add)
	body := bytes.TrimSpace(object)
	if err != nil || len(add) == 0 || len(body) < 2 {
		return object
	}
	out := head[:len(head)-1]
	if rest := bytes.TrimSpace(body[1:]); len(rest) > 0 && rest[0] != '}' {
		out = append(out, ',')
	}
	return append(out, body[1:]...)
}

// network judges one configuration as the plugin gets it.
func (j judging) network(text []byte, kind *string) verdict {
	switch {
	case kind == nil:
		return j.named(text, j.rejected("type", `add "type": "podfabric" to the network`))
	case *kind != ourType:
		v := j.named(text, j.verdict(warn))
		v.Link = orNull(otherLink(*kind))
		v.Warnings = append(v.Warnings, fmt.Sprintf("it is of type %q, another plugin's, and not judged", *kind))
		return v
	}
	return j.parse(text)
}

// otherLink is the kind of podfabric's that takes another plugin's place.
func otherLink(kind string) string {
	return string(map[string]netconf.Kind{
		"sriov": netconf.KindVF, "macvlan": netconf.KindMacvlan, "ipvlan": netconf.KindIPVlan, "host-device": netconf.KindDevice,
	}[kind])
}

// parse asks netconf.
func (j judging) parse(text []byte) verdict {
	v := j.named(text, j.verdict(accept))
	if full := j.withDevice(text); len(full) != len(text) {
		text, j.spun = full, true
	}
	conf, err := j.ask(text, j.node)
	problem := (*netconf.Problem)(nil)
	if errors.As(err, &problem) && problem.Code == netconf.CodeUnavailable && !j.known {
		v.Warnings = append(v.Warnings, "it needs settings of the node that are not here, so only part of it was judged: "+problem.Error())
		zero := 0
		node := j.node
		node.Index = &zero
		conf, err = j.ask(text, node)
		if errors.As(err, &problem) && problem.Code == netconf.CodeUnavailable {
			err = nil
		}
	}
	if err != nil {
		r := j.refused(err)
		r.Name, r.Warnings = v.Name, append(r.Warnings, slices.Concat(v.Warnings, conf.Warnings)...)
		return r
	}
	v.Link = orNull(string(conf.Kind))
	v.Warnings = append(v.Warnings, conf.Warnings...)
	for _, w := range conf.Warnings {
		if m := ignoredKey.FindStringSubmatch(w); m != nil {
			v.Ignored = append(v.Ignored, m[1])
		}
	}
	if len(v.Warnings) > 0 {
		v.Verdict = warn
	}
	return v
}

// ignoredKey takes the key out of netconf's sentences on keys without effect.
var ignoredKey = regexp.MustCompile(`^(\S+) (?:is not a key of podfabric and )?has no effect`)

func (j judging) ask(text []byte, node netconf.Node) (netconf.Conf, error) {
	return netconf.Parse(netconf.Raw{
		Stdin: text, ContainerID: "validate", NetNS: "/run/netns/validate", IfName: "net1", Path: "/opt/cni/bin",
	}, node)
}

// withDevice adds the device that Multus will add.
func (j judging) withDevice(text []byte) []byte {
	keys := object(text)
	if !j.resource || keys == nil {
		return text
	}
	for _, key := range []string{"deviceID", "pciBusID", "master"} {
		if _, found := keys[key]; found {
			return text
		}
	}
	return splice(text, map[string]json.RawMessage{"deviceID": json.RawMessage(`"ffff:ff:1f.7"`)})
}

// verdict begins one.
func (j judging) verdict(word string) verdict {
	return verdict{File: j.file, Name: orNull(j.name), Verdict: word, Warnings: []string{}, Ignored: []string{}}
}

// named puts the network's own name in, which is the one that the plugin sees.
func (j judging) named(text []byte, v verdict) verdict {
	if p, _ := probeOf(text); p.name != "" {
		v.Name = &p.name
	}
	return v
}

// refused makes a verdict of what netconf said.
func (j judging) refused(err error) verdict {
	problem := (*netconf.Problem)(nil)
	if !errors.As(err, &problem) {
		return j.rejected("", err.Error())
	}
	field, reason := problem.Field, problem.Error()
	if j.spun && lineOf.MatchString(field) {
		place := cmp.Or(j.path, "the network")
		field, reason = "", strings.Replace(reason, field, place, 1)
	}
	return j.rejected(field, reason)
}

var lineOf = regexp.MustCompile(`line ([0-9]+)`)

// rejected finds the line of a field.
func (j judging) rejected(field, reason string) verdict {
	v := j.verdict(reject)
	v.Field, v.Reason = orNull(field), orNull(reason)
	if strings.HasPrefix(field, "CNI_") || strings.HasPrefix(field, netconf.NodePath) {
		return v
	}
	path := j.path
	if m := lineOf.FindStringSubmatch(field); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && path == "" {
			v.Line = &n
			return v
		}
	} else if !j.inner {
		path = under(path, field)
	}
	v.Line = orNull(lineAt(j.whole, path))
	return v
}
