// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin"
)

// everyOutcome has one finding of each kind and each outcome.
func everyOutcome() []plugin.Finding {
	const action = "bring its device home, free its addresses, drop its hint and its record"
	return []plugin.Finding{
		{
			Kind: plugin.FindAttachment, Object: "attachment 4c8e/net1", Outcome: plugin.Repaired, Action: action,
			Why: "of pod team-a/train-0, network rail0, vf of 0000:3b:00.3: its network namespace is gone, and no DEL came",
		},
		{
			Kind: plugin.FindAttachment, Object: "attachment 4c8f/net1", Outcome: plugin.Left, Action: action,
			Why:    "of pod team-a/train-1, network rail0, vf of 0000:3b:00.4: its DEL ended before everything was home or given back",
			Detail: "still away: netdev ens1f0v2 of 0000:3b:00.4, held by sleep (pid 71) in net:[4026532246]; end sleep (pid 71)",
		},
		{
			Kind: plugin.FindDevice, Object: "device 0000:3b:00.5", Outcome: plugin.Planned,
			Why:    "taken from home for pod team-a/train-2 (container 4c90, interface net1), of which nothing is recorded any more",
			Action: "set vlan of vf 3 of 0000:3b:00.0: 100 qos 0 proto 802.1q -> 0 qos 0 proto 802.1q",
		},
		{
			Kind: plugin.FindAttachment, Object: "attachment 4c92/net1", Outcome: plugin.Planned, Action: action, Detail: "once sleep (pid 441) ends",
			Why: "of pod team-a/train-3, network rail0, vf of 0000:3b:00.7: its network namespace is gone, and no DEL came",
		},
		{
			Kind: plugin.FindDevice, Object: "device 0000:3b:00.6", Outcome: plugin.Noted,
			Why:    "netdev net1 is in net:[4026532247], held by mount /run/netns/cni-7, pause (pid 90), and nothing is recorded of it",
			Detail: "another program may have given it to a pod",
		},
		{
			Kind: plugin.FindLease, Object: "address 10.1.0.9", Outcome: plugin.Failed, Why: "leased to 4c91/net1, of which nothing is recorded",
			Action: "free the address", Detail: "write /run/podfabric/leases: mount the file system of /run/podfabric read-write: read-only file system",
		},
		{
			Kind: plugin.FindFile, Object: "/run/podfabric/locks/rdma-move", Outcome: plugin.Repaired, Why: "the process that held this lock was killed",
			Action: "remove it",
		},
	}
}

// TestRepairJSON holds the output against the file that people's scripts are written by.
func TestRepairJSON(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("testdata/repair.json")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := printJSON(&out, everyOutcome()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("repair --json (-want +got):\n%s", diff)
	}
	var fields []map[string]any
	if err := json.Unmarshal(want, &fields); err != nil || len(fields) != len(everyOutcome()) {
		t.Errorf("the file: %v", err)
	}
}

// TestRepairText: every outcome is told in words, and what is only noted is no reason for exit code 1.
func TestRepairText(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("testdata/repair.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	printFindings(&out, everyOutcome())
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		t.Errorf("repair (-want +got):\n%s", diff)
	}
	var stdout, stderr strings.Builder
	s := streams{strings.NewReader(""), &stdout, &stderr}
	noted := &brokenNode{noted: everyOutcome()[4:5]}
	const first = "nothing that repair may touch; 1 noted:\ndevice 0000:3b:00.6: "
	if code := finish(t.Context(), newRepair(noted, s), nil, s); code != 0 || !strings.HasPrefix(stdout.String(), first) {
		t.Errorf("exit code %d: %s", code, stdout.String())
	}
}
