// SPDX-License-Identifier: Apache-2.0

//go:build lab

package kill_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/node"
)

// kind is one sort of attachment.
type kind struct {
	name string
	// conf is the network configuration that a pod is attached by; both pods are handed the same device.
	conf func(p *pod) string
	// bring is what the plugin before does in a chain, and take how it undoes it; nil: there is none.
	bring, take func(t *testing.T, p *pod)
	// meanwhile is what the pod does between ADD and DEL; nil: nothing.
	meanwhile func(t *testing.T, p *pod)
	// onlyDel: ADD is another kind's.
	onlyDel bool
}

const (
	// ranged addresses are podfabric's own leases, hostLocal's are a delegate's.
	ranged    = `{"type":"range","ranges":[[{"subnet":"10.1.0.0/24","scope":"node"}]],"routes":[{"dst":"10.60.0.0/16","gw":"10.1.0.1"}]}`
	dual      = `{"type":"range","ranges":[[{"subnet":"10.1.0.0/24","scope":"node"}],[{"subnet":"fd00:1::/64","scope":"node"}]]}`
	hostLocal = `{"type":"host-local","ranges":[[{"subnet":"10.2.0.0/24"}]]}`
	none      = ``
)

// network is a configuration. The wait for GIDs is not under test and would be a point as often as it looks.
func network(keys, ipam string) string {
	if ipam != none {
		keys += `,"ipam":` + ipam
	}
	if !strings.Contains(keys, `"rdma"`) {
		keys += `,"rdma":{"require":"no"}`
	}
	return `{"cniVersion":"1.1.0","name":"rail0","type":"podfabric",` + keys + `}`
}

// same is a configuration that does not depend on the pod.
func same(keys, ipam string) func(*pod) string {
	text := network(keys, ipam)
	return func(*pod) string { return text }
}

func sharedKinds(t *testing.T) []*kind {
	t.Helper()
	master := `"link":"macvlan","master":"` + node.Netdev(node.PF(t, 1)) + `"`
	return []*kind{
		{name: "vf shared", conf: same(device(node.VF(t, 1, 1)), ranged)},
		{name: "macvlan", conf: same(master, dual)},
		{name: "macvlan, delegate", conf: same(master, hostLocal)},
	}
}

func exclusiveKinds(t *testing.T) []*kind {
	t.Helper()
	soft, up, vf, set, whole := node.VF(t, 1, 0), node.VF(t, 1, 1), node.VF(t, 1, 2), node.VF(t, 1, 3), node.PF(t, 2)
	return []*kind{
		{name: "vf, up at home", conf: same(device(up)+`,"mtu":1400`, ranged)},
		{name: "vf, delegate", conf: same(device(vf), hostLocal)},
		{name: "vf, renamed by its pod", conf: same(device(vf), dual), meanwhile: rename, onlyDel: true},
		{
			name: "vf with settings",
			conf: same(device(set)+`,"vlan":100,"vlanQoS":3,"mac":"02:00:5e:00:53:07","spoofchk":"off","trust":"on","max_tx_rate":50`, ranged),
		},
		{name: "device", conf: same(device(whole), ranged)},
		chained(vf),
		{name: "soft RoCE, delegate", conf: same(device(soft)+`,"rdma":{"softRoCE":true,"require":"no"}`, hostLocal)},
	}
}

func device(pci string) string { return fmt.Sprintf(`"deviceID":%q`, pci) }

// rename is what a pod with CAP_NET_ADMIN may do with what it was given.
func rename(t *testing.T, p *pod) {
	t.Helper()
	p.run(t, "ip", "link", "property", "add", "dev", "net1", "altname", "podsown")
	p.run(t, "ip", "link", "set", "net1", "allmulticast", "on", "alias", "podsown")
	p.run(t, "rdma", "dev", "set", p.run(t, "ls", "/sys/class/infiniband"), "name", "podsown")
}

// chained is podfabric behind a plugin that brings the VF's netdev, as host-device does.
func chained(vf string) *kind {
	name := node.Netdev(vf)
	return &kind{
		name: "chained",
		conf: func(p *pod) string {
			return network(fmt.Sprintf(`"prevResult":{"cniVersion":"1.1.0","interfaces":[{"name":"net1","sandbox":%q}],
				"ips":[{"interface":0,"address":"10.9.0.7/24"}]}`, p.path), none)
		},
		bring: func(t *testing.T, p *pod) {
			t.Helper()
			node.Run(t, "ip", "link", "set", name, "netns", p.name, "name", "net1")
			p.run(t, "ip", "addr", "add", "10.9.0.7/24", "dev", "net1")
			p.run(t, "ip", "link", "set", "net1", "up")
		},
		take: func(t *testing.T, p *pod) {
			t.Helper()
			if p.alive {
				p.run(t, "ip", "link", "set", "net1", "down")
				p.run(t, "ip", "link", "set", "net1", "netns", "1", "name", name)
				return
			}
			node.Wait(t, "the netdev home", func() bool { return node.Netdev(vf) != "" })
			if now := node.Netdev(vf); now != name {
				node.Run(t, "ip", "link", "set", now, "down", "name", name)
			}
		},
	}
}
