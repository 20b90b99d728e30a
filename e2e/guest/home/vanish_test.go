// SPDX-License-Identifier: Apache-2.0

//go:build lab

package home_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// afterwards are the ways on after a device has vanished below a living pod. All but DEL come after the pod's end.
func afterwards() map[string]func(t *testing.T, c cni.Call) {
	return map[string]func(t *testing.T, c cni.Call){
		del: func(t *testing.T, c cni.Call) { t.Helper(); c.Del(t) },
		"repair": func(t *testing.T, _ cni.Call) {
			t.Helper()
			says(t, "0", "repair", "its network namespace is gone")
		},
		"GC": func(t *testing.T, c cni.Call) {
			t.Helper()
			gc := c
			gc.Conf = strings.Replace(c.Conf, `"type":"podfabric"`, `"type":"podfabric","cni.dev/valid-attachments":[]`, 1)
			if _, failure := gc.Run(t, "GC"); failure != nil {
				t.Errorf("GC: %s", failure.Text())
			}
		},
	}
}

const del = "DEL"

// ends ends a pod that lives no longer when the way of that name is taken.
func ends(t *testing.T, name string, pod *node.NS) {
	t.Helper()
	if name != del {
		pod.Kill(t)
	}
}

// vfs writes the number of VFs of a NIC and waits until they are all there with their drivers.
func vfs(t *testing.T, pf string, n int) {
	t.Helper()
	had := slices.DeleteFunc(node.VFs(t, pf), func(vf string) bool { return node.IBDev(vf) == "" })
	node.Write(t, "/sys/bus/pci/devices/"+pf+"/sriov_numvfs", "0")
	if n == 0 {
		return
	}
	node.Write(t, "/sys/bus/pci/devices/"+pf+"/sriov_numvfs", fmt.Sprint(n))
	node.Wait(t, "the VFs", func() bool {
		all := node.VFs(t, pf)
		ready := func(vf string) bool {
			return node.Netdev(vf) != "" && (!slices.Contains(had, vf) || node.IBDev(vf) != "")
		}
		return len(all) == n && !slices.ContainsFunc(all, func(vf string) bool { return !ready(vf) })
	})
}

// vfLine is what ip(8) shows of a VF of a NIC.
func vfLine(t *testing.T, pf string, n int) string {
	t.Helper()
	for line := range strings.Lines(node.Run(t, "ip", "link", "show", node.Netdev(pf))) {
		if strings.HasPrefix(strings.TrimSpace(line), fmt.Sprintf("vf %d ", n)) {
			return strings.TrimSpace(line)
		}
	}
	t.Fatalf("no VF %d of %s", n, pf)
	return ""
}

// settings are what follows the MAC, which this driver makes anew when it is bound.
func settings(vfLine string) string {
	_, after, _ := strings.Cut(vfLine, ", ")
	return after
}

// vlan is a VF setting that must never be put on another function than the one that had it.
const vlan = `,"vlan":100`

// TestVFsRemovedAndMadeAnew: sriov_numvfs is written 0 and 4 again below a living pod. What comes at the old addresses is other
// functions, with nothing of the old ones' settings, and what an operator has set on them since stays.
func TestVFsRemovedAndMadeAnew(t *testing.T) {
	pf := node.PF(t, 1)
	netdev := node.Netdev(pf)
	for name, next := range afterwards() {
		for number := range 2 { // without and with an RDMA device
			t.Run(fmt.Sprintf("VF %d, %s", number, name), func(t *testing.T) {
				files := cni.Look(t)
				pod := node.NewNS(t)
				c := cni.Call{Conf: network(node.VF(t, 1, number), "10.9.0.7/24", vlan), ContainerID: "vanish", NetNS: pod.Path}
				c.Add(t)
				vfs(t, pf, 4)
				node.Run(t, "ip", "link", "set", netdev, "vf", fmt.Sprint(number), "vlan", "7")
				ends(t, name, pod)
				before, line := cni.Look(t), vfLine(t, pf, number)
				if !strings.Contains(line, "vlan 7") {
					t.Fatalf("the new VF: %s", line)
				}
				next(t, c)
				if now := vfLine(t, pf, number); now != line {
					t.Errorf("the new VF was %q, is %q", line, now)
				}
				before.SameDevices(t)
				files.SameFiles(t)
				says(t, "0", "repair --dry-run", "nothing to repair")

				// The next pod's, and back: what it finds at home is the new one's.
				again := cni.Call{Conf: network(node.VF(t, 1, number), "10.9.0.8/24", vlan), ContainerID: "again", NetNS: node.NewNS(t).Path}
				again.Add(t)
				again.Del(t)
				if now := vfLine(t, pf, number); now != line {
					t.Errorf("after the next pod the new VF is %q, was %q", now, line)
				}
				before.SameDevices(t)
				files.SameFiles(t)
				node.Run(t, "ip", "link", "set", netdev, "vf", fmt.Sprint(number), "vlan", "0")
			})
		}
	}
}

// TestVFsRemoved: they do not come back at all. Claims, leases and records are freed, and an ADD says what is missing.
func TestVFsRemoved(t *testing.T) {
	pf := node.PF(t, 1)
	for name, next := range afterwards() {
		t.Run(name, func(t *testing.T) {
			files := cni.Look(t)
			vf := node.VF(t, 1, 1)
			pod := node.NewNS(t)
			c := cni.Call{Conf: network(vf, "10.9.0.7/24", vlan), ContainerID: "vanish", NetNS: pod.Path}
			c.Add(t)
			vfs(t, pf, 0)
			ends(t, name, pod)
			next(t, c)
			files.SameFiles(t)
			says(t, "0", "repair --dry-run", "nothing to repair")
			cni.Call{Conf: network(vf, "10.9.0.8/24"), ContainerID: "late", NetNS: node.NewNS(t).Path}.AddFails(t, 11, vf, "does not exist")
			vfs(t, pf, 4)
			files.SameFiles(t)
		})
	}
}

// TestHotUnplug: a whole NIC is taken out by the remove file of its folder below a living pod, and found again by a scan of the bus. VFs
// have no such file.
func TestHotUnplug(t *testing.T) {
	nic := node.PF(t, 2)
	folder := "/sys/bus/pci/devices/" + nic
	node.Write(t, folder+"/sriov_numvfs", "0")
	for name, next := range afterwards() {
		t.Run(name, func(t *testing.T) {
			files := cni.Look(t)
			pod := node.NewNS(t)
			c := cni.Call{Conf: network(nic, "10.9.0.7/24", `,"link":"device","mtu":1400`), ContainerID: "vanish", NetNS: pod.Path}
			c.Add(t)
			node.Write(t, folder+"/remove", "1")
			node.Write(t, "/sys/bus/pci/rescan", "1")
			node.Wait(t, "the NIC again", func() bool { return node.Netdev(nic) != "" && node.IBDev(nic) != "" })
			ends(t, name, pod)
			before := cni.Look(t)
			next(t, c)
			before.SameDevices(t) // MTU 1500 and its own MAC, as the driver made it
			files.SameFiles(t)
			says(t, "0", "repair --dry-run", "nothing to repair")
			again := cni.Call{Conf: network(nic, "10.9.0.8/24", `,"link":"device"`), ContainerID: "again", NetNS: node.NewNS(t).Path}
			again.Add(t)
			again.Del(t)
			before.SameDevices(t)
		})
	}
}

// TestDriverRebound: the function is the same, what its driver made of it is new. The pod's settings come off, since the PF keeps
// them over that; what somebody set since stays.
func TestDriverRebound(t *testing.T) {
	pf := node.PF(t, 1)
	for name, next := range afterwards() {
		for number := range 2 {
			t.Run(fmt.Sprintf("VF %d, %s", number, name), func(t *testing.T) {
				files := cni.Look(t)
				vf := node.VF(t, 1, number)
				had := node.IBDev(vf) != ""
				was := settings(vfLine(t, pf, number))
				pod := node.NewNS(t)
				c := cni.Call{Conf: network(vf, "10.9.0.7/24", vlan), ContainerID: "rebound", NetNS: pod.Path}
				c.Add(t)
				driver := "/sys/bus/pci/drivers/igbvf/"
				node.Write(t, driver+"unbind", vf)
				node.Write(t, driver+"bind", vf)
				node.Wait(t, "the VF again", func() bool { return node.Netdev(vf) != "" && (node.IBDev(vf) != "") == had })
				ends(t, name, pod)
				next(t, c)
				if now := settings(vfLine(t, pf, number)); now != was {
					t.Errorf("the VF was %q, is %q", was, now)
				}
				files.SameFiles(t)
				says(t, "0", "repair --dry-run", "nothing to repair")
				again := cni.Call{Conf: network(vf, "10.9.0.8/24", vlan), ContainerID: "again", NetNS: node.NewNS(t).Path}
				again.Add(t)
				again.Del(t)
				if now := settings(vfLine(t, pf, number)); now != was {
					t.Errorf("after the next pod the VF is %q, was %q", now, was)
				}
			})
		}
	}
}
