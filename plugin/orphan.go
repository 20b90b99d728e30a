// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// orphan gives what is known of a device that an attachment took from home, that was never put right, and of which neither claim nor
// record tells any more; false when there is no such thing to say of it. Devices that another program gave to a pod are none:
// only podfabric writes record.Out, and takes it back when the device is home as it was.
func (p *Plugin) orphan(dev bus.ID) (record.Out, bool, error) {
	out, is, err := p.taken(dev)
	if err != nil || !is {
		return record.Out{}, false, err
	}
	if _, err = p.Records.Claimant(dev); errors.Is(err, record.ErrStale) {
		return record.Out{}, false, nil // another finding
	}
	return out, true, nil
}

// taken is orphan where a claim may be left that leads to no record.
func (p *Plugin) taken(dev bus.ID) (record.Out, bool, error) {
	out, err := p.Records.LoadOut(dev)
	if errors.Is(err, record.ErrNotFound) || errors.Is(err, record.ErrUnreadable) {
		return record.Out{}, false, nil
	}
	if err != nil {
		return record.Out{}, false, fmt.Errorf("read what is out of %s: %w", dev, err)
	}
	holder, err := p.Records.Claimant(dev)
	if !errors.Is(err, record.ErrNotFound) || errors.Is(err, record.ErrStale) && holder != out.Owner {
		return record.Out{}, false, nil // it has an owner
	}
	rec, err := p.Records.Load(out.Owner)
	if err == nil && rec.Device == dev || errors.Is(err, record.ErrUnreadable) {
		return record.Out{}, false, nil // the record is to tell
	}
	return out, true, nil
}

// homecoming is an orphan on its way home.
type homecoming struct {
	*Plugin
	out     record.Out
	verb    string
	session Session
}

// situation is what was seen of an orphan and what can be done.
type situation struct {
	steps []attach.Step
	away  []string // what is in no namespace at hand
	// obstacle is why it cannot be put right now: the node uses it.
	obstacle string
	living   string // why a pod may still use it; empty: nobody does
}

// comeHome opens the machine as the orphan's attachment knew it.
func (p *Plugin) comeHome(ctx context.Context, out record.Out, verb string) (*homecoming, error) {
	s, err := p.reopen(ctx, record.Record{NetNS: out.NetNS}, "")
	if err != nil {
		return nil, err
	}
	return &homecoming{Plugin: p, out: out, verb: verb, session: s}, nil
}

func (h *homecoming) query() attach.Query {
	return attach.Query{Device: h.out.Device, VF: h.out.Given.VF != nil || h.out.Before.VF != nil}
}

// look judges what is seen. What is in the namespace of a pod that lives is the pod's, but for the half of a device that a kill left
// there while nobody is inside.
func (h *homecoming) look(ctx context.Context) (situation, error) {
	now, err := h.session.Observe(ctx, h.query())
	if err != nil {
		return situation{}, fmt.Errorf("observe %s: %w", h.out.Device, err)
	}
	before, given := h.out.Before, h.out.Given
	var s situation
	s.away = attach.Away(before, now)
	if !h.session.PodNS().IsZero() && (attach.Inside(before, now) || len(s.away) > 0) {
		if !attach.Halved(given, now) || h.inhabited(ctx) {
			s.living = fmt.Sprintf("pod %s, whose network namespace %s lives, has it", h.out.Pod, h.out.NetNS.Path)
			return s, nil
		}
	}
	s.steps = attach.Owed(before, given, now)
	if len(s.steps) > 0 && now.Link != nil && now.Link.NS == attach.Host && len(now.Link.InUse) > 0 {
		s.obstacle = "the node uses it: " + strings.Join(now.Link.InUse, ", ")
	} else if len(s.steps) == 0 && attach.Misnamed(before, now) {
		s.obstacle = strings.Join(attach.Notes(before, now), "; ")
	}
	return s, nil
}

// inhabited tells whether a process lives in the pod's namespace. What cannot be found out is taken for so.
func (h *homecoming) inhabited(ctx context.Context) bool {
	home, err := h.Open(ctx, "")
	if err != nil {
		return true
	}
	defer func() { _ = home.Close() }()
	held := h.holders(ctx, home, h.query())
	for _, x := range held {
		if x.Living || !x.NS.Same(h.out.NetNS) {
			return true
		}
	}
	return len(held) == 0
}

// errLiving: the pod that an orphan belongs to lives.
var errLiving = errors.New("its pod lives")

// run brings the orphan home as it was, and waits, without a lock, for what is on its way. What is away after that is in the outcome.
func (h *homecoming) run(ctx context.Context) (outcome, error) {
	deadline := h.Now().Add(homeWait)
	for {
		away, err := h.pass(ctx)
		if err != nil || len(away) == 0 {
			return outcome{}, err
		}
		if !h.Now().Before(deadline) || pause(ctx) != nil {
			return outcome{away: away, by: h.holders(ctx, h.session, h.query())}, nil //nolint:nilerr // the time is up
		}
	}
}

// pass does what can be done at once, under the lock of the device, and gives what is away.
func (h *homecoming) pass(ctx context.Context) ([]string, error) {
	unlock, err := h.lockDevice(ctx, h.out.Device, h.verb)
	if err != nil {
		return nil, err
	}
	defer unlock()
	out, is, err := h.orphan(h.out.Device)
	if err != nil {
		return nil, err
	}
	if !is || out.Owner != h.out.Owner {
		return nil, errSettled
	}
	// It may come home between a look and the steps that follow from it, and needs others then.
	for range orphanTries {
		s, err := h.look(ctx)
		switch {
		case err != nil:
			return nil, err
		case s.living != "":
			return nil, fmt.Errorf("%w: %s", errLiving, s.living)
		case s.obstacle != "":
			return nil, nil // what the node uses stays as the node has it
		case len(s.steps) == 0 && len(s.away) > 0:
			return s.away, nil
		case len(s.steps) == 0:
			return nil, h.Records.DropOut(h.out.Owner, h.out.Device)
		}
		k := &stepper{Session: h.session, plugin: h.Plugin, log: h.Log, holder: h.verb, device: h.out.Device}
		if err = attach.RunAll(ctx, k, s.steps); err != nil {
			return nil, fmt.Errorf("bring %s home: %w", h.out.Device, err)
		}
	}
	return nil, fmt.Errorf("bring %s home: it is never as it was left: %w", h.out.Device, attach.ErrConflict)
}

// orphanTries bounds how often pass looks and acts.
const orphanTries = 4

// owed gives the orphan that the device of this ADD is; nil: it is none, or was put right as far as that goes already, or the plugin before
// has taken it from home since.
func (a *adding) owed() (*record.Out, error) {
	if a.rec.Device.IsZero() || a.left != nil || a.conf.Kind == netconf.KindChained {
		return nil, nil //nolint:nilnil // nothing is owed
	}
	out, is, err := a.orphan(a.rec.Device)
	if err != nil || !is {
		return nil, err
	}
	return &out, nil
}

// settleOrphan puts the device of an ADD right first when it is an orphan.
func (a *adding) settleOrphan(ctx context.Context, out record.Out) error {
	a.log.WarnContext(ctx, "nothing is recorded of the device's last owner; putting the device right", "of", out.Owner.String(), "ofPod", out.Pod.String())
	a.left = &out
	h, err := a.comeHome(ctx, out, "ADD "+a.rec.Owner.String())
	if err != nil {
		return err
	}
	defer func() { _ = h.session.Close() }()
	found := fmt.Sprintf("%s, last owned by pod %s (container %s), of which nothing is recorded", out.Device, out.Pod, out.Owner.ContainerID)
	came, err := h.run(ctx)
	switch {
	case errors.Is(err, errLiving):
		return &netconf.Problem{
			Code: netconf.CodeTryLater, Remedy: "delete the pod that has the device, or ask for another device", Field: "deviceID", Found: found, Err: err,
		}
	case errors.Is(err, errSettled):
		return nil
	case err != nil:
		return err
	case len(came.away) > 0:
		return &netconf.Problem{
			Code: netconf.CodeTryLater, Remedy: endHolders(came.by), Field: "deviceID", Found: found + ": away is " + came.stillAway(),
		}
	}
	return nil
}

// lines words steps for a finding.
func lines(steps []attach.Step) string {
	out := make([]string, 0, len(steps))
	for _, s := range steps {
		out = append(out, s.String())
	}
	return strings.Join(out, "; ")
}
