// SPDX-License-Identifier: Apache-2.0

package hint_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/hint"
)

func TestSettingsThatDiffer(t *testing.T) {
	t.Parallel()
	tc := 106
	tests := []struct {
		key    string
		change func(*hint.Settings)
	}{
		{"hint.volume", func(s *hint.Settings) { s.Volume = "other" }},
		{"hint.require", func(s *hint.Settings) { s.Require = true }},
		{"hint.nccl", func(s *hint.Settings) { s.NCCL = "2.26" }},
		{"hint.noRight", func(s *hint.Settings) { s.NoRight = netconf.NoRightFail }},
		{"hint.failClosed", func(s *hint.Settings) { s.FailClosed = true }},
		{"hint.trafficClass", func(s *hint.Settings) { s.TrafficClass = &tc }},
	}
	for _, tt := range tests {
		t.Run(tt.key, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, "podfabric")
			n.put(t, attachment(1, "10.1.0.5/24"))
			before := n.tree(t)
			f := attachment(2, "10.2.0.5/24")
			tt.change(&f.Settings)
			_, err := n.store.Put(t.Context(), uid, f)
			var problem *netconf.Problem
			if !errors.Is(err, hint.ErrConflict) || !errors.As(err, &problem) {
				t.Fatalf("got %v, want a problem that wraps ErrConflict", err)
			}
			for _, word := range []string{tt.key, "rail1", "rail2"} {
				if !strings.Contains(problem.Remedy, word) {
					t.Errorf("the remedy does not name %s: %s", word, problem.Remedy)
				}
			}
			if problem.Code != netconf.CodeInvalid || problem.Field != tt.key {
				t.Errorf("code %d, field %s", problem.Code, problem.Field)
			}
			if diff := cmp.Diff(before, n.tree(t)); diff != "" {
				t.Errorf("on disk (-before +after):\n%s", diff)
			}
		})
	}
}

// What a storage network says is no business of NCCL's, and defaults that are spelt out are no difference.
func TestSettingsThatMayDiffer(t *testing.T) {
	t.Parallel()
	n := newNode(t, "podfabric", "other")
	other := storage(attachment(1, "10.9.0.5/24"))
	other.Settings.FailClosed, other.Settings.Volume, other.Settings.NCCL = true, "other", "2.26"
	n.put(t, other)
	n.put(t, attachment(2, "10.2.0.5/24"))
	spelt := attachment(3, "10.3.0.5/24")
	spelt.Settings.NCCL, spelt.Settings.NoRight = ">=2.21", ""
	n.put(t, spelt)
	text := n.pod(t, "nccl.conf")
	if strings.Contains(text, "NCCL_NET=IB") || !strings.Contains(text, "NCCL_IB_HCA==mlx5_2:1,mlx5_3:1\n") {
		t.Errorf("got:\n%s", text)
	}
}

func TestNoRight(t *testing.T) {
	t.Parallel()
	n := newNode(t, "podfabric")
	one, two := macvlan(attachment(1, "10.1.0.5/24")), macvlan(attachment(2, "10.2.0.5/24"))
	n.put(t, one)
	if warnings := n.put(t, two); len(warnings) != 1 || !strings.Contains(warnings[0], "NCCL takes one") {
		t.Errorf("warnings: %q", warnings)
	}
	one.Settings.NoRight, two.Settings.NoRight = netconf.NoRightFail, netconf.NoRightFail
	strict := newNode(t, "podfabric")
	strict.put(t, one)
	_, err := strict.store.Put(t.Context(), uid, two)
	var problem *netconf.Problem
	if !errors.Is(err, hint.ErrNoRight) || !errors.As(err, &problem) || problem.Code != netconf.CodeHint {
		t.Errorf("got %v, want a problem of code %d that wraps ErrNoRight", err, netconf.CodeHint)
	}
}
