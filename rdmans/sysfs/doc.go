// SPDX-License-Identifier: Apache-2.0

// Package sysfs reads what the kernel shows of PCI network functions, RDMA devices, their ports and GIDs, under a given
// mount of sysfs. A mount of sysfs shows the network namespace of whoever mounted it, for ever and to everybody; View makes
// such a mount for any namespace without mounting it anywhere. The package writes nothing and keeps no state.
package sysfs

import "errors"

var (
	// ErrNotExist is wrapped by every error about a file or device that is not there, or went away while it was read.
	ErrNotExist = errors.New("does not exist")
	// ErrSyntax is wrapped by errors about text of the kernel in a form that this package does not know.
	ErrSyntax = errors.New("not of the form that is known")
)
