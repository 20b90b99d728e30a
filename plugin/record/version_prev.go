// SPDX-License-Identifier: Apache-2.0

//go:build recordprev

package record

// Of a build for the tests of an upgrade: its records are of the version before ours.
const (
	Version    = 1
	compatible = 0
)
