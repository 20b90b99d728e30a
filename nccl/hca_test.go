// SPDX-License-Identifier: Apache-2.0

package nccl_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/nccl"
)

// The grammar of reference/nccl.md §2.2.
func TestMatchHCA(t *testing.T) {
	t.Parallel()
	tests := []struct {
		list, device string
		port         int
		want         bool
	}{
		{"", "mlx5_0", 1, true},
		{"mlx5_1", "mlx5_1", 1, true},
		{"mlx5_1", "mlx5_10", 1, true}, // a prefix
		{"=mlx5_1", "mlx5_10", 1, false},
		{"=mlx5_1", "mlx5_1", 2, true},
		{"=mlx5_5:1,mlx5_6:1", "mlx5_6", 1, true},
		{"=mlx5_5:1,mlx5_6:1", "mlx5_6", 2, false},
		{"=mlx5_5:1,mlx5_6:1", "mlx5_7", 1, false},
		{"=mlx5_5:1,mlx5_6:1", "mlx5_61", 1, false}, // exact for the whole list
		{"mlx5_1:0", "mlx5_1", 1, false},            // port 0 matches nothing
		{"^mlx5_1", "mlx5_10", 1, false},
		{"^mlx5_1", "mlx5_2", 1, true},
		{"^=mlx5_1", "mlx5_10", 1, true},
		{"^=mlx5_1:1", "mlx5_1", 1, false},
		{"^", "mlx5_1", 1, false},
		{"=", "mlx5_1", 1, true}, // no names are no list
		{"=^mlx5_1", "mlx5_1", 1, false},
		{"=mlx5_1 ", "mlx5_1", 1, false}, // nothing is trimmed
		{" mlx5_1", "mlx5_1", 1, false},
		{"mlx5_0:1:0:0", "mlx5_0", 1, true},
		{"mlx5_0::0:0", "mlx5_0", 1, false},
		{",,mlx5_0:1,", "mlx5_0", 1, true},
		{":1", "mlx5_0", 1, true},
		{"mlx5_0:-1", "mlx5_0", 2, true},
	}
	for _, tt := range tests {
		if got := nccl.MatchHCA(tt.list, tt.device, tt.port); got != tt.want {
			t.Errorf("MatchHCA(%q, %s, %d) = %v, want %v", tt.list, tt.device, tt.port, got, tt.want)
		}
	}
}

func TestHCAList(t *testing.T) {
	t.Parallel()
	got, err := nccl.HCAList([]nccl.HCA{{Device: "mlx5_5", Port: 1}, {Device: "rocep59s0v3", Port: 1}})
	if want := "=mlx5_5:1,rocep59s0v3:1"; got != want || err != nil {
		t.Errorf("HCAList = %q, %v; want %q", got, err, want)
	}
	bad := map[string][]nccl.HCA{
		"none":      nil,
		"too many":  make([]nccl.HCA, 17),
		"no name":   {{Port: 1}},
		"no port":   {{Device: "mlx5_0"}},
		"long name": {{Device: strings.Repeat("m", 64), Port: 1}},
	}
	for _, name := range []string{"a,b", "a:1", "=a", "^a", "a\nb", "a b", "a\x00", "é"} {
		bad[name] = []nccl.HCA{{Device: name, Port: 1}}
	}
	for name, hcas := range bad {
		if got, err := nccl.HCAList(hcas); !errors.Is(err, nccl.ErrUnwritable) {
			t.Errorf("%s: HCAList = %q, %v; want ErrUnwritable", name, got, err)
		}
	}
}

// Whatever HCAList writes takes its own ports and no other.
func FuzzHCAList(f *testing.F) {
	f.Add("mlx5_1", "mlx5_10", 1)
	f.Add("a", "=a", 2)
	f.Fuzz(func(t *testing.T, ours, other string, port int) {
		port = 1 + port&7
		list, err := nccl.HCAList([]nccl.HCA{{Device: "rxe0", Port: 1}, {Device: ours, Port: port}})
		if err != nil {
			return
		}
		if !nccl.MatchHCA(list, ours, port) || nccl.MatchHCA(list, ours, port+1) {
			t.Errorf("%q does not take %s:%d alone", list, ours, port)
		}
		if other != ours && other != "rxe0" && nccl.MatchHCA(list, other, port) {
			t.Errorf("%q takes %q", list, other)
		}
	})
}
