// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/podfabric/podfabric/ipam/lease"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// leases frees the addresses of attachments that are not recorded. An ADD records itself before it takes an address, and a
// DEL gives the address back before it drops the record, so that such an address is nobody's.
func (r *repairing) leases(ctx context.Context) error {
	all, errs := r.Leases.List()
	var failed []error
	for _, err := range errs {
		if !errors.Is(err, lease.ErrForeign) {
			failed = append(failed, err)
			continue
		}
		r.leave(Finding{Kind: FindLease, Object: "leases", Why: err.Error()}, "podfabric does not remove what it did not make")
	}
	for _, l := range all {
		id, ifname, ok := strings.Cut(l.Owner, "/")
		owner := attach.Owner{ContainerID: id, IfName: ifname}
		f := Finding{
			Kind: FindLease, Object: "address " + l.Addr.String(), Action: "free the address",
			Why: fmt.Sprintf("leased to %s, of which nothing is recorded", l.Owner),
		}
		if !ok {
			r.leave(f, "its owner is no attachment that this version knows")
			continue
		}
		if _, err := r.Records.Load(owner); !errors.Is(err, record.ErrNotFound) {
			continue // readable or not, it is the record's
		}
		failed = append(failed, r.disowned(ctx, f, owner))
	}
	return errors.Join(failed...)
}

// disowned frees the addresses of an owner that is not recorded, unless its pod may live.
func (r *repairing) disowned(ctx context.Context, f Finding, owner attach.Owner) error {
	why, err := r.survivor(ctx, owner)
	if err != nil {
		return err
	}
	still, err := r.leased(ctx, owner)
	switch {
	case err != nil:
		return err
	case still && why != "":
		r.spare(f, why)
	case still:
		r.settle(ctx, f, func(ctx context.Context) (string, error) { return "", r.free(ctx, owner) })
	}
	return nil
}

// free holds the attachment's lock, under which an ADD of it records itself.
func (r *repairing) free(ctx context.Context, owner attach.Owner) error {
	unlock, err := r.locked(ctx, owner, bus.ID{}, repairVerb)
	if err != nil {
		return err
	}
	defer unlock()
	if !r.leaves(owner) {
		return errSettled
	}
	if err := r.Leases.Release(ctx, owner.String()); err != nil {
		return fmt.Errorf("free the addresses of %s: %w", owner, err)
	}
	return nil
}

// leased tells whether an owner that is not recorded has leases, looking under its lock.
func (r *repairing) leased(ctx context.Context, owner attach.Owner) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, r.node.Deadline)
	defer cancel()
	unlock, err := r.locked(ctx, owner, bus.ID{}, repairVerb)
	if err != nil {
		return false, err
	}
	defer unlock()
	return r.leaves(owner), nil
}

// leaves tells that of an owner whose lock is held. A DEL may have given the address back and dropped the record since the two were looked
// at, one after the other.
func (r *repairing) leaves(owner attach.Owner) bool {
	if _, err := r.Records.Load(owner); !errors.Is(err, record.ErrNotFound) {
		return false
	}
	all, _ := r.Leases.List()
	return slices.ContainsFunc(all, func(l lease.Lease) bool { return l.Owner == owner.String() })
}

// isSoftName tells whether attach.SoftName can have made the name. Not an expression: compiling one costs every start of the
// plugin.
func isSoftName(name string) bool {
	digits, ok := strings.CutPrefix(name, "pf")
	if !ok || len(digits) != 10 {
		return false
	}
	return strings.Trim(digits, "0123456789abcdef") == ""
}

// soft removes the soft RoCE devices at home that belong to no attachment. A soft device is made after its record and removed
// before it, so records are read after devices: a device that none of them names is nobody's, with no lock needed.
func (r *repairing) soft(ctx context.Context) error {
	orphans, err := r.orphans(ctx)
	if len(orphans) == 0 {
		return err
	}
	owners, err := r.owners()
	if err != nil {
		return err
	}
	var failed []error
	for _, name := range orphans {
		f := Finding{Kind: FindSoft, Object: "soft RoCE device " + name, Why: "no attachment has it", Action: "remove it"}
		why := ""
		if owner, known := owners[name]; known {
			if why, err = r.survivor(ctx, owner); err != nil {
				failed = append(failed, err)
				continue
			}
		}
		if why != "" {
			r.spare(f, why)
			continue
		}
		r.settle(ctx, f, func(ctx context.Context) (string, error) {
			return "", r.host.Apply(ctx, attach.DelSoftRoCE{Name: name})
		})
	}
	return errors.Join(failed...)
}

func (r *repairing) orphans(ctx context.Context) ([]string, error) {
	now, err := r.host.Observe(ctx, attach.Query{})
	if err != nil {
		return nil, fmt.Errorf("look at the host's RDMA devices: %w", err)
	}
	records, errs := r.Records.List()
	owned := map[string]bool{}
	for _, rec := range records {
		owned[attach.SoftName(rec.Owner)] = true
	}
	for _, err := range errs {
		unreadable := (*record.UnreadableError)(nil)
		if !errors.As(err, &unreadable) {
			return nil, err // without all records nobody can tell which are orphans
		}
		ifname := strings.TrimSuffix(filepath.Base(unreadable.File), ".json")
		id := filepath.Base(filepath.Dir(unreadable.File))
		owned[attach.SoftName(attach.Owner{ContainerID: id, IfName: ifname})] = true
	}
	var orphans []string
	for _, name := range now.HostRDMA {
		if isSoftName(name) && !owned[name] {
			orphans = append(orphans, name)
		}
	}
	return orphans, nil
}

// hints removes the files of pods that have no attachment.
func (r *repairing) hints(ctx context.Context) error {
	dead, err := r.hintless(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, key := range dead {
		f := Finding{Kind: FindHint, Object: "hint of pod " + key, Why: "none of its attachments is recorded", Action: "remove its files"}
		why, err := r.reader(ctx, key)
		switch {
		case err != nil:
			failed = append(failed, err)
		case why == "":
			r.settle(ctx, f, func(ctx context.Context) (string, error) { return r.unhint(ctx, key) })
		default:
			still, err := r.hintless(ctx)
			if failed = append(failed, err); slices.Contains(still, key) {
				r.spare(f, why)
			}
		}
	}
	return errors.Join(failed...)
}

// hintless lists the pods that have a hint and no attachment that is recorded. It waits for the lock of each, and no longer than an ADD would.
func (r *repairing) hintless(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, r.node.Deadline)
	defer cancel()
	dead, err := r.Hints.Dead(ctx, r.recorded)
	if err != nil {
		return nil, fmt.Errorf("look for hints of pods that are gone: %w", err)
	}
	return dead, nil
}

func (r *repairing) unhint(ctx context.Context, key string) (string, error) {
	if err := r.Hints.PruneOne(ctx, key, r.recorded); err != nil {
		return "", fmt.Errorf("remove the hint of a pod that is gone: %w", err)
	}
	still, err := r.hintless(ctx)
	if err != nil {
		return "", err
	}
	if slices.Contains(still, key) {
		return "somebody works on it, or what the pod has put into " + filepath.Join(r.Hints.Root, "pods", key) +
			" cannot be removed: look there, and remove it", nil
	}
	return "", nil
}

// recorded tells whether an attachment may be alive: anything but the certainty that nothing is recorded of it.
func (r *repairing) recorded(owner attach.Owner) bool {
	_, err := r.Records.Load(owner)
	return !errors.Is(err, record.ErrNotFound)
}
