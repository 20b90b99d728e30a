// SPDX-License-Identifier: Apache-2.0

//go:build lab

package exclusive_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
	"github.com/podfabric/podfabric/plugin/hint"
)

const softRoCE = `,"rdma":{"softRoCE":true,"wait":"30s"}`

// Bytes flow between two pods by device and GID index of their hints, and not by an index whose slot is empty.
func TestTrafficByTheHint(t *testing.T) {
	before := cni.Look(t)
	a, b := node.NewNS(t), node.NewNS(t)
	ca := cni.Call{Conf: network("rail0", node.VF(t, 1, 0), "10.9.0.1/24", softRoCE), ContainerID: "client", NetNS: a.Path}
	cb := cni.Call{Conf: network("rail0", node.VF(t, 2, 0), "10.9.0.2/24", softRoCE), ContainerID: "server", NetNS: b.Path}
	ca.Add(t)
	cb.Add(t)
	pa, pb := port(t, ca), port(t, cb)
	node.Wait(t, "the pods to reach each other", func() bool {
		_, err := a.Try("ping", "-c", "1", "-W", "1", "10.9.0.2")
		return err == nil
	})

	if out, err := bandwidth(t, a, b, pa, pb, 9, 9); err == nil {
		t.Errorf("traffic with an empty GID slot went through:\n%s", out)
	}
	out, err := bandwidth(t, a, b, pa, pb, *pa.GIDIndex, *pb.GIDIndex)
	if err != nil {
		t.Errorf("traffic by the hint: %v\n%s", err, out)
	}
	if rate(out) <= 0 {
		t.Errorf("no bandwidth in\n%s", out)
	}
	if f := ca.Check(t); f != nil {
		t.Errorf("CHECK: %s", f.Text())
	}
	ca.Del(t)
	b.Kill(t)
	cb.NetNS = ""
	cb.Del(t)
	before.Unchanged(t)
}

func port(t *testing.T, c cni.Call) hint.Port {
	t.Helper()
	doc, _ := c.Hint(t)
	if len(doc.Rails) != 1 || doc.Rails[0].RDMA == nil || doc.Rails[0].RDMA.GIDIndex == nil {
		t.Fatalf("the hint names no device with a GID: %+v", doc)
	}
	return *doc.Rails[0].RDMA
}

// bandwidth runs ib_write_bw, the server in b and the client in a, and gives the client's output.
func bandwidth(t *testing.T, a, b *node.NS, pa, pb hint.Port, ia, ib int) (string, error) {
	t.Helper()
	args := func(p hint.Port, index int, more ...string) []string {
		return append([]string{"60", "ib_write_bw", "-d", p.Device, "-x", strconv.Itoa(index), "-n", "200", "--report_gbits"}, more...)
	}
	served := make(chan struct{})
	go func() {
		_, _ = b.Try("timeout", args(pb, ib)...) // the client's output tells
		close(served)
	}()
	for end := time.Now().Add(node.Patience); ; {
		out, err := a.Try("timeout", args(pa, ia, "10.9.0.2")...)
		if err == nil || !strings.Contains(err.Error(), "Couldn't connect") || time.Now().After(end) {
			_, _ = b.Try("pkill", "-x", "ib_write_bw") // one that a failed client left waiting
			<-served
			return out, err
		}
	}
}

// rate is the average bandwidth that ib_write_bw printed, in Gb/s; 0 when it printed none.
func rate(out string) float64 {
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) >= 4 && fields[0] == "65536" {
			if v, err := strconv.ParseFloat(fields[3], 64); err == nil {
				return v
			}
		}
	}
	return 0
}

func TestSoftRoCEWhereItHasNoPlace(t *testing.T) {
	pod := node.NewNS(t)
	c := cni.Call{Conf: network("rail0", node.VF(t, 1, 1), "10.9.0.1/24", softRoCE), ContainerID: "soft", NetNS: pod.Path}
	c.AddFails(t, 102, "rdma.softRoCE", node.IBDev(node.VF(t, 1, 1)))
}

// A device that is open must not be pulled from under its user.
func TestOpenDeviceIsRefused(t *testing.T) {
	vf := node.VF(t, 1, 1)
	ib := node.IBDev(vf)
	pod := node.NewNS(t)
	stop := node.Hold(t, node.Uverbs(t, vf))
	c := cni.Call{Conf: network("rail0", vf, "10.9.0.7/24"), ContainerID: "open", NetNS: pod.Path}
	c.AddFails(t, 103, ib)
	stop()
}

func TestSettingsOfTwoRailsThatDisagree(t *testing.T) {
	before := cni.Look(t)
	pod := node.NewNS(t)
	const uid = "11111111-0000-4000-8000-000000000004"
	rail0 := cni.Call{
		Conf:        network("rail0", node.VF(t, 1, 1), "10.9.0.7/24", `,"rail":0,"hint":{"failClosed":true}`),
		ContainerID: "disagree", NetNS: pod.Path, UID: uid,
	}
	rail1 := cni.Call{
		Conf:        network("rail1", node.VF(t, 2, 1), "10.9.1.7/24", `,"rail":1,"hint":{"failClosed":false}`),
		ContainerID: "disagree", NetNS: pod.Path, UID: uid, IfName: "net2",
	}
	rail0.Add(t)
	_, settings := rail0.Hint(t)
	rail1.AddFails(t, 7, "rail0", "rail1")
	if _, now := rail0.Hint(t); !slices.Equal(settings, now) {
		t.Errorf("the refused rail changed the hint from %q to %q", settings, now)
	}
	rail0.Del(t)
	before.Unchanged(t)
}
