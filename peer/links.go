// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"regexp"
	"strings"

	"github.com/podfabric/podfabric/nad"
)

var (
	// The names that udev and the drivers give to IPoIB links, children with a partition key included.
	infiniBand = regexp.MustCompile(`^(ib([0-9]|[sopxP][0-9])|mlx[0-9]+_ib[0-9])`)
	// The names that they give to Ethernet links.
	ethernet = regexp.MustCompile(`^(eth[0-9]|en[sopx]?[0-9]|en[sopxP][0-9])`)
	// The names of RDMA devices.
	rdmaDevice = regexp.MustCompile(`^(mlx[45]|bnxt_re|irdma|hfi1|qedr|rxe|siw)_?[0-9]+$`)
	pkey       = regexp.MustCompile(`^0[xX][0-9a-fA-F]{1,4}$`)
)

// linkName judges the name of an interface of the host; false: it cannot be one.
func (j *judge) linkName(v *nad.Value, field string) bool {
	name := v.Text
	switch {
	case strings.ContainsAny(name, "{$<"):
		j.reject(v, field, "put the interface's name in place of the template: %s, found %s", field, v.Show())
	case strings.Contains(name, ","):
		j.reject(v, field, "write one interface: %s, found the list %s", field, v.Show())
	case len(name) > 15 || strings.ContainsAny(name, "/: \t\n") || name == "." || name == "..":
		j.reject(v, field, "write the name of an interface, at most 15 characters without blanks and / : %s, found %s, "+
			"and no interface can be called so", field, v.Show())
	case strings.ContainsAny(name, "*?["):
		j.reject(v, field, "write the name of one interface, no pattern: %s, found %s", field, v.Show())
	default:
		return true
	}
	return false
}

// master judges the lower interface of a macvlan, ipvlan or VLAN.
func (j *judge) master(e Entry) {
	v := get(e.Conf, "master")
	inside := get(e.Conf, "linkInContainer").IsTrue()
	field := e.path("master")
	switch {
	case v != nil && v.Shape != nad.String:
	case v.Str() == "" && e.Type == "ipvlan" && e.Path != "" && e.Path != "plugins[0]":
	case v.Str() == "" && inside:
		j.reject(e.Conf, field, "name the master: with linkInContainer %s has no default to take", e.Type)
	case v.Str() == "":
		j.warn(e.Conf, field, "no master: %s takes the interface of the node's default route, hardly an RDMA NIC", e.Type)
	case !j.linkName(v, field):
	case infiniBand.MatchString(v.Text) && e.Type != "ipvlan":
		j.reject(v, field, "use the ipoib plugin (a child of %s) or ib-sriov, never %s: %s %s is probably InfiniBand by "+
			"its name (IPoIB, 20-byte addresses), "+
			"%s needs Ethernet, and the kernel answers EINVAL", v.Text, e.Type, field, v.Show(), e.Type)
	case infiniBand.MatchString(v.Text):
		j.warn(v, field, "%s %s is probably InfiniBand by its name (IPoIB): use the ipoib plugin (a child of %s) or "+
			"ib-sriov", field, v.Show(), v.Text)
	case rdmaDevice.MatchString(v.Text):
		j.warn(v, field, "%s %s is the name of an RDMA device by its looks; master is a network interface (rdma link "+
			"shows the one behind it)", field, v.Show())
	case !inside:
		j.oneName(v, field)
	}
}

// oneName speaks of an interface that a network calls by one name for all nodes.
func (j *judge) oneName(v *nad.Value, field string) {
	j.note(v, field, "%s %s must exist under this very name on each node", field, v.Show())
}

// noDevices warns of a network on a shared NIC by which no container gets RDMA device nodes.
func (j *judge) noDevices(e Entry) {
	if !j.provided() {
		j.warn(e.Conf, e.path("type"), "no resourceName annotation: nothing gives the container /dev/infiniband, so NCCL "+
			"finds no device although the link is there, "+
			"unless the pod asks for an RDMA resource by itself")
	}
}

func (j *judge) macvlan(e Entry) {
	j.oneOf(e, "mode", "unknown macvlan mode", "bridge", "private", "vepa", "passthru")
	j.master(e)
	j.mtu(e)
	j.mac(e, "mac")
	j.within(e, "bcqueuelen", 1<<32-1)
	j.noDevices(e)
	if get(e.Conf, "mode").Str() == "passthru" {
		j.note(get(e.Conf, "mode"), e.path("mode"), "mode passthru gives the master to one pod at a time")
	}
}

func (j *judge) ipvlan(e Entry) {
	v := get(e.Conf, "mode")
	switch word := v.Str(); word {
	case "bridge", "private", "vepa", "passthru":
		j.reject(v, e.path("mode"), `set mode to l2, l3 or l3s: %s, found %s, which is macvlan's word (unknown ipvlan `+
			`mode: %s)`, e.path("mode"), v.Show(), v.Show())
	case "l3", "l3s":
		j.warn(v, e.path("mode"), "mode %s answers no ARP and needs routes on the fabric; RDMA peers do not find the pod "+
			"by themselves, l2 does that; podfabric has l2 only, so --convert leaves this network as it is", word)
	default:
		j.oneOf(e, "mode", "unknown ipvlan mode", "l2", "l3", "l3s")
	}
	j.master(e)
	j.mtu(e)
	j.noDevices(e)
	j.note(e.Conf, e.path("type"), "an ipvlan has its parent's MAC and no RDMA device of its own: DHCP and RoCE by own "+
		"MAC do not work, and RoCE works only in shared mode by the parent's GIDs")
}

// hostDevice has the rules of host-device (loadConf, getLink).
func (j *judge) hostDevice(e Entry) {
	var given []string
	for _, key := range []string{"device", "hwaddr", "kernelpath", "pciBusID"} {
		if get(e.Conf, key).Str() != "" {
			given = append(given, key)
		}
	}
	if j.provided() && get(e.Conf, "pciBusID").Str() == "" {
		given = append(given, "pciBusID")
	}
	capable := get(get(e.Conf, "capabilities"), "deviceID").IsTrue()
	switch {
	case len(given) == 0 && !capable:
		j.reject(e.Conf, e.path("pciBusID"), `add the annotation %s to the definition and the resource to the pod, or `+
			`name the device: specify either "device", "hwaddr", "kernelpath" or "pciBusID"%s`,
			nad.ResourceName, j.meantAnnotation())
	case len(given) > 1 && j.provided():
		v := get(e.Conf, given[0])
		j.warn(v, e.path(given[0]), "%s comes before the device of the resource: kubelet gives one device to the pod, "+
			"and host-device moves another", e.path(given[0]))
	case len(given) > 1:
		v := get(e.Conf, given[1])
		j.ignored = append(j.ignored, e.path(given[1]))
		j.warn(v, e.path(given[1]), "%s has no effect: host-device takes %s, the first of device, hwaddr, kernelpath and "+
			"pciBusID", e.path(given[1]), given[0])
	}
	j.hostDeviceKeys(e)
	if j.has("rdma", 0) < 0 && j.has(Ours, 0) < 0 {
		j.note(e.Conf, e.Path, "host-device moves the netdev only: in exclusive mode the RDMA device stays on the host "+
			"unless rdma is chained behind it")
	}
	if j.mtuSet() == nil {
		j.note(e.Conf, e.Path, "no MTU is set anywhere: the device keeps its own")
	}
}

func (j *judge) hostDeviceKeys(e Entry) {
	if v := get(e.Conf, "device"); v.Str() != "" {
		j.linkName(v, e.path("device"))
	}
	j.mac(e, "hwaddr")
	j.oneDevice(e)
	if v := get(e.Conf, "kernelpath"); v.Str() != "" {
		if !strings.HasPrefix(v.Text, "/sys/devices/") {
			j.reject(v, e.path("kernelpath"), "write a path below /sys/devices/: kernel device path must be absolute and "+
				"begin with /sys/devices/: %s, found %s", e.path("kernelpath"), v.Show())
		}
	}
	if v := get(e.Conf, "pciBusID"); v.Str() != "" && !j.provided() && !pciAddress.MatchString(v.Text) {
		j.reject(v, e.path("pciBusID"), `write the device as a full PCI address, as "0000:3b:00.2": %s, found %s`,
			e.path("pciBusID"), v.Show())
		return
	}
	j.fixed(e)
}

// oneDevice warns of a whole device that a network names for all nodes.
func (j *judge) oneDevice(e Entry) {
	if v := get(e.Conf, "device"); v.Str() != "" {
		j.warn(v, e.path("device"), "%s %s: one name is written for all nodes, and one pod of a node can have it",
			e.path("device"), v.Show())
	}
	if v := get(e.Conf, "hwaddr"); v.Str() != "" {
		j.warn(v, e.path("hwaddr"), "%s %s: one node's device is written for all nodes", e.path("hwaddr"), v.Show())
	}
}

// meantAnnotation says which annotation stands where the right one should.
func (j *judge) meantAnnotation() string {
	if _, wrong := j.annotation(); wrong != nil {
		return "; found the annotation " + wrong.Key + ", which Multus does not read"
	}
	return ""
}

func (j *judge) ipoib(e Entry) {
	v := get(e.Conf, "master")
	switch {
	case v != nil && v.Shape != nad.String:
	case v.Str() == "":
		j.reject(e.Conf, e.path("master"), `add "master", the IPoIB interface: ipoib answers: "master" field is required`)
	case !j.linkName(v, e.path("master")):
	case ethernet.MatchString(v.Text):
		j.reject(v, e.path("master"), "use macvlan, or an IPoIB interface as master: %s %s is probably Ethernet by its "+
			"name, and ipoib makes children of IPoIB links only", e.path("master"), v.Show())
	default:
		j.note(v, e.path("master"), "%s %s must exist under this very name on each node", e.path("master"), v.Show())
	}
	j.mtu(e)
	j.noDevices(e)
}

func (j *judge) vlan(e Entry) {
	j.within(e, "vlanId", 4094)
	if v := get(e.Conf, "vlanId"); v == nil {
		j.warn(e.Conf, e.path("vlanId"), "no vlanId: vlan takes 0, priority frames without a VLAN")
	}
	j.master(e)
	j.mtu(e)
	j.noDevices(e)
}

func (j *judge) bridge(e Entry) {
	j.within(e, "vlan", 4094)
	if get(e.Conf, "hairpinMode").IsTrue() && get(e.Conf, "promiscMode").IsTrue() {
		j.reject(get(e.Conf, "promiscMode"), e.path("promiscMode"), "remove hairpinMode or promiscMode: cannot set "+
			"hairpin mode and promiscuous mode at the same time")
	}
	if v := get(e.Conf, "isDefaultGateway"); v.IsTrue() {
		j.warn(v, e.path("isDefaultGateway"), "default route on a secondary network: %s takes the pod's default route "+
			"from its first network", e.path("isDefaultGateway"))
	}
	j.note(e.Conf, e.path("type"), "a bridge has no RDMA device: traffic over it is the kernel's")
}
