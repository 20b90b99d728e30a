// SPDX-License-Identifier: Apache-2.0

//go:build lab

package chain_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// Every version of a list: host-device brings the VF, podfabric its RDMA device and the hint. The result is host-device's, to the
// letter, but for what 1.1.0 can say more; the library prints that into results of 1.0.0 too, where it is not known and does no harm.
func TestBehindHostDevice(t *testing.T) {
	pci := node.VF(t, 1, 1)
	ib := node.IBDev(pci)
	pod := node.NewNS(t)
	before := cni.Look(t)
	for _, version := range []string{"0.3.1", "0.4.0", "1.0.0", "1.1.0"} {
		t.Run(version, func(t *testing.T) {
			c := cni.Chain{List: list(version, hostDevice(pci), podfabric()), ContainerID: "behind", NetNS: pod.Path}
			r, got := c.Add(t)
			i := only(t, r)
			if version == "1.1.0" && (i.PciID != pci || i.Mtu != 1500) {
				t.Errorf("1.1.0 says %+v, wanted pciID %s and mtu 1500", i, pci)
			}
			if version < "1.0.0" && strings.Contains(got, "pciID") {
				t.Errorf("%s has no pciID: %s", version, got)
			}
			inPod(t, "behind", pod, ib, "10.9.0.7")
			if _, f := c.Run(t, "CHECK"); (f == nil) != checks(version) {
				t.Errorf("CHECK: %+v", f)
			}
			c.Del(t)
			if node.IBDev(pci) != ib || node.Netdev(pci) == "" {
				t.Errorf("at home: %q and %q, wanted %s and a netdev", node.IBDev(pci), node.Netdev(pci), ib)
			}
			if version == "0.4.0" || version == "1.0.0" {
				return // between two versions in which it is the same
			}
			alone := cni.Chain{List: list(version, hostDevice(pci)), ContainerID: "alone", NetNS: pod.Path}
			_, want := alone.Add(t)
			alone.Del(t)
			if diff := cmp.Diff(without(t, want, pod.Path), without(t, got, pod.Path)); diff != "" {
				t.Errorf("result of host-device and of both (-want +got):\n%s", diff)
			}
		})
	}
	before.Unchanged(t)
}

// The kernel brings both home when the namespace dies. The RDMA device is podfabric's to look after, the netdev host-device's.
func TestNamespaceDies(t *testing.T) {
	pci := node.VF(t, 1, 1)
	ib, netdev := node.IBDev(pci), node.Netdev(pci)
	before := cni.Look(t)
	pod := node.NewNS(t)
	c := cni.Chain{List: list("1.1.0", hostDevice(pci), podfabric()), ContainerID: "dies", NetNS: pod.Path}
	c.Add(t)
	// Its name is taken at home: the kernel calls the device ibdevN then, and DEL gives it its own name again.
	other := node.IBDev(node.VF(t, 1, 2))
	node.Run(t, "rdma", "dev", "set", other, "name", ib)
	pod.Kill(t)
	node.Wait(t, "the RDMA device home", func() bool { return strings.HasPrefix(node.IBDev(pci), "ibdev") })
	node.Run(t, "rdma", "dev", "set", ib, "name", other)
	c.NetNS = ""
	c.Del(t)
	if got := node.IBDev(pci); got != ib {
		t.Errorf("RDMA device at home: %q, wanted %s", got, ib)
	}
	cameHome(t, pci, netdev)
	before.Unchanged(t)
}

// A runtime undoes a list that failed anywhere by DEL of the whole list.
func TestListsThatFail(t *testing.T) {
	pci, other := node.VF(t, 1, 1), node.VF(t, 1, 2)
	pod := node.NewNS(t)
	before := cni.Look(t)
	for _, tt := range []struct {
		name  string
		list  string
		code  uint
		texts []string
	}{
		{"in podfabric, at its last step", list("1.1.0", hostDevice(pci), podfabric(`,"hint":{"require":true}`)), 108, []string{"podfabric"}},
		{"in the plugin behind it", list("1.1.0", hostDevice(pci), podfabric(), broken), 999, []string{"nonsense"}},
		{
			"a VF that is not the interface's", list("1.1.0", hostDevice(pci), podfabric(`,"deviceID":"`+other+`"`)),
			7,
			[]string{other, pci, "deviceID"},
		},
		{"share on an exclusive node", list("1.1.0", hostDevice(pci), podfabric(`,"rdma":{"mode":"share"}`)), 101, []string{"exclusive"}},
		{"podfabric after podfabric", list("1.1.0", vf(pci, "10.9.0.7/24"), podfabric()), 7, []string{"failed/net1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := cni.Chain{List: tt.list, ContainerID: "failed", NetNS: pod.Path, UID: "11111111-0000-4000-8000-000000000021"}
			c.Refused(t, tt.code, tt.texts...)
			if got := node.IBDev(pci); got == "" {
				t.Error("the RDMA device is not home")
			}
		})
	}
	before.Unchanged(t)
}

// Multus writes the device that kubelet chose into every plugin of the list, in both keys, and as runtimeConfig where a plugin
// declares the capability. The device-info file names what the pod sees.
func TestAsMultusCalls(t *testing.T) {
	pci := node.VF(t, 2, 1)
	ib := node.IBDev(pci)
	pod := node.NewNS(t)
	before := cni.Look(t)
	keys := `,"deviceID":"` + pci + `","pciBusID":"` + pci + `"`
	const file = "/var/run/k8s.cni.cncf.io/devinfo/cni/rail0-multus"
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	// What the device plugin knew before the device moved.
	old := `{"type":"pci","version":"1.1.0","pci":{"pci-address":"` + pci + `","rdma-device":"stale","vhost-net":"kept"}}`
	if err := os.WriteFile(file, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll("/var/run/k8s.cni.cncf.io") })
	c := cni.Chain{
		List: list("1.1.0",
			`{"type":"host-device","capabilities":{"deviceID":true}`+keys+static("10.9.0.7/24")+`}`,
			podfabric(keys, `,"capabilities":{"CNIDeviceInfoFile":true}`),
			strings.TrimSuffix(tuning, "}")+keys+`}`),
		ContainerID: "multus", NetNS: pod.Path, Capabilities: map[string]any{"deviceID": pci, "CNIDeviceInfoFile": file},
	}
	r, _ := c.Add(t)
	if i := only(t, r); i.PciID != pci || i.Mac != "02:00:00:00:00:77" {
		t.Errorf("result: %+v, wanted podfabric's pciID and tuning's MAC", i)
	}
	inPod(t, "multus", pod, ib, "10.9.0.7")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("device-info %s: %v", text, err)
	}
	want := map[string]any{"type": "pci", "version": "1.1.0", "pci": map[string]any{
		"pci-address": pci, "pf-pci-address": node.PF(t, 2), "rdma-device": ib, "vhost-net": "kept",
	}}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("device-info (-want +got):\n%s", diff)
	}
	if _, f := c.Run(t, "CHECK"); f != nil {
		t.Errorf("CHECK: %s", f.Text())
	}
	c.Del(t)
	before.Unchanged(t)
}

// Plugins that make several interfaces list them all, those of the node among them: ours is the one of CNI_IFNAME.
func TestSeveralInterfacesInTheResult(t *testing.T) {
	pci := node.VF(t, 1, 1)
	ib, netdev := node.IBDev(pci), node.Netdev(pci)
	pod := node.NewNS(t)
	before := cni.Look(t)
	pod.Run(t, "ip", "link", "add", "eth0", "type", "dummy")
	node.Run(t, "ip", "link", "set", netdev, "netns", pod.Name, "name", "net1")
	pod.Run(t, "ip", "addr", "add", "10.9.0.7/24", "dev", "net1")
	pod.Run(t, "ip", "link", "set", "net1", "up")
	previous := `{"cniVersion":"1.0.0","interfaces":[{"name":"net1","mac":"02:00:00:00:00:01"},{"name":"eth0","sandbox":"` + pod.Path +
		`"},{"name":"net1","sandbox":"` + pod.Path + `"}],"ips":[{"interface":1,"address":"10.0.0.9/24"},{"interface":2,"address":"10.9.0.7/24"}]}`
	conf := `{"cniVersion":"1.0.0","name":"rail0","type":"podfabric","rdma":{"wait":"30s"},"prevResult":` + previous + `}`
	c := cni.Call{Conf: conf, ContainerID: "several", NetNS: pod.Path}
	r := c.Add(t)
	if len(r.Interfaces) != 3 || r.Interfaces[0].Mac != "02:00:00:00:00:01" || r.Interfaces[2].Mac == "" || len(r.IPs) != 2 {
		t.Errorf("result: %+v", r)
	}
	inPod(t, "several", pod, ib, "10.9.0.7")
	if doc, _ := c.Hint(t); len(doc.Rails[0].Addresses) != 1 {
		t.Errorf("addresses in the hint: %v", doc.Rails[0].Addresses)
	}
	if f := c.Check(t); f != nil {
		t.Errorf("CHECK: %s", f.Text())
	}
	// Nobody but the plugin before may take the interface home.
	c.Del(t)
	if got := node.IBDev(pci); got != ib {
		t.Errorf("RDMA device at home: %q, wanted %s", got, ib)
	}
	if out := pod.Run(t, "ip", "-br", "addr", "show", "dev", "net1"); !strings.Contains(out, "UP") || !strings.Contains(out, "10.9.0.7/24") {
		t.Errorf("net1 after DEL of podfabric alone: %s", out)
	}
	pod.Run(t, "ip", "link", "set", "net1", "down")
	pod.Run(t, "ip", "link", "set", "net1", "netns", "1", "name", netdev)
	pod.Run(t, "ip", "link", "del", "eth0")
	before.Unchanged(t)

	c.ContainerID, c.Conf = "missing", strings.ReplaceAll(conf, `"name":"net1","sandbox"`, `"name":"net9","sandbox"`)
	c.Refused(t, 7, "net1", "net9")
	c.Conf = conf // the result lies: there is no net1 any more
	c.Refused(t, 7, "net1", "not in the pod")
	before.Unchanged(t)
}
