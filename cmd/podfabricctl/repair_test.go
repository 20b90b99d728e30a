// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/plugin"
)

// brokenNode has things to repair, of which some cannot be; what is repaired is gone.
type brokenNode struct {
	found []plugin.Finding
	noted []plugin.Finding
	err   error
	user  bool
}

func (n *brokenNode) Privileged() bool { return !n.user }

func (n *brokenNode) Repair(_ context.Context, log io.Writer, dry bool) ([]plugin.Finding, error) {
	fmt.Fprintln(log, "level=INFO")
	var out, left []plugin.Finding
	for _, f := range n.found {
		switch {
		case dry:
			f.Outcome = plugin.Planned
		case f.Detail != "":
			f.Outcome = plugin.Left
		default:
			f.Outcome = plugin.Repaired
		}
		out = append(out, f)
		if f.Outcome != plugin.Repaired {
			left = append(left, f)
		}
	}
	n.found = left
	return append(out, n.noted...), n.err
}

func TestRepair(t *testing.T) {
	t.Parallel()
	hole := plugin.Finding{Kind: plugin.FindUverbs, Object: "uverbs3", Why: "free", Action: "move it"}
	stuck := plugin.Finding{Kind: plugin.FindName, Object: "device 0000:3b:00.3", Why: "its netdev is called dev5", Detail: "the node uses it"}
	tests := []struct {
		name string
		node brokenNode
		args []string
		code int
		out  string
	}{
		{"nothing", brokenNode{}, nil, 0, "nothing to repair\n"},
		{"nothing, as JSON", brokenNode{}, []string{"--json"}, 0, "[]\n"},
		{"a dry run", brokenNode{found: []plugin.Finding{hole}}, []string{"--dry-run"}, 1, "uverbs3: free\n    would move it\n"},
		{"repaired", brokenNode{found: []plugin.Finding{hole}}, nil, 0, "uverbs3: free\n    repaired: move it\n"},
		{
			"not all",
			brokenNode{found: []plugin.Finding{hole, stuck}},
			nil, 1,
			"uverbs3: free\n    repaired: move it\ndevice 0000:3b:00.3: its netdev is called dev5\n    left: the node uses it\n",
		},
		{"could not look", brokenNode{found: []plugin.Finding{hole}, err: errors.New("list claims: denied")}, nil, 2, "uverbs3: free\n    repaired: move it\n"},
		{"not root", brokenNode{user: true}, nil, 2, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr strings.Builder
			s := streams{strings.NewReader(""), &stdout, &stderr}
			n := tc.node
			if code := finish(t.Context(), newRepair(&n, s), tc.args, s); code != tc.code {
				t.Errorf("exit code %d, want %d: %s", code, tc.code, stderr.String())
			}
			if stdout.String() != tc.out {
				t.Errorf("output:\n%s\nwant:\n%s", stdout.String(), tc.out)
			}
			if tc.node.err != nil && !strings.Contains(stderr.String(), tc.node.err.Error()) {
				t.Errorf("standard error: %s", stderr.String())
			}
		})
	}
}
