// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/podfabric/podfabric/nad"
)

// entry judges one plugin's own configuration. What netconf judges is left to it.
func (j *judge) entry(e Entry) {
	if e.Type == Ours || e.Type == "" {
		return
	}
	if field, at := e.Conf.Repeated(e.Path); field != "" {
		j.warn(&nad.Value{Start: at}, field, "%s stands twice: the last one counts", field)
	}
	if own := keysOf(e.Type); own != nil {
		sets := []keys{standard(), own}
		if e.Path != "" && e.Conf.Get("name") != nil {
			j.note(e.Conf.Get("name"), e.path("name"), "%s has no effect: the list's name is put in its place", e.path("name"))
		}
		j.decode(e.Conf, e.Path, e.Type, sets...)
	} else {
		j.decode(e.Conf, e.Path, e.Type, standard(), keys{"*": anything})
		if Meant(e.Type) == e.Type && !slices.Contains(addressers(), e.Type) {
			j.warn(get(e.Conf, "type"), e.path("type"), "the rules of plugin %s are not known here: its own keys are not "+
				"judged", nad.Quote(e.Type))
		}
	}
	switch e.Type {
	case "sriov":
		j.sriov(e)
	case "ib-sriov":
		j.ibSriov(e)
	case "macvlan":
		j.macvlan(e)
	case "ipvlan":
		j.ipvlan(e)
	case "host-device":
		j.hostDevice(e)
	case "ipoib":
		j.ipoib(e)
	case "vlan":
		j.vlan(e)
	case "bridge":
		j.bridge(e)
	case "tuning":
		j.tuning(e)
	case "vrf":
		j.vrf(e)
	case "bond":
		j.bond(e)
	case "coordinator":
		j.coordinator(e)
	case "rdma":
		j.fixed(e)
	}
	j.addresses(e)
}

var (
	pciAddress = regexp.MustCompile(`^[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[01][0-9a-fA-F]\.[0-7]$`)
	auxDevice  = regexp.MustCompile(`^[\w-]+\.sf\.[0-9]+$`)
	macAddress = regexp.MustCompile(`^[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}$|^[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4}){2}$`)
)

// fixed speaks of a device that a network names for all nodes.
func (j *judge) fixed(e Entry) {
	for _, key := range []string{"deviceID", "pciBusID"} {
		v := get(e.Conf, key)
		if v.Str() == "" || e.Type != "host-device" && e.Type != Ours && key == "pciBusID" {
			continue
		}
		field := e.path(key)
		switch {
		case j.provided() && j.resourceFault() == "":
			j.note(v, field, "%s has no effect: Multus puts the resource's device in its place", field)
		case strings.HasSuffix(v.Text, ":00.0"):
			j.warn(v, field, "%s %s is function 0, a physical function: moving it takes the host's own NIC; and one "+
				"node's PCI address is written for all nodes", field, v.Show())
		case e.Type == Ours && !j.n.Definition:
			j.note(v, field, "%s %s is one node's %s, and one pod at a time can have it", field, v.Show(), identifier(v.Text))
		default:
			j.warn(v, field, "%s %s: one node's %s is written for all nodes, and one pod at a time can have it; "+
				"a resourceName annotation brings a free device", field, v.Show(), identifier(v.Text))
		}
	}
}

// identifier says what a device is named by.
func identifier(device string) string {
	if auxDevice.MatchString(device) {
		return "sub-function"
	}
	return "PCI address"
}

// needsDevice refuses a plugin that gets none.
func (j *judge) needsDevice(e Entry, aux bool) {
	v := get(e.Conf, "deviceID")
	switch {
	case v != nil && v.Shape != nad.String:
	case v.Str() != "":
		if !pciAddress.MatchString(v.Text) && (!aux || !auxDevice.MatchString(v.Text)) && !j.provided() {
			j.reject(v, e.path("deviceID"), `write the device as a full PCI address, as "0000:3b:00.2": %s, found %s`,
				e.path("deviceID"), v.Show())
			return
		}
		j.fixed(e)
	case j.provided():
	case j.n.Definition:
		found := "no resourceName annotation and no deviceID"
		if _, wrong := j.annotation(); wrong != nil {
			found = "the annotation " + wrong.Key + " instead, which Multus does not read"
		}
		j.reject(e.Conf, e.path("deviceID"), `add the annotation %s to the definition and the resource to the pod: found `+
			`%s, so %s answers "VF pci addr is required" on every ADD`,
			nad.ResourceName, found, e.Type)
	default:
		j.reject(e.Conf, e.path("deviceID"), `put the configuration into a NetworkAttachmentDefinition with the `+
			`annotation %s, or write "deviceID": found no deviceID and no way to get one, so %s answers "VF pci addr is `+
			`required"`,
			nad.ResourceName, e.Type)
	}
}

// mac judges an address of the link layer.
func (j *judge) mac(e Entry, key string) {
	v := get(e.Conf, key)
	if v.Str() == "" {
		return
	}
	field := e.path(key)
	if !macAddress.MatchString(v.Text) {
		j.reject(v, field, `write a MAC address of six bytes, as "02:00:00:00:00:01": %s, found %s`, field, v.Show())
		return
	}
	if n, err := strconv.ParseUint(v.Text[:2], 16, 8); err == nil && n&1 != 0 {
		j.reject(v, field, "write a unicast MAC address (the first byte even): %s, found %s, and the kernel refuses it",
			field, v.Show())
		return
	}
	if key == "mac" {
		j.fixedMAC(e)
	}
}

// fixedMAC warns of an address that a network gives to each of its pods.
func (j *judge) fixedMAC(e Entry) {
	if v := get(e.Conf, "mac"); v.Str() != "" {
		j.warn(v, e.path("mac"), "%s %s is one address for every pod of this network: two of them on one segment disturb each other",
			e.path("mac"), v.Show())
	}
}

// oneOf judges a word.
func (j *judge) oneOf(e Entry, key, what string, words ...string) {
	v := get(e.Conf, key)
	if v.Str() == "" || slices.Contains(words, v.Text) {
		return
	}
	hint := ""
	for _, w := range words {
		if nad.Distance(strings.ToLower(v.Text), w) <= 1 {
			hint = `; it means "` + w + `"`
		}
	}
	j.reject(v, e.path(key), "set %s to %s: %s, found %s (%s: %s)%s", key, strings.Join(words, ", "), e.path(key), v.Show(), what, v.Show(), hint)
}

// integer reads a number that decode has not refused.
func integer(v *nad.Value) (int64, bool) {
	if v == nil || v.Shape != nad.Number {
		return 0, false
	}
	n, err := strconv.ParseInt(v.Text, 10, 64)
	return n, err == nil
}

// within judges a number from 0 on.
func (j *judge) within(e Entry, key string, high int64) {
	v := get(e.Conf, key)
	if n, ok := integer(v); ok && (n < 0 || n > high) {
		j.reject(v, e.path(key), "set %s to a number from 0 to %d: %s, found %d", key, high, e.path(key), n)
	}
}

// mtu judges one of a plugin that sets it.
func (j *judge) mtu(e Entry) {
	v := get(e.Conf, "mtu")
	n, ok := integer(v)
	const jumbo, least = 65535, 68
	switch {
	case !ok || n == 0:
	case n < 0 || n > jumbo:
		j.reject(v, e.path("mtu"), "set mtu to a number from 0 to the master's MTU: %s, found %d (invalid MTU)", e.path("mtu"), n)
	case n < least:
		j.reject(v, e.path("mtu"), "set mtu to %d or more: %s, found %d, and the kernel refuses it", least, e.path("mtu"), n)
	case n < 1280:
		j.warn(v, e.path("mtu"), "%s %d is below 1280: IPv6 does not work on such a link, and RoCE has 256 or 512 bytes",
			e.path("mtu"), n)
	}
}

// prefix reads a subnet as net.ParseCIDR does, host bits kept.
func prefix(s string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(s)
	return p, err == nil
}
