// SPDX-License-Identifier: Apache-2.0

package netconf

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"path"
	"strconv"
	"strings"

	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// nodeVersion is the version of node.json that this code reads.
const nodeVersion = 1

// ParseNode reads the text of node.json; without a text it gives the defaults. Every error is a *Problem of code 7. Unlike a
// network's configuration the file has no unknown keys: it is root's, and a misspelt allow-list would be a missing wall.
func ParseNode(text []byte) (Node, error) { return ParseNodeFile(NodePath, text) }

// ParseNodeFile is ParseNode for a file that lies elsewhere: errors name it.
func ParseNodeFile(file string, text []byte) (Node, error) {
	n := Node{
		KubeletRoot: DefaultKubeletRoot, Delivery: DeliveryVolume, Uverbs: UverbsRefuse, Deadline: DefaultDeadline,
		Log: Log{Level: "info", Format: LogText},
	}
	if len(text) == 0 {
		return n, nil
	}
	doc, err := parseDocument(file, text)
	if err == nil && doc.duplicate != nil {
		err = &Problem{
			Remedy: fmt.Sprintf("write the key %s once", quote(doc.duplicate.name)), Found: "it for the second time in one object",
			Field: doc.at(doc.duplicate.start),
		}
	}
	if err == nil {
		r := nodeReader{keys: nodeKeys(), node: &n, root: doc.root}
		err = r.read()
	}
	if err == nil {
		return n, nil
	}
	var p *Problem
	if !errors.As(err, &p) {
		return Node{}, fmt.Errorf("read %s: %w", file, err)
	}
	q := *p
	q.Code = CodeInvalid
	if !strings.HasPrefix(q.Field, file) {
		q.Field = file + " " + q.Field
	}
	return Node{}, &q
}

// nodeReader fills a Node from the tree.
type nodeReader struct {
	keys table
	node *Node
	root *value
}

func (r nodeReader) read() error {
	if err := r.keys.check(secNode, "", r.root, nil); err != nil {
		return err
	}
	for _, s := range []struct {
		in   section
		name string
	}{{secNodeAllow, "allow"}, {secNodeHint, "hint"}, {secNodeLog, "log"}} {
		if err := r.keys.check(s.in, s.name, r.root.get(s.name), nil); err != nil {
			return err
		}
	}
	for _, read := range []func() error{r.numbers, r.words, r.rails, r.allow, r.log} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

func (r nodeReader) numbers() error {
	if v := r.root.get("version"); v != nil {
		if n, err := integer(v, "version", nodeVersion, nodeVersion); err != nil || n != nodeVersion {
			return invalid("install the podfabric that this file was written for, or write version 1", "version", v,
				strconv.Itoa(nodeVersion))
		}
	}
	if v := r.root.get("index"); v != nil {
		n, err := integer(v, "index", 0, math.MaxInt32)
		if err != nil {
			return err
		}
		r.node.Index = &n
	}
	if v := r.root.get("expectedRails"); v != nil {
		n, err := integer(v, "expectedRails", 0, maxRail+1)
		if err != nil {
			return err
		}
		r.node.ExpectedRails = n
	}
	if v := r.root.get("deadline"); v != nil {
		d, err := duration(v, "deadline")
		if err != nil {
			return err
		}
		r.node.Deadline = d
	}
	return nil
}

func (r nodeReader) words() error {
	var err error
	if v := r.root.get("podMayChooseDevice"); v != nil {
		r.node.PodMayChooseDevice = v.yes
	}
	if v := r.root.get("kubeletRoot"); v != nil {
		if r.node.KubeletRoot, err = absolute(v, "kubeletRoot"); err != nil {
			return err
		}
	}
	delivery := r.root.get("hint").get("delivery")
	if r.node.Delivery, err = choice(delivery, "hint.delivery", DeliveryVolume, DeliveryAgent); err != nil {
		return err
	}
	if r.node.Uverbs, err = choice(r.root.get("uverbs"), "uverbs", UverbsRefuse, UverbsAgent); err != nil {
		return err
	}
	r.node.OverrideGuards, err = devices(r.root.get("overrideGuards"), "overrideGuards")
	return err
}

// absolute reads a path from the root, in its shortest form.
func absolute(v *value, field string) (string, error) {
	if !path.IsAbs(v.str()) || strings.ContainsRune(v.str(), 0) {
		return "", invalid("write "+field+" as a path from the root", field, v, "a path that begins with /")
	}
	return path.Clean(v.str()), nil
}

// devices reads a list of PCI addresses and sub-functions.
func devices(v *value, field string) ([]bus.ID, error) {
	list, err := texts(v, field)
	if list == nil || err != nil {
		return nil, err
	}
	out := make([]bus.ID, 0, len(list))
	for i, text := range list {
		id, err := bus.Parse(text)
		if err != nil {
			return nil, invalid("write "+item(field, i)+" as a PCI address or a sub-function", item(field, i), v.items[i],
				`a device as "0000:3b:00.0" or "mlx5_core.sf.4"`)
		}
		out = append(out, id)
	}
	return out, nil
}

// functions reads a list of PCI addresses.
func functions(v *value, field string) ([]pci.Addr, error) {
	list, err := texts(v, field)
	if list == nil || err != nil {
		return nil, err
	}
	out := make([]pci.Addr, 0, len(list))
	for i, text := range list {
		a, err := pci.Parse(text)
		if err != nil || a.IsZero() {
			return nil, invalid("write "+item(field, i)+" as a PCI address", item(field, i), v.items[i], `an address as "0000:3b:00.0"`)
		}
		out = append(out, a)
	}
	return out, nil
}

func (r nodeReader) rails() error {
	for _, m := range members(r.root.get("rails")) {
		field := below("rails", m.name)
		number, err := strconv.Atoi(m.name)
		if err != nil || number < 0 || number > maxRail || strconv.Itoa(number) != m.name {
			return invalid("name each rail by its number", field, nil, fmt.Sprintf("a number from 0 to %d", maxRail))
		}
		if m.value.shape != shapeObject {
			return invalid("write "+field+" as an object", field, m.value, `{"pci": …, "subnet": …}`)
		}
		rail, err := r.rail(m.value, field)
		if err != nil {
			return err
		}
		if r.node.Rails == nil {
			r.node.Rails = map[int]Rail{}
		}
		r.node.Rails[number] = rail
	}
	return nil
}

func (r nodeReader) rail(v *value, field string) (Rail, error) {
	var rail Rail
	if err := r.keys.check(secNodeRail, field, v, nil); err != nil {
		return rail, err
	}
	if at := v.get("pci"); at != nil {
		a, err := pci.Parse(at.str())
		if err != nil || a.IsZero() {
			return rail, invalid("write "+field+".pci as the PF's PCI address", field+".pci", at, `an address as "0000:3b:00.0"`)
		}
		rail.PCI = a
	}
	var err error
	if s := v.get("subnet"); s != nil {
		if rail.Subnet, err = subnet(s, field+".subnet"); err != nil {
			return rail, err
		}
	}
	if g := v.get("gateway"); g != nil {
		if !rail.Subnet.IsValid() {
			return rail, invalid("add the rail's subnet beside its gateway", field+".subnet", nil, "a subnet with the gateway in it")
		}
		if rail.Gateway, err = gateway(g, field+".gateway", rail.Subnet); err != nil {
			return rail, err
		}
	}
	return rail, nil
}

func (r nodeReader) allow() error {
	v := r.root.get("allow")
	a := &r.node.Allow
	var err error
	if a.PFs, err = functions(v.get("pfs"), "allow.pfs"); err != nil {
		return err
	}
	if a.Masters, err = texts(v.get("masters"), "allow.masters"); err != nil {
		return err
	}
	if kinds := v.get("kinds"); kinds != nil {
		a.Kinds = []Kind{}
		for i, it := range kinds.items {
			k, err := choice(it, item("allow.kinds", i), allKinds()...)
			if err != nil {
				return err
			}
			a.Kinds = append(a.Kinds, k)
		}
	}
	if subnets := v.get("subnets"); subnets != nil {
		a.Subnets = []netip.Prefix{}
		for i, it := range subnets.items {
			s, err := subnet(it, item("allow.subnets", i))
			if err != nil {
				return err
			}
			a.Subnets = append(a.Subnets, s)
		}
	}
	return nil
}

func (r nodeReader) log() error {
	v := r.root.get("log")
	var err error
	if file := v.get("file"); file != nil && file.str() != "" {
		if r.node.Log.File, err = absolute(file, "log.file"); err != nil {
			return err
		}
	}
	if r.node.Log.Level, err = choice(v.get("level"), "log.level", "info", "debug", "warn", "error"); err != nil {
		return err
	}
	r.node.Log.Format, err = choice(v.get("format"), "log.format", LogText, LogJSON)
	return err
}
