// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"

	"github.com/podfabric/podfabric/plugin/attach"
)

// passes bounds how often a release puts right what it sees. A pod that still runs, as one does whose interface is unplugged, may
// change that between the look and the move home; what is home it cannot change any more, so that the second pass is the last.
const passes = 2

// pass restores what can be reached from what is seen, and gives what is seen then; nil when nothing could be.
func (r *releasing) pass(ctx context.Context, k attach.Kernel, seen attach.Facts) (*attach.Facts, error) {
	steps := r.steps(seen)
	for n := range passes {
		stepErr := attach.RunAll(ctx, k, steps)
		now, err := r.session.Observe(ctx, r.query())
		if err != nil {
			return nil, errors.Join(stepErr, fmt.Errorf("observe %s: %w", r.rec.Subject(), err))
		}
		seen, steps = now, r.steps(now)
		if stepErr != nil && n+1 < passes {
			if other, ok := attach.ByNone(steps, seen); ok {
				r.log.InfoContext(ctx, "taking the VF's administrative MAC away for its own", "cause", stepErr.Error())
				steps = other
				continue
			}
		}
		if stepErr != nil || len(steps) == 0 {
			return &seen, stepErr
		}
	}
	return &seen, nil
}

func (r *releasing) steps(now attach.Facts) []attach.Step {
	steps := attach.Restore(r.rec.Before, now)
	if r.rec.VF != nil {
		steps = append(steps, attach.Leftover(r.rec.Before, *r.rec.VF, now)...)
	}
	return steps
}
