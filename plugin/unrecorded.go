// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/delegate"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// delUnrecorded takes back what may be there without a record: after a reboot /run is empty while a delegate's leases are not, a
// kill may have come between any two writes, and somebody may have emptied the state folder while the pod ran.
func (p *Plugin) delUnrecorded(ctx context.Context, owner attach.Owner, t netconf.Teardown) error {
	rec := unrecorded(owner, t)
	if err := p.dropLink(ctx, rec); err != nil {
		return err // its address may still answer
	}
	dev, err := p.inside(ctx, rec, t)
	if err == nil && dev.IsZero() {
		dev, err = p.takenBy(owner)
	}
	if err != nil {
		return err
	}
	if !dev.IsZero() {
		if rec, err = p.imagine(ctx, rec, dev, t); err != nil {
			return err
		}
		p.logger(rec).WarnContext(ctx, "nothing is recorded of the device; it is brought home as far as can be known")
		_, err = p.release(ctx, rec, t.Request.NetNS, "DEL")
		return err
	}
	addrErr := p.releaseAddresses(ctx, rec)
	if errors.Is(addrErr, delegate.ErrNotFound) {
		// ADD refuses such a network before it records anything, and the runtime would call DEL for ever.
		p.logger(rec).WarnContext(ctx, "nothing is recorded, and the IPAM plugin is not there to be asked", "error", addrErr.Error())
		addrErr = nil
	}
	return errors.Join(addrErr, p.Hints.Drop(ctx, hintKey(rec), owner), p.dropUnrecorded(ctx, owner))
}

// unrecorded is what the DEL of an attachment tells without a record.
func unrecorded(owner attach.Owner, t netconf.Teardown) record.Record {
	return record.Record{
		State: record.Deleting, Owner: owner, Pod: t.Request.Pod, Network: t.Name, Args: t.Request.Args, Path: t.Request.Path,
		NetNS: attach.NetNS{Path: t.Request.NetNS},
		IPAM:  record.IPAM{Kind: t.IPAM.Kind, Plugin: t.IPAM.Plugin, Config: t.IPAM.Delegate},
	}
}

// guess makes a record in place of one that is gone or cannot be read: the claim names the device.
func (p *Plugin) guess(ctx context.Context, owner attach.Owner, t netconf.Teardown) (record.Record, error) {
	rec := unrecorded(owner, t)
	dev, err := p.Records.ClaimedBy(owner)
	if errors.Is(err, record.ErrNotFound) {
		return rec, nil
	}
	if err != nil {
		return rec, fmt.Errorf("look for the claim of %s: %w", owner, err)
	}
	return p.imagine(ctx, rec, dev, t)
}

// inside gives the device behind the interface of the pod that a DEL names, if it is the one that the configuration names, or else one
// that podfabric knows from home, and nobody has a claim on it; zero: there is none. The name alone says nothing: it may be why
// an ADD was refused, and another plugin's.
func (p *Plugin) inside(ctx context.Context, rec record.Record, t netconf.Teardown) (bus.ID, error) {
	if rec.NetNS.Path == "" {
		return bus.ID{}, nil
	}
	s, err := p.reopen(ctx, rec, rec.NetNS.Path)
	if err != nil {
		return bus.ID{}, err
	}
	defer func() { _ = s.Close() }()
	if s.PodNS().IsZero() {
		return bus.ID{}, nil
	}
	found, err := s.Behind(ctx, rec.Owner.IfName)
	if errors.Is(err, attach.ErrConflict) {
		return bus.ID{}, nil // the pod has no such interface
	}
	if err != nil {
		return bus.ID{}, fmt.Errorf("look at interface %s in the pod: %w", rec.Owner.IfName, err)
	}
	if found.Device.IsZero() {
		return bus.ID{}, nil
	}
	if named, namedErr := p.named(rec.Owner, found.Device, t); namedErr != nil || !named {
		return bus.ID{}, namedErr
	}
	_, err = p.Records.Claimant(found.Device)
	switch {
	case errors.Is(err, record.ErrNotFound):
		return found.Device, nil
	case err == nil, errors.Is(err, record.ErrUnreadable):
		return bus.ID{}, nil // its owner's DEL brings it home
	}
	return bus.ID{}, fmt.Errorf("look up the claim on %s: %w", found.Device, err)
}

// takenBy gives the device that owner took from home and that was not put right since, wherever it is; zero: there is none.
func (p *Plugin) takenBy(owner attach.Owner) (bus.ID, error) {
	devs, err := p.Records.Outs()
	if err != nil {
		return bus.ID{}, fmt.Errorf("list devices that are out: %w", err)
	}
	for _, dev := range devs {
		out, is, err := p.orphan(dev)
		if err != nil {
			return bus.ID{}, err
		}
		if is && out.Owner == owner {
			return dev, nil
		}
	}
	return bus.ID{}, nil
}

// named tells whether a DEL can be of an attachment of dev.
func (p *Plugin) named(owner attach.Owner, dev bus.ID, t netconf.Teardown) (bool, error) {
	out, home, err := p.kept(owner, dev)
	switch {
	case err != nil || out != nil:
		return out != nil, err
	case !t.Device.IsZero():
		return t.Device == dev, nil
	}
	return home != nil, nil
}

// kept gives what was written of a device apart from any record: what owner made of it, and what it was like when it was first seen at
// home; nil where nothing is that can be read. That a file cannot be looked at is an error and no absence.
func (p *Plugin) kept(owner attach.Owner, dev bus.ID) (*record.Out, *attach.Facts, error) {
	var mine *record.Out
	out, err := p.Records.LoadOut(dev)
	switch {
	case err == nil && out.Owner == owner:
		mine = &out
	case err != nil && !errors.Is(err, record.ErrNotFound) && !errors.Is(err, record.ErrUnreadable):
		return nil, nil, fmt.Errorf("read what was made of %s: %w", dev, err)
	}
	home, err := p.Records.LoadHome(dev)
	switch {
	case errors.Is(err, record.ErrNotFound), errors.Is(err, record.ErrUnreadable):
		return mine, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("read the home names of %s: %w", dev, err)
	}
	return mine, &home, nil
}

// imagine gives rec the device and what can be known of it at home: what was written down at the device, else what was kept apart, else
// nothing but that it was there. Of an interface that another plugin may have brought into the pod only the RDMA device was
// podfabric's to move.
func (p *Plugin) imagine(ctx context.Context, rec record.Record, dev bus.ID, t netconf.Teardown) (record.Record, error) {
	rec.Device, rec.Soft = dev, attach.SoftName(rec.Owner)
	out, home, err := p.kept(rec.Owner, dev)
	if err != nil {
		return rec, err
	}
	if out != nil {
		rec.NetNS, rec.Before, rec.VF, rec.Moved = out.NetNS, out.Before, out.Given.VF, out.Given.Moved
		return rec, nil
	}
	if home != nil {
		rec.Before = *home
	}
	if rec.Before.VF == nil {
		p.warnSettings(ctx, rec)
	}
	if p.movedWhole(rec.Owner, t) {
		return rec, nil
	}
	s, err := p.reopen(ctx, rec, t.Request.NetNS)
	if err != nil {
		return rec, err
	}
	defer func() { _ = s.Close() }()
	now, err := s.Observe(ctx, query(rec))
	if err != nil {
		return rec, fmt.Errorf("observe %s: %w", dev, err)
	}
	before := attach.Facts{Mode: now.Mode, Function: now.Function, Link: &attach.Link{}, RDMA: rec.Before.RDMA}
	before.Link.Place = attach.Place{NS: attach.Pod, Name: rec.Owner.IfName}
	if before.RDMA == nil && now.RDMA != nil && now.RDMA.NS == attach.Pod {
		atHome := *now.RDMA
		atHome.NS, before.RDMA = attach.Host, &atHome
	}
	rec.Before = before
	return rec, nil
}

// movedWhole tells whether podfabric brought a device into the pod with its netdev, and not another plugin before it: as the record
// says, if that much of it can be read; as the configuration says; or because no plugin came before. That podfabric has seen the
// device at home says nothing: it may have been of another network then, and the plugin before fails to delete the pod when the
// netdev is gone. What cannot be known is left where it is: with the pod it comes home by itself.
func (p *Plugin) movedWhole(owner attach.Owner, t netconf.Teardown) bool {
	for _, kind := range []netconf.Kind{p.Records.KindOf(owner), t.Kind} {
		if kind != "" {
			return kind != netconf.KindChained
		}
	}
	return t.Alone
}

// dropLink removes the macvlan of an attachment of which no record tells: the MAC that it was given says whose it is. One whose MAC
// the network chose, and an ipvlan, which has none, cannot be told from another's and go with the namespace.
func (p *Plugin) dropLink(ctx context.Context, rec record.Record) error {
	s, err := p.reopen(ctx, rec, "")
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	if s.PodNS().IsZero() {
		return nil
	}
	unlock, err := p.lock(ctx, "attachment "+rec.Owner.String(), "DEL "+rec.Owner.String())
	if err != nil {
		return err
	}
	defer unlock()
	if _, err = p.Records.Load(rec.Owner); err == nil {
		return nil // an ADD began meanwhile, and the link is its own
	}
	own := attach.OwnLink{Kind: string(netconf.KindMacvlan), MAC: attach.OwnMAC(rec.Owner)}
	now, err := s.Observe(ctx, attach.Query{Own: own})
	if err != nil {
		return fmt.Errorf("look for the link of %s: %w", rec.Owner, err)
	}
	if now.Link == nil {
		return nil
	}
	step := attach.DelLink{Kind: own.Kind, Link: now.Link.Place, MAC: own.MAC, Index: now.Link.Index}
	if err := attach.RunAll(ctx, s, []attach.Step{step}); err != nil {
		return fmt.Errorf("remove the link of %s: %w", rec.Owner, err)
	}
	return nil
}

// dropUnrecorded removes what a write that was cut short leaves: a folder without a record.
func (p *Plugin) dropUnrecorded(ctx context.Context, owner attach.Owner) error {
	unlock, err := p.lock(ctx, "attachment "+owner.String(), "DEL "+owner.String())
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := p.Records.Load(owner); !errors.Is(err, record.ErrNotFound) {
		return nil // an ADD began meanwhile, and its attachment is another DEL's
	}
	return p.Records.Drop(owner, bus.ID{})
}
