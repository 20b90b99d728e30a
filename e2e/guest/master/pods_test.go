// SPDX-License-Identifier: Apache-2.0

//go:build lab

package master_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// Two pods on one PF, each with the GID of its own, neither with the node's, while the PF's RDMA device stays where it is: during
// ADD, while pods live, when one is deleted and when the namespace of the other dies.
func TestTwoPodsOnOnePort(t *testing.T) {
	pci := node.PF(t, 1)
	netdev, ib := pf(t, 1)
	vlan := link(t, "rail0.7", "link "+netdev+" name rail0.7 type vlan id 7")
	for _, tt := range []struct{ name, kind, master string }{
		{"macvlan", "macvlan", netdev},
		{"ipvlan", "ipvlan", netdev},
		{"macvlan on a VLAN", "macvlan", vlan},
	} {
		t.Run(tt.name, func(t *testing.T) {
			vlanGIDs(t, vlan, ib)
			hostAt3(t, netdev, ib)
			a := node.NewNS(t)
			before := cni.Look(t)
			b := node.NewNS(t)
			home := watch(t, pci)
			master := strconv.Quote(tt.master)
			ca := cni.Call{Conf: on(tt.kind, master, "10.9.0.1/24", `,"rail":0`), ContainerID: "a", NetNS: a.Path}
			cb := cni.Call{Conf: on(tt.kind, master, "10.9.0.2/24", `,"rail":0`), ContainerID: "b", NetNS: b.Path}
			r := ca.Add(t)
			cb.Add(t)

			if len(r.Interfaces) != 1 || r.Interfaces[0].Name != "net1" || r.Interfaces[0].Sandbox != a.Path || r.Interfaces[0].Mtu != 1500 ||
				r.Interfaces[0].Mac != show(t, a, "net1").MAC || r.Interfaces[0].PciID != "" || len(r.IPs) != 1 {
				t.Errorf("result: %+v", r)
			}
			if got := show(t, a, "net1").Detail.Kind; got != tt.kind {
				t.Errorf("net1 is a %s", got)
			}
			ofPod(t, ca, ib, tt.master, 1)
			ofPod(t, cb, ib, tt.master, 2)
			if at := only(t, ib, 250); at != 3 {
				t.Errorf("the node's GID went to %d", at)
			}
			if pods := node.RDMA(t, a); !slices.ContainsFunc(pods, func(d node.RDMADevice) bool { return d.Name == ib }) {
				t.Errorf("pod a sees %v, not %s", pods, ib)
			}
			for _, c := range []cni.Call{ca, cb} {
				if f := c.Check(t); f != nil {
					t.Errorf("CHECK of %s: %s", c.ContainerID, f.Text())
				}
			}

			ca.Del(t)
			ofPod(t, cb, ib, tt.master, 2)
			b.Kill(t)
			node.Wait(t, "the GID of the dead pod gone", func() bool { return len(indices(table(t, ib), 2)) == 0 })
			cb.NetNS = ""
			cb.Del(t)
			home()
			before.Unchanged(t)
		})
	}
}

// vlanGIDs waits for nothing: a VLAN that is up has a link-local address, and with it entries that are no pod's. It takes the
// address away, so that the table is the PF's alone.
func vlanGIDs(t *testing.T, vlan, ib string) {
	t.Helper()
	node.Write(t, "/proc/sys/net/ipv6/conf/"+vlan+"/disable_ipv6", "1")
	node.Wait(t, "the table of the PF alone", func() bool { return len(table(t, ib)) == 2 })
}

// ofPod holds the hint of a pod with the address 10.9.0.last against the kernel's table.
func ofPod(t *testing.T, c cni.Call, ib, master string, last byte) {
	t.Helper()
	doc, settings := c.Hint(t)
	address := "10.9.0." + strconv.Itoa(int(last))
	if want := []string{"NCCL_IB_HCA==" + ib + ":1", "NCCL_IB_ADDR_RANGE=" + address + "/32"}; !slices.Equal(settings, want) {
		t.Errorf("nccl.conf of %s sets %q, wanted %q", c.ContainerID, settings, want)
	}
	if len(doc.Rails) != 1 || doc.Rails[0].RDMA == nil || doc.Rails[0].RDMA.GIDIndex == nil {
		t.Fatalf("fabric.json of %s: %+v", c.ContainerID, doc)
	}
	rail := doc.Rails[0]
	if got, want := *rail.RDMA.GIDIndex, only(t, ib, last); got != want {
		t.Errorf("fabric.json of %s says index %d, the kernel has %s at %d", c.ContainerID, got, address, want)
	}
	if !rail.RDMA.Shared || rail.RDMA.Device != ib || rail.RDMA.State != "ACTIVE" || rail.Master == nil || *rail.Master != master {
		t.Errorf("fabric.json of %s: %+v, port %+v", c.ContainerID, rail, rail.RDMA)
	}
	// The node's and other pods' entries are not told to the pod.
	for _, g := range rail.RDMA.GIDs {
		if g.Address.String() != address {
			t.Errorf("fabric.json of %s tells of %s", c.ContainerID, g.Address)
		}
	}
}
