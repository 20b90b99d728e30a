// SPDX-License-Identifier: Apache-2.0

//go:build lab

package vfset_test

import (
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// bind gives a function to another driver, until the test ends.
func bind(t *testing.T, vf, driver string) {
	t.Helper()
	dir := "/sys/bus/pci/devices/" + vf
	change := func(to string) {
		node.Write(t, dir+"/driver_override", to+"\n")
		node.Write(t, dir+"/driver/unbind", vf)
		node.Write(t, "/sys/bus/pci/drivers_probe", vf)
	}
	change(driver)
	t.Cleanup(func() {
		change("")
		node.Wait(t, "netdev and RDMA device", func() bool { return node.Netdev(vf) != "" && node.IBDev(vf) != "" })
	})
	if got := target(t, dir+"/driver"); !strings.HasSuffix(got, "/"+driver) {
		t.Fatalf("%s is bound to %s", vf, got)
	}
}

// A VF that a program of the pod drives gets its settings and nothing else. vfio-pci takes no function without an IOMMU, and the
// guest's kernel has no CONFIG_VFIO_NOIOMMU; uio_pci_generic is treated alike.
func TestVFOfAProgram(t *testing.T) {
	pf, vf := node.PF(t, 1), node.VF(t, 1, 3) // the last, so that no number shifts
	node.Run(t, "modprobe", "uio_pci_generic")
	bind(t, vf, "uio_pci_generic")
	pod := node.NewNS(t)
	before := cni.Look(t)
	for what, tt := range map[string]struct {
		more  string
		code  uint
		texts []string
	}{
		"MTU":          {`,"mtu":1400`, 102, []string{"mtu", "uio_pci_generic"}},
		"RDMA moved":   {`,"rdma":{"mode":"move"}`, 102, []string{"rdma.mode", "uio_pci_generic"}},
		"RDMA wanted":  {`,"rdma":{"require":"active"}`, 102, []string{"rdma.require", "uio_pci_generic"}},
		"soft RoCE":    {`,"rdma":{"softRoCE":true}`, 102, []string{"rdma.softRoCE", "uio_pci_generic"}},
		"whole device": {`,"link":"device"`, 102, []string{"uio_pci_generic"}},
	} {
		t.Run(what, func(t *testing.T) {
			refused(t, cni.Call{Conf: network(vf, "10.9.0.7/24", tt.more), ContainerID: "refused", NetNS: pod.Path}, tt.code, tt.texts...)
		})
	}
	before.Unchanged(t)

	for _, dies := range []bool{false, true} {
		pod := node.NewNS(t)
		c := cni.Call{Conf: network(vf, "10.9.0.7/24", all), ContainerID: "program", NetNS: pod.Path}
		r := c.Add(t)
		want(t, pf, 3, become)
		// The address is the program's to use.
		if len(r.IPs) != 1 || r.IPs[0].Address.String() != "10.9.0.7/24" || r.Interfaces[0].PciID != vf || r.Interfaces[0].Mac != mac {
			t.Errorf("result: %+v", r)
		}
		if links := pod.Run(t, "ip", "-br", "link"); strings.Contains(links, "net1") {
			t.Errorf("links in the pod: %s", links)
		}
		if f := c.Check(t); f != nil {
			t.Errorf("CHECK: %s", f.Text())
		}
		if dies {
			pod.Kill(t)
			c.NetNS = ""
		}
		c.Del(t)
		before.Unchanged(t)
	}
}
