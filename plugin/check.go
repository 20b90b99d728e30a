// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/delegate"
	"github.com/podfabric/podfabric/plugin/record"
)

// Check holds an attachment against its record. What took the pod's connection away is an error; what may come back by itself,
// a port that is down or a GID that moved to another index, is a warning in the log, because runtimes restart pods over
// errors.
func (p *Plugin) Check(ctx context.Context, raw netconf.Raw) error {
	t, err := netconf.ParseTeardown(raw)
	if err != nil {
		return err
	}
	owner := attach.Owner{ContainerID: t.Request.ContainerID, IfName: t.Request.IfName}
	rec, err := p.Records.Load(owner)
	if errors.Is(err, record.ErrNotFound) {
		return &netconf.Problem{
			Code: netconf.CodeInvalid, Remedy: "delete the pod and let it be made again: nothing is recorded of this attachment",
			Field: "attachment " + owner.String(),
		}
	}
	if err != nil {
		return fmt.Errorf("read the record of %s: %w", owner, err)
	}
	lost, warnings, err := p.Inspect(ctx, rec)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		p.logger(rec).WarnContext(ctx, w)
	}
	if len(lost) == 0 {
		return p.checkAddresses(ctx, rec, t)
	}
	return &netconf.Problem{
		Code: netconf.CodeDevice, Remedy: "delete the pod and let it be made again: its attachment is not what it was",
		Field: "attachment " + owner.String(), Err: errors.New(strings.Join(lost, ", ")),
	}
}

// checkAddresses asks the delegate whether the addresses are still its own gift. One that has no CHECK says nothing against it.
func (p *Plugin) checkAddresses(ctx context.Context, rec record.Record, t netconf.Teardown) error {
	if rec.IPAM.Kind != netconf.IPAMDelegate || t.IPAM.Kind != netconf.IPAMDelegate || t.IPAM.Plugin != rec.IPAM.Plugin {
		return nil
	}
	rec.IPAM.Config = delegate.Again(rec.IPAM.Config, t.IPAM.Delegate) // with the result of ADD, which CHECK is held against
	err := p.Delegate.Check(ctx, call(rec))
	if errors.Is(err, delegate.ErrNoCheck) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("check addresses of %s: %w", rec.Owner, err)
	}
	return nil
}

// another is why a path tells nothing of the pod.
const another = "the path of the pod's network namespace leads to another one now"

// Inspect compares a record with what is there now: what is lost, and what is worth a warning.
func (p *Plugin) Inspect(ctx context.Context, rec record.Record) (lost, warnings []string, err error) { //nolint:nonamedreturns // tells the lists apart
	if rec.State != record.Done {
		return only(p.unfinished(ctx, rec))
	}
	s, err := p.Open(ctx, rec.NetNS.Path)
	if errors.Is(err, attach.ErrNoNetNS) {
		return only(p.gone(ctx, rec, "the path of the pod's network namespace is gone"))
	}
	if errors.Is(err, attach.ErrOwnNetNS) {
		return only(p.gone(ctx, rec, another))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("open network namespace %s: %w", rec.NetNS.Path, err)
	}
	defer func() { _ = s.Close() }()
	if !s.PodNS().Same(rec.NetNS) {
		return only(p.gone(ctx, rec, another))
	}
	now, err := s.Observe(ctx, query(rec))
	if err != nil {
		return nil, nil, fmt.Errorf("observe %s: %w", rec.Subject(), err)
	}
	var ports []attach.Port
	if name := rdmaName(rec, now); name != "" {
		// A device that went away between the two looks is what Diff reports, so no error of its own.
		ports, _ = s.Ports(ctx, attach.Pod, name)
	}
	lost, warnings = attach.Diff(want(rec), now, ports)
	return lost, warnings, nil
}

// only makes of one text the answer of Inspect.
func only(text string, err error) (lost, warnings []string, _ error) { //nolint:nonamedreturns // as declared
	if err != nil {
		return nil, nil, err
	}
	return []string{text}, nil, nil
}

// rdmaName is the device whose ports belong to the attachment; empty when it has none.
func rdmaName(rec record.Record, now attach.Facts) string {
	switch {
	case rec.Soft != "" && now.Soft != nil:
		return now.Soft.Name
	case rec.Soft == "" && now.RDMA != nil && (rec.Moved || len(rec.GIDs) > 0):
		return now.RDMA.Name
	}
	return ""
}
