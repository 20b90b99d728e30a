// SPDX-License-Identifier: Apache-2.0

package netconf

import (
	"fmt"
	"slices"
)

// stdin is what messages call the network configuration.
const stdin = "network configuration"

// Versions are the versions of the CNI specification that ADD takes, oldest first. Results are given in the same version.
func Versions() []string { return []string{"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"} }

// parser holds one ADD's input while it is read.
type parser struct {
	raw    Raw
	node   Node
	keys   table
	root   *value
	conf   Conf
	args   []arg    // of CNI_ARGS
	chosen string   // the device that the pod chose and may choose; empty: none
	want   []wanted // addresses that the runtime asks for
	podMAC wanted   // MAC that the runtime asks for
}

func (p *parser) warn(sentence string) {
	switch {
	case len(p.conf.Warnings) > warningsMax, slices.Contains(p.conf.Warnings, sentence):
		return
	case len(p.conf.Warnings) == warningsMax:
		sentence = "there is more to warn of; mend these first"
	}
	p.conf.Warnings = append(p.conf.Warnings, sentence)
}

// Parse reads the input of ADD against the node's settings. Every error is a *Problem: code 6 for a text that is not one JSON
// object, 1 for a version that podfabric does not speak, 4 for a CNI_ variable, 50 if the node lacks what the configuration
// builds on, else 7. It judges only what text can tell; what needs the node's devices is attach.Guard's.
func Parse(r Raw, n Node) (Conf, error) {
	doc, err := parseDocument(stdin, r.Stdin)
	if err != nil {
		return Conf{}, err
	}
	p := &parser{raw: r, node: n, keys: configurationKeys(), root: doc.root}
	if doc.duplicate != nil {
		return Conf{}, &Problem{
			Code: CodeDecode, Remedy: fmt.Sprintf("write the key %s once", quote(doc.duplicate.name)),
			Field: stdin + ", " + doc.at(doc.duplicate.start), Found: "it for the second time in one object",
		}
	}
	for _, read := range []func() error{
		p.version, p.size, p.name, p.shapes, p.runtime, p.link, p.sources, p.settings, p.make, p.rdma, p.hint, p.ipam,
	} {
		if err := read(); err != nil {
			return Conf{}, err
		}
	}
	return p.conf, nil
}

// version comes first: in an unknown version no other key can be judged.
func (p *parser) version() error {
	versions := Versions()
	v := p.root.get("cniVersion")
	if v.str() != "" && slices.Contains(versions, v.text) {
		p.conf.CNIVersion = v.text
		return nil
	}
	right := versions[0] + " to " + versions[len(versions)-1]
	problem := &Problem{
		Code: CodeVersion, Remedy: `set "cniVersion" to one that podfabric speaks`, Field: "cniVersion", Right: right,
	}
	switch {
	case v != nil:
		problem.Found = v.found()
	case p.root.get("cniversion") != nil || p.root.get("CNIVersion") != nil:
		problem.Remedy, problem.Found = `write "cniVersion" with exactly these letters`, "another spelling"
	default:
		problem.Remedy = `add "cniVersion": "1.0.0" to the network`
		problem.Found = "nothing, which means 0.1.0 to CNI"
	}
	return problem
}

func (p *parser) name() error {
	v := p.root.get("name")
	if v == nil {
		return invalid(`add a "name" to the network`, "name", nil, "letters, digits and _ . -")
	}
	if !plain(v.str(), "_.-") || !plain(v.text[:1], "") {
		return invalid("give the network a name of letters, digits and _ . -", "name", v, "the first one a letter or digit")
	}
	p.conf.Name = v.text
	return nil
}

// shapes checks every key of the sections whose place does not depend on a value.
func (p *parser) shapes() error {
	if err := p.keys.check(secTop, "", p.root, p.warn); err != nil {
		return err
	}
	for _, in := range topSections() {
		if err := p.keys.check(in, string(in), p.root.get(string(in)), p.warn); err != nil {
			return err
		}
	}
	for _, m := range members(p.root.get("capabilities")) {
		if m.value.shape&(shapeBool|shapeNull) == 0 {
			return invalid("write each capability as true or false", below("capabilities", m.name), m.value, "true or false")
		}
	}
	for _, m := range members(p.root.get("args")) {
		if m.name != "cni" {
			p.warn(below("args", m.name) + " has no effect: it is for another plugin")
		}
	}
	return p.keys.check(secArgs, "args", p.root.get("args"), func(string) {})
}

// topSections are the objects that always stand under their own name at the top.
func topSections() []section {
	return []section{secRDMA, secHint, secRouting, secVF, secMaster, secDNS}
}

// object checks the keys of one object once the kind is known.
func (p *parser) object(in section, path string, v *value) error {
	if err := p.keys.check(in, path, v, p.warn); err != nil {
		return err
	}
	return p.keys.fits(in, path, v, p.conf.Kind)
}

// runtime reads what does not come from the network's author: the attachment, and the device that the pod may have chosen,
// since the kind hangs on it. The rest waits for the kind.
func (p *parser) runtime() error {
	var err error
	if p.args, err = parseArgs(p.raw.Args); err != nil {
		return err
	}
	if p.conf.Request, err = request(p.raw, p.args); err != nil {
		return err
	}
	if v := p.root.get("runtimeConfig").get("deviceID"); v != nil {
		return p.podDevice("runtimeConfig.deviceID", v)
	}
	return nil
}

// said is a key at the top that says something: the plugins whose keys they are take an empty string as none.
func (p *parser) said(name string) *value {
	v := p.root.get(name)
	if v != nil && v.shape == shapeString && v.text == "" {
		return nil
	}
	return v
}

// settings reads the plain keys at the top.
func (p *parser) settings() error {
	for _, name := range []string{"logLevel", "logFile"} {
		if p.root.get(name) != nil {
			p.warn(name + " has no effect: where podfabric logs is set in " + NodePath)
		}
	}
	if v := p.root.get("rail"); v != nil {
		rail, err := integer(v, "rail", 0, maxRail)
		if err != nil {
			return err
		}
		p.conf.Rail = &rail
	}
	if v := p.root.get("mtu"); v != nil {
		return p.mtu(v)
	}
	return nil
}

// mtu reads the MTU. That 0 inherits is macvlan's and ipvlan's own way; of the other kinds absent is as it is.
func (p *parser) mtu(v *value) error {
	kind := p.conf.Kind
	right := fmt.Sprintf("a number from %d to %d", minMTU, maxMTU)
	switch {
	case kind.shared():
		right = fmt.Sprintf(`%s, 0 for the master's or "pf"`, right)
	case kind == KindVF:
		right += `, or "pf"`
	}
	if v.str() == "pf" && kind != KindDevice {
		p.conf.MTU.FromPF = true
		return nil
	}
	n, err := integer(v, "mtu", minMTU, maxMTU)
	switch {
	case err == nil:
		p.conf.MTU.Bytes = n
		return nil
	case kind.shared() && v.text == "0" && v.shape == shapeNumber:
		return nil
	case v.str() == "pf":
		return invalid(`write mtu as a number, a whole device has no PF`, "mtu", v, right)
	}
	return invalid("set mtu to "+right, "mtu", v, right)
}

// maxRail bounds the numbers of rails.
const maxRail = 63

// The bounds of an MTU in bytes: the least that IPv4 may have (RFC 791) and the most that a netdev can have.
const (
	minMTU = 68
	maxMTU = 65535
)
