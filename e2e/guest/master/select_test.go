// SPDX-License-Identifier: Apache-2.0

//go:build lab

package master_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// Every way to say which link it is leads to the same one.
func TestSelectors(t *testing.T) {
	netdev, ib := pf(t, 2)
	pci := node.PF(t, 2)
	cni.WithNode(t, fmt.Sprintf(`"rails":{"0":{"pci":%q}}`, pci))
	node.Run(t, "ip", "link", "property", "add", "dev", netdev, "altname", "fabric0")
	t.Cleanup(func() { node.Run(t, "ip", "link", "property", "del", "dev", netdev, "altname", "fabric0") })
	pod := node.NewNS(t)
	before := cni.Look(t)
	for name, master := range map[string]string{
		"name":    strconv.Quote(netdev),
		"altname": `"fabric0"`,
		"rdma":    fmt.Sprintf(`{"rdma":%q}`, ib),
		"pci":     fmt.Sprintf(`{"pci":%q}`, pci),
		"pfNames": fmt.Sprintf(`{"pfNames":["%s[%s]","none*"]}`, netdev[:len(netdev)-1], netdev[len(netdev)-1:]),
		"rail":    `{"rail":0}`,
	} {
		t.Run(name, func(t *testing.T) {
			c := cni.Call{Conf: on("macvlan", master, "10.9.0.1/24"), ContainerID: "selected", NetNS: pod.Path}
			c.Add(t)
			ofPod(t, c, ib, netdev, 1)
			c.Del(t)
		})
	}
	before.Unchanged(t)
}

func TestMastersRefused(t *testing.T) {
	pod := node.NewNS(t)
	first, ib := pf(t, 1)
	second, other := pf(t, 2)
	before := cni.Look(t)
	for _, tt := range []struct {
		name, conf string
		code       uint
		texts      []string
	}{
		{"none", `{"cniVersion":"1.1.0","name":"n","type":"podfabric","link":"macvlan"}`, 7, []string{"master", "default route"}},
		{"no such link", macvlan("nolink0", "10.9.0.1/24"), 11, []string{"nolink0", first, ib}},
		{"no such RDMA device", on("macvlan", `{"rdma":"sim_99"}`, "10.9.0.1/24"), 11, []string{"sim_99", ib, other}},
		{"no such PCI device", on("macvlan", `{"pci":"0000:7f:00.0"}`, "10.9.0.1/24"), 11, []string{"0000:7f:00.0"}},
		{"a pattern with several hits", on("macvlan", `{"pfNames":["eth*"]}`, "10.9.0.1/24"), 7, []string{first, second, ib, other, "exactly one"}},
		{"two selectors", on("macvlan", `{"rail":0,"rdma":"sim_0"}`, "10.9.0.1/24"), 7, []string{"rail", "rdma"}},
		{"a rail that node.json does not know", on("macvlan", `{"rail":5}`, "10.9.0.1/24"), 50, []string{"/etc/podfabric/node.json", `"5"`}},
		{"a link in the pod", macvlan(first, "10.9.0.1/24", `,"linkInContainer":true`), 7, []string{"linkInContainer"}},
		{"ipvlan l3", on("ipvlan", strconv.Quote(first), "10.9.0.1/24", `,"mode":"l3"`), 7, []string{"mode", "l2"}},
		{"a MAC for an ipvlan", on("ipvlan", strconv.Quote(first), "10.9.0.1/24", `,"mac":"02:00:00:00:00:01"`), 7, []string{"mac"}},
		{"no such mode", macvlan(first, "10.9.0.1/24", `,"mode":"source"`), 7, []string{"mode", "bridge"}},
		{"the RDMA device of all", macvlan(first, "10.9.0.1/24", `,"rdma":{"mode":"move"}`), 7, []string{"rdma.mode", "never moves"}},
		{"soft RoCE on a real device", macvlan(first, "10.9.0.1/24", `,"rdma":{"softRoCE":true}`), 102, []string{"rdma.softRoCE", ib}},
		{"MTU above the master's", macvlan(first, "10.9.0.1/24", `,"mtu":1501`), 7, []string{"mtu", "1501", "1500", first}},
		{"a key of VFs", macvlan(first, "10.9.0.1/24", `,"trust":"on"`), 7, []string{"trust"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cni.Call{Conf: tt.conf, ContainerID: "refused", NetNS: pod.Path}.Refused(t, tt.code, tt.texts...)
		})
	}
	t.Run("a master that the node's owner keeps", func(t *testing.T) {
		cni.WithNode(t, fmt.Sprintf(`"allow":{"masters":[%q]}`, second))
		cni.Call{Conf: macvlan(first, "10.9.0.1/24"), ContainerID: "kept", NetNS: pod.Path}.Refused(t, 102, first, second, "allow.masters")
	})
	before.Unchanged(t)
}

// A pattern must not take the node off its network; a name says that it is meant.
func TestDefaultRoute(t *testing.T) {
	netdev, ib := pf(t, 3)
	node.Run(t, "ip", "addr", "add", "10.77.0.2/24", "dev", netdev)
	t.Cleanup(func() { node.Run(t, "ip", "addr", "del", "10.77.0.2/24", "dev", netdev) })
	node.Run(t, "ip", "route", "add", "default", "via", "10.77.0.1", "dev", netdev)
	t.Cleanup(func() { node.Run(t, "ip", "route", "del", "default", "via", "10.77.0.1", "dev", netdev) })
	pod := node.NewNS(t)
	before := cni.Look(t)
	for _, master := range []string{
		fmt.Sprintf(`{"pfNames":[%q]}`, netdev), fmt.Sprintf(`{"pci":%q}`, node.PF(t, 3)), fmt.Sprintf(`{"rdma":%q}`, ib),
	} {
		cni.Call{Conf: on("macvlan", master, "10.9.0.1/24"), ContainerID: "default", NetNS: pod.Path}.Refused(t, 103, netdev, "default route")
	}
	c := cni.Call{Conf: macvlan(netdev, "10.9.0.1/24"), ContainerID: "meant", NetNS: pod.Path}
	c.Add(t)
	ofPod(t, c, ib, netdev, 1)
	c.Del(t)
	before.Unchanged(t)
}

// A master without an RDMA device is fine until somebody asks for one.
func TestMasterWithoutRDMA(t *testing.T) {
	link(t, "plain", "plain type dummy")
	pod := node.NewNS(t)
	before := cni.Look(t)
	c := cni.Call{Conf: macvlan("plain", "10.9.0.1/24"), ContainerID: "plain", NetNS: pod.Path}
	c.Add(t)
	if doc, _ := c.Hint(t); doc.Rails[0].RDMA != nil {
		t.Errorf("the hint tells of %+v", doc.Rails[0].RDMA)
	}
	if f := c.Check(t); f != nil {
		t.Errorf("CHECK: %s", f.Text())
	}
	c.Del(t)
	c.Conf = macvlan("plain", "10.9.0.1/24", `,"rdma":{"require":"gid"}`)
	c.Refused(t, 102, "rdma.require", "plain")
	before.Unchanged(t)
}
