// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"slices"

	"github.com/podfabric/podfabric/nad"
)

// ours looks at what the text of an entry of ours tells beside what its parser says: an InfiniBand master by its name, rules for
// the pod's addresses that two plugins make, and what surprises with every plugin, so that a conversion hides none of it.
func (j *judge) ours(e Entry) {
	if v := e.Conf.Get("master"); infiniBand.MatchString(v.Str()) {
		j.reject(v, e.path("master"), "use the ipoib plugin (a child of %s) or ib-sriov: %s %s is probably InfiniBand by its name (IPoIB), "+
			"on which podfabric makes no interface", v.Text, e.path("master"), v.Show())
	}
	rules := e.Conf.Get("routing").Get("sourceRules")
	if i := j.has("sbr", 0); i >= 0 && (rules.IsTrue() || rules == nil && e.Conf.Get("rail") != nil) {
		s := j.entries[i]
		j.warn(s.Conf, s.path("type"), "podfabric makes source rules itself where rail is set: drop sbr, or write \"routing\": {\"sourceRules\": false}")
	}
	kind := j.ourLink(e)
	if kind == "chained" {
		return // device, MTU and addresses are those of the plugin before, which is judged by itself
	}
	j.ourNIC(e, kind)
	j.fixedMAC(e)
	j.ourAddresses(e)
}

// ourLink is the kind of attachment that an entry of ours asks for, as its parser would infer it.
func (j *judge) ourLink(e Entry) string {
	link := e.Conf.Get("link")
	switch {
	case link.Str() != "":
		return link.Text
	case e.Path != "" && e.Path != j.entries[0].Path:
		return "chained"
	case e.Conf.Get("device").Str() != "" || e.Conf.Get("hwaddr").Str() != "" || e.Conf.Get("kernelpath").Str() != "",
		auxDevice.MatchString(e.Conf.Get("deviceID").Str()):
		return "device"
	case e.Conf.Get("master") != nil:
		return "macvlan"
	}
	return "vf"
}

// ourNIC says what a network takes of the node, and with which MTU.
func (j *judge) ourNIC(e Entry, kind string) {
	switch kind {
	case "macvlan", "ipvlan":
		if e.Conf.Get("rdma").Get("mode").Str() != "off" {
			j.noDevices(e)
		}
		if v := e.Conf.Get("master"); v.Str() != "" && !infiniBand.MatchString(v.Text) {
			j.oneName(v, e.path("master"))
		}
		return
	case "device":
		j.oneDevice(e)
	}
	j.fixed(e)
	if e.Conf.Get("mtu") != nil || j.mtuSet() != nil {
		return
	}
	if kind == "device" {
		j.note(e.Conf, e.Path, "no MTU is set anywhere: the device keeps its own")
		return
	}
	j.note(e.Conf, e.Path, `no MTU is set anywhere: a VF keeps its own, 1500 by default, and RoCE then sends 1024 bytes at most; "mtu": "pf" takes the PF's`)
}

// ourAddresses says of the section ipam what its parser has no words for.
func (j *judge) ourAddresses(e Entry) {
	v := e.Conf.Get("ipam")
	p := pool{j: j, e: e, v: v, path: e.path("ipam"), kind: v.Get("type").Str()}
	if v != nil && v.Shape != nad.Object {
		return
	}
	if p.kind == "" {
		p.none()
		return
	}
	if addresses := v.Get("addresses"); p.kind == "static" && addresses != nil && len(addresses.Items) > 0 {
		p.sameForAll(addresses)
	}
	if asked := v.Get("defaultRoute"); asked.IsTrue() {
		if by := j.ownTable(); by != "" {
			j.note(asked, p.at("defaultRoute"), "the default route that %s allows goes into a table of its own by %s", p.at("defaultRoute"), by)
			return
		}
		j.warn(asked, p.at("defaultRoute"), "default route on a secondary network: %s lets this network take the pod's default route "+
			"from its first network", p.at("defaultRoute"))
	}
}

// ownTable is the plugin behind that moves the interface's routes out of the main table; empty: none does.
func (j *judge) ownTable() string {
	kinds := []string{"sbr", "vrf"}
	i := slices.IndexFunc(kinds, func(kind string) bool { return j.has(kind, 1) > 0 })
	if i < 0 {
		return ""
	}
	return kinds[i]
}
