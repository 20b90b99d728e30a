// SPDX-License-Identifier: Apache-2.0

package netconf

import (
	"fmt"
	"strings"
	"time"
)

// Defaults of the sections "rdma" and "hint".
const (
	DefaultWait   = time.Second
	DefaultVolume = "podfabric"
	DefaultNCCL   = "2.21"
)

func (p *parser) rdma() error {
	v := p.root.get("rdma")
	r := RDMA{Wait: DefaultWait}
	var err error
	if r.Mode, err = choice(v.get("mode"), "rdma.mode", RDMAAuto, RDMAMove, RDMAShare, RDMAOff); err != nil {
		return err
	}
	r.Require, err = choice(v.get("require"), "rdma.require", RequireDefault, RequireActive, RequireGID, RequireNo)
	if err != nil {
		return err
	}
	if soft := v.get("softRoCE"); soft != nil {
		r.SoftRoCE = soft.yes
	}
	if wait := v.get("wait"); wait != nil {
		if r.Wait, err = duration(wait, "rdma.wait"); err != nil {
			return err
		}
		if r.Wait > p.node.deadline() {
			return invalid(fmt.Sprintf("set rdma.wait below the node's deadline of %s, or raise \"deadline\" in %s",
				p.node.deadline(), NodePath), "rdma.wait", wait, "at most "+p.node.deadline().String())
		}
	}
	// A default that the node's short deadline forbids is not the author's mistake.
	r.Wait = min(r.Wait, p.node.deadline())
	p.conf.RDMA = r
	return contradictions(r, v, p.conf.Kind)
}

// contradictions refuses settings of "rdma" that cannot all hold.
func contradictions(r RDMA, v *value, kind Kind) error {
	soft := `"auto" or "move"`
	if kind.shared() {
		soft = `"auto"`
	}
	switch {
	case r.Mode == RDMAMove && kind.shared():
		return invalid(fmt.Sprintf(`set rdma.mode to "auto" or "share", or use a VF: the RDMA device below a %s is its master's and `+
			"never moves", kind), "rdma.mode", v.get("mode"), `"auto", "share" or "off"`)
	case r.SoftRoCE && (r.Mode == RDMAOff || r.Mode == RDMAShare):
		return invalid(`set rdma.mode to `+soft+`, or remove rdma.softRoCE: a soft RoCE device is made for the pod and `+
			"moved into it", "rdma.softRoCE", v.get("softRoCE"), `false with "mode": "`+string(r.Mode)+`"`)
	case r.Mode == RDMAOff && (r.Require == RequireActive || r.Require == RequireGID):
		return invalid(`remove rdma.require, or rdma.mode "off": what is not looked at cannot be required`,
			"rdma.require", v.get("require"), `"no" with "mode": "off"`)
	}
	return nil
}

func (p *parser) hint() error {
	v := p.root.get("hint")
	h := Hint{Volume: DefaultVolume, NCCL: DefaultNCCL}
	var err error
	if h.Role, err = choice(v.get("role"), "hint.role", RoleDefault, RoleCompute, RoleOther); err != nil {
		return err
	}
	if h.NoRight, err = choice(v.get("noRight"), "hint.noRight", NoRightWarn, NoRightFail); err != nil {
		return err
	}
	if volume := v.get("volume"); volume != nil {
		if h.Volume = volume.text; !dnsLabel(h.Volume) {
			return invalid("set hint.volume to the name of a volume of the pod", "hint.volume", volume,
				"at most 63 lower-case letters, digits and -")
		}
	}
	if oldest := v.get("nccl"); oldest != nil {
		if h.NCCL, err = ncclVersion(oldest); err != nil {
			return err
		}
	}
	if tc := v.get("trafficClass"); tc != nil {
		n, err := integer(tc, "hint.trafficClass", 0, 255)
		if err != nil {
			return err
		}
		h.TrafficClass = &n
	}
	h.Require = v.get("require") != nil && v.get("require").yes
	h.FailClosed = v.get("failClosed") != nil && v.get("failClosed").yes
	p.conf.Hint = h
	return nil
}

// dnsLabel is RFC 1123's label, which Kubernetes asks of a volume's name.
func dnsLabel(s string) bool {
	for i := range len(s) {
		c := s[i]
		edge := i == 0 || i == len(s)-1
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && (c != '-' || edge) {
			return false
		}
	}
	return s != "" && len(s) <= 63
}

// ncclVersion reads ">=2.21" or ">=2.21.5" and gives it without the sign.
func ncclVersion(v *value) (string, error) {
	version, ok := strings.CutPrefix(v.text, ">=")
	parts := strings.Split(version, ".")
	ok = ok && len(parts) >= 2 && len(parts) <= 3 && parts[0] == "2"
	for _, part := range parts {
		ok = ok && isNumber(part) && len(part) <= 3 && (part == "0" || part[0] != '0')
	}
	if !ok {
		return "", invalid("write hint.nccl as the oldest NCCL that must read the hint right", "hint.nccl", v, `a text as ">=2.21"`)
	}
	return version, nil
}
