// SPDX-License-Identifier: Apache-2.0

// Package kerneltest says what a kernel makes of steps, as data: situations, the step that meets each, and what comes of it. Tests
// hold the fake machine (plugin/attach/attachtest) and the real kernel (e2e/guest/kernel) to one and the same table, so that what the
// fake does has been seen. It is for tests only.
package kerneltest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// Machine is a node with a pod on which situations are made: an igb with VFs.
type Machine interface {
	attach.Kernel
	Observe(ctx context.Context, q attach.Query) (attach.Facts, error)
	// PF is the physical function, up and with carrier.
	PF() bus.ID
	// VFs are three of its functions at home, down. The first two have an RDMA device, the third has none.
	VFs() [3]bus.ID
	// Dummy makes a link that is nobody's, of kind bridge or dummy.
	Dummy(at attach.Place) error
}

// Seen is such a node before anything was done to it.
type Seen struct {
	PF  attach.Facts
	VFs [3]attach.Facts
}

// Look observes the functions of a machine.
func Look(ctx context.Context, m Machine) (Seen, error) {
	var s Seen
	var err error
	if s.PF, err = m.Observe(ctx, attach.Query{Device: m.PF()}); err != nil {
		return s, fmt.Errorf("look at the PF: %w", err)
	}
	for i, id := range m.VFs() {
		if s.VFs[i], err = m.Observe(ctx, attach.Query{Device: id, VF: true}); err != nil {
			return s, fmt.Errorf("look at VF %d: %w", i, err)
		}
	}
	return s, nil
}

// Situation is one that a step meets.
type Situation struct {
	Name string
	// Of is the function of attachtest that says what comes of it, and Errno what it says; Of is empty and Errno 0 where the step
	// succeeds.
	Of    string
	Errno error
	// Others are links that are in the way; nil: none.
	Others func(s Seen) []attach.Place
	// Before are the steps that lead to it; nil: none.
	Before func(s Seen) []attach.Step
	Step   func(s Seen) attach.Step
	// Half is what a step that failed has changed of the first VF; nil: nothing.
	Half func(was, now attach.Facts) bool
}

// Make leads a machine into the situation: the other links first, then the steps.
func (x Situation) Make(ctx context.Context, m Machine, s Seen) error {
	if x.Others != nil {
		for _, at := range x.Others(s) {
			if err := m.Dummy(at); err != nil {
				return fmt.Errorf("make %s: %w", at, err)
			}
		}
	}
	return x.Lead(ctx, m, s)
}

// Lead makes the steps alone.
func (x Situation) Lead(ctx context.Context, k attach.Kernel, s Seen) error {
	if x.Before == nil {
		return nil
	}
	for _, step := range x.Before(s) {
		if err := k.Apply(ctx, step); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	return nil
}

// Left holds what is seen of the first VF after a step that failed against what was seen before it. Indices of links change with
// every move.
func (x Situation) Left(was, now attach.Facts) error {
	if x.Half == nil {
		diff := cmp.Diff(was, now, cmpopts.IgnoreFields(attach.Link{}, "Index"), cmpopts.EquateEmpty())
		if diff != "" {
			return fmt.Errorf("a step that failed has changed the VF (-before +after):\n%s: %w", diff, ErrOtherwise)
		}
		return nil
	}
	if !x.Half(was, now) {
		return fmt.Errorf("half done, the VF has link %+v and RDMA device %+v: %w", now.Link, now.RDMA, ErrOtherwise)
	}
	return nil
}

// ErrOtherwise says that a machine is not as the table has it.
var ErrOtherwise = errors.New("not as in the table")

// All are the situations of every table.
func All() []Situation {
	return slices.Concat(moves(), links(), uppers(), rdma(), settings())
}
