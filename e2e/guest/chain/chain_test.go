// SPDX-License-Identifier: Apache-2.0

//go:build lab

// Package chain_test proves podfabric in lists with the real plugins of containernetworking, called through libcni as a runtime
// does it, on a node whose RDMA namespaces are exclusive: behind host-device and macvlan, before tuning and sbr, between them,
// and alone.
package chain_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	types100 "github.com/containernetworking/cni/pkg/types/100"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

//lab:boot pfs=2 vfs=3 mode=exclusive rdmasim=all seconds=600 peers=plugins/host-device,plugins/macvlan,plugins/static,plugins/host-local,plugins/tuning,plugins/sbr,libcni

func init() { node.Main() }

func TestMain(m *testing.M) { cni.Main(m) }

// list is a network of several plugins.
func list(version string, plugins ...string) string {
	return fmt.Sprintf(`{"cniVersion":%q,"name":"rail0","plugins":[%s]}`, version, strings.Join(plugins, ","))
}

// static is an ipam section.
func static(address string) string {
	return fmt.Sprintf(`,"ipam":{"type":"static","addresses":[{"address":%q,"gateway":"10.9.0.254"}]}`, address)
}

// hostDevice is the plugin that gives the pod a device, with the address 10.9.0.7.
func hostDevice(pci string) string {
	return fmt.Sprintf(`{"type":"host-device","pciBusID":%q%s}`, pci, static("10.9.0.7/24"))
}

// podfabric is our own entry in a list; more are further keys, each beginning with a comma.
func podfabric(more ...string) string {
	keys := strings.Join(more, "")
	if !strings.Contains(keys, `"rdma"`) {
		keys += `,"rdma":{"wait":"30s"}`
	}
	return `{"type":"podfabric"` + keys + `}`
}

// vf is podfabric that brings a VF itself.
func vf(pci, address string) string {
	return podfabric(fmt.Sprintf(`,"deviceID":%q`, pci) + static(address))
}

// tuning changes what CHECK of podfabric must bear.
const tuning = `{"type":"tuning","mac":"02:00:00:00:00:77","sysctl":{"net.ipv4.conf.IFNAME.arp_filter":"1"}}`

const sbr = `{"type":"sbr"}`

// broken is a plugin that fails in every ADD.
const broken = `{"type":"tuning","mac":"nonsense"}`

// inPod wants the pod to have the RDMA device, the node not, and the hint to name the GID of address as the kernel has it.
func inPod(t *testing.T, id string, pod *node.NS, ib, address string) {
	t.Helper()
	if devs := node.RDMA(t, pod); len(devs) != 1 || devs[0].Name != ib {
		t.Fatalf("RDMA devices in the pod: %v, wanted %s", devs, ib)
	}
	if slices.ContainsFunc(node.RDMA(t, nil), func(d node.RDMADevice) bool { return d.Name == ib }) {
		t.Errorf("the node still has %s", ib)
	}
	doc, settings := cni.Call{ContainerID: id}.Hint(t)
	if want := []string{"NCCL_IB_HCA==" + ib + ":1"}; !slices.Equal(settings, want) {
		t.Errorf("nccl.conf sets %q, wanted %q", settings, want)
	}
	if len(doc.Rails) != 1 || doc.Rails[0].RDMA == nil || doc.Rails[0].RDMA.GIDIndex == nil {
		t.Fatalf("fabric.json: %+v", doc)
	}
	gid := netip.AddrFrom16(netip.MustParseAddr(address).As16()).StringExpanded()
	if got := node.GIDs(t, pod, ib)[*doc.Rails[0].RDMA.GIDIndex]; got != "RoCE v2 "+gid {
		t.Errorf("the hint's index holds %q, wanted %s", got, gid)
	}
	// In exclusive mode a VF's table is the pod's own.
	if doc.Rails[0].RDMA.Shared || doc.Rails[0].PCI == nil {
		t.Errorf("fabric.json: %+v", doc.Rails[0])
	}
}

// only gives the one interface of a result.
func only(t *testing.T, r *types100.Result) *types100.Interface {
	t.Helper()
	if len(r.Interfaces) != 1 {
		t.Fatalf("result with %d interfaces: %+v", len(r.Interfaces), r)
	}
	return r.Interfaces[0]
}

// without is a result as a map, without what podfabric adds to interfaces.
func without(t *testing.T, result, sandbox string) map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal([]byte(strings.ReplaceAll(result, sandbox, "SANDBOX")), &doc); err != nil {
		t.Fatal(err)
	}
	interfaces, _ := doc["interfaces"].([]any)
	for _, i := range interfaces {
		if m, ok := i.(map[string]any); ok {
			delete(m, "pciID")
			delete(m, "mtu")
		}
	}
	return doc
}

// checks tells whether a version of CNI has CHECK.
func checks(version string) bool { return !strings.HasPrefix(version, "0.3") }

// cameHome gives a netdev that the kernel brought home under its pod's name the name that it had, as an operator would: neither
// host-device nor podfabric, which did not take it, does.
func cameHome(t *testing.T, pci, name string) {
	t.Helper()
	node.Wait(t, "the netdev home", func() bool { return node.Netdev(pci) != "" })
	now := node.Netdev(pci)
	if now == name {
		t.Errorf("the netdev came home as %s; this test expects host-device to leave it as net1", now)
	}
	node.Run(t, "ip", "link", "set", now, "down")
	node.Run(t, "ip", "link", "set", now, "name", name, "alias", "")
}
