// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
)

// attachments releases those that nobody will release any more.
func (r *repairing) attachments(ctx context.Context) error {
	records, errs := r.Records.List()
	var failed []error
	for _, err := range errs {
		unreadable := (*record.UnreadableError)(nil)
		if !errors.As(err, &unreadable) {
			failed = append(failed, err)
			continue
		}
		r.leave(Finding{Kind: FindRecord, Object: unreadable.File, Why: unreadable.Reason},
			"nobody can tell whether its pod lives; delete the pod, whose DEL brings home what the claim tells, or remove the file if there is none")
	}
	for _, rec := range records {
		why, err := r.dead(ctx, rec)
		if err != nil {
			failed = append(failed, err)
		}
		if why == "" {
			failed = append(failed, r.living(ctx, rec))
			continue
		}
		if rec.State == record.Deleting && r.ends(ctx, rec) {
			continue
		}
		f := about(rec, why)
		f.Action = actionFor(rec)
		if r.dry {
			f.Detail = r.hindrance(ctx, rec)
		}
		r.settle(ctx, f, func(ctx context.Context) (string, error) { return r.finishAttachment(ctx, rec) })
	}
	return errors.Join(failed...)
}

// about begins a finding about an attachment.
func about(rec record.Record, why string) Finding {
	return Finding{
		Kind: FindAttachment, Object: "attachment " + rec.Owner.String(),
		Why: fmt.Sprintf("of pod %s, network %s, %s of %s: %s", rec.Pod, rec.Network, rec.Kind, rec.Subject(), why),
	}
}

// living says what repair must leave of an attachment that has somebody to release it, or may have.
func (r *repairing) living(ctx context.Context, rec record.Record) error {
	switch {
	case rec.State == record.Intent && !r.ends(ctx, rec):
		age := r.Now().Sub(rec.Created)
		again := (r.node.Deadline + undoLimit - age).Truncate(time.Second) + time.Second
		f := about(rec, fmt.Sprintf("its ADD began %s ago", age.Truncate(time.Second)))
		f.Outcome, f.Detail = Noted, fmt.Sprintf("it may still run; look again in %s", again)
		r.found = append(r.found, f)
	case rec.State == record.Done && !rec.Device.IsZero():
		now, err := r.host.Observe(ctx, attach.Query{Device: rec.Device})
		if err != nil {
			return fmt.Errorf("observe %s: %w", rec.Device, err)
		}
		why := ""
		if !now.Function.Exists {
			why = "its function is gone"
		} else if attach.Anew(rec.Before.Function, now.Function) {
			why = "its function is gone, and another is at that address since"
		}
		if again, err := r.Records.Load(rec.Owner); why != "" && err == nil && again.State == record.Done {
			r.leave(about(rec, why), "its pod lives and cannot get it back; delete the pod: its DEL frees address, claim and record")
		}
	}
	return nil
}

// hindrance says what putting an attachment right has to wait for: who keeps its device or link away. Empty: nothing that is known.
func (r *repairing) hindrance(ctx context.Context, rec record.Record) string {
	s, err := r.reopen(ctx, rec, "")
	if err != nil {
		return ""
	}
	defer func() { _ = s.Close() }()
	now, lost, err := r.seek(ctx, s, rec)
	if err != nil || len(attach.Away(rec.Before, now)) == 0 {
		return ""
	}
	q := query(rec)
	q.Lost = lost
	return once(r.holders(ctx, s, q))
}

// once words that for a finding; empty where nobody is known.
func once(held []attach.Holding) string {
	by := attach.Holders(held)
	if by == "" {
		return ""
	}
	return "once " + by + " ends"
}

// patience is how long an ADD or a DEL that is under way gets to end before its attachment counts as left behind.
const patience = time.Second

// actionFor says what clearing an attachment comes to. Of a link on a master nothing was taken from home.
func actionFor(rec record.Record) string {
	if rec.Master.Index != 0 {
		return "remove its link, free its addresses, drop its hint and its record"
	}
	return "bring its device home, free its addresses, drop its hint and its record"
}

// ends waits for an ADD or a DEL that may be under way.
func (r *repairing) ends(ctx context.Context, rec record.Record) bool {
	for deadline := r.Now().Add(patience); r.Now().Before(deadline) && pause(ctx) == nil; {
		now, err := r.Records.Load(rec.Owner)
		if err != nil || now.State != rec.State || !now.Created.Equal(rec.Created) {
			return true
		}
	}
	return false
}

// dead says why an attachment has nobody left to release it; empty when it has, or may have.
func (r *repairing) dead(ctx context.Context, rec record.Record) (string, error) {
	switch rec.State {
	case record.Deleting:
		return "its DEL was begun and not finished", nil
	case record.Returning:
		return "its DEL ended before everything was home or given back", nil
	case record.Intent, record.Done:
	}
	lives, err := r.lives(ctx, rec)
	switch {
	case err != nil:
		return "", err
	case !lives:
		return "its network namespace is gone, and no DEL came", nil
	case rec.State == record.Done:
		return "", nil
	}
	// An ADD ends by the node's deadline and has undoLimit to take itself back.
	if age := r.Now().Sub(rec.Created); age >= r.node.Deadline+undoLimit {
		return fmt.Sprintf("its ADD was begun %s ago and neither finished nor undone", age.Round(time.Second)), nil
	}
	return "", nil
}

// lives tells whether the namespace of a record is still the one that it means.
func (r *repairing) lives(ctx context.Context, rec record.Record) (bool, error) {
	s, err := r.Open(ctx, rec.NetNS.Path)
	if errors.Is(err, attach.ErrNoNetNS) || errors.Is(err, attach.ErrOwnNetNS) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open the network namespace of %s: %w", rec.Owner, err)
	}
	return s.PodNS().Same(rec.NetNS), s.Close()
}

func (r *repairing) finishAttachment(ctx context.Context, rec record.Record) (string, error) {
	unlock, err := r.locked(ctx, rec.Owner, rec.Device, repairVerb)
	if err != nil {
		return "", err
	}
	now, err := r.Records.Load(rec.Owner)
	var why string
	if err == nil {
		why, err = r.dead(ctx, now)
	}
	unlock()
	switch {
	case errors.Is(err, record.ErrNotFound), err == nil && why == "":
		return "", errSettled
	case err != nil:
		return "", fmt.Errorf("look at the record of %s again: %w", rec.Owner, err)
	}
	if left, looked := r.answers(ctx, now); looked != nil || left != "" {
		return left, looked
	}
	out, err := r.release(ctx, now, now.NetNS.Path, repairVerb)
	if err != nil || len(out.away) == 0 {
		return "", err
	}
	return out.left(), nil
}
