// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/kernel"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// TestShowWhatIsLost: an attachment whose record is lost or cannot be read is the owner of its device all the same, one whose pod or function
// is gone is marked, and what is half done is not guessed.
func TestShowWhatIsLost(t *testing.T) {
	t.Parallel()
	n := exampleNode()
	n.gone = map[string]string{"c1": plugin.FunctionGone}
	n.records[1].State, n.records[1].Before.RDMA = record.Intent, &attach.RDMA{}
	n.lost = []plugin.Unrecorded{{
		Out: record.Out{
			Device: bus.PCI(fn(2)), Owner: attach.Owner{ContainerID: "c2", IfName: "net1"}, Pod: netconf.Pod{Namespace: "team-a", Name: "train-1"},
			NetNS: attach.NetNS{Path: "/run/netns/cni-2"},
		},
		Text: "nothing is recorded of this attachment any more, and its pod has the device: delete the pod",
	}}
	n.devices[1].Links[0].Where = kernel.Where{NetNS: "/run/netns/cni-2"}
	n.devices[1].RDMA[0].Where = n.devices[1].Links[0].Where
	n.broken = []error{&record.UnreadableError{
		File: "/run/podfabric/attachments/c5/net1.json", Reason: "a newer podfabric wrote it", Newer: true, Device: bus.PCI(fn(5)),
		Owner: attach.Owner{ContainerID: "c5", IfName: "net1"}, Pod: netconf.Pod{Namespace: "team-a", Name: "train-5"},
	}}
	n.room = errors.New("write /run/podfabric: free space")
	out, errs := runShow(t, n)
	for _, want := range []string{
		"pod team-a/train-0 team-a/train-0 net1 (function gone)\n", "pod team-a/train-1 team-a/train-1 net1 (unrecorded)\n",
		"not to be seen team-a/train-5 net1 (unreadable)\n",
		"team-a/train-0 rail0 net1 0000:3b:00.3 moved done, function gone 10.1.0.7/16 2h\n", "old rail0 net1 0000:3b:00.4 unknown intent - 5s\n",
		"team-a/train-5 - net1 0000:3b:00.5 unknown unreadable - -\n", "team-a/train-1 - net1 0000:3b:00.2 none unrecorded - -\n",
	} {
		if !strings.Contains(strings.ReplaceAll(squeeze(out), "  ", " "), want) {
			t.Errorf("the tables lack %q:\n%s", want, out)
		}
	}
	for _, want := range []string{
		"device 0000:3b:00.2 of pod team-a/train-1 (container c2, interface net1): nothing is recorded of this attachment any more, and its pod",
		"c5/net1.json of pod team-a/train-5: a newer podfabric wrote it; install the newer podfabric that wrote the record again, or delete pod team-a/train-5",
		"every ADD will be refused: write /run/podfabric: free space",
	} {
		if !strings.Contains(errs, want) {
			t.Errorf("the warnings lack %q:\n%s", want, errs)
		}
	}
	out, _ = runShow(t, n, "--json")
	for _, want := range []string{`"gone": "function"`, `"state": "unreadable"`, `"created": null`, `"rdma": "unknown"`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}
