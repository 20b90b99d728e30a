// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
)

// healTries bounds how often an ADD clears a claim and finds another in its place.
const healTries = 3

// acquire takes the locks of this ADD with the device free, healing what a lost DEL, a kill or a dead namespace left on it.
// Healing takes the locks of the old attachment, so it is done with none held: attachment before device, always.
func (a *adding) acquire(ctx context.Context) (func(), error) {
	for range healTries {
		unlock, err := a.locked(ctx, a.rec.Owner, a.rec.Device, "ADD")
		if err != nil {
			return nil, err
		}
		clean, err := a.obstacle(ctx)
		if err == nil && clean == nil {
			return unlock, nil
		}
		unlock()
		if err == nil {
			err = clean(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, &netconf.Problem{
		Code: netconf.CodeTryLater, Remedy: "let the other pods that ask for this device end first; the runtime tries again by itself",
		Field: "deviceID", Found: a.rec.Device.String() + ", claimed again and again",
	}
}

// obstacle gives what clears what stands in the way; nil when nothing does.
func (a *adding) obstacle(ctx context.Context) (func(context.Context) error, error) {
	stale, err := a.stale(ctx)
	if err != nil {
		return nil, err
	}
	if stale != nil {
		return func(ctx context.Context) error { return a.heal(ctx, *stale) }, nil
	}
	out, err := a.owed()
	if err != nil || out == nil {
		return nil, err
	}
	return func(ctx context.Context) error { return a.settleOrphan(ctx, *out) }, nil
}

// stale gives the record that stands in the way and can be cleared, nil when nothing does, and an error when what stands
// there must not be touched.
func (a *adding) stale(ctx context.Context) (*record.Record, error) {
	own, err := a.Records.Load(a.rec.Owner)
	switch {
	case err == nil && own.State == record.Done:
		return nil, &netconf.Problem{
			Code: netconf.CodeInvalid, Remedy: "DEL the attachment before adding it again",
			Field: "attachment " + a.rec.Owner.String(), Found: "one that was made at " + own.Created.UTC().Format(time.RFC3339),
		}
	case err == nil:
		return &own, nil // an ADD or DEL of this very attachment was cut short
	case errors.Is(err, record.ErrUnreadable):
		a.log.WarnContext(ctx, "an unreadable record of this attachment is replaced", "error", err.Error())
	case !errors.Is(err, record.ErrNotFound):
		return nil, fmt.Errorf("read the record of %s: %w", a.rec.Owner, err)
	}
	if a.rec.Device.IsZero() {
		return nil, nil //nolint:nilnil // what stays at home has no owner
	}
	holder, err := a.Records.Claimant(a.rec.Device)
	switch {
	case errors.Is(err, record.ErrNotFound) && !errors.Is(err, record.ErrStale), err == nil && holder == a.rec.Owner:
		return nil, nil //nolint:nilnil // nothing stands in the way
	case err != nil && !errors.Is(err, record.ErrNotFound):
		return nil, fmt.Errorf("look up the claim on %s: %w", a.rec.Device, err)
	}
	rec, err := a.Records.Load(holder)
	switch {
	case err == nil && rec.Device != a.rec.Device:
		return nil, nil //nolint:nilnil // a claim that its owner has no use for is replaced
	case err != nil:
		return a.lost(ctx, holder, err)
	}
	return &rec, a.alive(ctx, rec)
}

// lost makes a record for a claim whose own is gone or cannot be read: names kept apart tell what the device was like at home.
// Nobody can tell whether such an owner lives but by where the device is; a record that cannot be read may be a newer
// program's, and is not touched while its device is out.
func (a *adding) lost(ctx context.Context, holder attach.Owner, cause error) (*record.Record, error) {
	gone := errors.Is(cause, record.ErrNotFound)
	if !gone && !errors.Is(cause, record.ErrUnreadable) {
		return nil, fmt.Errorf("read the record of %s: %w", holder, cause)
	}
	a.log.WarnContext(ctx, "the record of the device's last owner cannot be read", "of", holder.String(), "error", cause.Error())
	facts, err := a.observe(ctx)
	if err != nil {
		return nil, err
	}
	// The link of a chained attachment is where the plugin before has put it.
	home := a.conf.Kind == netconf.KindChained || facts.Link != nil && facts.Link.NS == attach.Host
	home = home && (facts.RDMA == nil || facts.RDMA.NS == attach.Host)
	rec := record.Record{Owner: holder, Device: a.rec.Device, Soft: attach.SoftName(holder)}
	out, before, err := a.kept(holder, a.rec.Device)
	switch {
	case err != nil:
		return nil, err
	case out != nil:
		rec = out.Record()
	case before != nil:
		rec.Before = *before
	}
	if !home && gone && out != nil {
		return &rec, a.alive(ctx, rec)
	}
	if !home && gone {
		return nil, nil //nolint:nilnil // Guard says where the device is
	}
	if !home {
		return nil, a.unreadable(holder, cause)
	}
	return &rec, nil
}

// unreadable refuses a device that is out and whose record cannot be read.
func (a *adding) unreadable(holder attach.Owner, cause error) error {
	p := &netconf.Problem{
		Code: netconf.CodeTryLater, Remedy: "delete the pod that has the device, or ask for another device", Field: "deviceID",
		Found: fmt.Sprintf("%s, owned by container %s, interface %s, whose record cannot be read", a.rec.Device, holder.ContainerID, holder.IfName),
		Err:   cause,
	}
	known := (*record.UnreadableError)(nil)
	if !errors.As(cause, &known) || known.Owner != holder {
		return p
	}
	p.Remedy, p.Err = known.Remedy()+", or ask for another device", nil
	if known.Pod.Name != "" {
		p.Found = fmt.Sprintf("%s, owned by pod %s (container %s, interface %s), whose record cannot be read",
			a.rec.Device, known.Pod, holder.ContainerID, holder.IfName)
	}
	p.Found += fmt.Sprintf(" (%s: %s)", known.File, known.Reason)
	return p
}

// alive fails when the namespace of rec still lives: its device is in use, or an ADD of it is under way.
func (a *adding) alive(ctx context.Context, rec record.Record) error {
	if rec.State == record.Deleting || rec.State == record.Returning {
		return nil // its DEL came; only the way home was cut short
	}
	if living, err := a.lives(ctx, rec); err != nil || !living {
		return err
	}
	return &netconf.Problem{
		Code:   netconf.CodeTryLater,
		Remedy: "delete the pod that has the device, or ask for another device",
		Field:  "deviceID",
		Found: fmt.Sprintf("%s, owned by pod %s (container %s, interface %s, network %s)",
			rec.Device, rec.Pod, rec.Owner.ContainerID, rec.Owner.IfName, rec.Network),
	}
}

// lives tells whether the namespace of rec is still there. A path alone says nothing: it may be another pod's by now.
func (a *adding) lives(ctx context.Context, rec record.Record) (bool, error) {
	s, err := a.Open(ctx, rec.NetNS.Path)
	if errors.Is(err, attach.ErrNoNetNS) || errors.Is(err, attach.ErrOwnNetNS) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open the network namespace of %s: %w", rec.Owner, err)
	}
	defer func() { _ = s.Close() }()
	return s.PodNS().Same(rec.NetNS), nil
}

// heal clears a stale attachment by its own record's facts, never by what is seen now: names change on every way home.
func (a *adding) heal(ctx context.Context, rec record.Record) error {
	whole := rec.Before.Link != nil && rec.Before.Link.NS == attach.Host
	if a.conf.Kind == netconf.KindChained && whole && rec.Device == a.rec.Device && !rec.NetNS.Same(a.session.PodNS()) {
		// The plugin before has taken the netdev from home since, and what the PF holds for it is that plugin's too.
		rec.Before.Link, rec.Before.VF, rec.VF, rec.FLR = nil, nil, nil, false
	}
	out, err := a.release(ctx, rec, rec.NetNS.Path, "healing by ADD")
	if len(out.away) > 0 {
		return &netconf.Problem{
			Code:   netconf.CodeTryLater,
			Remedy: endHolders(out.by),
			Field:  "deviceID",
			Found: fmt.Sprintf("%s, last owned by pod %s (container %s): away is %s",
				rec.Device, rec.Pod, rec.Owner.ContainerID, out.stillAway()),
			Err: err,
		}
	}
	if err == nil {
		a.log.InfoContext(ctx, "healed a stale attachment", "of", rec.Owner.String(), "state", string(rec.State))
		return nil
	}
	holder, claimErr := a.Records.Claimant(rec.Device)
	// What this very attachment still owes cannot be left to another: there is one record for both.
	if rec.Owner != a.rec.Owner && (errors.Is(claimErr, record.ErrNotFound) || holder != rec.Owner) {
		a.log.WarnContext(ctx, "the device is free, something else of its last owner is not", "of", rec.Owner.String(), "error", err.Error())
		return nil
	}
	return fmt.Errorf("clear the attachment %s of pod %s: %w", rec.Owner, rec.Pod, err)
}

// homed keeps the names that a device has at home, and gives the facts with them. What stays at home, and a link that another
// plugin took from there, have none to keep.
func (a *adding) homed(facts attach.Facts) (attach.Facts, error) {
	home := facts.Function.Userspace() || facts.Link != nil && facts.Link.NS == attach.Host
	if !home || a.rec.Device.IsZero() {
		return facts, nil
	}
	if err := a.Records.SaveHome(a.rec.Device, facts); err != nil {
		return facts, fmt.Errorf("keep the home names of %s: %w", a.rec.Device, err)
	}
	kept, err := a.Records.LoadHome(a.rec.Device)
	if err != nil {
		return facts, fmt.Errorf("read the home names of %s: %w", a.rec.Device, err)
	}
	if a.left != nil {
		facts = attach.Named(facts, a.left.Before) // as far as its names are not back because others have them
	}
	return attach.Homed(facts, kept), nil
}
