// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"testing"

	"github.com/podfabric/podfabric/plugin/statedir/proctest"
)

// TestFullAndReadOnly needs root for a tmpfs of its own.
func TestFullAndReadOnly(t *testing.T) {
	proctest.RunInMounts(t, "full", t.TempDir())
}
