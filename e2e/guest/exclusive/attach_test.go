// SPDX-License-Identifier: Apache-2.0

//go:build lab

// Package exclusive_test proves the main job on a real kernel with RDMA namespaces exclusive: a VF and its RDMA device go
// into a pod and come home, whatever happens between.
package exclusive_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// The first VF of each NIC has no RDMA device, so that a soft one can be made on it; all other functions have one.
//
//lab:boot pfs=2 vfs=4 mode=exclusive seconds=900 rdmasim=0000:01:00.0,0000:01:10.2,0000:01:10.4,0000:01:10.6,0000:02:00.0,0000:02:10.2,0000:02:10.4,0000:02:10.6 bin=./e2e/guest/fakeipam,./e2e/demo/devices

func init() { node.Main() }

func TestMain(m *testing.M) { cni.Main(m) }

// network is a configuration for a VF; more are further keys, each beginning with a comma.
func network(name, vf, address string, more ...string) string {
	return fmt.Sprintf(`{"cniVersion":"1.1.0","name":%q,"type":"podfabric","deviceID":%q,
		"ipam":{"type":"static","addresses":[{"address":%q}]}%s%s}`,
		name, vf, address, strings.Join(more, ""), patience(more))
}

func patience(more []string) string {
	if strings.Contains(strings.Join(more, ""), `"rdma"`) {
		return ""
	}
	return `,"rdma":{"wait":"30s"}`
}

func TestAttachmentComesAndGoes(t *testing.T) {
	before := cni.Look(t)
	vf := node.VF(t, 1, 1)
	ib, netdev := node.IBDev(vf), node.Netdev(vf)
	pod := node.NewNS(t)
	c := cni.Call{
		Conf: network("rail0", vf, "10.9.0.7/24", `,"mtu":1400`), ContainerID: "comes", NetNS: pod.Path,
		UID: "11111111-0000-4000-8000-000000000001",
	}
	volume := c.Volume(t, "podfabric")
	r := c.Add(t)

	if len(r.Interfaces) != 1 || r.Interfaces[0].Name != "net1" || r.Interfaces[0].PciID != vf || r.Interfaces[0].Mtu != 1400 ||
		r.Interfaces[0].Sandbox != pod.Path || len(r.IPs) != 1 || r.IPs[0].Interface == nil || *r.IPs[0].Interface != 0 {
		t.Errorf("result: %+v", r)
	}
	if mac := pod.Run(t, "cat", "/sys/class/net/net1/address"); mac != r.Interfaces[0].Mac {
		t.Errorf("MAC in the result %q, in the pod %q", r.Interfaces[0].Mac, mac)
	}
	if link := pod.Run(t, "ip", "-br", "addr", "show", "dev", "net1"); !strings.Contains(link, "UP") || !strings.Contains(link, "10.9.0.7/24") {
		t.Errorf("net1 in the pod: %s", link)
	}
	if devs := node.RDMA(t, pod); len(devs) != 1 || devs[0].Name != ib {
		t.Errorf("RDMA devices in the pod: %v, wanted %s", devs, ib)
	}
	if slices.ContainsFunc(node.RDMA(t, nil), func(d node.RDMADevice) bool { return d.Name == ib }) {
		t.Errorf("the node still has %s", ib)
	}
	if f := c.Check(t); f != nil {
		t.Errorf("CHECK: %s", f.Text())
	}

	doc, settings := c.Hint(t)
	if want := []string{"NCCL_IB_HCA==" + ib + ":1"}; !slices.Equal(settings, want) {
		t.Errorf("nccl.conf sets %q, wanted %q", settings, want)
	}
	// The kernel's own table says where the address is, not our reading of it.
	index := *doc.Rails[0].RDMA.GIDIndex
	if got := node.GIDs(t, pod, ib)[index]; got != "RoCE v2 0000:0000:0000:0000:0000:ffff:0a09:0007" {
		t.Errorf("GID %d of the hint is %q", index, got)
	}
	for _, file := range []string{"fabric.json", "nccl.conf"} {
		if _, err := os.Stat(volume + "/" + file); err != nil {
			t.Errorf("the pod's volume: %v", err)
		}
	}

	c.Del(t)
	if got := node.IBDev(vf); got != ib {
		t.Errorf("RDMA device at home: %q, wanted %s", got, ib)
	}
	if got := node.Netdev(vf); got != netdev {
		t.Errorf("netdev at home: %q, wanted %s", got, netdev)
	}
	c.Del(t)
	before.Unchanged(t)
}

func TestDelOfWhatNeverWas(t *testing.T) {
	before := cni.Look(t)
	pod := node.NewNS(t)
	for _, ns := range []string{pod.Path, "", "/run/netns/never"} {
		cni.Call{Conf: network("rail0", node.VF(t, 1, 1), "10.9.0.7/24"), ContainerID: "never", NetNS: ns}.Del(t)
	}
	before.Unchanged(t)
}

// The kernel returns the netdev under its pod name and, when the RDMA device's own name was taken meanwhile, calls it ibdevN.
func TestNamespaceDiesAndNamesAreTaken(t *testing.T) {
	vf, other := node.VF(t, 1, 1), node.VF(t, 1, 2)
	ib, netdev, otherIB := node.IBDev(vf), node.Netdev(vf), node.IBDev(other)
	before := cni.Look(t)
	pod := node.NewNS(t)
	c := cni.Call{Conf: network("rail0", vf, "10.9.0.7/24"), ContainerID: "dies", NetNS: pod.Path}
	c.Add(t)

	node.Run(t, "rdma", "dev", "set", otherIB, "name", ib)
	pod.Kill(t)
	node.Wait(t, "the devices home", func() bool { return node.IBDev(vf) != "" && node.Netdev(vf) != "" })
	if got := node.IBDev(vf); !strings.HasPrefix(got, "ibdev") {
		t.Fatalf("the kernel called the device %s; this test wants ibdevN", got)
	}
	if got := node.Netdev(vf); got != "net1" {
		t.Fatalf("the kernel called the netdev %s; this test wants net1", got)
	}
	// Its name is still taken: DEL must end well all the same.
	c.NetNS = ""
	c.Del(t)
	if got := node.Netdev(vf); got != netdev {
		t.Errorf("netdev at home: %q, wanted %s", got, netdev)
	}
	node.Run(t, "rdma", "dev", "set", ib, "name", otherIB)
	// With the name free again the next user of the device, or repair, gives it back.
	again := node.NewNS(t)
	c2 := cni.Call{Conf: network("rail0", vf, "10.9.0.7/24"), ContainerID: "dies-next", NetNS: again.Path}
	c2.Add(t)
	c2.Del(t)
	if got := node.IBDev(vf); got != ib {
		t.Errorf("RDMA device at home: %q, wanted %s", got, ib)
	}
	before.Unchanged(t)
}

func TestDelPutsNamesRight(t *testing.T) {
	vf := node.VF(t, 1, 1)
	before := cni.Look(t)
	pod := node.NewNS(t)
	c := cni.Call{Conf: network("rail0", vf, "10.9.0.7/24"), ContainerID: "renamed", NetNS: pod.Path}
	c.Add(t)
	// What a pod with CAP_NET_ADMIN may do to what it was given.
	pod.Run(t, "ip", "link", "set", "net1", "down")
	pod.Run(t, "ip", "link", "set", "net1", "name", "mine", "mtu", "900", "address", "02:00:00:00:00:99")
	pod.Run(t, "rdma", "dev", "set", node.RDMA(t, pod)[0].Name, "name", "mine")
	c.Del(t)
	before.Unchanged(t)
}

func TestLostDelIsHealedByTheNextAdd(t *testing.T) {
	vf := node.VF(t, 1, 1)
	netdev := node.Netdev(vf)
	before := cni.Look(t)
	pod := node.NewNS(t)
	c := cni.Call{Conf: network("rail0", vf, "10.9.0.7/24"), ContainerID: "lost", NetNS: pod.Path, UID: "11111111-0000-4000-8000-000000000002"}
	c.Add(t)
	pod.Kill(t) // and no DEL, ever

	next := node.NewNS(t)
	c2 := cni.Call{Conf: network("rail0", vf, "10.9.0.8/24"), ContainerID: "heals", NetNS: next.Path}
	c2.Add(t)
	if devs := node.RDMA(t, next); len(devs) != 1 {
		t.Errorf("RDMA devices of the next pod: %v", devs)
	}
	c2.Del(t)
	if got := node.Netdev(vf); got != netdev {
		t.Errorf("netdev at home: %q, wanted %s: the first pod's name must not have become its home name", got, netdev)
	}
	c.Del(t) // a late one does no harm
	before.Unchanged(t)
}

func TestDeviceOfALivingPodIsRefused(t *testing.T) {
	vf := node.VF(t, 1, 1)
	before := cni.Look(t)
	pod, other := node.NewNS(t), node.NewNS(t)
	c := cni.Call{Conf: network("rail0", vf, "10.9.0.7/24"), ContainerID: "owner", NetNS: pod.Path}
	c.Add(t)
	c2 := cni.Call{Conf: network("rail0", vf, "10.9.0.8/24"), ContainerID: "thief", NetNS: other.Path}
	c2.AddFails(t, 11, "tests/owner", vf)
	c2.Del(t) // as the runtime does after a failed ADD
	if devs := node.RDMA(t, pod); len(devs) != 1 {
		t.Errorf("the owner lost its device: %v", devs)
	}
	c.AddFails(t, 7, "owner/net1") // ADD is not idempotent
	c.Del(t)
	before.Unchanged(t)
}

func TestHoleInUverbsNumbers(t *testing.T) {
	lower, vf := node.VF(t, 1, 1), node.VF(t, 1, 3)
	driver := "/sys/bus/pci/drivers/igbvf/"
	pod := node.NewNS(t)
	c := cni.Call{Conf: network("rail0", vf, "10.9.0.7/24"), ContainerID: "hole", NetNS: pod.Path}

	node.Write(t, driver+"unbind", lower)
	c.AddFails(t, 104, "podfabricctl repair", "uverbs")
	node.Write(t, driver+"bind", lower)
	node.Wait(t, "the lower device back", func() bool { return node.IBDev(lower) != "" && node.Netdev(lower) != "" })

	before := cni.Look(t)
	c.Add(t)
	c.Del(t)
	before.Unchanged(t)
}

func TestTwoRailsOneHint(t *testing.T) {
	before := cni.Look(t)
	pod := node.NewNS(t)
	const uid = "11111111-0000-4000-8000-000000000003"
	vf0, vf1 := node.VF(t, 1, 1), node.VF(t, 2, 1)
	ib0, ib1 := node.IBDev(vf0), node.IBDev(vf1)
	rail0 := cni.Call{Conf: network("rail0", vf0, "10.9.0.7/24", `,"rail":0`), ContainerID: "two", NetNS: pod.Path, UID: uid}
	rail1 := cni.Call{Conf: network("rail1", vf1, "10.9.1.7/24", `,"rail":1`), ContainerID: "two", NetNS: pod.Path, UID: uid, IfName: "net2"}
	rail1.Add(t) // the order of calls is not the order of rails
	rail0.Add(t)
	doc, settings := rail0.Hint(t)
	if want := []string{"NCCL_IB_HCA==" + ib0 + ":1," + ib1 + ":1"}; !slices.Equal(settings, want) {
		t.Errorf("nccl.conf sets %q, wanted %q", settings, want)
	}
	if len(doc.Rails) != 2 {
		t.Errorf("rails in the hint: %+v", doc.Rails)
	}
	rail0.Del(t)
	if _, settings := rail1.Hint(t); !slices.Equal(settings, []string{"NCCL_IB_HCA==" + ib1 + ":1"}) {
		t.Errorf("after rail0 has gone nccl.conf sets %q", settings)
	}
	rail1.Del(t)
	before.Unchanged(t)
}
