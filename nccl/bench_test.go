// SPDX-License-Identifier: Apache-2.0

package nccl_test

import (
	"testing"

	"github.com/podfabric/podfabric/nccl"
)

// ADD pays for this once an attachment; a shared rail is the dearest.
func BenchmarkDecideShared(b *testing.B) {
	r := onShared(rail(1, shared("::ffff:10.0.0.1", "::ffff:10.0.0.4", "::ffff:10.0.0.5", false), "10.0.0.5"))
	for b.Loop() {
		nccl.Decide([]nccl.Rail{r}, nccl.Options{})
	}
}
