// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"crypto/sha256"
	"encoding/hex"
)

// nameMax is NAME_MAX of Linux' file systems, in bytes (limits.h).
const nameMax = 255

// shorten gives escaped when a file can be called so. The sum is of the whole name; '+' never stands in an escaped name, so
// that the two forms cannot meet.
func shorten(escaped, name string) string {
	if escaped == "" {
		return "+empty"
	}
	if len(escaped) <= nameMax {
		return escaped
	}
	sum := sha256.Sum256([]byte(name))
	return escaped[:128] + "+" + hex.EncodeToString(sum[:])
}
