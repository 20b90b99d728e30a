// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"slices"
	"strings"

	"github.com/podfabric/podfabric/nad"
)

// sriov has the rules of sriov-cni (pkg/config/config.go, pkg/sriov/sriov.go).
func (j *judge) sriov(e Entry) {
	j.sriovVLAN(e)
	j.oneOf(e, "link_state", "invalid link_state value", "auto", "enable", "disable")
	j.mac(e, "mac")
	j.rates(e)
	for _, key := range []string{"spoofchk", "trust"} {
		if v := get(e.Conf, key); v.Str() != "" && !slices.Contains([]string{"on", "off"}, v.Text) {
			j.warn(v, e.path(key), `%s %s is neither "on" nor "off": sriov takes everything but "on" for off, in silence`,
				e.path(key), v.Show())
		}
	}
	j.needsDevice(e, false)
	if j.mtuSet() == nil {
		j.note(e.Conf, e.Path, "no MTU is set anywhere: a VF keeps its own, 1500 by default, and RoCE then sends 1024 "+
			"bytes at most; a tuning entry behind sriov sets it")
	}
	if j.has("rdma", 0) < 0 && j.has(Ours, 0) < 0 {
		j.note(e.Conf, e.Path, "no rdma plugin behind sriov: in exclusive mode the RDMA device stays on the host")
	}
}

// mtuSet is the MTU that a tuning entry sets; nil if none does.
func (j *judge) mtuSet() *nad.Value {
	if i := j.has("tuning", 0); i >= 0 {
		return get(j.entries[i].Conf, "mtu")
	}
	return nil
}

func (j *judge) sriovVLAN(e Entry) {
	vlan, qos, proto := get(e.Conf, "vlan"), get(e.Conf, "vlanQoS"), get(e.Conf, "vlanProto")
	if vlan == nil {
		if qos != nil {
			j.reject(qos, e.path("vlanQoS"), "add vlan, or remove vlanQoS: vlan id must be configured to set vlan QoS: "+
				"%s, found %s and no vlan", e.path("vlanQoS"), qos.Show())
		}
		if proto != nil {
			j.reject(proto, e.path("vlanProto"), "add vlan, or remove vlanProto: vlan id must be configured to set vlan "+
				"proto: %s, found %s and no vlan", e.path("vlanProto"), proto.Show())
		}
		return
	}
	j.within(e, "vlan", 4094)
	j.within(e, "vlanQoS", 7)
	id, ok := integer(vlan)
	if n, set := integer(qos); ok && set && id == 0 && n > 0 && n <= 7 {
		j.reject(qos, e.path("vlanQoS"), "set vlan to another number than 0, or vlanQoS to 0: non-zero vlan id must be "+
			"configured to set vlan QoS: %s, found %d with vlan 0", e.path("vlanQoS"), n)
	}
	switch word := strings.ToLower(proto.Str()); {
	case proto.Str() == "" && proto == nil:
	case proto.Shape != nad.String:
	case word != "802.1q" && word != "802.1ad":
		j.reject(proto, e.path("vlanProto"), "set vlanProto to 802.1q or 802.1ad: %s, found %s (vlan Proto invalid)",
			e.path("vlanProto"), proto.Show())
	case word == "802.1ad" && ok && id == 0:
		j.reject(proto, e.path("vlanProto"), "set vlan to another number than 0: non-zero vlan id must be configured to "+
			"set vlan proto 802.1ad: %s", e.path("vlanProto"))
	}
}

func (j *judge) rates(e Entry) {
	low, high := get(e.Conf, "min_tx_rate"), get(e.Conf, "max_tx_rate")
	least, hasLeast := integer(low)
	most, hasMost := integer(high)
	switch {
	case hasLeast && least < 0:
		j.reject(low, e.path("min_tx_rate"), "set min_tx_rate to 0 or more Mbit/s: %s, found %d", e.path("min_tx_rate"), least)
	case hasMost && most < 0:
		j.reject(high, e.path("max_tx_rate"), "set max_tx_rate to 0 or more Mbit/s: %s, found %d", e.path("max_tx_rate"), most)
	case hasLeast && hasMost && most > 0 && least > most:
		j.reject(low, e.path("min_tx_rate"), "set min_tx_rate to max_tx_rate or less: %s, found %d above %d, and the "+
			"kernel refuses it", e.path("min_tx_rate"), least, most)
	}
}

// ibSriov has the rules of ib-sriov-cni.
func (j *judge) ibSriov(e Entry) {
	j.oneOf(e, "link_state", "invalid link_state value", "auto", "enable", "disable")
	j.needsDevice(e, false)
	if v := get(e.Conf, "pkey"); v.Str() != "" {
		if !pkey.MatchString(v.Text) {
			j.warn(v, e.path("pkey"), `%s %s is no partition key as "0x8001": ib-kubernetes, which reads it, refuses it`,
				e.path("pkey"), v.Show())
		} else {
			j.note(v, e.path("pkey"), "%s is read by ib-kubernetes alone; NCCL_IB_PKEY is an index into the VF's own "+
				"table, not this key", e.path("pkey"))
		}
	}
	if v := get(e.Conf, "ibKubernetesEnabled"); v.IsTrue() {
		j.note(v, e.path("ibKubernetesEnabled"), "%s needs ib-kubernetes, which gives each pod a GUID: without it every ADD fails", e.path("ibKubernetesEnabled"))
	} else {
		j.note(e.Conf, e.Path, "without a GUID of its own the VF keeps the one it has, and an all-zero one never becomes ACTIVE")
	}
	isolated := get(e.Conf, "rdmaIsolation").IsTrue()
	if i := j.has("rdma", 0); i >= 0 && isolated {
		r := j.entries[i]
		j.reject(get(r.Conf, "type"), r.path("type"), "remove the rdma entry, or rdmaIsolation: ib-sriov has moved the RDMA device, "+
			"so rdma finds none and fails every ADD: %s", r.path("type"))
	} else if i >= 0 {
		r := j.entries[i]
		j.warn(get(r.Conf, "type"), r.path("type"), "%s: rdma does not support ib-sriov: moving the RDMA device makes its IPoIB interface anew "+
			"on many kernels (rdma-cni#21); \"rdmaIsolation\": true in ib-sriov moves both", r.path("type"))
	} else if !isolated {
		j.note(e.Conf, e.Path, "no rdma plugin behind ib-sriov and no rdmaIsolation: in exclusive mode the RDMA device "+
			"stays on the host")
	} else {
		j.note(get(e.Conf, "rdmaIsolation"), e.path("rdmaIsolation"), "%s needs the node in exclusive RDMA namespace mode and fails every ADD in "+
			"shared mode", e.path("rdmaIsolation"))
	}
}
