// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/podfabric/podfabric/nad"
)

// tuning has the rules of tuning (meta/tuning/tuning.go).
func (j *judge) tuning(e Entry) {
	if sysctl := get(e.Conf, "sysctl"); sysctl != nil && sysctl.Shape == nad.Object {
		for _, m := range sysctl.Members {
			j.sysctl(m, e.path("sysctl"))
		}
	}
	j.mtu(e)
	j.mac(e, "mac")
	if n, ok := integer(get(e.Conf, "txQLen")); ok && n < 0 {
		j.reject(get(e.Conf, "txQLen"), e.path("txQLen"), "set txQLen to 0 or more: %s, found %d", e.path("txQLen"), n)
	}
}

func (j *judge) sysctl(m nad.Member, at string) {
	field := nad.Below(at, m.Name)
	file := path.Join("/proc/sys", strings.ReplaceAll(m.Name, ".", "/"))
	if strings.Contains(m.Name, "/") {
		file = path.Join("/proc/sys", m.Name)
	}
	switch {
	case !strings.HasPrefix(file, "/proc/sys/net/"):
		j.reject(m.Value, field, "remove the sysctl, it belongs into the pod's securityContext: tuning sets net.* only "+
			"(invalid net sysctl key: %s): %s", nad.Quote(m.Name), field)
	case strings.TrimSpace(m.Name) != m.Name || strings.ContainsAny(m.Name, " \t="):
		j.reject(m.Value, field, "write the sysctl's name without blanks and =: %s, found %s", field, nad.Quote(m.Name))
	default:
		for _, table := range []string{"/conf/", "/neigh/"} {
			_, rest, ok := strings.Cut(file, table)
			name, _, _ := strings.Cut(rest, "/")
			if ok && !slices.Contains([]string{"all", "default", "lo", "IFNAME", ""}, name) {
				j.warn(m.Value, field, "%s names the interface %s: the pod's annotation may choose another name; write "+
					"IFNAME", field, nad.Quote(name))
			}
		}
	}
}

func (j *judge) vrf(e Entry) {
	name := get(e.Conf, "vrfname")
	switch {
	case name != nil && name.Shape != nad.String:
	case name.Str() == "":
		j.reject(e.Conf, e.path("vrfname"), `add "vrfname": configuration is expected to have a valid vrf name`)
	case len(name.Text) > 15:
		j.reject(name, e.path("vrfname"), "shorten vrfname to 15 characters: %s, found %s", e.path("vrfname"), name.Show())
	}
	j.warn(e.Conf, e.path("type"), "vrf moves the link's routes into a table of its own: an RDMA QP's route look-up for "+
		"the GID's netdev follows the VRF, "+
		"NCCL's TCP hand-shake (OOB) does not unless it is bound to that interface")
}

// coordinator has the rules of spiderpool's coordinator.
func (j *judge) coordinator(e Entry) {
	j.oneOf(e, "mode", "unknown mode", "auto", "underlay", "overlay", "disabled", "disable")
	j.spiderVersion(e.Conf, e.path("type"), "coordinator")
	for _, key := range []string{"hostRPFilter", "podRPFilter"} {
		if n, ok := integer(get(e.Conf, key)); ok && n > 2 {
			j.reject(get(e.Conf, key), e.path(key), "set %s to -1, 0, 1 or 2: %s, found %d", key, e.path(key), n)
		}
	}
	for _, key := range []string{"hijackCIDR", "overlayPodCIDR", "serviceCIDR"} {
		v := get(e.Conf, key)
		if v == nil {
			continue
		}
		for i, item := range v.Items {
			if _, ok := prefix(strings.TrimSpace(item.Str())); item.Shape == nad.String && !ok {
				field := nad.Item(e.path(key), i)
				j.reject(item, field, "write a subnet with its length: %s, found %s (invalid CIDR address)", field, item.Show())
			}
		}
	}
}

// spiderVersion refuses versions that spiderpool's plugins do.
func (j *judge) spiderVersion(at *nad.Value, field, plugin string) {
	switch {
	case j.version == "" || j.version < "0.3.0":
		j.reject(at, field, "set cniVersion to 0.3.1 or 1.0.0: %s refuses older ones, and one that is missing", plugin)
	case j.version == "1.1.0":
		j.warn(at, field, "%s knows cniVersion 0.3.0 to 1.0.0; older releases refuse 1.1.0", plugin)
	}
}

// chain judges the order of the plugins.
func (j *judge) chain() {
	first := j.entries[0]
	switch {
	case slices.Contains(chained(), first.Type):
		j.alone(first)
	case slices.Contains(addressers(), first.Type) && !slices.Contains([]string{"kube-ovn", "cilium-cni", "aws-cni"}, first.Type):
		j.reject(get(first.Conf, "type"), first.path("type"), `write %q into "ipam" of a plugin that makes an interface: `+
			`it hands out addresses and makes none: %s`, first.Type, first.path("type"))
	}
	made := -1
	for i, e := range j.entries {
		switch {
		case e.Type == "rdma" && i > 0:
			j.rdmaBehind(i)
		case e.Type == Ours && i > 0 && j.has(Ours, 0) < i:
			j.reject(get(e.Conf, "type"), e.path("type"), "drop the second podfabric entry: one attachment is made once: %s", e.path("type"))
		case e.Type == "sbr" && i > 0:
			j.sbr(e)
		case e.Type == Ours:
			j.ours(e)
		}
		if maker(e.Type) && e.Type != "bond" && !get(e.Conf, "linkInContainer").IsTrue() {
			if made >= 0 && e.Type != "ipvlan" {
				j.reject(get(e.Conf, "type"), e.path("type"), "keep one plugin that makes the interface: %s is %s, and %s has made it "+
					"already, so the name is taken", e.path("type"), e.Type, j.entries[made].Type)
			}
			made = i
		}
		if slices.Contains(chained(), e.Type) && e.Type != "coordinator" {
			if v := get(e.Conf, "ipam"); v != nil && len(v.Members) > 0 {
				j.ignore(v, e.path("ipam"), e.Type+" hands out no addresses; the plugin that makes the interface does")
			}
		}
	}
}

// alone refuses a plugin that stands first and needs another before it.
func (j *judge) alone(e Entry) {
	remedy := "put the plugin that makes the interface before it"
	extra := ""
	if e.Type == "rdma" {
		remedy = "put sriov (or host-device) before it in \"plugins\", with a resourceName annotation instead of a fixed address"
		if get(e.Conf, "ipam") != nil || get(e.Conf, "deviceID") != nil {
			extra = "; its ipam and deviceID here do nothing for a link"
		}
	}
	where := "stands first"
	if len(j.entries) == 1 {
		where = "stands alone"
	}
	j.reject(get(e.Conf, "type"), e.path("type"), "%s: %s is a chained plugin; it %s, gets no prevResult and fails every "+
		"ADD%s", remedy, e.Type, where, extra)
}

// rdmaBehind judges an rdma entry by what stands before it.
func (j *judge) rdmaBehind(i int) {
	e := j.entries[i]
	at, field := get(e.Conf, "type"), e.path("type")
	for _, before := range j.entries[:i] {
		switch before.Type {
		case Ours:
			if get(get(before.Conf, "rdma"), "mode").Str() != "off" {
				why := "podfabric has moved the RDMA device itself, so rdma would find no device and fail every ADD"
				if get(before.Conf, "master") != nil {
					why = "podfabric shares the master's RDMA device, which stays on the node, so rdma has none to move and fails every ADD"
				}
				j.reject(at, field, "drop the rdma entry: %s: %s", why, field)
				return
			}
		case "macvlan", "ipvlan", "bridge", "vlan", "ptp", "ipoib", "dummy", "tap", "macvtap", "bond":
			j.reject(at, field, "remove the rdma entry: behind %s there is no RDMA device to move; %s shares its "+
				"parent's, which works in shared mode, where rdma fails every ADD: %s",
				before.Type, before.Type, field)
			return
		}
	}
	if i != j.has("rdma", 0) {
		j.reject(at, field, "drop the second rdma entry: the first has moved the device: %s", field)
		return
	}
	if get(e.Conf, "deviceID").Str() == "" && !j.provided() {
		j.note(at, field, "without a deviceID rdma guesses the device by the interface's MAC")
	}
	j.note(at, field, "rdma needs the node in exclusive RDMA namespace mode and fails every ADD in shared mode")
}

// sbr judges source-based routing by the addresses that it works on.
func (j *judge) sbr(e Entry) {
	if m := j.main(); m != nil && get(get(m.Conf, "ipam"), "type").Str() == "" && (m.Type == "sriov" || m.Type == "macvlan" || m.Type == "ipvlan" || m.Type == "host-device") {
		j.reject(get(e.Conf, "type"), e.path("type"), "give the %s entry an ipam, or remove sbr: No IP addresses supplied on "+
			"interface: %s", m.Type, e.path("type"))
	}
	if m := j.main(); m != nil {
		if in := get(m.Conf, "ipam"); slices.Contains([]string{"host-local", "static", "whereabouts"}, get(in, "type").Str()) && get(in, "routes") == nil {
			j.note(e.Conf, e.path("type"), "the ipam section has no routes, so sbr has only the subnet's and the "+
				"gateway's default route to work with")
		}
	}
	gateways := get(e.Conf, "gateways")
	if gateways == nil || gateways.Shape != nad.List {
		return
	}
	for i, g := range gateways.Items {
		if _, err := netip.ParseAddr(g.Str()); g.Shape == nad.String && err != nil {
			field := nad.Item(e.path("gateways"), i)
			j.reject(g, field, "write an IP address: %s, found %s (invalid static gateway IP address)", field, g.Show())
		}
	}
}
