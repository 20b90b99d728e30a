// SPDX-License-Identifier: Apache-2.0

//go:build lab

package vfset_test

import (
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

const (
	mac = "02:00:5e:00:53:07"
	// all are the settings that igb knows, none as it is on a new VF.
	all = `,"vlan":100,"vlanQoS":3,"mac":"` + mac + `","spoofchk":"off","trust":"on","max_tx_rate":50`
	// become is what ip(8) has to show then.
	become = "mac " + mac + " vlan 100 qos 3 spoofchk false trust true max_tx_rate 50"
)

// want holds what the PF's driver has for a VF against a text.
func want(t *testing.T, pf string, vf int, text string) {
	t.Helper()
	if got := shown(t, pf, vf).String(); got != text {
		t.Errorf("VF %d of %s: %s\nwanted %s", vf, pf, got, text)
	}
}

// Whatever ends the attachment, the VF is as it was.
func TestSettingsComeAndGo(t *testing.T) {
	pf, vf := node.PF(t, 1), node.VF(t, 1, 1)
	for name, end := range map[string]func(t *testing.T, c cni.Call, pod *node.NS){
		"DEL":                   func(t *testing.T, c cni.Call, _ *node.NS) { t.Helper(); c.Del(t) },
		"DEL without namespace": func(t *testing.T, c cni.Call, _ *node.NS) { t.Helper(); c.NetNS = ""; c.Del(t) },
		"the pod dies, DEL with the old path": func(t *testing.T, c cni.Call, pod *node.NS) {
			t.Helper()
			pod.Kill(t)
			c.Del(t)
		},
		"the pod dies, its devices are home, DEL": func(t *testing.T, c cni.Call, pod *node.NS) {
			t.Helper()
			pod.Kill(t)
			node.Wait(t, "the devices home", func() bool { return node.IBDev(vf) != "" && node.Netdev(vf) != "" })
			c.NetNS = ""
			c.Del(t)
		},
		"the pod dies, no DEL, the next pod's": func(t *testing.T, c cni.Call, pod *node.NS) {
			t.Helper()
			pod.Kill(t)
			next := cni.Call{Conf: network(vf, "10.9.0.8/24"), ContainerID: "next", NetNS: node.NewNS(t).Path}
			next.Add(t)
			if got := shown(t, pf, 1); got.String() == become || got.Trust || len(got.VLAN) > 0 && got.VLAN[0].ID != 0 {
				t.Errorf("the next pod has the settings of the last: %s", got)
			}
			next.Del(t)
			c.NetNS = ""
			c.Del(t)
		},
		"podfabricctl repair": func(t *testing.T, _ cni.Call, pod *node.NS) {
			t.Helper()
			pod.Kill(t)
			node.Run(t, "podfabricctl", "repair")
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, was := cni.Look(t), shown(t, pf, 1).String()
			pod := node.NewNS(t)
			c := cni.Call{Conf: network(vf, "10.9.0.7/24", all), ContainerID: "set", NetNS: pod.Path}
			r := c.Add(t)
			want(t, pf, 1, become)
			if got := macIn(t, pod); got != mac || r.Interfaces[0].Mac != mac {
				t.Errorf("MAC in the pod %s, in the result %s, wanted %s", got, r.Interfaces[0].Mac, mac)
			}
			if f := c.Check(t); f != nil {
				t.Errorf("CHECK: %s", f.Text())
			}
			end(t, c, pod)
			want(t, pf, 1, was)
			before.Unchanged(t)
		})
	}
}

// One setting alone, and what 0 and absence mean.
func TestOneSetting(t *testing.T) {
	pf, vf := node.PF(t, 1), node.VF(t, 1, 1)
	// An earlier tool's.
	before := cni.Look(t)
	set(t, pf, "vlan", "77", "qos", "2")
	set(t, pf, "trust", "on")
	set(t, pf, "max_tx_rate", "30")
	was := shown(t, pf, 1)
	own := "mac " + was.MAC
	for name, tt := range map[string]struct{ more, want string }{
		"nothing named":           {"", own + " vlan 77 qos 2 spoofchk true trust true max_tx_rate 30"},
		"VLAN":                    {`,"vlan":100`, own + " vlan 100 qos 0 spoofchk true trust true max_tx_rate 30"},
		"no VLAN":                 {`,"vlan":0`, own + " no vlan spoofchk true trust true max_tx_rate 30"},
		"no rate":                 {`,"max_tx_rate":0`, own + " vlan 77 qos 2 spoofchk true trust true max_tx_rate 0"},
		"no trust":                {`,"trust":"off"`, own + " vlan 77 qos 2 spoofchk true trust false max_tx_rate 30"},
		"no spoofchk":             {`,"spoofchk":"off"`, own + " vlan 77 qos 2 spoofchk false trust true max_tx_rate 30"},
		"baseline keep":           {`,"trust":"off","vf":{"baseline":"keep"}`, own + " vlan 77 qos 2 spoofchk true trust false max_tx_rate 30"},
		"baseline reset":          {`,"vf":{"baseline":"reset"}`, own + " no vlan spoofchk true trust false max_tx_rate 0"},
		"baseline reset and VLAN": {`,"vlan":5,"vlanQoS":1,"vf":{"baseline":"reset"}`, own + " vlan 5 qos 1 spoofchk true trust false max_tx_rate 0"},
		"MAC":                     {`,"mac":"` + mac + `"`, "mac " + mac + " vlan 77 qos 2 spoofchk true trust true max_tx_rate 30"},
	} {
		t.Run(name, func(t *testing.T) {
			left := cni.Look(t)
			c := cni.Call{Conf: network(vf, "10.9.0.7/24", tt.more), ContainerID: "one", NetNS: node.NewNS(t).Path}
			c.Add(t)
			want(t, pf, 1, tt.want)
			c.Del(t)
			want(t, pf, 1, was.String())
			left.Unchanged(t)
		})
	}
	set(t, pf, "vlan", "0")
	set(t, pf, "trust", "off")
	set(t, pf, "max_tx_rate", "0")
	before.Unchanged(t)
}

// A MAC without trust: igb lets such a VF set none once its PF has given it one.
func TestMACWithoutTrust(t *testing.T) {
	pf, vf := node.PF(t, 1), node.VF(t, 1, 2)
	before := cni.Look(t)
	pod := node.NewNS(t)
	c := cni.Call{
		Conf:        network(vf, "10.9.0.7/24", `,"capabilities":{"mac":true},"runtimeConfig":{"mac":"`+mac+`"}`),
		ContainerID: "mac", NetNS: pod.Path,
	}
	c.Add(t)
	if got := shown(t, pf, 2); got.MAC != mac || got.Trust || macIn(t, pod) != mac {
		t.Errorf("VF %s, MAC in the pod %s", got, macIn(t, pod))
	}
	if f := c.Check(t); f != nil {
		t.Errorf("CHECK: %s", f.Text())
	}
	pod.Kill(t)
	c.NetNS = ""
	c.Del(t)
	before.Unchanged(t)
}

// What was changed behind our back: a VLAN is a wall, trust may be the operator's doing.
func TestCheckOfSettings(t *testing.T) {
	pf, vf := node.PF(t, 1), node.VF(t, 1, 1)
	before := cni.Look(t)
	c := cni.Call{Conf: network(vf, "10.9.0.7/24", `,"vlan":100`), ContainerID: "check", NetNS: node.NewNS(t).Path}
	c.Add(t)
	set(t, pf, "vlan", "101")
	if f := c.Check(t); f == nil || f.Code != 102 || !strings.Contains(f.Text(), "101") || !strings.Contains(f.Text(), "100") {
		t.Errorf("CHECK with another VLAN: %+v", f)
	}
	set(t, pf, "vlan", "100")
	set(t, pf, "trust", "on")
	if f := c.Check(t); f != nil {
		t.Errorf("CHECK with another trust: %s", f.Text())
	}
	out := node.Run(t, "sh", "-c", "podfabricctl check --all; echo status $?")
	if !strings.Contains(out, "trust") || !strings.Contains(out, "status 1") {
		t.Errorf("podfabricctl check: %s", out)
	}
	set(t, pf, "trust", "off")
	if out := node.Run(t, "sh", "-c", "podfabricctl check --all; echo status $?"); !strings.Contains(out, "status 0") {
		t.Errorf("podfabricctl check of what is right: %s", out)
	}
	c.Del(t)
	before.Unchanged(t)
}

// The kernel's way to reset a VF, at DEL.
func TestFunctionLevelReset(t *testing.T) {
	vf := node.VF(t, 1, 1)
	pod := node.NewNS(t)
	c := cni.Call{Conf: network(vf, "10.9.0.7/24", all, `,"vf":{"flr":true}`), ContainerID: "flr", NetNS: pod.Path}
	if _, err := node.Try("test", "-e", "/sys/bus/pci/devices/"+vf+"/reset"); err != nil {
		c.AddFails(t, 102, "vf.flr", vf)
		t.Log("the emulated VF cannot be reset on its own")
		return
	}
	before := cni.Look(t)
	c.Add(t)
	want(t, node.PF(t, 1), 1, become)
	c.Del(t)
	before.Unchanged(t)
	// Its driver works on.
	next := cni.Call{Conf: network(vf, "10.9.0.7/24"), ContainerID: "after", NetNS: node.NewNS(t).Path}
	next.Add(t)
	next.Del(t)
	before.Unchanged(t)
}
