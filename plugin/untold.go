// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"strings"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// warnSettings says what the PF holds for the VF of an attachment of which nothing tells what it set: the next pod would have it, too.
func (p *Plugin) warnSettings(ctx context.Context, rec record.Record) {
	if held, clearing := p.settings(ctx, rec.Device, nil); held != "" {
		p.logger(rec).WarnContext(ctx, held+"; "+clearing)
	}
}

// settings says what the PF holds for a VF of which nobody knows who set it, and how to clear that; empty: nothing that is known, or
// what it had at home, which is nil where nothing tells.
func (p *Plugin) settings(ctx context.Context, dev bus.ID, home *attach.VFState) (text, remedy string) { //nolint:nonamedreturns // tells them apart
	s, err := p.Open(ctx, "")
	if err != nil {
		return "", "" // whoever brings the device home meets it, too
	}
	defer func() { _ = s.Close() }()
	now, err := s.Observe(ctx, attach.Query{Device: dev, VF: true})
	if err != nil || now.VF == nil || home != nil && *home == *now.VF {
		return "", ""
	}
	held, clearing := unusual(*now.VF)
	if len(held) == 0 {
		return "", ""
	}
	return fmt.Sprintf("the PF holds %s for this VF, and nothing tells whether the pod's network set that, so it stays, and "+
			"the next pod has it unless its network says otherwise", strings.Join(held, ", ")),
		fmt.Sprintf("clear it by ip link set %s vf %d %s, or set vf.baseline to reset", now.Function.PFLink, now.Function.Number, strings.Join(clearing, " "))
}

// unusual gives in words what of a VF's settings is not as a driver begins with, and what ip(8) has for its clearing.
func unusual(vf attach.VFState) ([]string, []string) {
	var held, clearing []string
	for _, s := range []struct {
		is       bool
		held     string
		clearing string
	}{
		{vf.VLAN != 0, fmt.Sprintf("VLAN %d", vf.VLAN), "vlan 0"},
		{vf.Trust, "trust on", "trust off"},
		{vf.MinTxRate != 0, fmt.Sprintf("min_tx_rate %d", vf.MinTxRate), "min_tx_rate 0"},
		{vf.MaxTxRate != 0, fmt.Sprintf("max_tx_rate %d", vf.MaxTxRate), "max_tx_rate 0"},
		{vf.LinkState != "" && vf.LinkState != "auto", "link state " + vf.LinkState, "state auto"},
	} {
		if s.is {
			held, clearing = append(held, s.held), append(clearing, s.clearing)
		}
	}
	return held, clearing
}
