// SPDX-License-Identifier: Apache-2.0

package netconf

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// topDevice is the device that the configuration names, as text; empty when it names none. Multus writes the same value into
// deviceID and pciBusID, so that two different ones are a mistake of the author.
func (p *parser) topDevice() (string, error) {
	id, bus := p.root.get("deviceID"), p.root.get("pciBusID")
	if id != nil && bus != nil && id.str() != bus.str() {
		return "", invalid(`remove "deviceID" or "pciBusID", they name two devices`, "pciBusID", bus, "as deviceID, "+id.found())
	}
	for _, v := range []*value{id, bus} {
		if v != nil {
			return v.str(), nil
		}
	}
	return "", nil
}

// device is what the attachment is to be made of, as text, and the key that says so.
func (p *parser) device() (string, string, error) {
	if p.chosen != "" {
		return p.chosen, "runtimeConfig.deviceID", nil
	}
	device, err := p.topDevice()
	field := "deviceID"
	if p.root.get("deviceID") == nil && device != "" {
		field = "pciBusID"
	}
	return device, field, err
}

// isNumber tells whether s is a bare number, which the shared device plugin gives instead of a device.
func isNumber(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// isSF tells whether s is an auxiliary device of a sub-function: mlx5_core.sf.4.
func isSF(s string) bool {
	driver, number, ok := strings.Cut(s, ".sf.")
	return ok && plain(driver, "_-") && isNumber(number)
}

// link settles the kind, then refuses the keys of other kinds and the kinds that cannot be made.
func (p *parser) link() error {
	device, field, err := p.device()
	if err != nil {
		return err
	}
	kind, err := p.kind(device, field)
	if err != nil {
		return err
	}
	if kind == KindVF && p.root.get("prevResult") != nil {
		return invalid(`put podfabric first in "plugins": it makes the interface, so no plugin can stand before it`,
			"prevResult", nil, `no result of another plugin, or "link": "chained"`)
	}
	if err = p.keys.fits(secTop, "", p.root, kind); err != nil {
		return err
	}
	for _, in := range topSections() {
		if err = p.keys.fits(in, string(in), p.root.get(string(in)), kind); err != nil {
			return err
		}
	}
	if kind.bit()&onBuilt == 0 {
		return &Problem{
			Code: CodeInvalid, Remedy: fmt.Sprintf("use a VF: link %q is not built yet in this version of podfabric", kind),
			Field: "link", Found: p.reason(kind), Right: `"vf"`,
		}
	}
	if !p.node.AllowsKind(kind) {
		return &Problem{
			Code: CodeInvalid, Remedy: fmt.Sprintf("use another network on this node, or add %q to allow.kinds in %s", kind, NodePath),
			Field: "link", Found: strconv.Quote(string(kind)), Right: "a kind that the node allows",
		}
	}
	p.conf.Kind = kind
	p.conf.Device, err = vf(device, field)
	return err
}

// reason says where a kind came from.
func (p *parser) reason(kind Kind) string {
	if p.root.get("link") != nil {
		return strconv.Quote(string(kind))
	}
	switch kind {
	case KindChained:
		return "a prevResult, which means it"
	case KindMacvlan:
		return "a master, which means it"
	case KindDevice:
		return "a sub-function, which means it"
	case KindVF, KindIPVlan:
	}
	return "nothing"
}

// kind reads "link", or infers it. That a deviceID is a PF, and so of kind "device", cannot be known without the node.
func (p *parser) kind(device, field string) (Kind, error) {
	if v := p.root.get("link"); v != nil {
		return choice(v, "link", allKinds()...)
	}
	switch {
	case p.root.get("prevResult") != nil:
		return KindChained, nil
	case isNumber(device) && p.root.get("master") != nil, device == "" && p.root.get("master") != nil:
		return KindMacvlan, nil
	case isSF(device):
		return KindDevice, nil
	case device == "" && p.root.get("deviceID") == nil && p.root.get("pciBusID") == nil:
		return "", noDevice()
	}
	_, err := vf(device, field)
	return KindVF, err
}

func noDevice() error {
	return &Problem{
		Code: CodeInvalid, Field: "deviceID", Found: "nothing",
		Remedy: `add the annotation k8s.v1.cni.cncf.io/resourceName to the network and the resource to the pod, or write "deviceID"`,
		Right:  `"deviceID": "0000:3b:00.2" from Multus`,
	}
}

// vf reads the address of a virtual function.
func vf(device, field string) (bus.ID, error) {
	const right = `the PCI address of a VF as "0000:3b:00.2"`
	a, err := pci.Parse(device)
	problem := &Problem{Code: CodeInvalid, Field: field, Found: quote(device), Right: right}
	switch {
	case err == nil && !a.IsZero():
		return bus.PCI(a), nil
	case device == "":
		return bus.ID{}, noDevice()
	case isNumber(device):
		problem.Remedy = "use an SR-IOV resource: this number is from the RDMA shared device plugin, whose resources are for macvlan"
	case isSF(device):
		problem.Remedy = `use a VF: this is a sub-function, and link "device" is not built yet in this version of podfabric`
	default:
		problem.Remedy = "write the device as a full PCI address"
	}
	return bus.ID{}, problem
}
