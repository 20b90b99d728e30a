// SPDX-License-Identifier: Apache-2.0

//go:build lab

package exclusive_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// An IPv6 address is usable at once, and no router's advertisement adds another.
func TestIPv6Only(t *testing.T) {
	before := cni.Look(t)
	vf := node.VF(t, 1, 1)
	ib := node.IBDev(vf)
	pod := node.NewNS(t)
	c := cni.Call{Conf: network("rail0", vf, "2001:db8::7/64"), ContainerID: "six", NetNS: pod.Path}
	c.Add(t)
	if addr := pod.Run(t, "ip", "-6", "addr", "show", "dev", "net1", "scope", "global"); !strings.Contains(addr, "nodad") || strings.Contains(addr, "tentative") {
		t.Errorf("the address: %s", addr)
	}
	for _, key := range []string{"accept_ra", "autoconf"} {
		if got := pod.Run(t, "cat", "/proc/sys/net/ipv6/conf/net1/"+key); got != "0" {
			t.Errorf("%s is %s", key, got)
		}
	}
	doc, settings := c.Hint(t)
	// Without the family NCCL takes index 0, a link-local entry of RoCE v1, and says nothing (nccl.md §3.2).
	if want := []string{"NCCL_IB_HCA==" + ib + ":1", "NCCL_IB_ADDR_FAMILY=AF_INET6"}; !equalSets(settings, want) {
		t.Errorf("nccl.conf sets %q, wanted %q", settings, want)
	}
	if got := node.GIDs(t, pod, ib)[*doc.Rails[0].RDMA.GIDIndex]; got != "RoCE v2 2001:0db8:0000:0000:0000:0000:0000:0007" {
		t.Errorf("the hint's index holds %q", got)
	}
	c.Del(t)
	before.Unchanged(t)
}

func equalSets(a, b []string) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(s string) bool { return !slices.Contains(b, s) })
}

// Two nodes with one configuration hand out different addresses, by their index alone.
func TestBlockOfTheNode(t *testing.T) {
	conf := `{"cniVersion":"1.1.0","name":"n","type":"podfabric","deviceID":"` + node.VF(t, 1, 1) + `","rdma":{"wait":"30s"},
		"ipam":{"type":"range","ranges":[[{"subnet":"10.9.0.0/16","perNode":26}]]}}`
	cni.WithIndex(t, 3)
	before := cni.Look(t)
	pod := node.NewNS(t)
	c := cni.Call{Conf: conf, ContainerID: "block", NetNS: pod.Path}
	r := c.Add(t)
	// Block 3 of /26 blocks begins at 3 * 64 = 192 and ends at 255. Both are hosts of the /16, whose broadcast address is 10.9.255.255.
	if ip := r.IPs[0].Address; !strings.HasPrefix(ip.String(), "10.9.0.") || ip.IP.To4()[3] < 192 {
		t.Errorf("address %s; the block of node 3 is 10.9.0.192/26", ip.String())
	}
	c.Del(t)
	before.Unchanged(t)
}
