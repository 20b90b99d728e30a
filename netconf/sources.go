// SPDX-License-Identifier: Apache-2.0

package netconf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/podfabric/podfabric/rdmans/pci"
)

// source is who says something. A pod's author reaches all of these but the configuration itself: Multus fills
// runtimeConfig, args.cni and CNI_ARGS from the annotation k8s.v1.cni.cncf.io/networks.
type source uint8

const (
	fromRuntime source = iota // runtimeConfig
	fromPod                   // args.cni
	fromArgs                  // CNI_ARGS
)

// verdict is what becomes of a key from a source.
type verdict uint8

const (
	accepted     verdict = iota
	ignored              // has no effect; a warning says so
	withOptIn            // if the configuration declares the capability of that name
	sameDevice           // if equal to the configuration's device, or node.json lets pods choose
	delegateOnly         // passed on to another IPAM plugin, else refused
	refused
)

// rule is one line of the table of who may say what.
type rule struct {
	from    source
	key     string // "*" for every other
	verdict verdict
	optIn   string // withOptIn: the capability
	why     string
}

// rules is the table. Its reasons are review [7] and [17]: an annotation must not choose hardware, a VLAN, a route, a path or
// a hint. testdata/sources.golden shows what it makes of every key.
func rules() []rule {
	return []rule{
		{fromRuntime, "deviceID", sameDevice, "", "a pod's annotation fills it when the network has no resourceName"},
		{fromRuntime, "ips", withOptIn, "ips", "the network opts in by its capabilities"},
		{fromRuntime, "mac", withOptIn, "mac", "the network opts in by its capabilities"},
		{fromRuntime, "infinibandGUID", refused, "", "InfiniBand is not supported"},
		{fromRuntime, "ipRanges", delegateOnly, "", "ranges come from the network's configuration"},
		{fromRuntime, "CNIDeviceInfoFile", accepted, "", "Multus always gives it"},
		{fromRuntime, "portMappings", ignored, "", "a rail has no port mappings"},
		{fromRuntime, "bandwidth", ignored, "", "RDMA traffic passes no queue that could be limited"},
		{fromRuntime, "dns", ignored, "", "a pod's resolver belongs to its default network"},
		{fromRuntime, "aliases", ignored, "", "there is no name service on a rail"},
		{fromRuntime, "*", ignored, "", "podfabric knows no such capability"},

		{fromPod, "debug", accepted, "", "it can only make a log longer"},
		{fromPod, "*", refused, "", "a pod's annotation may set debug only"},

		{fromArgs, ignoreUnknown, accepted, "", ""},
		{fromArgs, "K8S_POD_NAMESPACE", accepted, "", ""},
		{fromArgs, "K8S_POD_NAME", accepted, "", ""},
		{fromArgs, "K8S_POD_UID", accepted, "", ""},
		{fromArgs, "K8S_POD_INFRA_CONTAINER_ID", accepted, "", ""},
		{fromArgs, "IP", withOptIn, "ips", "a pod's annotation fills it without the network's consent"},
		{fromArgs, "MAC", withOptIn, "mac", "a pod's annotation fills it without the network's consent"},
		{fromArgs, "*", ignored, "", "podfabric knows no such argument"},
	}
}

// ruleFor finds the line of a key.
func ruleFor(from source, name string) rule {
	var rest rule
	for _, r := range rules() {
		if r.from != from {
			continue
		}
		if r.key == name {
			return r
		}
		if r.key == "*" {
			rest = r
		}
	}
	return rest
}

// rule is ruleFor with what the kind changes: behind another plugin the addresses are that plugin's to judge, which gets the
// same CNI_ARGS.
func (p *parser) rule(from source, name string) rule {
	r := ruleFor(from, name)
	switch {
	case r.verdict != withOptIn:
	case p.conf.Kind == KindChained:
		r.verdict, r.why = ignored, "the plugin before podfabric gives the interface its addresses"
	case p.conf.Kind == KindIPVlan && r.optIn == "mac":
		r.verdict, r.why = refused, "an ipvlan has the MAC of its master"
	}
	return r
}

// wanted is an address that the runtime asks for, and where it did.
type wanted struct {
	field string
	text  string
}

// sources applies the table to everything that a pod can reach.
func (p *parser) sources() error {
	for _, m := range members(p.root.get("runtimeConfig")) {
		if m.value.shape == shapeNull || m.name == "deviceID" {
			continue // the device was settled before the kind
		}
		if err := p.runtimeConfig(m); err != nil {
			return err
		}
	}
	for _, m := range members(p.root.get("args").get("cni")) {
		if err := p.podArg(m); err != nil {
			return err
		}
	}
	for _, a := range p.args {
		if err := p.cniArg(a); err != nil {
			return err
		}
	}
	return nil
}

func members(v *value) []member {
	if v == nil {
		return nil
	}
	return v.members
}

func (p *parser) runtimeConfig(m member) error {
	field := below("runtimeConfig", m.name)
	r := p.rule(fromRuntime, m.name)
	if err := p.judge(r, field, m.value.found()); err != nil || r.verdict == ignored {
		return err
	}
	switch m.name {
	case "mac":
		if m.value.shape != shapeString {
			return invalid("write runtimeConfig.mac as a string", field, m.value, rightMAC)
		}
		p.podMAC = wanted{field, m.value.text}
	case "CNIDeviceInfoFile":
		return p.deviceInfo(field, m.value)
	case "ips":
		if m.value.shape != shapeList {
			return invalid("write runtimeConfig.ips as a list", field, m.value, "a list of addresses")
		}
		list, err := texts(m.value, field)
		for i, text := range list {
			p.want = append(p.want, wanted{item(field, i), text})
		}
		return err
	}
	return nil
}

// podDevice takes runtimeConfig.deviceID. Where the node lets pods choose, the pod's word counts.
func (p *parser) podDevice(field string, v *value) error {
	ours, err := p.topDevice()
	if err != nil {
		return err
	}
	if v.str() == ours && ours != "" {
		return nil
	}
	a, errA := pci.Parse(v.str())
	b, errB := pci.Parse(ours)
	if errA == nil && errB == nil && a == b {
		return nil
	}
	if !p.node.PodMayChooseDevice {
		right := "the network's own device, " + quote(ours)
		if ours == "" {
			right = `a device from kubelet, by the annotation k8s.v1.cni.cncf.io/resourceName of the network`
		}
		return invalid(`remove the device from the pod's annotation, or set "podMayChooseDevice" in `+NodePath, field, v, right)
	}
	if v.str() == "" {
		return invalid("give the device as a PCI address", field, v, `a string as "0000:3b:00.2"`)
	}
	if ours != "" {
		p.warn(fmt.Sprintf("%s: the pod chose device %s instead of %s", field, quote(v.str()), quote(ours)))
	}
	p.chosen = v.str()
	return nil
}

func (p *parser) podArg(m member) error {
	field := below("args.cni", m.name)
	if err := p.judge(ruleFor(fromPod, m.name), field, m.value.found()); err != nil {
		return err
	}
	if m.value.shape != shapeBool && m.value.shape != shapeNull {
		return invalid("write debug as true or false in the pod's annotation", field, m.value, "true or false")
	}
	p.conf.Debug = m.value.yes
	return nil
}

func (p *parser) cniArg(a arg) error {
	r := p.rule(fromArgs, a.key)
	switch {
	case r.verdict == ignored && ignoresUnknown(p.args), r.optIn != "" && a.value == "":
		return nil
	}
	if err := p.judge(r, a.field(), quote(a.value)); err != nil || r.verdict == ignored {
		return err
	}
	switch a.key {
	case "IP":
		for text := range strings.SplitSeq(a.value, ",") {
			p.want = append(p.want, wanted{a.field(), text})
		}
	case "MAC":
		if p.podMAC.text == "" { // runtimeConfig, which was read before, goes first
			p.podMAC = wanted{a.field(), a.value}
		}
	}
	return nil
}

// ignoreUnknown is the convention of CNI_ARGS by which a runtime says that unknown keys are no mistake.
const ignoreUnknown = "IgnoreUnknown"

func ignoresUnknown(args []arg) bool {
	return slices.ContainsFunc(args, func(a arg) bool {
		return a.key == ignoreUnknown && (a.value == "1" || strings.EqualFold(a.value, "true"))
	})
}

// judge carries out what the table says of one key.
func (p *parser) judge(r rule, field, found string) error {
	no := func(remedy, right string) error {
		return &Problem{Code: CodeInvalid, Remedy: remedy, Field: field, Found: found, Right: right}
	}
	switch r.verdict {
	case accepted, sameDevice:
	case ignored:
		p.warn(field + " has no effect: " + r.why)
	case withOptIn:
		if caps := p.root.get("capabilities"); caps.get(r.optIn) == nil || !caps.get(r.optIn).yes {
			return no(fmt.Sprintf("add \"capabilities\": {%q: true} to the network, or remove the setting from the pod's annotation",
				r.optIn), "only what the network opts in to")
		}
	case delegateOnly:
		if kind, _ := ipamKind(p.root); kind != IPAMDelegate {
			return no("write the ranges into the network's configuration", r.why)
		}
	case refused:
		return no("remove the setting from the pod's annotation k8s.v1.cni.cncf.io/networks", r.why)
	}
	return nil
}
