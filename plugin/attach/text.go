// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"net/netip"
)

// String gives namespace and name, as "pod/net1".
func (p Place) String() string { return string(p.NS) + "/" + p.Name }

// String gives the step on one line.
func (s MoveLink) String() string {
	text := fmt.Sprintf("move link %s %s -> %s", s.Device, s.From, s.To)
	if s.MTU[1] != 0 {
		text += fmt.Sprintf(", mtu %d -> %d", s.MTU[0], s.MTU[1])
	}
	return text
}

// String gives the step on one line.
func (s AddLink) String() string {
	text := fmt.Sprintf("add %s %s on %s, mode %s", s.Kind, s.Link, s.Master.Name, s.Mode)
	if s.MAC != "" {
		text += ", mac " + s.MAC
	}
	if s.MTU != 0 {
		text += fmt.Sprintf(", mtu %d", s.MTU)
	}
	if s.BCQueueLen != 0 {
		text += fmt.Sprintf(", bcqueuelen %d", s.BCQueueLen)
	}
	return text
}

// String gives the step on one line.
func (s DelLink) String() string {
	if s.MAC == "" {
		return fmt.Sprintf("del %s %s", s.Kind, s.Link)
	}
	return fmt.Sprintf("del %s %s, mac %s", s.Kind, s.Link, s.MAC)
}

// String gives the step on one line.
func (s SetVF) String() string {
	return fmt.Sprintf("set %s of vf %d of %s: %s -> %s", s.What, s.Number, s.PF, s.From.of(s.What), s.To.of(s.What))
}

// of shows one setting.
func (v VFState) of(what VFSetting) string {
	onOff := map[bool]string{true: "on", false: "off"}
	switch what {
	case VFVLAN:
		return fmt.Sprintf("%d qos %d proto %s", v.VLAN, v.QoS, v.Proto)
	case VFMAC:
		return v.MAC
	case VFRate:
		return fmt.Sprintf("%d to %d Mb/s", v.MinTxRate, v.MaxTxRate)
	case VFSpoofchk:
		return onOff[v.Spoofchk]
	case VFTrust:
		return onOff[v.Trust]
	case VFLinkState:
		return v.LinkState
	}
	return ""
}

// String gives the step on one line.
func (s ResetFunction) String() string { return "reset function " + s.Device.String() }

// String gives the step on one line.
func (s MoveRDMA) String() string {
	if s.Soft != "" {
		return fmt.Sprintf("move soft rdma %s %s -> %s", s.Soft, s.From, s.To)
	}
	return fmt.Sprintf("move rdma %s (index %d) %s -> %s", s.Name, s.Index, s.From, s.To)
}

// String gives the step on one line.
func (s RenameRDMA) String() string {
	return fmt.Sprintf("rename rdma (index %d) in %s %s -> %s", s.Index, s.NS, s.From, s.To)
}

// String gives the step on one line.
func (s AddSoftRoCE) String() string { return fmt.Sprintf("add soft rdma %s on %s", s.Name, s.Link) }

// String gives the step on one line.
func (s DelSoftRoCE) String() string { return "del soft rdma " + s.Name }

// String gives the step on one line.
func (s SetSysctl) String() string { return fmt.Sprintf("set sysctl in %s %s = %s", s.NS, s.Key, s.To) }

// String gives the step on one line.
func (s SetMAC) String() string { return fmt.Sprintf("set mac of %s %s -> %s", s.Link, s.From, s.To) }

// String gives the step on one line.
func (s SetAltName) String() string {
	if s.To {
		return fmt.Sprintf("give %s the alternative name %s", s.Link, s.Name)
	}
	return fmt.Sprintf("take the alternative name %s from %s", s.Name, s.Link)
}

// String gives the step on one line.
func (s SetTraits) String() string {
	return fmt.Sprintf("set traits of %s: %s", s.Link, s.From.Changes(s.To))
}

// String gives the step on one line.
func (s SetUp) String() string {
	if s.To {
		return fmt.Sprintf("set %s up", s.Link)
	}
	return fmt.Sprintf("set %s down", s.Link)
}

// String gives the step on one line.
func (s AddAddr) String() string { return fmt.Sprintf("add address %s to %s", s.Addr, s.Link) }

// String gives the step on one line.
func (s DelAddr) String() string { return fmt.Sprintf("del address %s from %s", s.Addr, s.Link) }

// String gives the step on one line.
func (s AddRoute) String() string { return "add route " + route(s.Link, s.Dst, s.Via) }

// String gives the step on one line.
func (s DelRoute) String() string { return "del route " + route(s.Link, s.Dst, s.Via) }

func route(link Place, dst netip.Prefix, via netip.Addr) string {
	if !via.IsValid() {
		return fmt.Sprintf("%s on %s", dst, link)
	}
	return fmt.Sprintf("%s via %s on %s", dst, via, link)
}
