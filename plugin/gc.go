// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/delegate"
	"github.com/podfabric/podfabric/plugin/record"
)

// GC deletes the attachments of this network that the runtime does not list. Without a list it does nothing, and a living
// namespace that holds its device is never touched: a conflist and a network of Multus may share a name, and only one of
// them is in the list.
func (p *Plugin) GC(ctx context.Context, raw netconf.Raw) error {
	t, err := netconf.ParseTeardown(raw)
	if err != nil {
		return err
	}
	if t.Attachments == nil {
		return nil
	}
	records, errs := p.Records.List()
	for _, rec := range records {
		if rec.Network != t.Name || slices.Contains(t.Attachments, netconf.Attachment(rec.Owner)) {
			continue
		}
		busy, err := p.busy(ctx, rec)
		if err == nil && !busy {
			_, err = p.release(ctx, rec, rec.NetNS.Path, "GC")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("clear the attachment %s: %w", rec.Owner, err))
		}
	}
	if t.IPAM.Kind == netconf.IPAMDelegate {
		if err := p.Delegate.GC(ctx, asked(t)); err != nil {
			errs = append(errs, fmt.Errorf("let %s clear up: %w", t.IPAM.Plugin, err))
		}
	}
	return errors.Join(errs...)
}

// busy tells whether the namespace of rec lives and has its device inside or within, or an ADD may still be at work on it. What a program of the
// pod drives is in no namespace, so that there the pod's own must do.
func (p *Plugin) busy(ctx context.Context, rec record.Record) (bool, error) {
	s, err := p.reopen(ctx, rec, "")
	if err != nil {
		return false, err
	}
	defer func() { _ = s.Close() }()
	if !s.PodNS().IsZero() && rec.State == record.Intent && p.Now().Sub(rec.Created) < p.deadline()+undoLimit {
		return true, nil
	}
	if !s.PodNS().IsZero() && rec.State == record.Done && want(rec).Userspace() {
		return true, nil
	}
	now, _, err := p.seek(ctx, s, rec)
	if err != nil {
		return false, err
	}
	if now.Link != nil && now.Link.NS == attach.Pod || now.RDMA != nil && now.RDMA.NS == attach.Pod {
		return true, nil
	}
	// A pod that lives may have them in a namespace of its own making, and takes them back from there.
	return !s.PodNS().IsZero() && rec.State == record.Done && len(attach.Away(rec.Before, now)) > 0, nil
}

// Status fails only when every ADD on this node must: a runtime that reads failure here marks the whole node as not ready.
func (p *Plugin) Status(ctx context.Context, raw netconf.Raw) error {
	if _, err := p.Node(); err != nil {
		return unavailable(err)
	}
	if err := p.Records.Probe(); err != nil {
		return unavailable(err)
	}
	s, err := p.Open(ctx, "")
	if err != nil {
		return unavailable(err)
	}
	if err = s.Close(); err != nil {
		return unavailable(err)
	}
	t, err := netconf.ParseTeardown(raw)
	if err != nil || t.IPAM.Kind != netconf.IPAMDelegate {
		return err
	}
	if err = p.Delegate.Status(ctx, asked(t)); err != nil {
		return fmt.Errorf("ask %s for its status: %w", t.IPAM.Plugin, err)
	}
	return nil
}

// asked is how a delegate is called with a configuration and no attachment.
func asked(t netconf.Teardown) delegate.Call {
	return delegate.Call{Plugin: t.IPAM.Plugin, Config: t.IPAM.Delegate, Path: t.Request.Path}
}

func unavailable(err error) error {
	a := Answer(err)
	return &netconf.Problem{Code: netconf.CodeUnavailable, Remedy: a.Msg, Err: errors.New(a.Details)}
}

// want is what a record promises.
func want(rec record.Record) attach.Want {
	return attach.Want{
		Kind: rec.Kind, IfName: rec.Owner.IfName, Before: rec.Before, Own: rec.Own, VF: rec.VF, Addrs: rec.Addresses, Moved: rec.Moved,
		Soft: rec.Soft, GIDs: rec.GIDs,
	}
}
