// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
)

const runRepair = "run podfabricctl repair"

// unfinished says what is to be said of an attachment of which an ADD or DEL did not end, or not everything came home.
func (p *Plugin) unfinished(ctx context.Context, rec record.Record) (string, error) {
	switch rec.State {
	case record.Intent:
		age := p.Now().Sub(rec.Created).Round(time.Second)
		return fmt.Sprintf("its ADD began %s ago and has not ended (state intent): it is at work, or was killed and podfabricctl repair takes it back", age), nil
	case record.Returning:
		return p.gone(ctx, rec, "its DEL is over (state returning)")
	case record.Deleting, record.Done:
	}
	return "its DEL began and has not ended (state deleting): it is at work, or was cut short and podfabricctl repair finishes it", nil
}

// gone adds to why an attachment is not what it was where the device, or the link, is now, and what is to be done.
func (p *Plugin) gone(ctx context.Context, rec record.Record, why string) (string, error) {
	s, err := p.reopen(ctx, rec, "")
	if err != nil {
		return "", err
	}
	defer func() { _ = s.Close() }()
	now, lost, err := p.seek(ctx, s, rec)
	if err != nil {
		return "", err
	}
	away := attach.Away(rec.Before, now)
	if len(away) == 0 {
		return why + "; " + runRepair, nil
	}
	q := query(rec)
	q.Lost = lost
	return why + "; " + outcome{away: away, by: p.holders(ctx, s, q)}.left() + ", then " + runRepair, nil
}
