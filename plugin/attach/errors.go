// SPDX-License-Identifier: Apache-2.0

package attach

import "errors"

// The errors of this package and of what implements Kernel. Refusals that a person has to act on are *netconf.Problem.
var (
	// ErrConflict: the object of a step is neither where the step has it before nor where it has it after.
	ErrConflict = errors.New("the object is neither in the state before the step nor in the state after it")
	// ErrNoNetNS: a path leads to no network namespace; it is missing, or what is there is none.
	ErrNoNetNS = errors.New("no network namespace")
	// ErrOwnNetNS: a path leads to the network namespace that the plugin itself runs in.
	ErrOwnNetNS = errors.New("the plugin's own network namespace")
)

// StepError tells which step failed. When it comes from undoing, Step is the reverse that was tried.
type StepError struct {
	Step Step
	Err  error
}

// Error gives the step's line and the cause.
func (e *StepError) Error() string { return e.Step.String() + ": " + e.Err.Error() }

// Unwrap gives the cause.
func (e *StepError) Unwrap() error { return e.Err }
