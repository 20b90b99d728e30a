// SPDX-License-Identifier: Apache-2.0

//go:build lab

package vfset_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// What igb does not know becomes an error that names the key, and what was set before it is taken back.
func TestWhatTheDriverDoesNotKnow(t *testing.T) {
	vf := node.VF(t, 1, 1)
	pod := node.NewNS(t)
	for name, tt := range map[string]struct {
		more  string
		code  uint
		texts []string
	}{
		"link_state":  {all + `,"link_state":"enable"`, 102, []string{"leave out the setting", "link_state", "VF 1"}},
		"min_tx_rate": {all + `,"min_tx_rate":10`, 7, []string{"correct the value", "transmit rates", "VF 1"}},
		"802.1ad":     {all + `,"vlanProto":"802.1ad"`, 102, []string{"leave out the setting", "802.1ad", "VF 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			cni.Call{Conf: network(vf, "10.9.0.7/24", tt.more), ContainerID: "unknown", NetNS: pod.Path}.AddFails(t, tt.code, tt.texts...)
		})
	}
}

// Each later step fails in a way that nobody can foresee, and the settings are taken back with the rest.
func TestFailuresAfterTheSettings(t *testing.T) {
	vf := node.VF(t, 1, 1)
	const uid = "11111111-0000-4000-8000-000000000005"
	for name, tt := range map[string]struct {
		address, more string
		code          uint
		texts         []string
		uid, routes   string
		prepare       func(t *testing.T, pod *node.NS)
	}{
		"the name is taken": {
			address: "10.9.0.7/24", code: 107, texts: []string{"net1"},
			prepare: func(t *testing.T, pod *node.NS) { t.Helper(); pod.Run(t, "ip", "link", "add", "net1", "type", "dummy") },
		},
		"the move, half done": {
			address: "10.9.0.7/24", code: 107, texts: []string{"net1"},
			prepare: func(t *testing.T, pod *node.NS) {
				t.Helper()
				pod.Run(t, "ip", "link", "add", "dummy0", "type", "dummy")
				pod.Run(t, "ip", "link", "property", "add", "dev", "dummy0", "altname", "net1")
			},
		},
		// IPv6 needs an MTU of 1280 (RFC 8200 section 5); below it the kernel has no IPv6 on the link.
		"an address": {address: "2001:db8::7/64", more: `,"mtu":1000`, texts: []string{"ipv6"}},
		"the hint":   {address: "10.9.0.7/24", more: `,"hint":{"require":true}`, code: 108, texts: []string{"podfabric"}, uid: uid},
		"MTU":        {address: "10.9.0.7/24", more: `,"mtu":9000`, code: 7, texts: []string{"mtu", "9000"}},
		"a route":    {address: "10.9.0.7/24", code: 7, texts: []string{"192.0.2.1"}, routes: `,"routes":[{"dst":"10.50.0.0/16","gw":"192.0.2.1"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			pod := node.NewNS(t)
			if tt.prepare != nil {
				tt.prepare(t, pod)
			}
			conf := strings.Replace(network(vf, tt.address, all, tt.more), "}]}", "}]"+tt.routes+"}", 1)
			c := cni.Call{Conf: conf, ContainerID: "later", NetNS: pod.Path, UID: tt.uid}
			before := cni.Look(t)
			_, failure := c.Run(t, "ADD")
			if failure == nil || tt.code != 0 && failure.Code != tt.code {
				t.Fatalf("ADD: %+v, wanted code %d", failure, tt.code)
			}
			for _, text := range tt.texts {
				if !strings.Contains(failure.Text(), text) {
					t.Errorf("ADD: %s\nwanted %q in it", failure.Text(), text)
				}
			}
			before.Unchanged(t)
			c.Del(t) // as a runtime does after a failed ADD
			before.Unchanged(t)
		})
	}
}

func TestSettingsRefused(t *testing.T) {
	vf, other := node.VF(t, 1, 1), shown(t, node.PF(t, 1), 2).MAC
	pod := node.NewNS(t)
	before := cni.Look(t)
	for name, tt := range map[string]struct {
		conf  string
		code  uint
		texts []string
	}{
		"a sibling's MAC": {network(vf, "10.9.0.7/24", `,"mac":"`+other+`"`), 7, []string{"mac", other, "VF 2"}},
		"a sibling's MAC, of the pod": {
			network(vf, "10.9.0.7/24", `,"capabilities":{"mac":true},"runtimeConfig":{"mac":"`+other+`"}`), 7, []string{other, "VF 2"},
		},
		"a MAC that the network does not let pods choose": {
			network(vf, "10.9.0.7/24", `,"runtimeConfig":{"mac":"`+mac+`"}`), 7, []string{"capabilities"},
		},
		"QoS without VLAN":     {network(vf, "10.9.0.7/24", `,"vlanQoS":3`), 7, []string{"vlanQoS"}},
		"QoS with VLAN 0":      {network(vf, "10.9.0.7/24", `,"vlan":0,"vlanQoS":3`), 7, []string{"vlanQoS"}},
		"protocol with VLAN 0": {network(vf, "10.9.0.7/24", `,"vlan":0,"vlanProto":"802.1ad"`), 7, []string{"vlanProto"}},
		"VLAN 4095":            {network(vf, "10.9.0.7/24", `,"vlan":4095`), 7, []string{"vlan", "4094"}},
		"rates that cross":     {network(vf, "10.9.0.7/24", `,"min_tx_rate":9,"max_tx_rate":8`), 7, []string{"min_tx_rate"}},
		"a master":             {network(vf, "10.9.0.7/24", `,"link":"vf","master":"eth0"`), 7, []string{"master"}},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, cni.Call{Conf: tt.conf, ContainerID: "refused", NetNS: pod.Path}, tt.code, tt.texts...)
		})
	}
	before.Unchanged(t)
}

// ADD is killed when everything is set and it waits for a port.
func TestKilledAfterTheSettings(t *testing.T) {
	pf, vf := node.PF(t, 2), node.VF(t, 2, 2)
	before := cni.Look(t)
	pod := node.NewNS(t)
	c := cni.Call{Conf: network(vf, "10.9.0.7/24", all), ContainerID: "killed", NetNS: pod.Path}
	cmd := exec.CommandContext(t.Context(), filepath.Join(node.Bin, "podfabric"))
	cmd.Stdin = strings.NewReader(c.Conf)
	cmd.Env = append(os.Environ(), "CNI_COMMAND=ADD", "CNI_CONTAINERID=killed", "CNI_IFNAME=net1", "CNI_NETNS="+pod.Path, "CNI_PATH="+node.Bin)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	node.Wait(t, "the MAC, or the end of ADD", func() bool { return shown(t, pf, 2).MAC == mac })
	_ = cmd.Process.Kill()
	t.Logf("ADD: %v", cmd.Wait())
	c.Del(t)
	before.Unchanged(t)
}
