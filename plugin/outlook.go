// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// Unrecorded is a device that an attachment took from home, that was not put right since, and of which no record tells.
type Unrecorded struct {
	Out  record.Out
	Text string // what is so, and what to do, in a sentence
}

// Unrecorded lists such devices. Nothing is changed.
func (p *Plugin) Unrecorded(ctx context.Context) ([]Unrecorded, error) {
	devs, err := p.Records.Outs()
	if err != nil {
		return nil, fmt.Errorf("list devices that are out: %w", err)
	}
	var list []Unrecorded
	for _, dev := range devs {
		out, is, err := p.unclaimed(dev)
		if err != nil {
			return nil, err
		}
		if !is {
			continue
		}
		text, err := p.outlook(ctx, out)
		if err != nil {
			return nil, err
		}
		list = append(list, Unrecorded{Out: out, Text: "nothing is recorded of this attachment any more, " + text})
	}
	return list, nil
}

// unclaimed gives what is kept at a device, if neither record nor a claim that holds tells of it. Unlike for an orphan, a claim may be left
// that leads to nothing.
func (p *Plugin) unclaimed(dev bus.ID) (record.Out, bool, error) {
	out, err := p.Records.LoadOut(dev)
	if errors.Is(err, record.ErrNotFound) || errors.Is(err, record.ErrUnreadable) {
		return record.Out{}, false, nil
	}
	if err != nil {
		return record.Out{}, false, fmt.Errorf("read what is out of %s: %w", dev, err)
	}
	if _, err = p.Records.Claimant(dev); err == nil {
		return record.Out{}, false, nil
	} else if !errors.Is(err, record.ErrNotFound) && !errors.Is(err, record.ErrUnreadable) {
		return record.Out{}, false, fmt.Errorf("look up the claim on %s: %w", dev, err)
	}
	rec, err := p.Records.Load(out.Owner)
	if err == nil && rec.Device == dev || errors.Is(err, record.ErrUnreadable) {
		return record.Out{}, false, nil
	}
	// A DEL that ended meanwhile has dropped this first, and the record then.
	again, err := p.Records.LoadOut(dev)
	return out, err == nil && again.Owner == out.Owner, nil
}

// outlook says where an orphan is and who finishes.
func (p *Plugin) outlook(ctx context.Context, out record.Out) (string, error) {
	h, err := p.comeHome(ctx, out, "look")
	if err != nil {
		return "", err
	}
	defer func() { _ = h.session.Close() }()
	s, err := h.look(ctx)
	switch {
	case err != nil:
		return "", err
	case s.living != "":
		return "and its pod has the device: delete the pod", nil
	case len(s.away) > 0:
		return outcome{away: s.away, by: p.holders(ctx, h.session, h.query())}.left() + ", then " + runRepair, nil
	case s.obstacle != "":
		return s.obstacle, nil
	}
	return "and its pod is gone: " + runRepair, nil
}

// What Gone gives.
const (
	PodGone      = "pod"      // the path of the pod's network namespace is gone, or another one's
	FunctionGone = "function" // there is no such function any more, or another one at its address
)

// Gone tells of what an attachment hangs on that is no more; empty: of nothing.
func (p *Plugin) Gone(ctx context.Context, rec record.Record) (string, error) {
	s, err := p.Open(ctx, rec.NetNS.Path)
	if errors.Is(err, attach.ErrNoNetNS) || errors.Is(err, attach.ErrOwnNetNS) {
		return PodGone, nil
	}
	if err != nil {
		return "", fmt.Errorf("open network namespace %s: %w", rec.NetNS.Path, err)
	}
	defer func() { _ = s.Close() }()
	if !s.PodNS().Same(rec.NetNS) {
		return PodGone, nil
	}
	if rec.Device.IsZero() {
		return "", nil
	}
	now, err := s.Observe(ctx, attach.Query{Device: rec.Device})
	if err != nil {
		return "", fmt.Errorf("observe %s: %w", rec.Device, err)
	}
	if !now.Function.Exists || attach.Anew(rec.Before.Function, now.Function) {
		return FunctionGone, nil
	}
	return "", nil
}
