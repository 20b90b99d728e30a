// SPDX-License-Identifier: Apache-2.0

package netconf

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/podfabric/podfabric/rdmans/bus"
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

// shared tells whether attachments of the kind sit on a master, which stays at home with its RDMA device.
func (k Kind) shared() bool { return k.bit()&onShared != 0 }

// link settles the kind, then refuses the keys of other kinds.
func (p *parser) link() error {
	device, field, err := p.device()
	if err != nil {
		return err
	}
	kind, err := p.kind(device, field)
	if err != nil {
		return err
	}
	if kind != KindChained && p.root.get("prevResult") != nil {
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
	// What was taken for a VF may turn out to be a whole device; attach.Guard asks again.
	if !p.node.AllowsKind(kind) && (!p.conf.Inferred || !p.node.AllowsKind(KindDevice)) {
		return &Problem{
			Code: CodeInvalid, Remedy: fmt.Sprintf("use another network on this node, or add %q to allow.kinds in %s", kind, NodePath),
			Field: "link", Found: strconv.Quote(string(kind)), Right: "a kind that the node allows",
		}
	}
	p.conf.Kind = kind
	return nil
}

// ways are the keys by which host-device names what to move.
func ways() []string { return []string{"device", "hwaddr", "kernelpath"} }

// kind reads "link", or infers it. That a deviceID is a PF, and so of kind "device", cannot be known without the node.
func (p *parser) kind(device, field string) (Kind, error) {
	if v := p.root.get("link"); v != nil {
		return choice(v, "link", allKinds()...)
	}
	master := p.said("master") != nil
	switch {
	case p.root.get("prevResult") != nil:
		return KindChained, nil
	case master && device != "" && !isNumber(device):
		return "", &Problem{
			Code: CodeInvalid, Remedy: `add "link" to the network: it names a device to move and a master to sit on`, Field: "link",
			Found: "nothing, " + field + " " + quote(device) + " and a master", Right: `"vf", "device", "macvlan" or "ipvlan"`,
		}
	case master:
		return KindMacvlan, nil
	case bus.IsSF(device), slices.ContainsFunc(ways(), func(name string) bool { return p.said(name) != nil }):
		return KindDevice, nil
	}
	p.conf.Inferred = true
	_, err := vf(device, field)
	return KindVF, err
}

// make reads what the kind is made of.
func (p *parser) make() error {
	device, field, err := p.device()
	if err != nil {
		return err
	}
	var kind func() error
	switch p.conf.Kind {
	case KindVF:
		p.conf.Device, err = vf(device, field)
		kind = p.vfSettings
	case KindDevice:
		err = p.whole(device, field)
	case KindMacvlan, KindIPVlan:
		if device != "" && !isNumber(device) {
			p.warn(fmt.Sprintf("%s has no effect: with \"link\": %q the device is the master's", field, p.conf.Kind))
		}
		kind = p.onMaster
	case KindChained:
		if device != "" && !isNumber(device) {
			p.conf.Device, err = function(device, field)
		}
		kind = p.previous
	}
	if err != nil {
		return err
	}
	if kind != nil {
		if err = kind(); err != nil {
			return err
		}
	}
	return p.mac()
}

// noDevice is the refusal of a network that names none.
func noDevice() error {
	return &Problem{
		Code: CodeInvalid, Field: "deviceID", Found: "nothing",
		Remedy: `add the annotation k8s.v1.cni.cncf.io/resourceName to the network and the resource to the pod, or write "deviceID"`,
		Right:  `"deviceID": "0000:3b:00.2" from Multus; a macvlan or ipvlan has a "master" instead`,
	}
}

// vf reads the address of a virtual function.
func vf(device, field string) (bus.ID, error) {
	id, err := bus.Parse(device)
	problem := &Problem{Code: CodeInvalid, Field: field, Found: quote(device), Right: `the PCI address of a VF as "0000:3b:00.2"`}
	switch {
	case err == nil && !id.SF():
		return id, nil
	case device == "":
		return bus.ID{}, noDevice()
	case isNumber(device):
		problem.Remedy = "use an SR-IOV resource: this number is from the RDMA shared device plugin, whose resources are for macvlan"
	case err == nil:
		problem.Remedy = `set "link" to "device", or remove it: this is a sub-function and no VF`
	default:
		problem.Remedy = "write the device as a full PCI address"
	}
	return bus.ID{}, problem
}

// function reads the identity of any device.
func function(device, field string) (bus.ID, error) {
	id, err := bus.Parse(device)
	if err == nil {
		return id, nil
	}
	problem := &Problem{
		Code: CodeInvalid, Remedy: "write the device as a full PCI address or as a sub-function", Field: field, Found: quote(device),
		Right: `a device as "0000:3b:00.0" or "mlx5_core.sf.4"`,
	}
	if isNumber(device) {
		problem.Remedy = "use an SR-IOV resource: this number is from the RDMA shared device plugin, whose resources are for macvlan"
	}
	return bus.ID{}, problem
}

// whole reads which device is to be moved, by the one key that says so.
func (p *parser) whole(device, field string) error {
	var named []string
	if device != "" {
		named = append(named, field)
	}
	for _, name := range ways() {
		if p.said(name) != nil {
			named = append(named, name)
		}
	}
	switch {
	case len(named) == 0:
		return noDevice()
	case isNumber(device):
		_, err := function(device, field)
		return err
	case len(named) > 1:
		return &Problem{
			Code: CodeInvalid, Remedy: fmt.Sprintf("keep %q or %q, they name one device in two ways", named[0], named[1]),
			Field: named[1], Found: strings.Join(named, " and "), Right: "one of deviceID, device, hwaddr and kernelpath",
		}
	}
	v := p.said(named[0])
	p.conf.By.Key = named[0]
	var err error
	switch named[0] {
	case "device":
		p.conf.By.Name, err = linkName(v, "device")
	case "hwaddr":
		p.conf.By.MAC, err = mac(v.text, "hwaddr")
	case "kernelpath":
		p.conf.By.Path, err = kernelPath(v)
	default:
		p.conf.By = Selector{}
		p.conf.Device, err = function(device, field)
	}
	return err
}

// kernelPath reads the place of a device in sysfs. It is compared with what is there and never opened.
func kernelPath(v *value) (string, error) {
	const devices = "/sys/devices/"
	clean := path.Clean(v.text)
	if !strings.HasPrefix(clean, devices) || strings.Contains(v.text, "..") || !printable(v.text) {
		return "", invalid("write kernelpath as the path of a device in sysfs", "kernelpath", v,
			`a path as "/sys/devices/pci0000:00/0000:00:1f.6", without ".."`)
	}
	return clean, nil
}
