// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/podfabric/podfabric/nad"
	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/peer"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// judging is one file on its way.
type judging struct {
	file      string
	node      netconf.Node
	nodeFile  string            // where they come from, if not from netconf.NodePath
	known     bool              // the node's settings are known
	installed func(string) bool // tells which plugins the node has; nil: not known
}

// said is one thing to be said about a network.
type said struct {
	level peer.Level
	field string
	line  int // 0: none
	text  string
}

// judge reads one file. Objects of other kinds are no networks: beside networks they are passed over, alone they are refused.
func judge(j judging, text []byte) []verdict {
	docs := nad.Read(j.file, text)
	networks := slices.ContainsFunc(docs, func(d nad.Document) bool { return !d.Bystander() })
	list := []verdict{}
	for i := range docs {
		if networks && docs[i].Bystander() {
			continue
		}
		list = append(list, j.document(&docs[i]))
	}
	return list
}

// document judges one network.
func (j judging) document(d *nad.Document) verdict {
	v := verdict{File: j.file, Name: orNull(d.Name), Warnings: []string{}, Ignored: []string{}}
	switch {
	case d.Fault != nil:
		v.conclude(append([]said{broken(d.Fault)}, j.mended(d)...))
	case d.Config == nil:
		v.conclude([]said{{peer.Warn, "spec.config", d.Line, "no spec.config: Multus looks for a configuration of this name in a folder of each node"}})
	case d.Config.Fault != nil:
		v.conclude(append([]said{broken(d.Config.Fault)}, j.mended(d)...))
	default:
		j.network(d, &v)
	}
	return v
}

func broken(f *nad.Fault) said { return said{peer.Reject, f.Field, f.Line, f.Reason} }

// mended says what else is wrong with a text that cannot be read.
func (j judging) mended(d *nad.Document) []said {
	var all []said
	for _, r := range d.Remarks {
		all = append(all, said{level: peer.Warn, text: r})
	}
	if d.Config == nil {
		return all
	}
	root := nad.Mended(d.Config.Bytes)
	if root == nil || root.Shape != nad.Object || root.Get("kind") != nil {
		return all
	}
	for _, f := range peer.Judge(j.asked(d, root)).Findings {
		all = append(all, said{level: min(f.Level, peer.Warn), text: "once mended: " + f.Text})
	}
	return all
}

// asked is what package peer is asked.
func (j judging) asked(d *nad.Document, root *nad.Value) peer.Network {
	return peer.Network{Definition: d.Definition, Name: d.Name, Annotations: d.Annotations, Config: root, Installed: j.installed}
}

// network judges a configuration that can be read: our entries as ADD would, all others by their own plugins' rules.
func (j judging) network(d *nad.Document, v *verdict) {
	root := d.Config.Root
	if name := root.Get("name").Str(); name != "" {
		v.Name = &name
	}
	r := peer.Judge(j.asked(d, root))
	link := r.Link
	var all []said
	for i, e := range r.Entries {
		if e.Type != peer.Ours {
			continue
		}
		own, kind := j.ours(d, e, i > 0)
		all, link = append(all, own...), string(kind)
		for _, s := range own {
			if m := ignoredKey.FindStringSubmatch(s.text); m != nil && s.level == peer.Warn {
				v.Ignored = append(v.Ignored, nad.Below(e.Path, m[1]))
			}
		}
	}
	for _, f := range r.Findings {
		line := f.Line
		if f.At >= 0 {
			line = d.Config.Line(f.At)
		}
		all = append(all, said{f.Level, f.Field, line, f.Text})
	}
	v.Link = orNull(link)
	v.Ignored = append(v.Ignored, r.Ignored...)
	v.conclude(all)
}

// conclude makes the verdict of all that is said: the first reason to refuse is the reason, the rest are warnings, notes last.
func (v *verdict) conclude(all []said) {
	slices.SortStableFunc(all, func(a, b said) int { return cmp.Compare(b.level, a.level) })
	v.Verdict = accept
	if len(all) == 0 {
		return
	}
	switch all[0].level {
	case peer.Reject:
		v.Verdict = reject
		v.Field, v.Line, v.Reason = orNull(all[0].field), orNull(all[0].line), orNull(all[0].text)
		all = all[1:]
	case peer.Warn:
		v.Verdict = warn
	case peer.Note:
	}
	for _, s := range all {
		v.Warnings = append(v.Warnings, s.text)
		if s.level == peer.Note {
			v.notes++
		}
	}
}

// ignoredKey takes the key out of netconf's sentences on keys without effect.
var ignoredKey = regexp.MustCompile(`^(\S+) (?:is not a key of podfabric and )?has no effect`)

// ours judges an entry of type podfabric: what netconf says, which ADD would say too.
func (j judging) ours(d *nad.Document, e peer.Entry, behind bool) ([]said, netconf.Kind) {
	if field, at := e.Conf.Repeated(""); field != "" {
		text := fmt.Sprintf("write the key %s once: %s, found it for the second time in one object", nad.Quote(field), field)
		return []said{{peer.Reject, nad.Below(e.Path, field), d.Config.Line(at), text}}, ""
	}
	stdin := nad.Encode(j.handed(d, e, behind))
	conf, err := ask(stdin, j.node)
	var all []said
	problem := (*netconf.Problem)(nil)
	if errors.As(err, &problem) && problem.Code == netconf.CodeUnavailable && !j.known {
		all = append(all, said{level: peer.Warn, text: "it needs settings of the node that are not here, so only part of it was judged: " + problem.Error()})
		conf, err = ask(stdin, supposed(j.node))
		if errors.As(err, &problem) && problem.Code == netconf.CodeUnavailable {
			err = nil
		}
	}
	if err != nil {
		all = append([]said{refused(d, e, err)}, all...)
		conf.Kind = ""
	}
	for _, w := range conf.Warnings {
		all = append(all, said{level: peer.Warn, text: w})
	}
	if j.nodeFile != "" {
		for i := range all {
			all[i].text = strings.ReplaceAll(all[i].text, netconf.NodePath, j.nodeFile)
			all[i].field = strings.ReplaceAll(all[i].field, netconf.NodePath, j.nodeFile)
		}
	}
	return all, conf.Kind
}

// supposed is a node that has all that a network may build on, so that the rest of the network can be judged.
func supposed(node netconf.Node) netconf.Node {
	const rails = 64
	zero := 0
	node.Index = &zero
	node.Rails = make(map[int]netconf.Rail, rails)
	for i := range rails {
		node.Rails[i] = netconf.Rail{
			PCI: pci.Addr{Domain: 0xffff, Bus: uint8(i)}, Subnet: netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, byte(i), 0}), 24),
		}
	}
	return node
}

// The attachment that is asked about.
const askedNS, askedIf = "/run/netns/validate", "net1"

func ask(stdin []byte, node netconf.Node) (netconf.Conf, error) {
	conf, err := netconf.Parse(netconf.Raw{
		Stdin: stdin, ContainerID: "validate", NetNS: askedNS, IfName: askedIf, Path: "/opt/cni/bin",
	}, node)
	if err != nil {
		return conf, fmt.Errorf("parse network configuration: %w", err)
	}
	return conf, nil
}

// refused finds the place of what netconf said.
func refused(d *nad.Document, e peer.Entry, err error) said {
	s := said{level: peer.Reject, text: err.Error()}
	problem := (*netconf.Problem)(nil)
	if !errors.As(err, &problem) {
		return s
	}
	s.field, s.text = problem.Field, problem.Error()
	switch {
	case strings.HasPrefix(s.field, "CNI_"), strings.HasPrefix(s.field, netconf.NodePath):
		return s
	case strings.Contains(s.field, ", line "): // of the text that was made for the plugin
		s.text = strings.Replace(s.text, s.field, cmp.Or(e.Path, "the network"), 1)
		s.field = e.Path
		s.line = d.Config.Line(e.Conf.Start)
		return s
	}
	s.line = d.Config.Line(e.Conf.Find(s.field).Start)
	s.field = nad.Below(e.Path, s.field)
	return s
}

// handed is what the plugin would get: libcni puts name, version and the result before into an entry of a list, Multus the name of
// a definition and the device of its resource.
func (j judging) handed(d *nad.Document, e peer.Entry, behind bool) *nad.Value {
	text := func(s string) *nad.Value { return &nad.Value{Shape: nad.String, Text: s} }
	list := d.Config.Root
	put := map[string]*nad.Value{}
	if e.Path != "" {
		put["name"], put["cniVersion"] = list.Get("name"), list.Get("cniVersion")
	}
	if d.Definition && list.Get("name").Str() == "" && !list.Has("name") && d.Name != "" {
		put["name"] = text(d.Name)
	}
	if behind {
		put["prevResult"] = previous(list.Get("cniVersion").Str())
	} else if provided(d) && e.Conf.Get("deviceID") == nil && e.Conf.Get("pciBusID") == nil && e.Conf.Get("master") == nil {
		put["deviceID"] = text("ffff:ff:1f.7")
	}
	out := &nad.Value{Shape: nad.Object}
	for _, key := range []string{"cniVersion", "name", "deviceID", "prevResult"} {
		if put[key] != nil {
			out.Members = append(out.Members, nad.Member{Name: key, Value: put[key]})
		}
	}
	for _, m := range e.Conf.Members {
		if put[m.Name] == nil {
			out.Members = append(out.Members, m)
		}
	}
	return out
}

// provided tells whether Multus adds a device.
func provided(d *nad.Document) bool {
	return slices.ContainsFunc(d.Annotations, func(a nad.Annotation) bool {
		return a.Key == nad.ResourceName && !a.Label && a.Value != ""
	})
}

// previous is a result as a plugin before ours gives it.
func previous(version string) *nad.Value {
	text := func(name, s string) nad.Member {
		return nad.Member{Name: name, Value: &nad.Value{Shape: nad.String, Text: s}}
	}
	link := &nad.Value{Shape: nad.Object, Members: []nad.Member{
		text("name", askedIf), text("mac", "02:00:00:00:00:01"), text("sandbox", askedNS),
	}}
	return &nad.Value{Shape: nad.Object, Members: []nad.Member{
		text("cniVersion", version), {Name: "interfaces", Value: &nad.Value{Shape: nad.List, Items: []*nad.Value{link}}},
	}}
}
