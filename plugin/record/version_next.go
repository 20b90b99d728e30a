// SPDX-License-Identifier: Apache-2.0

//go:build recordnext

package record

// Of a build for the tests of a downgrade: its records are of the version after ours, and no program of ours may act on them.
const (
	Version    = 3
	compatible = 3
)
