// SPDX-License-Identifier: Apache-2.0

package netconf

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
)

// previous reads the result of the plugin before, in whatever version it is, as one of the newest.
func (p *parser) previous() error {
	v := p.root.get("prevResult")
	if v == nil {
		return invalid(`put podfabric in "plugins" behind the plugin that makes the interface, or remove "link": "chained"`,
			"prevResult", nil, "the result of the plugin before")
	}
	if err := entries(v); err != nil {
		return err
	}
	result, err := p.result(v)
	if err != nil {
		return &Problem{
			Code: CodeInvalid, Remedy: "correct the plugin before podfabric: its result cannot be read", Field: "prevResult",
			Right: "a result of CNI " + p.conf.CNIVersion, Err: errors.New(oneLine(err.Error())),
		}
	}
	if err := sound(result); err != nil {
		return err
	}
	p.conf.Previous = result
	return p.hasInterface()
}

// entries refuses lists with something else than objects in them: the library takes the objects for granted. Like it, and
// unlike the rest of the document, their names are read in letters of any case.
func entries(v *value) error {
	for _, m := range v.members {
		if !slices.ContainsFunc([]string{"interfaces", "ips", "routes"}, func(s string) bool { return strings.EqualFold(s, m.name) }) {
			continue
		}
		for i, it := range m.value.items {
			if it.shape != shapeObject {
				at := item(below("prevResult", m.name), i)
				return invalid("correct the plugin before podfabric: its result holds something else than objects", at, it, "an object")
			}
		}
	}
	return nil
}

// result has the library read it. Results before 1.0.0 may lack their version, which is the configuration's.
func (p *parser) result(v *value) (*types100.Result, error) {
	text := string(p.raw.Stdin[v.start:v.end])
	if v.get("cniVersion").str() == "" {
		comma := ","
		if len(v.members) == 0 {
			comma = ""
		}
		text = strings.TrimSuffix(text, "}") + comma + `"cniVersion":"` + p.conf.CNIVersion + `"}`
	}
	some, err := version.NewResult(p.conf.CNIVersion, []byte(text))
	if err != nil {
		return nil, fmt.Errorf("read as a result: %w", err)
	}
	result, err := types100.NewResultFromResult(some)
	if err != nil {
		return nil, fmt.Errorf("convert result: %w", err)
	}
	return result, nil
}

// sound refuses what the library lets through and every reader would stumble over.
func sound(r *types100.Result) error {
	bad := func(i int, key, found string) error {
		return &Problem{
			Code: CodeInvalid, Remedy: "correct the plugin before podfabric: its result cannot be right",
			Field: item("prevResult.ips", i) + "." + key, Found: found,
		}
	}
	for i, ip := range r.IPs {
		switch {
		case ip.Address.IP == nil || ip.Address.Mask == nil:
			return bad(i, "address", "nothing")
		case ip.Interface != nil && (*ip.Interface < 0 || *ip.Interface >= len(r.Interfaces)):
			return bad(i, "interface", fmt.Sprintf("%d, and %d interfaces", *ip.Interface, len(r.Interfaces)))
		}
	}
	return nil
}

// hasInterface looks for the attachment's own interface: plugins also list links of the node, which have no sandbox.
func (p *parser) hasInterface() error {
	var there []string
	for _, i := range p.conf.Previous.Interfaces {
		if i.Sandbox == "" {
			continue
		}
		if i.Name == p.conf.Request.IfName {
			return nil
		}
		there = append(there, quote(i.Name))
	}
	found := "no interface in a pod"
	if len(there) > 0 {
		found = strings.Join(there, ", ")
	}
	return &Problem{
		Code: CodeInvalid, Remedy: `put podfabric in "plugins" behind the plugin that makes interface ` + p.conf.Request.IfName,
		Field: "prevResult.interfaces", Found: found, Right: p.conf.Request.IfName + " with its sandbox",
	}
}

// oneLine takes what a terminal would not show out of a text that may hold anything.
func oneLine(s string) string {
	return clipTo(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s), 200)
}

// devinfo are the folders that CNI's device-info files lie in (device-info-spec 1.1.0, section 4). Those of device plugins lie beside
// them, and are of every pod that gets the device.
func devinfo() []string {
	return []string{"/var/run/k8s.cni.cncf.io/devinfo/cni/", "/run/k8s.cni.cncf.io/devinfo/cni/"}
}

// deviceInfo reads where to write the device-info file. The document may be a tenant's and the plugin is root, so that no
// other folder is written to.
func (p *parser) deviceInfo(field string, v *value) error {
	file := v.str()
	if file == "" && v.shape == shapeString {
		return nil
	}
	ok := printable(file) && path.Clean(file) == file
	below := false
	for _, dir := range devinfo() {
		below = below || strings.HasPrefix(file, dir)
	}
	if !ok || !below {
		return invalid("leave runtimeConfig.CNIDeviceInfoFile to Multus: podfabric writes device-info files to their own folder alone",
			field, v, "a path below "+strings.Join(devinfo(), " or ")+`, without ".."`)
	}
	p.conf.DeviceInfo = file
	return nil
}
