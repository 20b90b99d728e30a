// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
)

// seek looks at what an attachment is made of. The link that it has on a master is looked for in all namespaces where it is not in the
// pod, for its address may still answer; then how that was done comes with the facts.
func (p *Plugin) seek(ctx context.Context, s Session, rec record.Record) (attach.Facts, *attach.Lost, error) {
	q := query(rec)
	now, err := s.Observe(ctx, q)
	if err == nil && attach.Stray(rec.Before, now) {
		q.Lost = attach.LostOf(rec.Owner, rec.Own, rec.NetNS)
		now, err = s.Observe(ctx, q)
	}
	if err != nil {
		return attach.Facts{}, nil, fmt.Errorf("observe %s: %w", rec.Subject(), err)
	}
	return now, q.Lost, nil
}

// shares tells whether the link of an attachment may still sit on its master: its pod lives, or the link is found elsewhere.
func (a *adding) shares(ctx context.Context, rec record.Record) (bool, error) {
	s, err := a.reopen(ctx, rec, "")
	if err != nil {
		return false, err
	}
	defer func() { _ = s.Close() }()
	if !s.PodNS().IsZero() {
		return true, nil
	}
	now, _, err := a.seek(ctx, s, rec)
	return now.Link != nil && now.Link.NS == attach.Elsewhere, err
}

// answers says who has the link of an attachment for which no DEL came, where its namespace lives on without its path: repair removes no
// link of a pod that may run. Empty: nobody has.
func (r *repairing) answers(ctx context.Context, rec record.Record) (string, error) {
	if rec.Master.Index == 0 || rec.State == record.Deleting || rec.State == record.Returning {
		return "", nil
	}
	s, err := r.reopen(ctx, rec, "")
	if err != nil {
		return "", err
	}
	defer func() { _ = s.Close() }()
	now, lost, err := r.seek(ctx, s, rec)
	if err != nil || now.Link == nil || now.Link.NS != attach.Elsewhere {
		return "", err
	}
	q := query(rec)
	q.Lost = lost
	return outcome{away: attach.Away(rec.Before, now), by: r.holders(ctx, s, q)}.left(), nil
}
