// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/lock"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// The locks are taken in this order and no other: attachment, device (or the one below its master), (pool and pod hint inside their stores), RDMA move.
// None is held while a delegate runs or while something is waited for.
const moveLock = "rdma-move"

// locked takes the locks of an attachment and of its device.
func (p *Plugin) locked(ctx context.Context, owner attach.Owner, dev bus.ID, verb string) (func(), error) {
	holder := verb + " " + owner.String()
	first, err := p.lock(ctx, "attachment "+owner.String(), holder)
	if err != nil {
		return nil, err
	}
	if dev.IsZero() {
		return first, nil
	}
	second, err := p.lockDevice(ctx, dev, holder)
	if err != nil {
		first()
		return nil, err
	}
	return func() {
		second()
		first()
	}, nil
}

// lockDevice takes the lock of a device alone; whoever needs the attachment's too takes that one first.
func (p *Plugin) lockDevice(ctx context.Context, dev bus.ID, holder string) (func(), error) {
	return p.lock(ctx, "device "+dev.String(), holder)
}

// guard asks attach.Guard, and gives the facts that it had nothing against. A device on its way between two namespaces has no uverbs
// number for a moment, and the free number looks like a hole: a refusal for that counts only while nobody moves anything, and when
// it stays for gapWait, since the kernel takes no lock for what it sends home from a dead namespace.
func (a *adding) guard(ctx context.Context, facts attach.Facts) (attach.Facts, error) {
	ifname := a.rec.Owner.IfName
	err := attach.Guard(a.conf, a.node, ifname, facts)
	for deadline := a.Now().Add(gapWait); gap(err); {
		over := !a.Now().Before(deadline)
		if facts, err = a.observeAtRest(ctx); err != nil {
			return facts, err
		}
		if err = attach.Guard(a.conf, a.node, ifname, facts); over || pause(ctx) != nil {
			break
		}
	}
	if err != nil {
		return facts, a.explained(ctx, err, facts)
	}
	return facts, nil
}

// promised refuses a device that has lost the number which it had when this pod first asked for it. A try that failed may have cost it:
// then it went home, and had to take what was free. The runtime tries again with the device nodes of the first time.
func (a *adding) promised(facts attach.Facts) error {
	number := attach.Promised(a.conf, a.node, facts)
	if number < 0 || a.rec.Pod.UID == "" {
		return nil
	}
	was, err := a.Records.Promise(a.rec.Device, a.rec.Pod.UID, number)
	if err != nil {
		return fmt.Errorf("keep the uverbs number of %s: %w", a.rec.Device, err)
	}
	return attach.Kept(was, facts)
}

// gap tells whether an error is of a free uverbs number.
func gap(err error) bool {
	p, ok := errors.AsType[*netconf.Problem](err)
	return ok && p.Code == netconf.CodeUverbs
}

// observeAtRest looks while no process of podfabric's moves an RDMA device.
func (a *adding) observeAtRest(ctx context.Context) (attach.Facts, error) {
	unlock, err := a.lock(ctx, moveLock, "ADD "+a.rec.Owner.String())
	if err != nil {
		return attach.Facts{}, err
	}
	defer unlock()
	return a.observe(ctx)
}

func (p *Plugin) lock(ctx context.Context, name, holder string) (func(), error) {
	release, err := p.Locks.Acquire(ctx, name, holder)
	if errors.Is(err, lock.ErrHeld) {
		return nil, &netconf.Problem{
			Code:   netconf.CodeTryLater,
			Remedy: "wait for the other call on this device to end, or end it; the runtime will try again by itself",
			Field:  "lock " + name, Err: err,
		}
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return release, nil
}

// atLeast gives what remains to be done time of its own where the caller's is over or nearly so.
func atLeast(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ctx.Err() == nil && ok && time.Until(end) > limit {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), limit)
}

// wanted fails when DEL came meanwhile. Whatever else an ADD finds then is of a device that was taken from under it.
func (a *adding) wanted() error {
	rec, err := a.Records.Load(a.rec.Owner)
	if err == nil && rec.State == record.Intent && rec.Created.Equal(a.rec.Created) {
		return nil
	}
	if err != nil && !errors.Is(err, record.ErrNotFound) {
		return fmt.Errorf("read the record again: %w", err)
	}
	return &netconf.Problem{
		Code:   netconf.CodeTryLater,
		Remedy: "nothing is to be done: the runtime deleted this attachment while it was being made",
		Field:  "attachment " + a.rec.Owner.String(),
	}
}

// stepper applies steps with a line in the log for each, and serialises RDMA moves over the whole node: two at once may
// swap their uverbs numbers (cni-anchors.md §4.3), and a number that was predicted must still hold when the move is made.
type stepper struct {
	Session
	plugin *Plugin
	log    *slog.Logger
	holder string
	device bus.ID
	// below is the device that the master of a link belongs to. While the link is made nobody may move it into a pod whole, who has
	// looked before and seen nobody on it. Whoever looks later finds the record, and a link on a master that is gone is not made.
	below bus.ID
	// steady refuses a move into the pod that would change, or has changed, the uverbs number that the device has in before.
	steady bool
	before attach.Facts
	// unmoved is the reverse of a move that was never begun, since its lock could not be had: undoing it needs no lock, and
	// to wait for one would eat the time that undoing everything else has.
	unmoved attach.Step
}

// stepper applies the steps of an ADD. From here on there may be something to take back.
func (a *adding) stepper() *stepper {
	a.changed = true
	return &stepper{
		Session: a.session, plugin: a.Plugin, log: a.log, holder: "ADD " + a.rec.Owner.String(), device: a.rec.Device,
		below: a.rec.Before.Function.ID, steady: a.node.Uverbs != netconf.UverbsAgent, before: a.rec.Before,
	}
}

// Apply makes one step.
func (s *stepper) Apply(ctx context.Context, step attach.Step) error {
	begin := s.plugin.Now()
	err := s.apply(ctx, step)
	took := s.plugin.Now().Sub(begin).Round(time.Microsecond)
	if err != nil {
		s.log.DebugContext(ctx, "step refused", "step", step.String(), "took", took, "error", err.Error())
		return err
	}
	s.log.DebugContext(ctx, "step", "step", step.String(), "took", took)
	return nil
}

func (s *stepper) apply(ctx context.Context, step attach.Step) error {
	switch step := step.(type) {
	case attach.MoveRDMA:
		return s.move(ctx, step)
	case attach.AddLink:
		if !s.below.IsZero() {
			release, err := s.plugin.lockDevice(ctx, s.below, s.holder)
			if err != nil {
				return err
			}
			defer release()
		}
	}
	return s.Session.Apply(ctx, step)
}

func (s *stepper) move(ctx context.Context, move attach.MoveRDMA) error {
	if move == s.unmoved {
		return nil
	}
	for deadline := s.plugin.Now().Add(gapWait); ; {
		over := !s.plugin.Now().Before(deadline)
		begun, err := s.moveLocked(ctx, move)
		if begun || !gap(err) || over || pause(ctx) != nil {
			return err
		}
	}
}

// moveLocked makes the move while nobody else of podfabric's makes one. It tells whether the move was begun; if not, the lock was
// not to be had, or a number that is free would become the device's.
func (s *stepper) moveLocked(ctx context.Context, move attach.MoveRDMA) (bool, error) {
	release, err := s.plugin.lock(ctx, moveLock, s.holder)
	if err != nil {
		s.unmoved = move.Reverse()
		return false, err
	}
	defer release()
	if !s.steady || move.Soft != "" || move.To != attach.Pod {
		return true, s.Session.Apply(ctx, move)
	}
	now, err := s.numbers(ctx)
	if err == nil {
		err = attach.Steady(now)
	}
	if err != nil {
		return false, err
	}
	if err = s.Session.Apply(ctx, move); err != nil {
		return true, err
	}
	// The lock keeps podfabric's own processes away, and nobody else.
	if now, err = s.numbers(ctx); err != nil {
		return true, err
	}
	was := -1
	if s.before.RDMA != nil {
		was = s.before.RDMA.Uverbs
	}
	return true, attach.Kept(was, now)
}

// numbers looks at the device, its uverbs number and all others.
func (s *stepper) numbers(ctx context.Context) (attach.Facts, error) {
	now, err := s.Observe(ctx, attach.Query{Device: s.device})
	if err != nil {
		return now, fmt.Errorf("look at uverbs numbers: %w", err)
	}
	return now, nil
}
