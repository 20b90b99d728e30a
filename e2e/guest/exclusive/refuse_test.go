// SPDX-License-Identifier: Apache-2.0

//go:build lab

package exclusive_test

import (
	"os"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// Every refusal leaves the node as it was; AddFails compares it.
func TestRefusals(t *testing.T) {
	pod := node.NewNS(t)
	vf := node.VF(t, 1, 1)
	static := `{"type":"static","addresses":[{"address":"10.9.0.7/24"}]}`
	tests := []struct {
		name  string
		conf  string
		netns string
		code  uint
		texts []string
	}{
		{"not JSON", `{"cniVersion":`, pod.Path, 6, []string{"make the network configuration"}},
		{"unknown version", strings.Replace(network("rail0", vf, "10.9.0.7/24"), "1.1.0", "9.9.9", 1), pod.Path, 1, []string{"9.9.9", "set cniVersion"}},
		{"no name", strings.Replace(network("rail0", vf, "10.9.0.7/24"), `"name":"rail0",`, "", 1), pod.Path, 7, []string{"name"}},
		{"malformed device", network("rail0", "3b:00.2", "10.9.0.7/24"), pod.Path, 7, []string{"deviceID", "3b:00.2"}},
		{"no such device", network("rail0", "0000:7f:00.1", "10.9.0.7/24"), pod.Path, 11, []string{"0000:7f:00.1"}},
		{"a PF with VFs", network("rail0", node.PF(t, 1), "10.9.0.7/24"), pod.Path, 103, []string{node.PF(t, 1), "VFs"}},
		{"a PF as a VF", network("rail0", node.PF(t, 1), "10.9.0.7/24", `,"link":"vf"`), pod.Path, 102, []string{node.PF(t, 1)}},
		{"namespace gone", network("rail0", vf, "10.9.0.7/24"), "/run/netns/gone", 8, []string{"CNI_NETNS"}},
		{"own namespace", network("rail0", vf, "10.9.0.7/24"), "/proc/self/ns/net", 8, []string{"CNI_NETNS"}},
		{"MTU above the PF's", network("rail0", vf, "10.9.0.7/24", `,"mtu":9000`), pod.Path, 7, []string{"mtu", "9000", "1500"}},
		{"a misspelling", network("rail0", vf, "10.9.0.7/24", `,"max-tx-rate":5`), pod.Path, 7, []string{"max_tx_rate"}},
		{"a key of another kind", network("rail0", vf, "10.9.0.7/24", `,"master":"eth0"`), pod.Path, 7, []string{"master"}},
		{"share on an exclusive node", `{"cniVersion":"1.1.0","name":"n","type":"podfabric","deviceID":"` + vf + `","ipam":` + static +
			`,"rdma":{"mode":"share"}}`, pod.Path, 101, []string{"exclusive"}},
		{"a range that every node hands out", `{"cniVersion":"1.1.0","name":"n","type":"podfabric","deviceID":"` + vf +
			`","ipam":{"type":"range","ranges":[[{"subnet":"10.9.0.0/24"}]]}}`, pod.Path, 7, []string{"perNode", "scope"}},
		{"perNode without an index", `{"cniVersion":"1.1.0","name":"n","type":"podfabric","deviceID":"` + vf +
			`","ipam":{"type":"range","ranges":[[{"subnet":"10.9.0.0/16","perNode":26}]]}}`, pod.Path, 50, []string{"/etc/podfabric/node.json"}},
		{"the pod's annotation names the device", `{"cniVersion":"1.1.0","name":"n","type":"podfabric","deviceID":"` + vf +
			`","runtimeConfig":{"deviceID":"0000:02:10.2"},"ipam":` + static + `}`, pod.Path, 7, []string{"0000:02:10.2"}},
		{
			"a route out of reach", `{"cniVersion":"1.1.0","name":"n","type":"podfabric","deviceID":"` + vf +
				`","rdma":{"wait":"30s"},"ipam":{"type":"static","addresses":[{"address":"10.9.0.7/24"}],"routes":[{"dst":"10.50.0.0/16","gw":"192.0.2.1"}]}}`,
			pod.Path, 7,
			[]string{"192.0.2.1"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cni.Call{Conf: test.conf, ContainerID: "refused", NetNS: test.netns}.AddFails(t, test.code, test.texts...)
		})
	}
}

func TestIfNameTakenInThePod(t *testing.T) {
	pod := node.NewNS(t)
	pod.Run(t, "ip", "link", "add", "net1", "type", "dummy")
	c := cni.Call{Conf: network("rail0", node.VF(t, 1, 1), "10.9.0.7/24"), ContainerID: "taken", NetNS: pod.Path}
	c.AddFails(t, 107, "net1")
}

func TestStateFolderNotWritable(t *testing.T) {
	pod := node.NewNS(t)
	if err := os.MkdirAll(cni.StateDir, 0o755); err != nil {
		t.Fatal(err)
	}
	node.Run(t, "mount", "-t", "tmpfs", "-o", "ro", "none", cni.StateDir)
	t.Cleanup(func() { node.Run(t, "umount", cni.StateDir) })
	c := cni.Call{Conf: network("rail0", node.VF(t, 1, 1), "10.9.0.7/24"), ContainerID: "readonly", NetNS: pod.Path}
	c.AddFails(t, 5, cni.StateDir)
}

func TestZeroGUID(t *testing.T) {
	vf := node.VF(t, 2, 3) // the last, so that no number shifts
	node.SetSim(t, "zero_guid", "Y")
	node.Rebind(t, vf)
	node.Wait(t, "an RDMA device", func() bool { return node.IBDev(vf) != "" })
	pod := node.NewNS(t)
	c := cni.Call{Conf: network("rail0", vf, "10.9.0.7/24"), ContainerID: "zero", NetNS: pod.Path}
	c.AddFails(t, 102, "MAC", "unbind")
	node.SetSim(t, "zero_guid", "N")
	node.Rebind(t, vf)
	node.Wait(t, "an RDMA device", func() bool { return node.IBDev(vf) != "" })
}

func TestInfiniBandVF(t *testing.T) {
	vf := node.VF(t, 2, 3)
	node.SetSim(t, "link_layer", "infiniband")
	node.Rebind(t, vf)
	node.Wait(t, "an RDMA device", func() bool { return node.IBDev(vf) != "" })
	pod := node.NewNS(t)
	c := cni.Call{Conf: network("rail0", vf, "10.9.0.7/24"), ContainerID: "ib", NetNS: pod.Path}
	c.AddFails(t, 102, "InfiniBand")
	node.SetSim(t, "link_layer", "ethernet")
	node.Rebind(t, vf)
	node.Wait(t, "an RDMA device", func() bool { return node.IBDev(vf) != "" })
}

func TestNoDriverBound(t *testing.T) {
	vf := node.VF(t, 2, 3)
	pod := node.NewNS(t)
	node.Write(t, "/sys/bus/pci/drivers/igbvf/unbind", vf)
	c := cni.Call{Conf: network("rail0", vf, "10.9.0.7/24"), ContainerID: "unbound", NetNS: pod.Path}
	c.AddFails(t, 11, vf, "driver")
	node.Write(t, "/sys/bus/pci/drivers/igbvf/bind", vf)
	node.Wait(t, "netdev and RDMA device", func() bool { return node.IBDev(vf) != "" && node.Netdev(vf) != "" })
}

func TestPortOfABridge(t *testing.T) {
	vf := node.VF(t, 1, 2)
	pod := node.NewNS(t)
	node.Run(t, "ip", "link", "add", "br9", "type", "bridge")
	t.Cleanup(func() { node.Run(t, "ip", "link", "del", "br9") })
	node.Run(t, "ip", "link", "set", node.Netdev(vf), "master", "br9")
	t.Cleanup(func() { node.Run(t, "ip", "link", "set", node.Netdev(vf), "nomaster") })
	c := cni.Call{Conf: network("rail0", vf, "10.9.0.7/24"), ContainerID: "bridged", NetNS: pod.Path}
	c.AddFails(t, 103, "br9", "overrideGuards")
}

// Each step fails on the real kernel in a way that facts cannot foresee, and everything is taken back.
func TestFailuresHalfWay(t *testing.T) {
	vf := node.VF(t, 2, 3)

	t.Run("the move itself, half done", func(t *testing.T) {
		pod := node.NewNS(t)
		// An altname takes the name without being one of the links' names.
		pod.Run(t, "ip", "link", "add", "dummy0", "type", "dummy")
		pod.Run(t, "ip", "link", "property", "add", "dev", "dummy0", "altname", "net1")
		_, failure := cni.Call{Conf: network("rail0", vf, "10.9.0.7/24"), ContainerID: "half", NetNS: pod.Path}.Run(t, "ADD")
		if failure == nil {
			t.Fatal("ADD succeeded although an altname holds net1")
		}
	})
	t.Run("the RDMA move", func(t *testing.T) {
		node.SetSim(t, "disassociate", "N")
		node.Rebind(t, vf)
		node.Wait(t, "an RDMA device", func() bool { return node.IBDev(vf) != "" })
		pod := node.NewNS(t)
		cni.Call{Conf: network("rail0", vf, "10.9.0.7/24"), ContainerID: "rdma", NetNS: pod.Path}.AddFails(t, 102, node.IBDev(vf))
		node.SetSim(t, "disassociate", "Y")
		node.Rebind(t, vf)
		node.Wait(t, "an RDMA device", func() bool { return node.IBDev(vf) != "" })
	})
	t.Run("an address", func(t *testing.T) {
		pod := node.NewNS(t)
		// IPv6 needs an MTU of 1280 (RFC 8200 section 5); below it the kernel has no IPv6 on the link.
		c := cni.Call{Conf: network("rail0", vf, "2001:db8::7/64", `,"mtu":1000`), ContainerID: "address", NetNS: pod.Path}
		before := cni.Look(t)
		if _, failure := c.Run(t, "ADD"); failure == nil {
			t.Error("ADD succeeded")
		}
		before.Unchanged(t)
	})
	t.Run("the hint", func(t *testing.T) {
		pod := node.NewNS(t)
		cni.Call{
			Conf: network("rail0", vf, "10.9.0.7/24", `,"hint":{"require":true}`), ContainerID: "hint", NetNS: pod.Path,
			UID: "11111111-0000-4000-8000-000000000005",
		}.AddFails(t, 108, "podfabric")
	})
}

func TestDelegateIsAskedEvenWithoutARecord(t *testing.T) {
	vf := node.VF(t, 1, 1)
	conf := `{"cniVersion":"1.1.0","name":"n","type":"podfabric","deviceID":"` + vf + `","rdma":{"wait":"30s"},"ipam":{"type":"fakeipam"}}`
	leases := func() int {
		entries, _ := os.ReadDir("/var/lib/fakeipam")
		return len(entries)
	}
	before := cni.Look(t)
	pod := node.NewNS(t)
	c := cni.Call{Conf: conf, ContainerID: "delegate", NetNS: pod.Path}
	c.Add(t)
	if n := leases(); n != 1 {
		t.Fatalf("leases after ADD: %d", n)
	}
	c.Del(t)
	if n := leases(); n != 0 {
		t.Errorf("leases after DEL: %d", n)
	}

	// After a reboot the delegate's disk has the lease and /run has nothing.
	c.Add(t)
	c.Del(t)
	node.Run(t, "touch", "/var/lib/fakeipam/delegate-net1")
	c.NetNS = ""
	c.Del(t)
	if n := leases(); n != 0 {
		t.Errorf("leases after a DEL that found no record: %d", n)
	}
	before.Unchanged(t)
}

// The runtime gives up on an ADD whose delegate hangs and calls DEL: ADD must not finish behind its back.
func TestDelWhileADelegateHangs(t *testing.T) {
	vf := node.VF(t, 1, 1)
	conf := `{"cniVersion":"1.1.0","name":"n","type":"podfabric","deviceID":"` + vf + `","rdma":{"wait":"30s"},"ipam":{"type":"fakeipam"}}`
	before := cni.Look(t)
	pod := node.NewNS(t)
	c := cni.Call{Conf: conf, ContainerID: "hangs", NetNS: pod.Path}
	node.Run(t, "mkdir", "-p", "/var/lib/fakeipam")
	node.Run(t, "touch", "/var/lib/fakeipam/hang")

	added := make(chan *cni.Failure, 1)
	go func() {
		_, failure := c.Run(t, "ADD")
		added <- failure
	}()
	node.Wait(t, "the delegate to hang", func() bool { _, err := os.Stat("/var/lib/fakeipam/hangs-net1"); return err == nil })
	c.Del(t)
	node.Run(t, "rm", "/var/lib/fakeipam/hang")
	if failure := <-added; failure == nil || failure.Code != 11 {
		t.Errorf("ADD after DEL: %+v, wanted code 11", failure)
	}
	if entries, _ := os.ReadDir("/var/lib/fakeipam"); len(entries) != 0 {
		t.Errorf("a lease is left: %v", entries)
	}
	before.Unchanged(t)
}
