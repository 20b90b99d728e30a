// SPDX-License-Identifier: Apache-2.0

//go:build lab

// Package rdmasim_test holds the lab's RDMA simulator to what it claims to model. Everything else that is tested in the lab
// believes it.
package rdmasim_test

import (
	"os"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/node"
)

// The second VF of the first NIC gets no RDMA device. Its address is a prefix of none, but its driver's name has another
// driver's as a prefix, which once was enough to be served.
//
//lab:boot pfs=1 vfs=4 mode=exclusive rdmasim=0000:01:00.0,0000:01:10.0,0000:01:10.4

func init() { node.Main() }

const sysfsRoCEv2 = "0000:0000:0000:0000:0000:ffff:" // an IPv4 address' GID begins so

func TestServesExactlyTheListedFunctions(t *testing.T) {
	for pci, want := range map[string]bool{
		node.PF(t, 1): true, node.VF(t, 1, 0): true, node.VF(t, 1, 1): false, node.VF(t, 1, 2): true, node.VF(t, 1, 3): false,
	} {
		if got := node.IBDev(pci); (got != "") != want {
			t.Errorf("%s has RDMA device %q; wanted one: %v", pci, got, want)
		}
	}
	devs := node.RDMA(t, nil)
	if len(devs) != 3 {
		t.Errorf("RDMA devices: got %v, want 3", devs)
	}
}

func TestFunctionsAreReadAnewForEachDevice(t *testing.T) {
	vf := node.VF(t, 1, 3)
	node.SetSim(t, "functions", vf)
	node.Rebind(t, vf)
	node.Wait(t, "an RDMA device on "+vf, func() bool { return node.IBDev(vf) != "" })

	node.SetSim(t, "functions", "0000:01:00.0")
	node.Rebind(t, vf)
	if ib := node.IBDev(vf); ib != "" {
		t.Errorf("a function that is no longer listed was given %s", ib)
	}
}

func TestGIDsFollowAddresses(t *testing.T) {
	pf := node.PF(t, 1)
	ib, netdev := node.IBDev(pf), node.Netdev(pf)
	const gid = sysfsRoCEv2 + "0a01:0005"

	node.Run(t, "ip", "addr", "add", "10.1.0.5/24", "dev", netdev)
	node.Wait(t, "the address' GID", func() bool { return node.HasGID(node.GIDs(t, nil, ib), gid) })
	node.Run(t, "ip", "addr", "del", "10.1.0.5/24", "dev", netdev)
	node.Wait(t, "the GID's end", func() bool { return !node.HasGID(node.GIDs(t, nil, ib), gid) })

	if _, err := os.ReadFile("/sys/class/infiniband/" + ib + "/ports/1/gid_attrs/types/100"); err == nil || !strings.Contains(err.Error(), "invalid argument") {
		t.Errorf("type of an empty slot: got %v, want invalid argument, as of a NIC", err)
	}
}

func TestMovesAndIsSentHome(t *testing.T) {
	vf := node.VF(t, 1, 0)
	ib, netdev := node.IBDev(vf), node.Netdev(vf)
	before := find(t, nil, ib)
	ns := node.NewNS(t)

	node.Run(t, "ip", "link", "set", netdev, "netns", ns.Name, "name", "net1")
	if got := find(t, nil, ib); got.Index != before.Index {
		t.Fatalf("the netdev's move took the RDMA device along: %v", got)
	}
	node.Run(t, "rdma", "dev", "set", ib, "netns", ns.Name)
	ns.Run(t, "ip", "addr", "add", "10.9.0.1/24", "dev", "net1")
	ns.Run(t, "ip", "link", "set", "net1", "up")

	if got := find(t, ns, ib); got != before {
		t.Errorf("in the pod the device is %v, at home it was %v", got, before)
	}
	node.Wait(t, "the pod's GID", func() bool { return node.HasGID(node.GIDs(t, ns, ib), sysfsRoCEv2+"0a09:0001") })
	node.Wait(t, "an active port", func() bool {
		return strings.Contains(ns.Run(t, "cat", "/sys/class/infiniband/"+ib+"/ports/1/state"), "ACTIVE")
	})
	if got := node.IBDev(vf); got != "" {
		t.Errorf("the host's sysfs still shows %s", got)
	}
	// Who looks for a device that is away finds it here.
	uverbs, err := os.ReadDir("/sys/bus/pci/devices/" + vf + "/infiniband_verbs")
	if err != nil || len(uverbs) != 1 {
		t.Errorf("infiniband_verbs of a function whose device is away: %v, %v; want one entry", uverbs, err)
	}

	ns.Kill(t)
	node.Wait(t, "the devices' return", func() bool { return node.IBDev(vf) == ib && node.Netdev(vf) == "net1" })
	if got := find(t, nil, ib); got != before {
		t.Errorf("after the return the device is %v, before it was %v", got, before)
	}
	node.Run(t, "ip", "link", "set", "net1", "name", netdev)
}

func TestReturnsUnderAnotherNameIfItsOwnIsTaken(t *testing.T) {
	vf, other := node.VF(t, 1, 0), node.VF(t, 1, 2)
	ib, otherIB := node.IBDev(vf), node.IBDev(other)
	ns := node.NewNS(t)
	node.Run(t, "rdma", "dev", "set", ib, "netns", ns.Name)
	node.Run(t, "rdma", "dev", "set", otherIB, "name", ib)
	ns.Kill(t)
	node.Wait(t, "the device's return", func() bool { return node.IBDev(vf) != "" })
	if got := node.IBDev(vf); !strings.HasPrefix(got, "ibdev") {
		t.Errorf("came home as %s, want ibdevN", got)
	}
	node.Run(t, "rdma", "dev", "set", ib, "name", otherIB)
	node.Run(t, "rdma", "dev", "set", node.IBDev(vf), "name", ib)
}

func TestNewDevicesTakeTheKnobs(t *testing.T) {
	vf := node.VF(t, 1, 2)
	remake := func(t *testing.T) string {
		t.Helper()
		node.Rebind(t, vf)
		node.Wait(t, "an RDMA device on "+vf, func() bool { return node.IBDev(vf) != "" })
		return node.IBDev(vf)
	}
	t.Cleanup(func() { remake(t) })

	t.Run("zero GUID", func(t *testing.T) {
		node.SetSim(t, "zero_guid", "Y")
		if got := find(t, nil, remake(t)); got.GUID != "0000:0000:0000:0000" {
			t.Errorf("node GUID: got %s, want zero", got.GUID)
		}
	})
	t.Run("InfiniBand", func(t *testing.T) {
		node.SetSim(t, "link_layer", "infiniband")
		ports := "/sys/class/infiniband/" + remake(t) + "/ports/1/"
		if got := node.Run(t, "cat", ports+"link_layer"); got != "InfiniBand" {
			t.Errorf("link layer: got %s, want InfiniBand", got)
		}
		if got := node.Run(t, "cat", ports+"gids/0"); !strings.HasPrefix(got, "fe80:") {
			t.Errorf("GID 0: got %s, want a link-local one", got)
		}
	})
	t.Run("two ports", func(t *testing.T) {
		node.SetSim(t, "ports", "2")
		ib := remake(t)
		if got := node.Run(t, "ls", "/sys/class/infiniband/"+ib+"/ports"); got != "1\n2" {
			t.Errorf("ports: got %q, want 1 and 2", got)
		}
	})
	t.Run("no disassociation", func(t *testing.T) {
		node.SetSim(t, "disassociate", "N")
		ib, ns := remake(t), node.NewNS(t)
		if _, err := node.Try("rdma", "dev", "set", ib, "netns", ns.Name); err == nil {
			t.Error("a device that cannot let go of its users was moved")
		}
	})
}

// find is the device of this name in a namespace.
func find(t *testing.T, ns *node.NS, name string) node.RDMADevice {
	t.Helper()
	for _, d := range node.RDMA(t, ns) {
		if d.Name == name {
			return d
		}
	}
	t.Fatalf("no RDMA device %s in %v", name, ns)
	return node.RDMADevice{}
}
