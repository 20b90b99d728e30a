// SPDX-License-Identifier: Apache-2.0

//go:build lab

package vfset_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// A NIC without VFs is given whole, however it is named, and comes back with its name, MAC, MTU and state.
func TestWholeDevice(t *testing.T) {
	pf := whole(t)
	name, ib := node.Netdev(pf), node.IBDev(pf)
	own := node.Run(t, "cat", "/sys/class/net/"+name+"/address")
	path := target(t, "/sys/bus/pci/devices/"+pf)
	for how, conf := range map[string]string{
		"deviceID":           network(pf, "10.9.0.7/24"),
		"deviceID and link":  network(pf, "10.9.0.7/24", `,"link":"device"`),
		"device":             network("", "10.9.0.7/24", by("device", name)),
		"hwaddr":             network("", "10.9.0.7/24", by("hwaddr", strings.ToUpper(own))),
		"kernelpath":         network("", "10.9.0.7/24", by("kernelpath", path)),
		"with a MAC and MTU": network(pf, "10.9.0.7/24", `,"mac":"`+mac+`","mtu":1400`),
	} {
		for _, dies := range []bool{false, true} {
			if dies && how != "device" && how != "with a MAC and MTU" {
				continue // a name leads to the same identity
			}
			t.Run(how+map[bool]string{true: ", the pod dies"}[dies], func(t *testing.T) {
				before := cni.Look(t)
				pod := node.NewNS(t)
				c := cni.Call{Conf: conf, ContainerID: "whole", NetNS: pod.Path}
				r := c.Add(t)
				if devs := node.RDMA(t, pod); len(devs) != 1 || devs[0].Name != ib {
					t.Errorf("RDMA devices in the pod: %v, wanted %s", devs, ib)
				}
				if node.Netdev(pf) != "" || node.IBDev(pf) != "" || len(r.Interfaces) != 1 || r.Interfaces[0].PciID != pf {
					t.Errorf("at home: %q, %q; result %+v", node.Netdev(pf), node.IBDev(pf), r)
				}
				if strings.Contains(conf, mac) && (macIn(t, pod) != mac || r.Interfaces[0].Mtu != 1400) {
					t.Errorf("MAC %s, result %+v", macIn(t, pod), r.Interfaces[0])
				}
				if f := c.Check(t); f != nil {
					t.Errorf("CHECK: %s", f.Text())
				}
				if dies {
					pod.Kill(t)
					c.NetNS = ""
				}
				c.Del(t)
				if got := node.Netdev(pf); got != name {
					t.Errorf("netdev at home: %q, wanted %s", got, name)
				}
				settled(t, pf)
				before.Unchanged(t)
			})
		}
	}
}

// The DEL is lost and the NIC comes home under the pod's name: it is found by the name that it had, and healed.
func TestDeviceByNameAfterALostDel(t *testing.T) {
	pf := whole(t)
	name := node.Netdev(pf)
	before := cni.Look(t)
	pod := node.NewNS(t)
	conf := network("", "10.9.0.7/24", by("device", name))
	cni.Call{Conf: conf, ContainerID: "lost", NetNS: pod.Path}.Add(t)
	pod.Kill(t)
	node.Wait(t, "the devices home", func() bool { return node.Netdev(pf) != "" && node.IBDev(pf) != "" })
	if got := node.Netdev(pf); got != "net1" {
		t.Fatalf("the kernel called the netdev %s; this test wants net1", got)
	}
	next := cni.Call{Conf: conf, ContainerID: "found", NetNS: node.NewNS(t).Path}
	next.Add(t)
	next.Del(t)
	if got := node.Netdev(pf); got != name {
		t.Errorf("netdev at home: %q, wanted %s", got, name)
	}
	settled(t, pf)
	before.Unchanged(t)
}

// A pod has it: another pod that asks by name is told whose it is.
func TestDeviceOfAnotherPod(t *testing.T) {
	pf := whole(t)
	name := node.Netdev(pf)
	before := cni.Look(t)
	first := cni.Call{Conf: network("", "10.9.0.7/24", by("device", name)), ContainerID: "first", NetNS: node.NewNS(t).Path}
	first.Add(t)
	for _, conf := range []string{first.Conf, network(pf, "10.9.0.7/24")} {
		cni.Call{Conf: conf, ContainerID: "second", NetNS: node.NewNS(t).Path}.AddFails(t, 11, "tests/first")
	}
	first.Del(t)
	settled(t, pf)
	before.Unchanged(t)
}

func TestDeviceRefused(t *testing.T) {
	pf, busy := whole(t), node.PF(t, 1)
	name := node.Netdev(pf)
	pod := node.NewNS(t)
	before := cni.Look(t)
	add := func(args ...string) func() {
		node.Run(t, "ip", args...)
		i := slices.Index(args, "add")
		return func() {
			node.Run(t, "ip", append(slices.Clone(args[:i]), append([]string{"del"}, args[i+1:]...)...)...)
		}
	}
	upper := func() func() {
		node.Run(t, "ip", "link", "add", "link", name, "name", "upper", "type", "macvlan")
		return func() { node.Run(t, "ip", "link", "del", "upper") }
	}
	port := func() func() {
		node.Run(t, "ip", "link", "add", "br9", "type", "bridge")
		node.Run(t, "ip", "link", "set", name, "master", "br9")
		return func() {
			node.Run(t, "ip", "link", "set", name, "nomaster")
			node.Run(t, "ip", "link", "del", "br9")
		}
	}
	address := func() func() { return add("addr", "add", "10.77.0.1/24", "dev", name) }
	route := func() func() { return add("route", "add", "default", "dev", name) }
	open := func() func() { return node.Hold(t, node.Uverbs(t, pf)) }
	ours, theirs := network(pf, "10.9.0.7/24"), network(busy, "10.9.0.7/24")
	named := func(key, text string) string { return network("", "10.9.0.7/24", by(key, text)) }
	with := func(more string) string { return network(pf, "10.9.0.7/24", more) }
	for what, tt := range map[string]struct {
		conf    string
		code    uint
		texts   []string
		prepare func() func()
	}{
		"VFs":              {conf: theirs, code: 103, texts: []string{"VFs of " + busy, "found 4", "overrideGuards"}},
		"VFs, by name":     {conf: named("device", node.Netdev(busy)), code: 103, texts: []string{"VFs of " + busy}},
		"a VLAN":           {conf: with(`,"vlan":5`), code: 7, texts: []string{`"vlan"`, pf}},
		"trust":            {conf: with(`,"link":"device","trust":"on"`), code: 7, texts: []string{"trust"}},
		"MTU of a PF":      {conf: with(`,"mtu":"pf"`), code: 7, texts: []string{"mtu"}},
		"link vf":          {conf: with(`,"link":"vf"`), code: 102, texts: []string{pf, `"link": "device"`}},
		"no such name":     {conf: named("device", "eth99"), code: 11, texts: []string{`"eth99"`, name}},
		"no such MAC":      {conf: named("hwaddr", "02:00:5e:00:53:99"), code: 11, texts: []string{"02:00:5e:00:53:99"}},
		"no such path":     {conf: named("kernelpath", "/sys/devices/pci0000:00/0000:00:1f.6"), code: 11, texts: []string{"1f.6"}},
		"two selectors":    {conf: with(by("device", name)), code: 7, texts: []string{"device"}},
		"the loopback":     {conf: named("device", "lo"), code: 102, texts: []string{"lo"}},
		"an address":       {conf: ours, code: 103, texts: []string{"10.77.0.1/24", "overrideGuards"}, prepare: address},
		"default route":    {conf: ours, code: 103, texts: []string{"default route"}, prepare: route},
		"macvlan on it":    {conf: ours, code: 103, texts: []string{"upper"}, prepare: upper},
		"bridge port":      {conf: named("device", name), code: 103, texts: []string{"br9"}, prepare: port},
		"open RDMA device": {conf: ours, code: 103, texts: []string{node.IBDev(pf)}, prepare: open},
	} {
		t.Run(what, func(t *testing.T) {
			if tt.prepare != nil {
				defer tt.prepare()()
			}
			refused(t, cni.Call{Conf: tt.conf, ContainerID: "refused", NetNS: pod.Path}, tt.code, tt.texts...)
			if node.Netdev(pf) != name || node.IBDev(pf) == "" {
				t.Errorf("the device is not at home: %q, %q", node.Netdev(pf), node.IBDev(pf))
			}
		})
	}
	before.Unchanged(t)
}
