// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"

	"github.com/podfabric/podfabric/netconf"
)

// Settle gives a configuration without "link" the kind that facts tell: a PCI address may be a VF's or a whole device's, and only
// the node knows. A key that only a VF has is then refused, as it is where "link": "device" is written.
func Settle(c netconf.Conf, f Facts) (netconf.Conf, error) {
	if !c.Inferred || c.Kind != netconf.KindVF || !f.Function.Exists || f.Function.VF {
		return c, nil
	}
	if key := keyOfVF(c); key != "" {
		return netconf.Conf{}, &netconf.Problem{
			Code:   netconf.CodeInvalid,
			Remedy: fmt.Sprintf("remove %q, which only a virtual function can have, or give the address of one in deviceID", key),
			Field:  key, Found: fmt.Sprintf("with %s, which is a whole device and no virtual function", f.Function.ID),
		}
	}
	c.Kind = netconf.KindDevice
	return c, nil
}

// keyOfVF gives the first key of c that means nothing for a whole device; empty when there is none.
func keyOfVF(c netconf.Conf) string {
	v := c.VF
	for _, k := range []struct {
		name string
		set  bool
	}{
		{"vlan", v.VLAN != nil},
		{"vlanQoS", v.QoS != nil},
		{"vlanProto", v.Proto != ""},
		{"spoofchk", v.Spoofchk != nil},
		{"trust", v.Trust != nil},
		{"link_state", v.LinkState != ""},
		{"min_tx_rate", v.MinTxRate != nil},
		{"max_tx_rate", v.MaxTxRate != nil},
		{"vf.baseline", v.Baseline == netconf.BaselineReset},
		{"vf.flr", v.FLR},
		{"mtu", c.MTU.FromPF},
	} {
		if k.set {
			return k.name
		}
	}
	return ""
}
