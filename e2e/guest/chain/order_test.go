// SPDX-License-Identifier: Apache-2.0

//go:build lab

package chain_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// worked wants what tuning and sbr do to be there, if the list has them: they work on podfabric's result.
func worked(t *testing.T, pod *node.NS, list string) {
	t.Helper()
	if strings.Contains(list, "sbr") && !strings.Contains(pod.Run(t, "ip", "rule"), "from 10.9.0.7") {
		t.Error("no rule for the pod's address")
	}
	if !strings.Contains(list, "tuning") {
		return
	}
	if got := pod.Run(t, "cat", "/proc/sys/net/ipv4/conf/net1/arp_filter"); got != "1" {
		t.Errorf("arp_filter is %s", got)
	}
	if got := pod.Run(t, "cat", "/sys/class/net/net1/address"); got != "02:00:00:00:00:77" {
		t.Errorf("MAC is %s", got)
	}
}

// First, in the middle and alone: each place works and leaves nothing, in the oldest version and in the newest.
func TestPlaces(t *testing.T) {
	pci := node.VF(t, 1, 1)
	ib := node.IBDev(pci)
	pod := node.NewNS(t)
	before := cni.Look(t)
	for _, tt := range []struct{ name, list string }{
		{"first", list("0.3.1", vf(pci, "10.9.0.7/24"), tuning, sbr)},
		{"first, newest", list("1.1.0", vf(pci, "10.9.0.7/24"), tuning, sbr)},
		// Without sbr: it moves the subnet's route to a table where CHECK of host-device does not look.
		{"in the middle", list("1.1.0", hostDevice(pci), podfabric(), tuning)},
		{"alone", list("0.4.0", vf(pci, "10.9.0.7/24"))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := cni.Chain{List: tt.list, ContainerID: "place", NetNS: pod.Path}
			r, _ := c.Add(t)
			if len(r.IPs) != 1 || r.IPs[0].Address.String() != "10.9.0.7/24" || r.IPs[0].Gateway.String() != "10.9.0.254" || only(t, r).Sandbox != pod.Path {
				t.Errorf("result: %+v", r)
			}
			inPod(t, "place", pod, ib, "10.9.0.7")
			worked(t, pod, tt.list)
			if _, f := c.Run(t, "CHECK"); (f == nil) != checks(strings.Split(tt.list, `"`)[3]) {
				t.Errorf("CHECK: %+v", f)
			}
			c.Del(t)
			if got := node.IBDev(pci); got != ib {
				t.Errorf("RDMA device at home: %q, wanted %s", got, ib)
			}
		})
	}
	before.Unchanged(t)
}

// libcni ends a list's DEL at the first error, and sbr's DEL has one when the namespace is dead: podfabric's never comes. What
// tuning did to the VF is undone by the next ADD on it, whoever asks.
func TestDelThatNeverComes(t *testing.T) {
	pci := node.VF(t, 1, 1)
	netdev, ib := node.Netdev(pci), node.IBDev(pci)
	before := cni.Look(t)
	pod := node.NewNS(t)
	c := cni.Chain{List: list("1.1.0", vf(pci, "10.9.0.7/24"), tuning, sbr), ContainerID: "never", NetNS: pod.Path}
	c.Add(t)
	pod.Kill(t)
	c.NetNS = ""
	if _, f := c.Run(t, "DEL"); f == nil {
		t.Fatal("DEL succeeded; this test wants sbr to fail without a namespace")
	}
	next := node.NewNS(t)
	c2 := cni.Chain{List: list("1.1.0", vf(pci, "10.9.0.8/24")), ContainerID: "heals", NetNS: next.Path}
	r, _ := c2.Add(t)
	if only(t, r).Mac == "02:00:00:00:00:77" {
		t.Error("the next pod has the MAC that tuning gave the pod before")
	}
	inPod(t, "heals", next, ib, "10.9.0.8")
	c2.Del(t)
	if got := node.Netdev(pci); got != netdev {
		t.Errorf("netdev at home: %q, wanted %s", got, netdev)
	}
	before.Unchanged(t)
}

// The lease of a delegate is on a disk that outlives namespaces.
func TestHostLocalAsDelegate(t *testing.T) {
	pci := node.VF(t, 1, 1)
	ib, leases := node.IBDev(pci), t.TempDir()
	held := func() int {
		files, err := filepath.Glob(filepath.Join(leases, "rail0", "10.66.0.*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	entry := podfabric(`,"deviceID":"` + pci + `","ipam":{"type":"host-local","dataDir":"` + leases + `","ranges":[[{"subnet":"10.66.0.0/24"}]]}`)
	for _, version := range []string{"0.3.1", "1.1.0"} {
		t.Run(version, func(t *testing.T) {
			before := cni.Look(t)
			pod := node.NewNS(t)
			c := cni.Chain{List: list(version, entry), ContainerID: "leased", NetNS: pod.Path}
			r, _ := c.Add(t)
			if n := held(); n != 1 {
				t.Fatalf("%d leases after ADD", n)
			}
			inPod(t, "leased", pod, ib, r.IPs[0].Address.IP.String())
			if _, f := c.Run(t, "CHECK"); (f == nil) != checks(version) {
				t.Errorf("CHECK: %+v", f)
			}
			pod.Kill(t)
			c.NetNS = ""
			c.Del(t)
			if n := held(); n != 0 {
				t.Errorf("%d leases after DEL without a namespace", n)
			}
			before.Unchanged(t)
		})
	}
}
