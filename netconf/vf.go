// SPDX-License-Identifier: Apache-2.0

package netconf

import (
	"math"
	"strings"
)

// VLANProto is the key "vlanProto".
type VLANProto string

// The values of vlanProto. Empty: 802.1q.
const (
	Proto8021Q  VLANProto = "802.1q"
	Proto8021AD VLANProto = "802.1ad"
)

// LinkState is the key "link_state": what a PF's driver tells a VF of the link.
type LinkState string

// The values of link_state. Empty: left as it is.
const (
	LinkAuto    LinkState = "auto"    // that of the PF
	LinkEnable  LinkState = "enable"  // up, whatever the PF's is
	LinkDisable LinkState = "disable" // down
)

// Baseline says what becomes of VF settings that the configuration does not name.
type Baseline string

// The values of vf.baseline.
const (
	BaselineKeep  Baseline = "keep"  // left as they are
	BaselineReset Baseline = "reset" // no VLAN, no rates, no trust, link state auto
)

// VFSettings are what the PF's driver holds for a VF, by sriov-cni's keys and with their meaning: nil and empty leave a
// setting, 0 clears it.
type VFSettings struct {
	VLAN      *int // 0 to 4094
	QoS       *int // 0 to 7, only with a VLAN above 0
	Proto     VLANProto
	Spoofchk  *bool
	Trust     *bool
	LinkState LinkState
	MinTxRate *int // Mb/s; 0: no limit
	MaxTxRate *int // Mb/s; 0: no limit
	Baseline  Baseline
	FLR       bool // "vf": {"flr": true}: a function-level reset at DEL
}

// Any tells whether there is something to ask of the PF's driver, or to do to the function.
func (s VFSettings) Any() bool {
	return s.VLAN != nil || s.Spoofchk != nil || s.Trust != nil || s.LinkState != "" || s.MinTxRate != nil || s.MaxTxRate != nil ||
		s.Baseline == BaselineReset || s.FLR
}

// AsksPF tells whether the attachment needs the PF's driver: some take their time, so it is not asked for nothing.
func (c Conf) AsksPF() bool { return c.Kind == KindVF && (c.VF.Any() || c.MAC != "") }

// vfSettings reads sriov-cni's keys and the section "vf".
func (p *parser) vfSettings() error {
	s := &p.conf.VF
	for _, read := range []func(*VFSettings) error{p.vlan, p.switches, p.rates} {
		if err := read(s); err != nil {
			return err
		}
	}
	v := p.root.get("vf")
	var err error
	if s.Baseline, err = choice(v.get("baseline"), "vf.baseline", BaselineKeep, BaselineReset); err != nil {
		return err
	}
	s.FLR = v.get("flr") != nil && v.get("flr").yes
	return nil
}

// number reads an optional whole number at the top, from 0.
func (p *parser) number(name string, high int) (*int, error) {
	v := p.root.get(name)
	if v == nil {
		return nil, nil //nolint:nilnil // nil is the value of a key that is not there
	}
	n, err := integer(v, name, 0, high)
	return &n, err
}

// vlan reads vlan, vlanQoS and vlanProto. As with sriov-cni the other two need the first, since they are set together, and a
// priority or an outer tag without a VLAN is none.
func (p *parser) vlan(s *VFSettings) error {
	var err error
	if s.VLAN, err = p.number("vlan", 4094); err != nil {
		return err
	}
	if s.QoS, err = p.number("vlanQoS", 7); err != nil {
		return err
	}
	proto := p.said("vlanProto")
	if proto != nil {
		// sriov-cni takes 802.1Q and 802.1AD too.
		lower := &value{shape: proto.shape, text: strings.ToLower(proto.text)}
		if s.Proto, err = choice(lower, "vlanProto", Proto8021Q, Proto8021AD); err != nil {
			return invalid(`set vlanProto to "802.1q" or "802.1ad"`, "vlanProto", proto, `"802.1q" or "802.1ad"`)
		}
	}
	none := s.VLAN == nil || *s.VLAN == 0
	switch {
	case s.QoS != nil && (s.VLAN == nil || none && *s.QoS > 0):
		return invalid(`add "vlan" beside vlanQoS, or remove vlanQoS: the priority stands in the VLAN's tag`, "vlanQoS",
			p.root.get("vlanQoS"), `with "vlan": a number from 1 to 4094`)
	case s.Proto != "" && (s.VLAN == nil || none && s.Proto == Proto8021AD):
		return invalid(`add "vlan" beside vlanProto, or remove vlanProto: it is the VLAN's`, "vlanProto", proto,
			`with "vlan": a number from 1 to 4094`)
	}
	return nil
}

// switches reads spoofchk, trust and link_state.
func (p *parser) switches(s *VFSettings) error {
	for _, one := range []struct {
		name string
		to   **bool
	}{{"spoofchk", &s.Spoofchk}, {"trust", &s.Trust}} {
		v := p.said(one.name)
		if v == nil {
			continue
		}
		word, err := choice(v, one.name, "on", "off")
		if err != nil {
			return err
		}
		on := word == "on"
		*one.to = &on
	}
	if v := p.said("link_state"); v != nil {
		state, err := choice(v, "link_state", LinkAuto, LinkEnable, LinkDisable)
		if err != nil {
			return err
		}
		s.LinkState = state
	}
	return nil
}

// rates reads min_tx_rate and max_tx_rate.
func (p *parser) rates(s *VFSettings) error {
	var err error
	if s.MinTxRate, err = p.number("min_tx_rate", math.MaxInt32); err != nil {
		return err
	}
	if s.MaxTxRate, err = p.number("max_tx_rate", math.MaxInt32); err != nil {
		return err
	}
	if s.MinTxRate != nil && s.MaxTxRate != nil && *s.MaxTxRate > 0 && *s.MinTxRate > *s.MaxTxRate {
		return invalid("set min_tx_rate to at most max_tx_rate", "min_tx_rate", p.root.get("min_tx_rate"),
			"at most "+p.root.get("max_tx_rate").text+", or max_tx_rate 0 for no limit")
	}
	return nil
}
