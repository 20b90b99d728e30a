// SPDX-License-Identifier: Apache-2.0

//go:build lab

// Package shared_test proves the main job on a real kernel with RDMA namespaces shared: the VF moves, its RDMA device stays, and
// the pod learns which of all the devices it sees is its own.
package shared_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

//lab:boot pfs=1 vfs=3 mode=shared rdmasim=all

func init() { node.Main() }

func TestMain(m *testing.M) { cni.Main(m) }

func network(vf, address, rdma string) string {
	return fmt.Sprintf(`{"cniVersion":"1.0.0","name":"rail0","type":"podfabric","deviceID":%q,"rdma":%s,
		"ipam":{"type":"static","addresses":[{"address":%q}]}}`, vf, rdma, address)
}

func TestTheDeviceStaysAndIsNamed(t *testing.T) {
	before := cni.Look(t)
	vf0, vf1 := node.VF(t, 1, 0), node.VF(t, 1, 1)
	ib0, ib1 := node.IBDev(vf0), node.IBDev(vf1)
	a, b := node.NewNS(t), node.NewNS(t)
	ca := cni.Call{Conf: network(vf0, "10.9.0.1/24", `{"wait":"30s"}`), ContainerID: "a", NetNS: a.Path}
	cb := cni.Call{Conf: network(vf1, "10.9.0.2/24", `{"wait":"30s"}`), ContainerID: "b", NetNS: b.Path}
	ca.Add(t)
	cb.Add(t)
	if node.IBDev(vf0) != ib0 || node.IBDev(vf1) != ib1 {
		t.Error("an RDMA device left the node")
	}
	// Each pod sees both devices; the hint's exact list is all that keeps NCCL on its own.
	if _, settings := ca.Hint(t); !slices.Equal(settings, []string{"NCCL_IB_HCA==" + ib0 + ":1"}) {
		t.Errorf("pod a: nccl.conf sets %q, wanted the list of %s alone", settings, ib0)
	}
	doc, settings := cb.Hint(t)
	if !slices.Equal(settings, []string{"NCCL_IB_HCA==" + ib1 + ":1"}) {
		t.Errorf("pod b: nccl.conf sets %q, wanted the list of %s alone", settings, ib1)
	}
	if got := node.GIDs(t, nil, ib1)[*doc.Rails[0].RDMA.GIDIndex]; got != "RoCE v2 0000:0000:0000:0000:0000:ffff:0a09:0002" {
		t.Errorf("the hint's index holds %q", got)
	}
	if f := cb.Check(t); f != nil {
		t.Errorf("CHECK: %s", f.Text())
	}
	b.Run(t, "ip", "addr", "del", "10.9.0.2/24", "dev", "net1")
	if f := cb.Check(t); f == nil || !strings.Contains(f.Text(), "10.9.0.2") {
		t.Errorf("CHECK with the address gone: %+v", f)
	}
	ca.Del(t)
	b.Kill(t)
	cb.NetNS = ""
	cb.Del(t)
	before.Unchanged(t)
}

func TestMoveIsRefused(t *testing.T) {
	pod := node.NewNS(t)
	c := cni.Call{Conf: network(node.VF(t, 1, 0), "10.9.0.1/24", `{"mode":"move"}`), ContainerID: "move", NetNS: pod.Path}
	c.AddFails(t, 101, "podfabricctl mode set exclusive")
}

func TestSoftRoCEIsRefused(t *testing.T) {
	pod := node.NewNS(t)
	c := cni.Call{Conf: network(node.VF(t, 1, 0), "10.9.0.1/24", `{"softRoCE":true}`), ContainerID: "soft", NetNS: pod.Path}
	c.AddFails(t, 101, "rdma.softRoCE")
}

func TestModeSetNamesWhatIsInTheWay(t *testing.T) {
	pod := node.NewNS(t)
	out := node.Run(t, "sh", "-c", "podfabricctl mode set exclusive --dry-run 2>&1 || echo status $?")
	if !strings.Contains(out, pod.Name) || !strings.Contains(out, "ib_core.netns_mode=0") {
		t.Errorf("mode set exclusive says\n%s\nwanted the namespace %s and the kernel argument in it", out, pod.Name)
	}
	if mode := node.Run(t, "podfabricctl", "mode"); !strings.Contains(mode, "shared") {
		t.Errorf("mode: %s", mode)
	}
}

// Runs last in this boot: nothing of RDMA is left after it.
func TestZZWithoutRDMAModules(t *testing.T) {
	vf := node.VF(t, 1, 0)
	// Opening an RDMA netlink socket makes the kernel ask for ib_core; on such a node there is none to load.
	if err := os.WriteFile("/etc/modprobe.d/none.conf", []byte("install ib_core /bin/false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	node.Run(t, "rmmod", "rdmasim", "rdma_rxe")
	for module := range strings.FieldsSeq(node.Run(t, "sh", "-c", "lsmod | awk '/^(rdma|ib|iw)_/{print $1}'")) {
		_, _ = node.Try("modprobe", "-r", module)
	}
	if left := node.Run(t, "sh", "-c", "lsmod | grep -c '^ib_core' || :"); left != "0" {
		t.Fatalf("ib_core is still loaded: %s", node.Run(t, "lsmod"))
	}
	before := cni.Look(t)
	pod := node.NewNS(t)
	c := cni.Call{Conf: network(vf, "10.9.0.1/24", `{"mode":"move"}`), ContainerID: "norail", NetNS: pod.Path}
	c.AddFails(t, 100, "ib_core")
	off := cni.Call{Conf: network(vf, "10.9.0.1/24", `{"mode":"off"}`), ContainerID: "off", NetNS: pod.Path}
	off.Add(t)
	off.Del(t)
	before.Unchanged(t)
}
