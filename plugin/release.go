// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/delegate"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// release brings home what a record says and drops the record. It is the one way back: of a failed ADD, of DEL, of GC, of
// healing and of repair. It may be cut short anywhere and run again. netns is the path the caller knows the pod's namespace
// by; it may be empty, gone, or by now lead to another namespace.
//
// A device that is still away after homeWait is no error: the record stays in state returning, and whoever comes next
// finishes (design §9.2).
func (p *Plugin) release(ctx context.Context, rec record.Record, netns, verb string) (outcome, error) {
	log := p.logger(rec).With("verb", verb)
	s, err := p.reopen(ctx, rec, netns)
	if err != nil {
		return outcome{}, err
	}
	defer func() { _ = s.Close() }()

	r := &releasing{Plugin: p, rec: rec, verb: verb, log: log, session: s}
	if err := r.mark(ctx, record.Deleting); errors.Is(err, record.ErrUnwritable) {
		// Bringing devices home and dropping records needs no space; only an ADD at work would not see that its time is over.
		log.WarnContext(ctx, "the record cannot be marked; going on", "error", err.Error())
	} else if err != nil {
		return outcome{}, err
	}
	out, homeErr := r.home(ctx)
	if refused, rest := settingsRefused(homeErr); len(refused) > 0 {
		out.away, homeErr = append(out.away, refused...), rest
	}
	if homeErr == nil && len(out.away) == 0 && rec.FLR {
		out, homeErr = r.reset(ctx)
	}
	if len(out.away) > 0 {
		out.by = p.holders(ctx, s, r.query())
	}
	if errors.Is(homeErr, errNotOurs) {
		log.InfoContext(ctx, "the device has another owner now and is left alone")
		homeErr, out.held = nil, false
	}
	// The hint before the addresses: a delegate that hangs leaves no time, and the pod's other rails still read it.
	hintErr := p.Hints.Drop(ctx, hintKey(rec), rec.Owner)
	var addrErr error
	if !out.held {
		addrErr = p.releaseAddresses(ctx, rec)
	}
	log.InfoContext(ctx, "released", "rdma", rdmaOf(rec), "away", out.away)
	return out, r.finish(ctx, out, nameTaken(homeErr), addrErr, hintErr)
}

// rdmaOf names the RDMA device of an attachment; empty when it has none.
func rdmaOf(rec record.Record) string {
	switch {
	case rec.Soft != "":
		return rec.Soft
	case rec.Before.RDMA != nil:
		return rec.Before.RDMA.Name
	}
	return ""
}

// releasing is one release on its way.
type releasing struct {
	*Plugin
	rec     record.Record
	verb    string
	log     *slog.Logger
	session Session
	lost    *attach.Lost // how its link is looked for, once it was not in the pod
}

// errNotOurs: the claim on the device belongs to another attachment, so its place is no business of this one.
var errNotOurs = errors.New("device is claimed by another attachment")

// reopen opens the pod's namespace if it is still the one that the record means: a path is reused, /proc/PID/ns/net even by the
// node's own processes.
func (p *Plugin) reopen(ctx context.Context, rec record.Record, netns string) (Session, error) {
	for _, path := range []string{netns, rec.NetNS.Path} {
		if path == "" {
			continue
		}
		s, err := p.Open(ctx, path)
		if errors.Is(err, attach.ErrNoNetNS) || errors.Is(err, attach.ErrOwnNetNS) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("open network namespace %s: %w", path, err)
		}
		if rec.NetNS.Ino == 0 || s.PodNS().Same(rec.NetNS) {
			return s, nil
		}
		_ = s.Close()
	}
	s, err := p.Open(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("open the host's network namespace: %w", err)
	}
	return s, nil
}

// mark changes the record's state, so that an ADD still at work on it sees that its time is over.
func (r *releasing) mark(ctx context.Context, state record.State) error {
	unlock, err := r.locked(ctx, r.rec.Owner, r.rec.Device, r.verb)
	if err != nil {
		return err
	}
	defer unlock()
	r.rec.State = state
	if err := r.Records.Save(r.rec); err != nil {
		return fmt.Errorf("mark attachment %s: %w", r.rec.Owner, err)
	}
	return nil
}

// home restores what can be reached and waits for what the kernel is still bringing back.
func (r *releasing) home(ctx context.Context) (outcome, error) {
	deadline := r.Now().Add(homeWait)
	for {
		out, err := r.restore(ctx)
		if err != nil || len(out.away) == 0 || !r.Now().Before(deadline) {
			return out, err
		}
		if err := r.await(ctx, deadline); err != nil {
			return out, nil //nolint:nilerr // the time is up; what is away is in out
		}
	}
}

// restore makes one pass under the locks.
func (r *releasing) restore(ctx context.Context) (outcome, error) {
	unlock, err := r.locked(ctx, r.rec.Owner, r.rec.Device, r.verb)
	if err != nil {
		return outcome{}, err
	}
	defer unlock()
	if err = r.ours(); err != nil {
		return outcome{}, err
	}
	before, lost, err := r.seek(ctx, r.session, r.rec)
	if err != nil {
		return outcome{held: true}, err
	}
	r.lost = lost
	k := &stepper{
		Session: r.session, plugin: r.Plugin, log: r.log, holder: r.verb + " " + r.rec.Owner.String(), device: r.rec.Device,
	}
	now, err := r.pass(ctx, k, before)
	if now == nil {
		return outcome{held: true}, err
	}
	return outcome{
		away: attach.Away(r.rec.Before, *now), held: attach.Held(r.rec.Before, *now), notes: attach.Notes(r.rec.Before, *now),
		misnamed: attach.Misnamed(r.rec.Before, *now),
	}, err
}

// await looks, without a lock, until something that was away can be seen.
func (r *releasing) await(ctx context.Context, deadline time.Time) error {
	for {
		now, err := r.session.Observe(ctx, r.query())
		if err == nil && len(attach.Away(r.rec.Before, now)) == 0 {
			return nil
		}
		if !r.Now().Before(deadline) {
			return context.DeadlineExceeded
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

func (r *releasing) query() attach.Query {
	q := query(r.rec)
	q.Lost = r.lost
	return q
}

// ours fails when another attachment holds the claim. No claim at all is ours: a crash may have come between record and claim.
// So is one that is none, which keeps everybody else from claiming the device.
func (r *releasing) ours() error {
	if r.rec.Device.IsZero() {
		return nil
	}
	holder, err := r.Records.Claimant(r.rec.Device)
	switch {
	case errors.Is(err, record.ErrNotFound), errors.Is(err, record.ErrUnreadable):
		return nil
	case err != nil:
		return fmt.Errorf("look up the claim on %s: %w", r.rec.Device, err)
	case holder != r.rec.Owner:
		return errNotOurs
	}
	return nil
}

// finish drops the record when nothing is left to do, and keeps it, in state returning, when something is. It has time of its
// own: a delegate that used up the caller's must not keep the claim, and with it the device, from the next pod.
func (r *releasing) finish(ctx context.Context, out outcome, homeErr, addrErr, hintErr error) error {
	ctx, cancel := atLeast(ctx, finishLimit)
	defer cancel()
	unlock, err := r.locked(ctx, r.rec.Owner, r.rec.Device, r.verb)
	if err != nil {
		return errors.Join(homeErr, addrErr, hintErr, err)
	}
	defer unlock()
	for _, note := range out.notes {
		r.log.WarnContext(ctx, note)
	}
	switch {
	case homeErr != nil || len(out.away) > 0:
		r.rec.State = record.Returning
		err = r.Records.Save(r.rec)
		if len(out.away) > 0 {
			r.log.WarnContext(ctx, "not home yet; the next ADD or podfabricctl repair finishes", "away", strings.Join(out.away, ", "),
				"by", attach.HeldBy(out.by))
		}
	case addrErr != nil || hintErr != nil:
		// The device is free for the next pod, or for another program. Whoever pays the rest must not restore it once more.
		err = errors.Join(r.in(out), r.Records.Save(owing(r.rec)))
		if !r.rec.Device.IsZero() {
			err = errors.Join(err, r.Records.Unclaim(r.rec.Owner, r.rec.Device))
		}
	default:
		err = errors.Join(r.in(out), r.Records.Drop(r.rec.Owner, r.rec.Device))
	}
	return errors.Join(homeErr, addrErr, hintErr, err)
}

// releaseAddresses gives back what an attachment holds, whoever handed it out. All of it may be called for an attachment that
// never got any.
func (p *Plugin) releaseAddresses(ctx context.Context, rec record.Record) error {
	if err := p.Leases.Release(ctx, rec.Owner.String()); err != nil {
		return fmt.Errorf("release addresses of %s: %w", rec.Owner, err)
	}
	if rec.IPAM.Kind != netconf.IPAMDelegate {
		return nil
	}
	if err := p.Delegate.Del(ctx, call(rec)); err != nil {
		return fmt.Errorf("release addresses of %s: %w", rec.Owner, err)
	}
	return nil
}

// call is what a delegate needs to know of an attachment.
func call(rec record.Record) delegate.Call {
	return delegate.Call{
		Plugin: rec.IPAM.Plugin, Config: rec.IPAM.Config,
		ContainerID: rec.Owner.ContainerID, IfName: rec.Owner.IfName, NetNS: rec.NetNS.Path, Args: rec.Args, Path: rec.Path,
	}
}

// hintKey is the pod whose hint an attachment belongs to; outside Kubernetes each container is a pod of its own.
func hintKey(rec record.Record) string {
	if rec.Pod.UID != "" {
		return rec.Pod.UID
	}
	return rec.Owner.ContainerID
}

// pause waits for poll or for the end of ctx.
func pause(ctx context.Context) error {
	t := time.NewTimer(poll)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx) //nolint:wrapcheck // the caller knows what was waited for
	case <-t.C:
		return nil
	}
}

func (p *Plugin) logger(rec record.Record) *slog.Logger {
	return p.Log.With("containerID", rec.Owner.ContainerID, "ifname", rec.Owner.IfName, "pod", rec.Pod.String(),
		"network", rec.Network, "pci", pciOf(rec))
}

// pciOf names the device of an attachment, or the one that it shares; empty when it has none.
func pciOf(rec record.Record) string {
	for _, id := range []bus.ID{rec.Device, rec.Before.Function.ID} {
		if !id.IsZero() {
			return id.String()
		}
	}
	return ""
}
