// SPDX-License-Identifier: Apache-2.0

package tally_test

import (
	"testing"

	"github.com/podfabric/podfabric/e2e/tally"
)

func TestGrown(t *testing.T) {
	t.Parallel()
	before := tally.Tally{"links": 3, "mounts": 7}
	for _, tt := range []struct {
		name      string
		now       tally.Tally
		tolerance int
		want      string
	}{
		{"the same", tally.Tally{"links": 3, "mounts": 7}, 0, ""},
		{"one more", tally.Tally{"links": 4, "mounts": 7}, 0, "links: 4, before 3"},
		{"one less", tally.Tally{"links": 3, "mounts": 6}, 0, "mounts: 6, before 7"},
		{"a new one", tally.Tally{"links": 3, "mounts": 7, "routes": 1}, 0, "routes: 1, before 0"},
		{"as much as is tolerated", tally.Tally{"links": 8, "mounts": 2}, 5, ""},
		{"more than is tolerated", tally.Tally{"links": 9, "mounts": 2}, 5, "links: 9, before 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := before.Grown(tt.now, tt.tolerance); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
