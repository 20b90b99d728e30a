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
	"github.com/podfabric/podfabric/plugin/statedir"
)

// fileAge is how old a file must be to count as left behind: any that a process is at work on is younger.
const fileAge = time.Minute

// files removes what processes left in the state folder that were killed while they wrote or held a lock.
func (r *repairing) files(ctx context.Context) error {
	before := r.Now().Add(-fileAge)
	left, err := r.Records.Leftovers(before)
	if err != nil {
		return fmt.Errorf("look for what was left in the state folder: %w", err)
	}
	for _, l := range left {
		r.settle(ctx, Finding{Kind: FindFile, Object: l.Path, Why: l.Why, Action: "remove it"}, func(ctx context.Context) (string, error) {
			return "", r.clear(ctx, l)
		})
	}
	locks, err := r.Locks.Left(before)
	if err != nil {
		return fmt.Errorf("look for locks that were left: %w", err)
	}
	for _, path := range locks {
		r.settle(ctx, Finding{
			Kind: FindFile, Object: path, Why: "the process that held this lock was killed", Action: "remove it",
		}, func(context.Context) (string, error) { return "", r.Locks.Clear(path) })
	}
	return nil
}

// clear holds the lock under which the file would be written.
func (r *repairing) clear(ctx context.Context, l record.Leftover) error {
	if l.Owner == (attach.Owner{}) {
		return r.Records.Clear(l)
	}
	unlock, err := r.lock(ctx, "attachment "+l.Owner.String(), repairVerb)
	if err != nil {
		return err
	}
	defer unlock()
	return r.Records.Clear(l)
}

// room warns of a state folder that cannot be written, since every ADD fails then.
func (r *repairing) room(context.Context) error {
	err := r.Records.Room()
	disk := (*statedir.UnwritableError)(nil)
	if !errors.As(err, &disk) {
		return err
	}
	r.leave(Finding{
		Kind: FindState, Object: disk.Path, Why: fmt.Sprintf("%v: every ADD on this node fails with code %d; DEL works", disk.Err, netconf.CodeIO),
	}, disk.Remedy)
	return nil
}
