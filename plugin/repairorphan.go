// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// devices brings home, or puts right at home, what an attachment took from there and of which no record tells any more.
func (r *repairing) devices(ctx context.Context) error {
	devs, err := r.Records.Outs()
	if err != nil {
		return fmt.Errorf("list devices that are out: %w", err)
	}
	var failed []error
	for _, dev := range devs {
		if err := r.device(ctx, dev); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

func (r *repairing) device(ctx context.Context, dev bus.ID) error {
	h, s, err := r.inspect(ctx, dev)
	if err != nil || h == nil {
		return err
	}
	defer func() { _ = h.session.Close() }()
	out := h.out
	f := Finding{Kind: FindDevice, Object: "device " + out.Device.String()}
	was := fmt.Sprintf("taken from home for pod %s (container %s, interface %s), of which nothing is recorded any more",
		out.Pod, out.Owner.ContainerID, out.Owner.IfName)
	switch {
	case s.living != "":
		f.Why = was
		r.leave(f, s.living+"; delete the pod: the device comes home with its end, and the next ADD or repair puts it right")
	case len(s.away) > 0:
		held := r.holders(ctx, h.session, h.query())
		f.Why = was + "; away is " + outcome{away: s.away, by: held}.stillAway()
		f.Action = "wait for it and put it right"
		if r.dry {
			f.Detail = once(held)
		}
		r.settle(ctx, f, func(ctx context.Context) (string, error) { return r.bringHome(ctx, h) })
	case s.obstacle != "":
		f.Why = was
		r.leave(f, s.obstacle)
	case len(s.steps) > 0:
		f.Why, f.Action = was, lines(s.steps)
		r.settle(ctx, f, func(ctx context.Context) (string, error) { return r.bringHome(ctx, h) })
	case !r.dry:
		// As it was, or no more: only what was kept of it is left.
		if _, err = h.run(ctx); err != nil && !errors.Is(err, errSettled) {
			return err
		}
	}
	return nil
}

// inspect looks at an orphan under its lock, since while an ADD or DEL is at work what is kept of a device and where it is do not
// agree; nil: it is none.
func (r *repairing) inspect(ctx context.Context, dev bus.ID) (*homecoming, situation, error) {
	ctx, cancel := context.WithTimeout(ctx, r.node.Deadline)
	defer cancel()
	unlock, err := r.lockDevice(ctx, dev, repairVerb)
	if err != nil {
		return nil, situation{}, err
	}
	defer unlock()
	out, is, err := r.taken(dev)
	if err != nil || !is {
		return nil, situation{}, err
	}
	h, err := r.comeHome(ctx, out, repairVerb)
	if err != nil {
		return nil, situation{}, err
	}
	s, err := h.look(ctx)
	if err != nil {
		return nil, situation{}, errors.Join(err, h.session.Close())
	}
	return h, s, nil
}

// bringHome is what a finding about an orphan asks for.
func (r *repairing) bringHome(ctx context.Context, h *homecoming) (string, error) {
	out, err := h.run(ctx)
	switch {
	case errors.Is(err, errLiving):
		return err.Error(), nil
	case err != nil:
		return "", err
	case len(out.away) == 0:
		return "", nil
	}
	return out.left(), nil
}

// strangers reports devices in other namespaces that podfabric knows nothing of: another program has put them there, or podfabric
// has and somebody emptied its state folder. Nobody can tell which, so that nothing is done.
func (r *repairing) strangers(ctx context.Context) error {
	astray, err := r.machine.Elsewhere(ctx)
	if err != nil {
		return fmt.Errorf("look for devices in other network namespaces: %w", err)
	}
	for _, a := range astray {
		if known, err := r.known(ctx, a.Device); err != nil {
			return err
		} else if known {
			continue
		}
		r.found = append(r.found, Finding{
			Kind: FindDevice, Object: "device " + a.Device.String(), Outcome: Noted,
			Why: where(a) + ", and nothing is recorded of it",
			Detail: "another program may have given it to a pod; if podfabric did and its state folder was emptied since, " +
				"delete the pod, and the device comes home with its end",
		})
	}
	return nil
}

// known tells whether podfabric has anything to say of a device, or it is home by now. What it says is in other findings, if there is
// anything wrong. While an ADD or DEL is at work, records and places do not agree, so this is asked under the device's lock.
func (r *repairing) known(ctx context.Context, dev bus.ID) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, r.node.Deadline)
	defer cancel()
	unlock, err := r.lockDevice(ctx, dev, repairVerb)
	if err != nil {
		return false, err
	}
	defer unlock()
	records, errs := r.Records.List()
	if len(errs) > 0 || slices.ContainsFunc(records, func(rec record.Record) bool { return rec.Device == dev }) {
		return true, nil // one that cannot be read may be of this device
	}
	if _, err = r.Records.LoadOut(dev); !errors.Is(err, record.ErrNotFound) {
		return true, nil
	}
	if _, err = r.Records.Claimant(dev); !errors.Is(err, record.ErrNotFound) || errors.Is(err, record.ErrStale) {
		return true, nil // a stale one is a finding
	}
	now, err := r.host.Observe(ctx, attach.Query{Device: dev})
	if err != nil {
		return false, fmt.Errorf("observe %s: %w", dev, err)
	}
	return !attach.Hidden(now), nil
}

// where lists what of a function is where.
func where(a attach.Astray) string {
	var all []string
	for _, h := range a.Held {
		all = append(all, h.String())
	}
	return strings.Join(all, ", ")
}
