// SPDX-License-Identifier: Apache-2.0

package netconf

import (
	"encoding/hex"
	"strings"
)

const rightMAC = `a unicast address as "02:00:5e:10:00:01"`

// mac reads an Ethernet address in any of its usual forms (aa:bb:cc:dd:ee:ff, AA-BB-CC-DD-EE-FF, aabb.ccdd.eeff) and gives the
// first of them. Zeros stand for "none" with the kernel, and a multicast address is no one's own.
func mac(text, field string) (string, error) {
	problem := &Problem{Code: CodeInvalid, Remedy: "write a MAC address into " + field, Field: field, Found: quote(text), Right: rightMAC}
	digits := ""
	for _, form := range []struct {
		sep  string
		size int
	}{{":", 2}, {"-", 2}, {".", 4}} {
		parts := strings.Split(text, form.sep)
		ok := len(parts)*form.size == 12
		for _, part := range parts {
			ok = ok && len(part) == form.size
		}
		if ok {
			digits = strings.Join(parts, "")
		}
	}
	octets, err := hex.DecodeString(digits)
	if err != nil || len(octets) != 6 {
		return "", problem
	}
	switch {
	case octets[0]&1 != 0:
		problem.Remedy = "write a unicast MAC address into " + field + ": this one is of a group"
		return "", problem
	case strings.Trim(digits, "0") == "":
		problem.Remedy = "write a MAC address into " + field + ", or remove it: zeros are none"
		return "", problem
	}
	var out []string
	for _, o := range octets {
		out = append(out, hex.EncodeToString([]byte{o}))
	}
	return strings.Join(out, ":"), nil
}

// mac settles the MAC of the pod's interface, by the peers' precedence: the configuration, above it CNI_ARGS, above that
// runtimeConfig. The rules of the sources have let the last two through.
func (p *parser) mac() error {
	asked := p.podMAC
	if v := p.said("mac"); v != nil {
		own, err := mac(v.text, "mac")
		if err != nil {
			return err
		}
		p.conf.MAC = own
		if asked.text == "" {
			asked = wanted{"mac", v.text}
		}
	}
	if asked.text == "" {
		return nil
	}
	if p.conf.Macvlan.Mode == MacvlanPassthru {
		from := ""
		if asked == p.podMAC {
			from = " from the pod's annotation"
		}
		return &Problem{
			Code: CodeInvalid, Remedy: "remove the MAC" + from + ": a macvlan in mode passthru has the MAC of its master",
			Field: asked.field, Found: quote(asked.text), Right: `none, or another "mode"`,
		}
	}
	var err error
	p.conf.MAC, err = mac(asked.text, asked.field)
	return err
}
