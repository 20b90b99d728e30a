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
	rec, known, err := p.recorded(ctx, owner, t)
	if err != nil {
		return err
	}
	if err = p.refuseOwn(ctx, t.Request.NetNS, rec.NetNS); err != nil {
		return err
	}
	if !known {
		return p.delUnrecorded(ctx, owner, t)
	}
	if rec.IPAM.Kind == netconf.IPAMDelegate {
		rec.IPAM.Config = delegate.Again(rec.IPAM.Config, t.IPAM.Delegate)
	}
	if rec.Kind == "" { // guessed
		if err = p.dropLink(ctx, rec); err != nil {
			return err
		}
	}
	_, err = p.release(ctx, rec, t.Request.NetNS, "DEL")
	return err
}

// recorded gives the record of an attachment, or what can be known in its place; false where nothing is.
func (p *Plugin) recorded(ctx context.Context, owner attach.Owner, t netconf.Teardown) (record.Record, bool, error) {
	rec, err := p.Records.Load(owner)
	switch {
	case err == nil:
		return rec, true, nil
	case errors.Is(err, record.ErrUnreadable):
		p.Log.WarnContext(ctx, "the record cannot be read; what the claim tells is brought home, and the record dropped",
			"containerID", owner.ContainerID, "ifname", owner.IfName, "error", err.Error())
	case !errors.Is(err, record.ErrNotFound):
		return rec, false, fmt.Errorf("read the record of %s: %w", owner, err)
	default:
		if _, err = p.Records.ClaimedBy(owner); errors.Is(err, record.ErrNotFound) {
			return unrecorded(owner, t), false, nil
		}
	}
	rec, err = p.guess(ctx, owner, t)
	return rec, true, err
}

// refuseOwn fails when netns is the plugin's own namespace, and nothing says that the pod's was another: taking devices "out of the pod"
// would then take the node's. Where pod tells that it was, the path leads to another namespace by now, as it may to any.
func (p *Plugin) refuseOwn(ctx context.Context, netns string, pod attach.NetNS) error {
	if netns == "" {
		return nil
	}
	s, err := p.Open(ctx, netns)
	if errors.Is(err, attach.ErrNoNetNS) {
		return nil
	}
	if errors.Is(err, attach.ErrOwnNetNS) && pod.Ino != 0 {
		own, hostErr := p.Open(ctx, "")
		if hostErr != nil {
			return fmt.Errorf("open the host's network namespace: %w", hostErr)
		}
		if !own.HostNS().Same(pod) {
			return own.Close()
		}
		err = errors.Join(err, own.Close())
	}
	if err != nil {
		return fmt.Errorf("open network namespace %s: %w", netns, err)
	}
	return s.Close()
}
