// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// undoLimit is the time that undoing has of its own.
const undoLimit = 10 * time.Second

// Run applies steps in order. When one fails it takes back that one, since a move that failed may have moved (style.md M4),
// and all before it, newest first. Undoing does not hear the caller's cancellation, which may be why the step failed. The
// error is a *StepError, joined with what went wrong while undoing; then Restore from the facts before finishes.
func Run(ctx context.Context, k Kernel, steps []Step) error {
	for i, s := range steps {
		err := apply(ctx, k, s)
		if err == nil {
			continue
		}
		if undo := Undo(ctx, k, steps[:i+1]); undo != nil {
			return errors.Join(err, fmt.Errorf("undo: %w", undo))
		}
		return err
	}
	return nil
}

// Undo applies the reverses of steps, newest first. It tries all of them and joins the errors. A step that was never applied
// is no obstacle: its reverse finds the state before. ctx gives values only; undoing has ten seconds of its own.
func Undo(ctx context.Context, k Kernel, steps []Step) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	var back []Step
	for _, s := range slices.Backward(steps) {
		if r := s.Reverse(); r != nil {
			back = append(back, r)
		}
	}
	return RunAll(ctx, k, back)
}

// RunAll applies every step, also after one has failed, and joins the errors. It is for the steps of Restore: what can come
// home comes home. While the pod keeps something of a VF, what the PF enforces on that stays too.
func RunAll(ctx context.Context, k Kernel, steps []Step) error {
	var errs []error
	var stays bool
	for _, s := range steps {
		if _, wall := s.(SetVF); wall && stays {
			continue
		}
		err := apply(ctx, k, s)
		stays = stays || err != nil && leaves(s)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// leaves tells whether a step takes a device out of the pod.
func leaves(s Step) bool {
	switch s := s.(type) {
	case MoveLink:
		return s.From.NS == Pod && s.To.NS == Host
	case MoveRDMA:
		return s.From == Pod && s.To == Host
	}
	return false
}

// apply refuses to begin a step whose time is over: an implementation may look at ctx only while it waits.
func apply(ctx context.Context, k Kernel, s Step) error {
	err := context.Cause(ctx)
	if err == nil {
		err = k.Apply(ctx, s)
	}
	if err != nil {
		return &StepError{Step: s, Err: err}
	}
	return nil
}
