// SPDX-License-Identifier: Apache-2.0

//go:build lab

package chain_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// The RDMA device of a PF never moves, so that in exclusive mode a pod on a macvlan would see none: refused, whoever made the
// macvlan, until the network says that it wants no RDMA.
func TestMacvlanOnAnExclusiveNode(t *testing.T) {
	pf := node.PF(t, 1)
	netdev, ib := node.Netdev(pf), node.IBDev(pf)
	macvlan := fmt.Sprintf(`{"type":"macvlan","master":%q%s}`, netdev, static("10.9.0.7/24"))
	own := func(kind, rdma string) string {
		return fmt.Sprintf(`{"type":"podfabric","link":%q,"master":%q,"rdma":{"mode":%q}%s}`, kind, netdev, rdma, static("10.9.0.7/24"))
	}
	pod := node.NewNS(t)
	before := cni.Look(t)
	texts := []string{"use a VF", "podfabricctl mode set shared", "rdma.mode", netdev, ib}
	for name, plugins := range map[string]string{
		"macvlan and podfabric": macvlan + "," + podfabric(), "podfabric's macvlan": own("macvlan", "auto"), "podfabric's ipvlan": own("ipvlan", "auto"),
	} {
		t.Run(name, func(t *testing.T) {
			cni.Chain{List: list("1.1.0", plugins), ContainerID: "shared", NetNS: pod.Path}.Refused(t, 101, texts...)
		})
	}
	for name, plugins := range map[string]string{
		"macvlan and podfabric without RDMA": macvlan + "," + podfabric(`,"rdma":{"mode":"off"}`), "podfabric's macvlan without RDMA": own("macvlan", "off"),
		"podfabric's ipvlan without RDMA": own("ipvlan", "off"),
	} {
		t.Run(name, func(t *testing.T) {
			c := cni.Chain{List: list("1.1.0", plugins), ContainerID: "off", NetNS: pod.Path}
			c.Add(t)
			if got := node.IBDev(pf); got != ib {
				t.Errorf("the PF's RDMA device is %q, wanted %s at home", got, ib)
			}
			if devs := node.RDMA(t, pod); len(devs) != 0 {
				t.Errorf("RDMA devices in the pod: %v", devs)
			}
			if doc, settings := (cni.Call{ContainerID: "off"}).Hint(t); doc.Rails[0].RDMA != nil || len(settings) != 0 {
				t.Errorf("the hint tells of %+v, %q", doc.Rails[0].RDMA, settings)
			}
			if _, f := c.Run(t, "CHECK"); f != nil {
				t.Errorf("CHECK: %s", f.Text())
			}
			c.Del(t)
		})
	}
	before.Unchanged(t)
}

// GC and STATUS through libcni, which knows them from 1.1.0 on. A runtime that lost its cache and its pod is cleared up after;
// one that calls GC without a list, or whose pod lives, is not.
func TestGCAndStatus(t *testing.T) {
	first, second := node.VF(t, 1, 1), node.VF(t, 2, 1)
	ib := node.IBDev(first)
	before := cni.Look(t)
	alive, dead := node.NewNS(t), node.NewNS(t)
	living := cni.Chain{List: list("1.1.0", vf(first, "10.9.0.7/24")), ContainerID: "living", NetNS: alive.Path}
	gone := cni.Chain{List: list("1.1.0", vf(second, "10.9.0.8/24")), ContainerID: "gone", NetNS: dead.Path}
	if _, f := living.Run(t, "STATUS"); f != nil {
		t.Errorf("STATUS: %s", f.Text())
	}
	living.Add(t)
	gone.Add(t)
	dead.Kill(t)
	node.Wait(t, "the VF home", func() bool { return node.Netdev(second) != "" && node.IBDev(second) != "" })

	forgetful := cni.Chain{List: list("1.1.0", vf(first, "10.9.0.7/24")), ContainerID: "any", Cache: t.TempDir()}
	if _, f := forgetful.Run(t, "GC"); f != nil {
		t.Errorf("GC without a list: %s", f.Text())
	}
	if got := node.Netdev(second); got != "net1" {
		t.Errorf("GC without a list gave the VF's netdev the name %s", got)
	}
	forgetful.Valid = []json.RawMessage{}
	if _, f := forgetful.Run(t, "GC"); f != nil {
		t.Errorf("GC: %s", f.Text())
	}
	if got := node.Netdev(second); got == "net1" {
		t.Error("GC left the netdev of a dead pod under the pod's name")
	}
	inPod(t, "living", alive, ib, "10.9.0.7")
	if _, f := living.Run(t, "CHECK"); f != nil {
		t.Errorf("CHECK after GC: %s", f.Text())
	}
	living.Del(t)
	before.Unchanged(t)
}
