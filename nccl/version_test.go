// SPDX-License-Identifier: Apache-2.0

package nccl_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/nccl"
)

func TestParseVersion(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"2.21", "2.21.5", "2.4.2", "2.100.1"} {
		if got := version(t, good).String(); got != good {
			t.Errorf("ParseVersion(%q) prints as %q", good, got)
		}
	}
	for _, bad := range []string{"", "2", "2.", "2.021", "2.21.5.1", "3.0", "1.3", "v2.21", ">=2.21", "2.-1", "2.21 ", "2.99999999"} {
		if v, err := nccl.ParseVersion(bad); !errors.Is(err, nccl.ErrVersion) {
			t.Errorf("ParseVersion(%q) = %v, %v; want ErrVersion", bad, v, err)
		}
	}
}

func TestFrom(t *testing.T) {
	t.Parallel()
	texts := func(list []nccl.Version) []string {
		var s []string
		for _, v := range list {
			s = append(s, v.String())
		}
		return s
	}
	tests := []struct {
		oldest string
		want   []string
	}{
		{"2.18.3", []string{"2.18.3", "2.20.5", "2.21.5", "2.23.4", "2.26.2", "2.30.7"}},
		{"2.21", []string{"2.21", "2.21.5", "2.23.4", "2.26.2", "2.30.7"}},
		{"2.26.2", []string{"2.26.2", "2.30.7"}},
		{"2.31", []string{"2.31"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, texts(nccl.From(version(t, tt.oldest)))); diff != "" {
			t.Errorf("From(%s) (-want +got):\n%s", tt.oldest, diff)
		}
	}
}
