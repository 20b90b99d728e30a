// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/podfabric/podfabric/nad"
)

// form is what a plugin's decoder takes for a key.
type form uint8

const (
	text     form = iota // a string
	whole                // a whole number
	truth                // true or false
	texts                // a list of strings
	list                 // any list
	object               // any object
	textMap              // an object of strings
	boolMap              // an object of true or false
	anything             // whatever there is
)

// goType is the name of a form in the messages of encoding/json.
func (f form) goType() string {
	switch f {
	case text, texts, textMap:
		return "string"
	case whole:
		return "int"
	case truth, boolMap:
		return "bool"
	case list, object, anything:
	}
	return "object"
}

func (f form) shape() nad.Shape {
	switch f {
	case text:
		return nad.String
	case whole:
		return nad.Number
	case truth:
		return nad.Bool
	case texts, list:
		return nad.List
	case object, textMap, boolMap:
		return nad.Object
	case anything:
	}
	return nad.Null | nad.Bool | nad.Number | nad.String | nad.List | nad.Object
}

// keys are those of an object, by name.
type keys map[string]form

// standard are the keys that every plugin reads (containernetworking/cni, types.PluginConf).
func standard() keys {
	return keys{
		"cniVersion": text, "name": text, "type": text, "capabilities": boolMap, "ipam": object, "dns": object, "runtimeConfig": object,
		"args": object, "prevResult": object,
	}
}

// keysOf are the keys of a plugin's own; nil: not known.
func keysOf(plugin string) keys {
	switch plugin {
	case "sriov":
		return keys{
			"deviceID": text, "vlan": whole, "vlanQoS": whole, "vlanProto": text, "mac": text, "spoofchk": text, "trust": text, "link_state": text,
			"min_tx_rate": whole, "max_tx_rate": whole, "logLevel": text, "logFile": text,
		}
	case "ib-sriov":
		return keys{
			"deviceID": text, "pkey": text, "link_state": text, "rdmaIsolation": truth, "ibKubernetesEnabled": truth, "vfioPciMode": truth,
			"publishPfGuid": truth, "kubeconfig": text,
		}
	case "macvlan":
		return keys{"master": text, "mode": text, "mtu": whole, "mac": text, "linkInContainer": truth, "bcqueuelen": whole}
	case "ipvlan":
		return keys{"master": text, "mode": text, "mtu": whole, "linkInContainer": truth}
	case "host-device":
		return keys{"device": text, "hwaddr": text, "kernelpath": text, "pciBusID": text, "DPDKMode": truth, "useInterfaceNetwork": truth}
	case "ipoib":
		return keys{"master": text, "mtu": whole}
	case "vlan":
		return keys{"master": text, "vlanId": whole, "mtu": whole, "linkInContainer": truth}
	case "rdma":
		return keys{"deviceID": text}
	case "tuning":
		return keys{
			"sysctl": textMap, "mac": text, "promisc": truth, "mtu": whole, "allmulti": truth, "txQLen": whole, "dataDir": text,
		}
	case "sbr":
		return keys{"table": whole, "gateways": texts, "addSourceHints": truth}
	case "vrf":
		return keys{"vrfname": text, "table": whole}
	case "bond":
		return keys{
			"ifname": text, "mode": text, "linksContNs": truth, "linksInContainer": truth, "failOverMac": whole, "miimon": text, "links": list, "mtu": whole,
			"mac": text, "allSlavesActive": whole, "tlbDynamicLb": whole, "xmitHashPolicy": text,
		}
	}
	return openKeysOf(plugin)
}

// openKeysOf are keys of plugins of which not all are known: those given are read in this form.
func openKeysOf(plugin string) keys {
	switch plugin {
	case "bridge":
		return keys{
			"bridge": text, "isGateway": truth, "isDefaultGateway": truth, "forceAddress": truth, "ipMasq": truth, "mtu": whole, "hairpinMode": truth,
			"promiscMode": truth, "vlan": whole, "*": anything,
		}
	case "coordinator":
		return keys{
			"mode": text, "detectGateway": truth, "overlayPodCIDR": texts, "serviceCIDR": texts, "hijackCIDR": texts, "tunePodRoutes": truth,
			"hostRuleTable": whole, "hostRPFilter": whole, "podRPFilter": whole, "txQueueLen": whole, "detectIPConflict": truth,
			"podDefaultRouteNic": text, "podDefaultCniNic": text, "multusNicPrefix": text, "podMACPrefix": text, "vethLinkAddress": text, "*": anything,
		}
	case "ptp":
		return keys{"mtu": whole, "ipMasq": truth, "*": anything}
	case "bandwidth":
		return keys{
			"ingressRate": whole, "ingressBurst": whole, "egressRate": whole, "egressBurst": whole, "unshapedSubnets": texts, "shapedSubnets": texts,
		}
	case "route-override":
		return keys{"flushroutes": truth, "flushgateway": truth, "addroutes": list, "delroutes": list, "skipcheck": truth}
	case "portmap", "firewall", "dummy", "tap", "loopback", "ifacer":
		return keys{"*": anything}
	}
	return nil
}

// decode reads an object as a plugin's decoder does: a wrong type stops it, an unknown key is passed over in silence.
func (j *judge) decode(v *nad.Value, path, plugin string, sets ...keys) {
	if v == nil {
		return
	}
	open := false
	for _, set := range sets {
		_, star := set["*"]
		open = open || star
	}
	for _, m := range v.Members {
		field := nad.Below(path, m.Name)
		f, known := lookup(m.Name, sets)
		switch {
		case known && m.Value.Shape != nad.Null:
			j.typed(m.Value, field, plugin, f)
		case path == "" && m.Name == "plugins": // top has spoken of it
		case !known && !open && m.Value.Shape != nad.Null:
			j.ignore(m.Value, field, unknownKey(m.Name, plugin, sets))
		}
	}
}

// lookup finds a key as encoding/json does, whatever its case.
func lookup(name string, sets []keys) (form, bool) {
	for _, set := range sets {
		if f, ok := set[name]; ok {
			return f, true
		}
		for key, f := range set {
			if strings.EqualFold(key, name) {
				return f, true
			}
		}
	}
	return 0, false
}

// typed refuses a value that the decoder cannot take.
func (j *judge) typed(v *nad.Value, field, plugin string, f form) {
	name := field[strings.LastIndexByte(field, '.')+1:]
	if v.Shape&f.shape() == 0 {
		right := f.shape().String()
		if f == whole {
			right = "the number " + number(v)
		} else if v.Shape == nad.Number && f == text {
			right = "the string " + strconv.Quote(v.Text)
		}
		remedy := fmt.Sprintf("write %q as %s", name, strings.TrimSpace(right))
		if plugin == "sriov" && (strings.EqualFold(name, "spoofchk") || strings.EqualFold(name, "trust")) {
			remedy = `write "on" or "off", in quotes`
		}
		j.reject(v, field, "%s: %s, found %s, and %s takes %s only (cannot unmarshal %s into Go value of type %s)",
			remedy, field, v.Show(), plugin, f.shape(), goWord(v), f.goType())
		return
	}
	switch f {
	case whole:
		if _, err := strconv.ParseInt(v.Text, 10, 64); err != nil {
			j.reject(v, field, "write %q as a whole number: %s, found %s (cannot unmarshal number %s into Go value of "+
				"type int)", name, field, v.Show(), v.Show())
		}
	case texts:
		for i, item := range v.Items {
			j.typed(item, nad.Item(field, i), plugin, text)
		}
	case textMap, boolMap:
		each := text
		if f == boolMap {
			each = truth
		}
		for _, m := range v.Members {
			if m.Value.Shape != nad.Null {
				j.member(m, field, plugin, each)
			}
		}
	case text, truth, list, object, anything:
	}
}

// member is typed for a key that may have dots in it.
func (j *judge) member(m nad.Member, path, plugin string, f form) {
	if m.Value.Shape&f.shape() == 0 {
		right := f.shape().String()
		if f == text && m.Value.Shape&(nad.Number|nad.Bool) != 0 {
			right = "the string " + strconv.Quote(m.Value.Show())
		}
		field := nad.Below(path, m.Name)
		j.reject(m.Value, field, "write the value of %q as %s: %s, found %s, and %s takes %s only (cannot unmarshal %s "+
			"into Go value of type %s)",
			m.Name, right, field, m.Value.Show(), plugin, f.shape(), goWord(m.Value), f.goType())
	}
}

// goWord is what encoding/json calls a value.
func goWord(v *nad.Value) string {
	switch v.Shape {
	case nad.List:
		return "array"
	case nad.Object:
		return "object"
	case nad.String:
		return "string"
	case nad.Bool:
		return "bool"
	case nad.Number, nad.Null:
	}
	return "number"
}

var digits = regexp.MustCompile(`^[0-9]{1,9}$`)

// number is a string's number, if it is one.
func number(v *nad.Value) string {
	if digits.MatchString(v.Text) {
		return cmp.Or(strings.TrimLeft(v.Text, "0"), "0") + ", without quotes"
	}
	return ""
}
