// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// TestCheckWithoutRecords: an attachment whose record is lost, or cannot be read, is checked by its pod's name as any other, and is lost. What
// may be another program's is only noted.
func TestCheckWithoutRecords(t *testing.T) {
	t.Parallel()
	lost := []plugin.Unrecorded{{
		Out: record.Out{
			Device: bus.PCI(fn(5)), Owner: attach.Owner{ContainerID: "beef0005", IfName: "net1"}, Pod: netconf.Pod{Namespace: "team-a", Name: "trainer-5"},
		},
		Text: "nothing is recorded of this attachment any more, and its pod has the device: delete the pod",
	}}
	torn := []error{&record.UnreadableError{
		File: "/run/x.json", Reason: "it is not JSON", Owner: attach.Owner{ContainerID: "beef0006", IfName: "net1"}, Device: bus.PCI(fn(6)),
		Pod: netconf.Pod{Namespace: "team-a", Name: "trainer-6"},
	}}
	blank := []error{&record.UnreadableError{File: "/run/y.json", Reason: "it is not JSON", Owner: attach.Owner{ContainerID: "beef0007", IfName: "net1"}}}
	astray := func(f uint8) []attach.Astray {
		return []attach.Astray{{Device: bus.PCI(fn(f)), Held: []attach.Holding{{
			What: "netdev net1 of 0000:3b:00.7", NS: attach.NetNS{Dev: 4, Ino: 77}, By: []string{"pause (pid 71)"},
		}}}}
	}
	saysLost := "team-a/trainer-5 net1 (0000:3b:00.5): lost\n    lost: " + lost[0].Text + "\n"
	saysTorn := "team-a/trainer-6 net1 (0000:3b:00.6): lost\n    lost: read record /run/x.json of pod team-a/trainer-6: it is not JSON; " +
		"delete pod team-a/trainer-6\n"
	saysBlank := "container beef0007 net1: lost\n    lost: read record /run/y.json: it is not JSON; delete the pod of container beef0007\n"
	saysNoted := "device 0000:3b:00.7: noted\n    noted: netdev net1 of 0000:3b:00.7 is in net:[77], held by pause (pid 71), and nothing is recorded of it: " +
		"another program may have given it to a pod; if podfabric did and its state folder was emptied since, delete the pod\n"
	for name, tc := range map[string]struct {
		node attached
		args []string
		code int
		out  string
	}{
		"all":                               {attached{unrecorded: lost, unreadable: torn}, []string{"--all"}, 1, saysTorn + saysLost},
		"by the pod's name":                 {attached{unrecorded: lost, unreadable: torn}, []string{"trainer-5"}, 1, saysLost},
		"by the pod's name, too":            {attached{unrecorded: lost, unreadable: torn}, []string{"team-a/trainer-6"}, 1, saysTorn},
		"nothing tells the pod":             {attached{unreadable: blank}, []string{"--all"}, 1, saysBlank},
		"a stranger":                        {attached{astray: astray(7)}, []string{"--all"}, 0, saysNoted},
		"no stranger, it is recorded":       {attached{astray: astray(3)}, []string{"--all"}, 0, ""},
		"no stranger, its record is lost":   {attached{astray: astray(5), unrecorded: lost}, []string{"--all"}, 1, saysLost},
		"perhaps none, nothing tells whose": {attached{astray: astray(7), unreadable: blank}, []string{"--all"}, 1, saysBlank},
		"its pod ended meanwhile":           {attached{lost: map[string][]string{"net2": {"gone"}}, ends: "net2"}, []string{"--all"}, 0, ""},
		"its record is there, and another device of it was lost": {
			attached{unrecorded: []plugin.Unrecorded{{
				Out: record.Out{Device: bus.PCI(fn(5)), Owner: attach.Owner{ContainerID: "feed0003", IfName: "net4"}}, Text: "lost",
			}}},
			[]string{"feed0003"},
			1, "container feed0003 net4 (0000:3b:00.5): lost\n    lost: lost\n",
		},
		"nobody asked for strangers": {attached{astray: astray(7)}, []string{"feed0003"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errOut bytes.Buffer
			s := streams{nil, &out, &errOut}
			code := finish(t.Context(), newCheck(&tc.node, s), tc.args, s)
			var got strings.Builder
			for line := range strings.Lines(out.String()) {
				if !strings.HasSuffix(line, ": ok\n") {
					got.WriteString(line)
				}
			}
			if diff := cmp.Diff(tc.out, got.String()); diff != "" || code != tc.code {
				t.Errorf("exit %d, want %d; %s\noutput (-want +got):\n%s", code, tc.code, errOut.String(), diff)
			}
		})
	}
}
