// SPDX-License-Identifier: Apache-2.0

//go:build lab

package master_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// behind is a list of containernetworking's macvlan or ipvlan and podfabric; more are further keys of podfabric's entry.
func behind(version, kind, master, address string, more ...string) string {
	return fmt.Sprintf(`{"cniVersion":%q,"name":"rail0","plugins":[
		{"type":%q,"master":%q,"ipam":{"type":"static","addresses":[{"address":%q}]}},
		{"type":"podfabric","rdma":{"wait":"30s"}%s}]}`, version, kind, master, address, strings.Join(more, ""))
}

// Two pods of the real macvlan and ipvlan get the hint that podfabric's own would have; what they are on stays at home.
func TestBehindRealPlugins(t *testing.T) {
	netdev, ib := pf(t, 1)
	for _, tt := range []struct{ version, kind string }{{"0.3.1", "macvlan"}, {"1.1.0", "ipvlan"}} {
		t.Run(tt.kind+" "+tt.version, func(t *testing.T) {
			hostAt3(t, netdev, ib)
			a := node.NewNS(t)
			before := cni.Look(t)
			b := node.NewNS(t)
			home := watch(t, node.PF(t, 1))
			ca := cni.Chain{List: behind(tt.version, tt.kind, netdev, "10.9.0.1/24"), ContainerID: "a", NetNS: a.Path}
			// As Multus does with a resource of the shared device plugin: a bare number in both keys of every plugin.
			cb := cni.Chain{
				List:        behind(tt.version, tt.kind, netdev, "10.9.0.2/24", `,"deviceID":"17","pciBusID":"17"`),
				ContainerID: "b", NetNS: b.Path,
			}
			r, _ := ca.Add(t)
			cb.Add(t)
			if len(r.IPs) != 1 || r.IPs[0].Address.String() != "10.9.0.1/24" || len(r.Interfaces) != 1 || r.Interfaces[0].Mac != show(t, a, "net1").MAC {
				t.Errorf("result: %+v", r)
			}
			ofPod(t, cni.Call{ContainerID: "a"}, ib, netdev, 1)
			ofPod(t, cni.Call{ContainerID: "b"}, ib, netdev, 2)
			if tt.version != "0.3.1" {
				if _, f := ca.Run(t, "CHECK"); f != nil {
					t.Errorf("CHECK: %s", f.Text())
				}
			}
			ca.Del(t)
			b.Kill(t)
			cb.NetNS = ""
			cb.Del(t)
			home()
			before.Unchanged(t)
		})
	}
}

// Whatever is refused or fails behind it, the interface is the plugin's before, which takes it back.
func TestRefusedBehindRealMacvlan(t *testing.T) {
	netdev, ib := pf(t, 1)
	second, _ := pf(t, 2)
	pod := node.NewNS(t)
	untouched := cni.Look(t)
	for _, tt := range []struct {
		name, more string
		code       uint
		texts      []string
	}{
		{"a move", `,"rdma":{"mode":"move"}`, 7, []string{"rdma.mode", "never moves", netdev}},
		{"a hint that cannot be delivered", `,"hint":{"require":true}`, 108, []string{"podfabric"}},
		{"a device of its own", `,"deviceID":"` + node.PF(t, 2) + `"`, 7, []string{node.PF(t, 2), "deviceID"}},
		{"an address of ours", `,"ipam":{"type":"static","addresses":[{"address":"10.9.0.9/24"}]}`, 7, []string{"ipam", "chained"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list := strings.Replace(behind("1.1.0", "macvlan", netdev, "10.9.0.1/24", tt.more), `"rdma":{"wait":"30s"},"rdma"`, `"rdma"`, 1)
			cni.Chain{List: list, ContainerID: "refused", NetNS: pod.Path, UID: "11111111-0000-4000-8000-000000000012"}.
				Refused(t, tt.code, tt.texts...)
		})
	}
	untouched.Unchanged(t)
	t.Run("the same address on one port", func(t *testing.T) {
		other := node.NewNS(t)
		before := cni.Look(t)
		first := cni.Chain{List: behind("1.1.0", "macvlan", netdev, "10.9.0.1/24"), ContainerID: "first", NetNS: other.Path}
		first.Add(t)
		twin := cni.Chain{List: behind("1.1.0", "macvlan", netdev, "10.9.0.1/24"), ContainerID: "twin", NetNS: pod.Path}
		twin.AddFails(t, 11, "10.9.0.1", ib)
		// Another port is another table.
		twin.List = behind("1.1.0", "macvlan", second, "10.9.0.1/24")
		twin.Add(t)
		twin.Del(t)
		first.Del(t)
		before.Unchanged(t)
	})
}

// A macvlan on a bridge's or nobody's device has no RDMA device that could be meant.
func TestBehindAnInterfaceWithoutADevice(t *testing.T) {
	link(t, "plain", "plain type dummy")
	pod := node.NewNS(t)
	before := cni.Look(t)
	c := cni.Chain{List: behind("1.1.0", "macvlan", "plain", "10.9.0.1/24"), ContainerID: "plain", NetNS: pod.Path}
	c.Add(t)
	if doc, _ := (cni.Call{ContainerID: "plain"}).Hint(t); doc.Rails[0].RDMA != nil {
		t.Errorf("the hint tells of %+v", doc.Rails[0].RDMA)
	}
	c.Del(t)
	before.Unchanged(t)

	veth := node.NewNS(t)
	veth.Run(t, "ip", "link", "add", "net1", "type", "veth", "peer", "name", "net1p")
	previous := `"prevResult":{"cniVersion":"1.1.0","interfaces":[{"name":"net1","sandbox":"` + veth.Path + `"}],"ips":[]}`
	call := cni.Call{Conf: `{"cniVersion":"1.1.0","name":"rail0","type":"podfabric",` + previous + `}`, ContainerID: "veth", NetNS: veth.Path}
	call.AddFails(t, 102, "net1", "veth", "rdma.mode")
	call.Conf = `{"cniVersion":"1.1.0","name":"rail0","type":"podfabric","rdma":{"mode":"off"},` + previous + `}`
	before = cni.Look(t)
	call.Add(t)
	call.Del(t)
	before.Unchanged(t)
}
