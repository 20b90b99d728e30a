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

// claims removes those that lead to no attachment.
func (r *repairing) claims(ctx context.Context) error {
	devs, err := r.Records.Claims()
	if err != nil {
		return fmt.Errorf("list claims: %w", err)
	}
	var failed []error
	for _, dev := range devs {
		f := Finding{Kind: FindClaim, Object: "device " + dev.String(), Action: "remove the claim"}
		_, claimErr := r.Records.Claimant(dev)
		unreadable := (*record.UnreadableError)(nil)
		switch {
		case errors.As(claimErr, &unreadable):
			f.Action = ""
			f.Why = unreadable.Reason
			r.leave(f, "podfabric does not remove what it did not make: "+unreadable.File)
		case errors.Is(claimErr, record.ErrStale):
			f.Why = "its claim leads to no attachment of it"
			failed = append(failed, r.disused(ctx, f, dev))
		case claimErr != nil && !errors.Is(claimErr, record.ErrNotFound):
			failed = append(failed, claimErr)
		}
	}
	return errors.Join(failed...)
}

// disused removes a claim that leads to no attachment, unless a pod may have the device all the same.
func (r *repairing) disused(ctx context.Context, f Finding, dev bus.ID) error {
	why, err := r.claimed(ctx, dev)
	switch {
	case err != nil:
		return err
	case why != "":
		r.spare(f, why)
	default:
		r.settle(ctx, f, func(ctx context.Context) (string, error) { return "", r.unclaim(ctx, dev) })
		r.unsettled(ctx, dev)
	}
	return nil
}

// unsettled notes what a VF has of an attachment of which the claim alone was left, and which nothing puts back.
func (r *repairing) unsettled(ctx context.Context, dev bus.ID) {
	if _, err := r.Records.LoadOut(dev); err == nil {
		return // that is put right
	}
	if _, err := r.Records.Claimant(dev); err == nil {
		return // a new owner has it
	}
	home, _ := r.Records.LoadHome(dev)
	if why, remedy := r.settings(ctx, dev, home.VF); why != "" {
		r.found = append(r.found, Finding{Kind: FindClaim, Object: "device " + dev.String(), Why: why, Outcome: Noted, Detail: remedy})
	}
}

// unclaim removes a stale claim. An ADD writes record and claim under the lock of the device.
func (r *repairing) unclaim(ctx context.Context, dev bus.ID) error {
	unlock, err := r.lockDevice(ctx, dev, repairVerb)
	if err != nil {
		return err
	}
	defer unlock()
	holder, err := r.Records.Claimant(dev)
	switch {
	case errors.Is(err, record.ErrStale):
		return r.Records.Unclaim(holder, dev)
	case err == nil || errors.Is(err, record.ErrNotFound):
		return errSettled
	}
	return fmt.Errorf("look up the claim on %s: %w", dev, err)
}

// claimed says why a claim without a record must stay: its device is in a pod that lives, or away from home. Only while it is looked at
// under the lock of the device do places and claims agree.
func (r *repairing) claimed(ctx context.Context, dev bus.ID) (string, error) {
	h, s, err := r.inspect(ctx, dev)
	if err != nil {
		return "", err
	}
	if h != nil {
		why := ""
		if s.living != "" {
			why = s.living + deleteIt
		}
		return why, h.session.Close()
	}
	astray, err := r.elsewhere(ctx)
	if err != nil {
		return "", err
	}
	for _, a := range astray {
		if a.Device == dev {
			return "its pod may live: " + where(a) + deleteIt, nil
		}
	}
	holder, err := r.Records.Claimant(dev)
	if !errors.Is(err, record.ErrStale) {
		return "", nil // for unclaim to see
	}
	now, err := r.host.Observe(ctx, attach.Query{Device: dev})
	if err != nil {
		return "", fmt.Errorf("observe %s: %w", dev, err)
	}
	if now.Function.Userspace() { // it is in no namespace
		return r.survivor(ctx, holder)
	}
	return "", nil
}
