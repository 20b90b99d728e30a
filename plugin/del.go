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

// Del takes an attachment back. It needs name, container, interface and address section of the configuration; all else comes
// from the record. Whatever is gone already is no error, and neither is an attachment that never was: behind Multus there
// is one DEL and no other, also for an ADD that got nowhere.
func (p *Plugin) Del(ctx context.Context, raw netconf.Raw) error {
	t, err := netconf.ParseTeardown(raw)
	if err != nil {
		return err
	}
	owner := attach.Owner{ContainerID: t.Request.ContainerID, IfName: t.Request.IfName}
	if err = p.refuseOwn(ctx, t.Request.NetNS); err != nil {
		return err
	}
	rec, err := p.Records.Load(owner)
	switch {
	case errors.Is(err, record.ErrNotFound):
		if _, err = p.Records.ClaimedBy(owner); errors.Is(err, record.ErrNotFound) {
			return p.delUnrecorded(ctx, owner, t)
		}
		if rec, err = p.guess(owner, t); err != nil {
			return err
		}
	case errors.Is(err, record.ErrUnreadable):
		p.Log.WarnContext(ctx, "the record cannot be read; what the claim tells is brought home, and the record dropped",
			"containerID", owner.ContainerID, "ifname", owner.IfName, "error", err.Error())
		if rec, err = p.guess(owner, t); err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("read the record of %s: %w", owner, err)
	}
	if rec.IPAM.Kind == netconf.IPAMDelegate && t.IPAM.Kind == netconf.IPAMDelegate && t.IPAM.Plugin == rec.IPAM.Plugin {
		rec.IPAM.Config = t.IPAM.Delegate // the runtime may have added to it since
	}
	if rec.Kind == "" { // guessed
		if err = p.dropLink(ctx, rec); err != nil {
			return err
		}
	}
	_, err = p.release(ctx, rec, t.Request.NetNS, "DEL")
	return err
}

// refuseOwn fails when netns is the plugin's own namespace: taking devices "out of the pod" would then take the node's.
func (p *Plugin) refuseOwn(ctx context.Context, netns string) error {
	if netns == "" {
		return nil
	}
	s, err := p.Open(ctx, netns)
	if errors.Is(err, attach.ErrNoNetNS) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open network namespace %s: %w", netns, err)
	}
	return s.Close()
}

// delUnrecorded frees what may be held without a record: after a reboot /run is empty while a delegate's leases are not, and a
// kill may have come between any two writes.
func (p *Plugin) delUnrecorded(ctx context.Context, owner attach.Owner, t netconf.Teardown) error {
	rec := record.Record{
		Owner: owner, Pod: t.Request.Pod, Network: t.Name, NetNS: attach.NetNS{Path: t.Request.NetNS}, Args: t.Request.Args,
		Path: t.Request.Path, IPAM: record.IPAM{Kind: t.IPAM.Kind, Plugin: t.IPAM.Plugin, Config: t.IPAM.Delegate},
	}
	if err := p.dropLink(ctx, rec); err != nil {
		return err // its address may still answer
	}
	addrErr := p.releaseAddresses(ctx, rec)
	if errors.Is(addrErr, delegate.ErrNotFound) {
		// ADD refuses such a network before it records anything, and the runtime would call DEL for ever.
		p.logger(rec).WarnContext(ctx, "nothing is recorded, and the IPAM plugin is not there to be asked", "error", addrErr.Error())
		addrErr = nil
	}
	return errors.Join(addrErr, p.Hints.Drop(ctx, hintKey(rec), owner), p.dropUnrecorded(ctx, owner))
}

// dropLink removes the macvlan of an attachment of which no record tells: the MAC that it was given says whose it is. One whose MAC
// the network chose, and an ipvlan, which has none, cannot be told from another's and go with the namespace.
func (p *Plugin) dropLink(ctx context.Context, rec record.Record) error {
	if rec.NetNS.Path == "" {
		return nil
	}
	s, err := p.Open(ctx, rec.NetNS.Path)
	if errors.Is(err, attach.ErrNoNetNS) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open network namespace %s: %w", rec.NetNS.Path, err)
	}
	defer func() { _ = s.Close() }()
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
	below, err := s.Behind(ctx, now.Link.Name)
	if err != nil {
		return fmt.Errorf("look below the link of %s: %w", rec.Owner, err)
	}
	if below.Master.Index == 0 {
		return nil // its master is not at home any more
	}
	step := attach.DelLink{Kind: own.Kind, Master: below.Master, Link: now.Link.Place, MAC: own.MAC}
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

// guess makes a record out of what is known without one: the claim names the device, and the names that it has at home are
// kept apart.
func (p *Plugin) guess(owner attach.Owner, t netconf.Teardown) (record.Record, error) {
	rec := record.Record{
		State: record.Deleting, Owner: owner, Pod: t.Request.Pod, Network: t.Name, Args: t.Request.Args, Path: t.Request.Path,
		NetNS: attach.NetNS{Path: t.Request.NetNS},
		IPAM:  record.IPAM{Kind: t.IPAM.Kind, Plugin: t.IPAM.Plugin, Config: t.IPAM.Delegate},
	}
	dev, err := p.Records.ClaimedBy(owner)
	if errors.Is(err, record.ErrNotFound) {
		return rec, nil
	}
	if err != nil {
		return rec, fmt.Errorf("look for the claim of %s: %w", owner, err)
	}
	rec.Device, rec.Soft = dev, attach.SoftName(owner)
	if home, err := p.Records.LoadHome(dev); err == nil {
		rec.Before = home
	}
	return rec, nil
}
