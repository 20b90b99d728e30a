// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
)

// Add attaches a device to a pod, all of it or nothing: whatever fails, the node is as it was before, or the record says what
// is still owed. It is not idempotent, as the CNI specification wants: an attachment that is there already is an error.
func (p *Plugin) Add(ctx context.Context, raw netconf.Raw) (*types100.Result, error) {
	result, _, err := p.add(ctx, raw)
	return result, err
}

// add is Add; it gives what is needed to take the attachment back, too. No descriptor of the pod's namespace is open any more.
func (p *Plugin) add(ctx context.Context, raw netconf.Raw) (*types100.Result, *adding, error) {
	node, err := p.Node()
	if err != nil {
		return nil, nil, err
	}
	conf, err := netconf.Parse(raw, node)
	if err != nil {
		return nil, nil, err
	}
	s, err := p.Open(ctx, raw.NetNS)
	if err != nil {
		return nil, nil, fmt.Errorf("open network namespace %s: %w", raw.NetNS, err)
	}
	defer func() { _ = s.Close() }()

	a := &adding{Plugin: p, conf: conf, node: node, session: s}
	if err = a.begin(ctx); err != nil {
		return nil, nil, err
	}
	result, err := a.build(ctx)
	if err != nil {
		if gone := (*netconf.Problem)(nil); errors.As(a.wanted(), &gone) {
			gone.Err, err = err, gone
		}
		return nil, nil, a.undo(ctx, err)
	}
	a.prune(ctx)
	return result, a, nil
}

// adding is one ADD on its way.
type adding struct {
	*Plugin
	conf    netconf.Conf
	node    netconf.Node
	session Session

	rec record.Record
	log *slog.Logger
	// left is what the device's last owner left of it, if nothing else is recorded of that; nil: nothing.
	left *record.Out
	// changed: a step was tried, so that something may have to be taken back.
	changed bool
}

// begin checks everything that can be checked before a change, then writes down what is intended and claims the device.
func (a *adding) begin(ctx context.Context) error {
	req := a.conf.Request
	a.rec = record.Record{
		State: record.Intent, Owner: attach.Owner{ContainerID: req.ContainerID, IfName: req.IfName}, Pod: req.Pod,
		Network: a.conf.Name, CNIVersion: a.conf.CNIVersion, NetNS: a.session.PodNS(), Kind: a.conf.Kind, FLR: a.conf.VF.FLR,
		IPAM: record.IPAM{Kind: a.conf.IPAM.Kind, Plugin: a.conf.IPAM.Plugin, Config: a.conf.IPAM.Delegate},
		Args: req.Args, Path: req.Path, Created: a.Now(), Writer: a.Version,
	}
	if a.conf.RDMA.SoftRoCE {
		a.rec.Soft = attach.SoftName(a.rec.Owner)
	}
	if a.conf.Debug {
		a.Level.Set(slog.LevelDebug)
	}
	err := a.target(ctx)
	a.log = a.logger(a.rec).With("verb", "ADD")
	if err != nil {
		return err
	}
	for _, w := range a.conf.Warnings {
		a.log.WarnContext(ctx, w)
	}
	if a.conf.IPAM.Kind == netconf.IPAMDelegate {
		// A plugin that is not there, by a slip of the pen perhaps, must not become a debt that no DEL can pay.
		if err = a.Delegate.Find(call(a.rec)); err != nil {
			return err
		}
	}
	unlock, err := a.acquire(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	facts, err := a.observe(ctx)
	if err != nil {
		return err
	}
	if a.conf, err = attach.Settle(a.conf, facts); err != nil {
		return err
	}
	a.rec.Kind = a.conf.Kind
	if facts, err = a.guard(ctx, facts); err != nil {
		return err
	}
	if a.rec.Before, err = a.homed(facts); err != nil {
		return err
	}
	if err = a.promised(facts); err != nil {
		return err
	}
	if a.conf.Kind == netconf.KindVF && facts.VF != nil {
		wanted := attach.WantedVF(a.conf, *facts.VF)
		a.rec.VF = &wanted
	}
	if err = a.Records.Save(a.rec); err != nil {
		return fmt.Errorf("record the attachment: %w", err)
	}
	if a.rec.Device.IsZero() {
		return nil
	}
	if err = a.Records.Claim(a.rec.Device, a.rec.Owner); err != nil {
		return errors.Join(fmt.Errorf("claim %s: %w", a.rec.Device, err), a.Records.Drop(a.rec.Owner, a.rec.Device))
	}
	return nil
}

// query asks the PF's driver only where the configuration sets something there.
func (a *adding) query() attach.Query {
	q := query(a.rec)
	q.VF = a.conf.AsksPF()
	return q
}

func (a *adding) observe(ctx context.Context) (attach.Facts, error) {
	facts, err := a.session.Observe(ctx, a.query())
	if err != nil {
		return attach.Facts{}, fmt.Errorf("observe %s: %w", a.rec.Subject(), err)
	}
	return facts, nil
}

// build does what begin recorded. Every failure in it is followed by undo.
func (a *adding) build(ctx context.Context) (*types100.Result, error) {
	addrs, dns, err := a.addresses(ctx)
	if err != nil {
		return nil, err
	}
	if err = a.change(ctx, addrs); err != nil {
		return nil, err
	}
	facts, ports, err := a.ready(ctx, addrs)
	if err != nil {
		return nil, err
	}
	return a.publish(ctx, addrs, dns, facts, ports)
}

// change runs the plan under the locks.
func (a *adding) change(ctx context.Context, addrs attach.Addresses) error {
	unlock, err := a.relock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	facts, err := a.observe(ctx)
	if err != nil {
		return err
	}
	if facts, err = a.guard(ctx, facts); err != nil {
		return err
	}
	if err = a.unshared(ctx, facts); err != nil {
		return err
	}
	planned := addrs
	if a.conf.Previous != nil {
		planned = attach.Addresses{} // they are there already
	} else if err = a.unclashed(ctx, facts, addrs); err != nil {
		return err
	}
	steps := attach.Plan(a.conf, facts, planned, a.rec.Soft)
	if err = a.takeOut(steps); err != nil {
		return err
	}
	k := a.stepper()
	err = attach.Run(ctx, k, steps)
	if other, ok := attach.AdminFirst(err, steps); ok {
		a.log.InfoContext(ctx, "setting the VF's MAC through its PF first", "cause", err.Error())
		err = attach.Run(ctx, k, other)
	}
	if err != nil {
		return err
	}
	a.rec.Addresses = addrs.Prefixes()
	a.rec.Moved = attach.MovesRDMA(steps)
	return nil
}

// relock takes the locks again after an unlocked stretch and makes sure that the attachment is still wanted.
func (a *adding) relock(ctx context.Context) (func(), error) {
	unlock, err := a.locked(ctx, a.rec.Owner, a.rec.Device, "ADD")
	if err != nil {
		return nil, err
	}
	if err = a.wanted(); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// publish writes the hint and the finished record, and makes the result.
func (a *adding) publish(
	ctx context.Context, addrs attach.Addresses, dns types.DNS, facts attach.Facts, ports []attach.Port,
) (*types100.Result, error) {
	unlock, err := a.relock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err = a.writeHint(ctx, addrs.Prefixes(), facts, ports); err != nil {
		return nil, err
	}
	result := resultOf(a.conf, a.rec, addrs, dns, facts)
	text, err := json.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	a.rec.State, a.rec.Result, a.rec.VF = record.Done, text, facts.VF
	if a.rec.Master.Index != 0 && a.conf.Previous == nil && facts.Link != nil {
		a.rec.Own.Index = facts.Link.Index
	}
	a.rec.GIDs = ownGIDs(addrs, ports)
	if err := a.Records.Save(a.rec); err != nil {
		return nil, fmt.Errorf("record the finished attachment: %w", err)
	}
	a.deviceInfo(ctx, facts)
	return result, nil
}

// undo brings everything home after err. It has time of its own, since the caller's deadline may be why ADD failed.
func (a *adding) undo(ctx context.Context, err error) error {
	if now, loadErr := a.Records.Load(a.rec.Owner); loadErr == nil && !now.Created.Equal(a.rec.Created) {
		return err // another ADD of this very attachment has taken all back, and what is there now is its own
	}
	a.log.InfoContext(ctx, "undoing", "cause", err.Error())
	ctx, cancel := atLeast(ctx, undoLimit)
	defer cancel()
	rec := a.rec
	if !a.changed {
		rec.FLR = false // nobody had the function
		if rec.Device.IsZero() {
			rec = without(rec) // a link of that name is another's
		}
	}
	out, undoErr := a.release(ctx, rec, a.conf.Request.NetNS, "undo of ADD")
	if undoErr != nil {
		return errors.Join(err, fmt.Errorf("undo: %w; podfabricctl repair finishes it", undoErr))
	}
	if len(out.away) > 0 {
		return errors.Join(err, fmt.Errorf("still on its way home: %s; podfabricctl repair finishes it", out.stillAway()))
	}
	return err
}
