// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"

	"github.com/podfabric/podfabric/plugin/attach"
)

// reset makes the function-level reset that the network asks for, when everything is home: it ends what the pod left in the
// device. It takes the link down and may take its settings, so they are restored once more. A function that is gone needs none.
func (r *releasing) reset(ctx context.Context) (outcome, error) {
	if err := r.applyReset(ctx); err != nil {
		return outcome{}, err
	}
	return r.home(ctx)
}

func (r *releasing) applyReset(ctx context.Context) error {
	unlock, err := r.locked(ctx, r.rec.Owner, r.rec.Device, r.verb)
	if err != nil {
		return err
	}
	defer unlock()
	if err = r.ours(); err != nil {
		return err
	}
	now, err := r.session.Observe(ctx, r.query())
	if err != nil {
		return fmt.Errorf("observe %s: %w", r.rec.Subject(), err)
	}
	was := r.rec.Before.Function
	if !now.Function.Exists || now.Function.Driver != was.Driver || attach.Anew(was, now.Function) {
		return nil // the pod never had what is there now
	}
	if err = attach.RunAll(ctx, r.session, attach.Reset(now)); err != nil {
		return fmt.Errorf("reset %s: %w", r.rec.Device, err)
	}
	return nil
}
