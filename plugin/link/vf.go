// SPDX-License-Identifier: Apache-2.0

package link

import (
	"encoding/binary"
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// VF is what a PF's driver holds for one of its virtual functions.
type VF struct {
	Number    int    `json:"number"`
	MAC       string `json:"mac"` // zeros: none given
	VLAN      int    `json:"vlan"`
	QoS       int    `json:"qos"`
	Proto     string `json:"proto"` // "802.1q", "802.1ad"
	Spoofchk  bool   `json:"spoofchk"`
	Trust     bool   `json:"trust"`
	LinkState string `json:"linkState"` // "auto", "enable", "disable"
	MinTxRate int    `json:"minTxRate"` // Mb/s; 0: no limit
	MaxTxRate int    `json:"maxTxRate"` // Mb/s; 0: no limit
}

// attrType is what of an attribute's type is no flag (NLA_TYPE_MASK of linux/netlink.h).
const attrType = 1<<14 - 1

// The words for what the kernel numbers, as ip(8) has them.
const (
	dot1q  = "802.1q"
	dot1ad = "802.1ad"
)

// linkStates are IFLA_VF_LINK_STATE_AUTO, _ENABLE, _DISABLE.
func linkStates() []string { return []string{"auto", "enable", "disable"} }

// VFs lists the virtual functions of a PF's netdev, each by the number that the kernel gives: a driver that fails for one leaves
// that out of the list. Some drivers take long to answer. The list may be empty.
func (c *Conn) VFs(index int) ([]VF, error) {
	what := fmt.Sprintf("list VFs of link %d", index)
	req := c.request(unix.RTM_GETLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	req.AddData(msg)
	req.AddData(nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(nl.RTEXT_FILTER_VF|skipStats)))
	msgs, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err != nil {
		return nil, translate(what, err)
	}
	var vfs []VF
	for _, m := range msgs {
		found, err := parseVFs(m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		vfs = append(vfs, found...)
	}
	slices.SortFunc(vfs, func(a, b VF) int { return a.Number - b.Number })
	return vfs, nil
}

// parseVFs reads IFLA_VFINFO_LIST of an RTM_NEWLINK.
func parseVFs(msg []byte) ([]VF, error) {
	lists, err := nested(msg[min(unix.SizeofIfInfomsg, len(msg)):], unix.IFLA_VFINFO_LIST)
	if err != nil {
		return nil, err
	}
	var vfs []VF
	for _, l := range lists {
		infos, err := nested(l, nl.IFLA_VF_INFO)
		if err != nil {
			return nil, err
		}
		for _, info := range infos {
			vf, err := parseVF(info)
			if err != nil {
				return nil, err
			}
			vfs = append(vfs, vf)
		}
	}
	return vfs, nil
}

// attribute is a netlink attribute (struct nlattr).
type attribute struct {
	kind  uint16
	value []byte
}

// attributes splits a list of attributes. The library's function does so too, but not without a panic when one is cut short.
func attributes(b []byte) ([]attribute, error) {
	var all []attribute
	for len(b) >= unix.NLA_HDRLEN {
		length := int(binary.NativeEndian.Uint16(b))
		if length < unix.NLA_HDRLEN || length > len(b) {
			return nil, fmt.Errorf("a netlink attribute of %d bytes in %d: %w", length, len(b), ErrRefused)
		}
		all = append(all, attribute{kind: binary.NativeEndian.Uint16(b[2:]) & attrType, value: b[unix.NLA_HDRLEN:length]})
		b = b[min((length+unix.NLA_ALIGNTO-1)&^(unix.NLA_ALIGNTO-1), len(b)):]
	}
	return all, nil
}

// nested gives the values of the attributes of one kind.
func nested(b []byte, kind uint16) ([][]byte, error) {
	attrs, err := attributes(b)
	var values [][]byte
	for _, a := range attrs {
		if a.kind == kind {
			values = append(values, a.value)
		}
	}
	return values, err
}

// parseVF reads one IFLA_VF_INFO. Every attribute begins with the VF's number (struct ifla_vf_* of if_link.h). What a driver
// does not know is all ones, which is no "on".
func parseVF(info []byte) (VF, error) {
	attrs, err := attributes(info)
	if err != nil {
		return VF{}, err
	}
	vf := VF{Number: -1, Proto: dot1q, LinkState: linkStates()[0]}
	for _, a := range attrs {
		if a.kind == nl.IFLA_VF_VLAN_LIST {
			lists, err := nested(a.value, nl.IFLA_VF_VLAN_INFO)
			if err != nil {
				return VF{}, err
			}
			if len(lists) > 0 && len(lists[0]) >= 14 && binary.BigEndian.Uint16(lists[0][12:]) == unix.ETH_P_8021AD {
				vf.Proto = dot1ad
			}
			continue
		}
		if len(a.value) >= 8 {
			vf.fill(int(a.kind), a.value)
		}
	}
	if vf.Number < 0 {
		return VF{}, fmt.Errorf("a VF without a number: %w", ErrNotFound)
	}
	return vf, nil
}

// fill takes one attribute of at least eight bytes.
func (vf *VF) fill(kind int, v []byte) {
	word := func(i int) int {
		if len(v) < 4*(i+1) {
			return 0
		}
		return int(binary.NativeEndian.Uint32(v[4*i:]))
	}
	switch kind {
	case nl.IFLA_VF_MAC:
		vf.Number = word(0)
		if len(v) >= 10 {
			vf.MAC = net.HardwareAddr(v[4:10]).String()
		}
	case nl.IFLA_VF_VLAN:
		vf.VLAN, vf.QoS = word(1), word(2)
	case nl.IFLA_VF_SPOOFCHK:
		vf.Spoofchk = word(1) == 1
	case nl.IFLA_VF_TRUST:
		vf.Trust = word(1) == 1
	case nl.IFLA_VF_LINK_STATE:
		if states := linkStates(); word(1) < len(states) {
			vf.LinkState = states[word(1)]
		}
	case nl.IFLA_VF_RATE:
		vf.MinTxRate, vf.MaxTxRate = word(1), word(2)
	}
}

// SetVFVLAN sets VLAN, QoS and protocol ("802.1q", "802.1ad") of a VF; VLAN 0 takes it away. ErrUnsupported: the driver does not
// know the protocol. ErrRefused: nor the number or the QoS.
func (c *Conn) SetVFVLAN(index, vf, vlan, qos int, proto string) error {
	// IFLA_VF_VLAN has no protocol, but is all that kernels before 4.9 know.
	if proto != dot1ad {
		return c.setVF(index, vf, "VLAN", nl.NewRtAttr(nl.IFLA_VF_VLAN, words(vf, vlan, qos)))
	}
	value := binary.BigEndian.AppendUint16(words(vf, vlan, qos), unix.ETH_P_8021AD)
	list := nl.NewRtAttr(nl.IFLA_VF_VLAN_LIST, nil)
	list.AddRtAttr(nl.IFLA_VF_VLAN_INFO, append(value, 0, 0))
	return c.setVF(index, vf, "VLAN protocol "+proto, list)
}

// SetVFMAC sets the administrative MAC of a VF.
func (c *Conn) SetVFMAC(index, vf int, mac string) error {
	hw, err := net.ParseMAC(mac)
	if err != nil {
		return fmt.Errorf("set the MAC of VF %d: %w", vf, err)
	}
	value := make([]byte, 4+32) // MAX_ADDR_LEN
	binary.NativeEndian.PutUint32(value, uint32(vf))
	copy(value[4:], hw)
	return c.setVF(index, vf, "MAC", nl.NewRtAttr(nl.IFLA_VF_MAC, value))
}

// SetVFRate sets both transmit rates of a VF in Mb/s; 0 is no limit. ErrRefused: the driver does not take one of them, as igb,
// which knows no lower bound.
func (c *Conn) SetVFRate(index, vf, least, most int) error {
	return c.setVF(index, vf, "transmit rates", nl.NewRtAttr(nl.IFLA_VF_RATE, words(vf, least, most)))
}

// SetVFSpoofchk sets whether packets with another source MAC are dropped.
func (c *Conn) SetVFSpoofchk(index, vf int, on bool) error {
	return c.setVF(index, vf, "spoofchk", nl.NewRtAttr(nl.IFLA_VF_SPOOFCHK, words(vf, number(on))))
}

// SetVFTrust sets whether the VF may, for instance, go promiscuous.
func (c *Conn) SetVFTrust(index, vf int, on bool) error {
	return c.setVF(index, vf, "trust", nl.NewRtAttr(nl.IFLA_VF_TRUST, words(vf, number(on))))
}

// SetVFLinkState sets the link that the VF sees: "auto", "enable", "disable".
func (c *Conn) SetVFLinkState(index, vf int, state string) error {
	i := slices.Index(linkStates(), state)
	if i < 0 {
		return fmt.Errorf("set link_state of VF %d: %w: %q", vf, ErrRefused, state)
	}
	return c.setVF(index, vf, "link_state", nl.NewRtAttr(nl.IFLA_VF_LINK_STATE, words(vf, i)))
}

// setVF sends one setting.
func (c *Conn) setVF(index, vf int, what string, attr *nl.RtAttr) error {
	req := c.request(unix.RTM_SETLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	req.AddData(msg)
	list := nl.NewRtAttr(unix.IFLA_VFINFO_LIST, nil)
	info := list.AddRtAttr(nl.IFLA_VF_INFO, nil)
	info.AddChild(attr)
	req.AddData(list)
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return translate(fmt.Sprintf("set %s of VF %d", what, vf), err)
}

func words(values ...int) []byte {
	var b []byte
	for _, v := range values {
		b = binary.NativeEndian.AppendUint32(b, uint32(v))
	}
	return b
}

func number(on bool) int {
	if on {
		return 1
	}
	return 0
}
