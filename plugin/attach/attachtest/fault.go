// SPDX-License-Identifier: Apache-2.0

package attachtest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/podfabric/podfabric/plugin/attach"
)

// ErrInjected is what a step fails with that was told to.
var ErrInjected = errors.New("injected failure")

// Extent is how much of a step is done when it fails or its process is killed.
type Extent int

// The extents.
const (
	Nothing Extent = iota
	Half           // what the kernel leaves of it: a link moved but not renamed; all of a step that cannot be halved
	Whole          // done, but the answer was never read
)

type fault struct {
	at     int // number of the call of Apply
	extent Extent
	kill   bool
	err    error
}

// FailAt lets the n-th next call of Apply, from 0, fail with ErrInjected: with nothing done, or half done.
func (k *Kernel) FailAt(n int, half bool) {
	extent := Nothing
	if half {
		extent = Half
	}
	k.FailWith(n, extent, ErrInjected)
}

// FailWith lets the n-th next call of Apply, from 0, fail with err.
func (k *Kernel) FailWith(n int, extent Extent, err error) {
	k.inject(n, fault{extent: extent, err: err})
}

// KillAt lets the process die in the n-th next call of Apply, from 0: Apply panics, and Killed, around the caller, notes it.
// What the caller defers runs; of a real kill it would be the kernel that closes files and lifts locks.
func (k *Kernel) KillAt(n int, extent Extent) {
	k.inject(n, fault{extent: extent, kill: true})
}

// ClearFaults forgets the faults that have not struck.
func (k *Kernel) ClearFaults() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.faults = nil
}

func (k *Kernel) inject(n int, f fault) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f.at = k.applies + n
	k.faults = append(k.faults, f)
}

type killed struct{}

// Killed runs fn and tells whether a KillAt struck in it.
func Killed(fn func()) (struck bool) { //nolint:nonamedreturns // a deferred function sets it
	defer func() {
		switch r := recover(); r.(type) {
		case nil:
		case killed:
			struck = true
		default:
			panic(r)
		}
	}()
	fn()
	return false
}

// Reap closes the sessions of a process that was killed. One that was killed while it had none is no obstacle.
func (k *Kernel) Reap() { k.in(func() { k.sessions = 0 }) }

// Apply ensures the state after step, as attach.Kernel wants it.
func (s *Session) Apply(ctx context.Context, step attach.Step) error {
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	k := s.k
	k.mu.Lock()
	defer k.mu.Unlock()
	k.trace = append(k.trace, step.String())
	f, struck := k.strike()
	if !struck {
		return s.apply(step, false)
	}
	var err error
	if f.extent != Nothing {
		err = s.apply(step, f.extent == Half)
	}
	if f.kill {
		panic(killed{})
	}
	if err == nil {
		err = f.err
	}
	return err
}

// strike counts a call of Apply and takes the fault that is meant for it.
func (k *Kernel) strike() (fault, bool) {
	i := slices.IndexFunc(k.faults, func(f fault) bool { return f.at == k.applies })
	k.applies++
	if i < 0 {
		return fault{}, false
	}
	f := k.faults[i]
	k.faults = slices.Delete(k.faults, i, i+1)
	return f, true
}
