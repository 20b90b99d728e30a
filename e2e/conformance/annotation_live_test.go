// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// vfNetwork names every setting that a pod might like to change.
func vfNetwork(more object) object {
	return with(object{
		"cniVersion": "1.0.0", "name": "rail0", "type": "podfabric", "link": "vf", "deviceID": "0000:3b:00.4", "vlan": 100, "trust": "off", "spoofchk": "on",
		"max_tx_rate": 1000, "mtu": 9000, "rdma": object{"mode": "share"}, "hint": object{"volume": "podfabric"},
		"ipam": object{"type": "range", "ranges": [][]object{{{"subnet": "10.1.0.0/24", "scope": "node"}}}, "routes": []object{{"dst": "10.2.0.0/16", "gw": "10.1.0.1"}}},
	}, more)
}

// capabilities are all that Multus fills.
func capabilities() object {
	all := object{}
	for _, c := range []string{"ips", "mac", "deviceID", "infinibandGUID", "portMappings", "bandwidth", "CNIDeviceInfoFile", "ipRanges", "dns", "aliases"} {
		all[c] = true
	}
	return object{"capabilities": all}
}

// outcome is what becomes of an annotation.
type outcome struct {
	field string // of the refusal; empty: accepted
	check func(c netconf.Conf) bool
}

// annotation is an element of the pod's annotation, and what becomes of it.
type annotation struct {
	name                string
	element             object
	closed, open, chose outcome // without capabilities; with all; with all and podMayChooseDevice
}

// annotations are all keys of a network selection element (Multus 4.2.0, types.NetworkSelectionElement).
func annotations() []annotation {
	var same outcome
	refused := func(field string) outcome { return outcome{field: field} }
	accepted := func(check func(c netconf.Conf) bool) outcome { return outcome{check: check} }
	return []annotation{
		{"nothing", nil, same, same, same},
		{
			"MAC",
			object{"mac": "02:00:00:00:00:09"},
			refused("CNI_ARGS MAC"),
			accepted(func(c netconf.Conf) bool { return c.MAC == "02:00:00:00:00:09" }), same,
		},
		{
			"address in the block",
			object{"ips": []string{"10.1.0.9/24"}},
			refused("CNI_ARGS IP"),
			accepted(func(c netconf.Conf) bool { return fmt.Sprint(c.IPAM.Want) == "[10.1.0.9]" }), same,
		},
		{"address outside", object{"ips": []string{"192.0.2.9/24"}}, refused("CNI_ARGS IP"), refused("runtimeConfig.ips[0]"), refused("runtimeConfig.ips[0]")},
		{"device", object{"deviceID": "0000:3b:00.3"}, same, refused("runtimeConfig.deviceID"), accepted(func(c netconf.Conf) bool {
			return c.Device.String() == "0000:3b:00.3"
		})},
		{"GUID", object{"infiniband-guid": "00:11:22:33:44:55:66:77"}, same, refused("runtimeConfig.infinibandGUID"), refused("runtimeConfig.infinibandGUID")},
		{"ports", object{"portMappings": []object{{"hostPort": 22, "containerPort": 22, "protocol": "tcp"}}}, same, same, same},
		{"bandwidth", object{"bandwidth": object{"ingressRate": 1, "ingressBurst": 1}}, same, same, same},
		{"default route", object{"default-route": []string{"10.1.0.1"}}, same, same, same},
		{"interface", object{"interface": "net7"}, accepted(func(c netconf.Conf) bool { return c.Request.IfName == "net7" }), same, same},
		{"debug", object{"cni-args": object{"debug": true}}, accepted(func(c netconf.Conf) bool { return c.Debug }), same, same},
		{"unknown key", object{"link": "device", "vlan": 1, "master": "eth0", "rdma": object{"mode": "off"}}, same, same, same},
	}
}

// forbidden are keys that cni-args must not bring: every setting, and what libcni and Multus write.
func forbidden() []string {
	return []string{
		"deviceID", "pciBusID", "link", "master", "mode", "vlan", "vlanQoS", "vlanProto", "trust", "spoofchk", "link_state", "min_tx_rate", "max_tx_rate", "mtu",
		"mac", "guid", "pkey", "rdma", "softRoCE", "routing", "rail", "hint", "ipam", "ips", "routes", "dns", "logFile", "logLevel", "capabilities", "prevResult",
		"runtimeConfig", "device", "hwaddr", "kernelpath", "vf", "name", "type", "cniVersion", "Debug",
	}
}

// TestAnnotation tries each key of a network selection element through Multus' own merging. What the network says of a kind, a wall
// or a route stays as it is in the text that podfabric reads; what the pod says of device, MAC and addresses is taken or refused
// as docs/configuration.md has it.
func TestAnnotation(t *testing.T) {
	p := newPod(t, "annotated")
	tests := annotations()
	for _, key := range forbidden() {
		no := outcome{field: "args.cni." + key}
		tests = append(tests, annotation{"cni-args " + key, object{"cni-args": object{key: "x"}}, no, no, no})
	}
	no := outcome{field: "args.cni." + strconv.Quote("\x1b[2J")}
	tests = append(tests, annotation{"cni-args with an escape", object{"cni-args": object{"\x1b[2J": "x"}}, no, no, no})
	for i, network := range []object{vfNetwork(nil), vfNetwork(capabilities()), vfNetwork(capabilities())} {
		n := netconf.Node{PodMayChooseDevice: i == 2}
		base, err := annotated{network: network, netns: p.path}.add(t).parse(t, n)
		if err != nil {
			t.Fatalf("without an annotation: %v", err)
		}
		for _, tt := range tests {
			t.Run(fmt.Sprintf("%d/%s", i, tt.name), func(t *testing.T) {
				call := annotated{network: network, netns: p.path, element: tt.element}.add(t)
				unmoved(t, network, call)
				got, err := call.parse(t, n)
				want := []outcome{tt.closed, tt.open, tt.chose}[i]
				switch {
				case want.field != "":
					if err == nil || !strings.Contains(err.Error(), want.field) {
						t.Errorf("got %+v, %v; want a refusal of %s", got, err, want.field)
					}
					return
				case err != nil:
					t.Fatalf("refused: %v", err)
				case want.check != nil && !want.check(got):
					t.Errorf("got %+v", got)
				}
				onlyPodsOwn(t, base, got)
			})
		}
	}
}

// unmoved compares what Multus hands on with the network's own text: a pod adds to runtimeConfig and args, and changes nothing else.
func unmoved(t *testing.T, network object, c multusCall) {
	t.Helper()
	want := map[string]any{}
	if err := json.Unmarshal([]byte(encode(t, network)), &want); err != nil {
		t.Fatal(err)
	}
	for key, value := range c.Stdin {
		if key == "runtimeConfig" || key == "args" {
			continue
		}
		if diff := cmp.Diff(want[key], value); diff != "" {
			t.Errorf("Multus changes %s (-network +stdin):\n%s", key, diff)
		}
	}
}

// onlyPodsOwn compares two configurations but for what a pod may choose.
func onlyPodsOwn(t *testing.T, base, got netconf.Conf) {
	t.Helper()
	for _, c := range []*netconf.Conf{&base, &got} {
		c.MAC, c.Debug, c.IPAM.Want, c.Request, c.Warnings, c.DeviceInfo = "", false, nil, netconf.Request{}, nil, ""
	}
	if base.Device != got.Device {
		base.Device = got.Device // the case has checked it
	}
	if diff := cmp.Diff(base, got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}, bus.ID{}, pci.Addr{})); diff != "" {
		t.Errorf("the annotation changed (-before +after):\n%s", diff)
	}
}

// TestAnnotationAndKubelet: with a resourceName the device is kubelet's, whatever the annotation says.
func TestAnnotationAndKubelet(t *testing.T) {
	p := newPod(t, "annotated")
	for name, more := range map[string]object{"closed": nil, "open": capabilities()} {
		for _, element := range []object{nil, {"deviceID": "0000:3b:00.3"}} {
			a := annotated{network: vfNetwork(with(object{"deviceID": nil}, more)), resource: "team/rail0", netns: p.path, element: element}
			c, err := a.add(t).parse(t, netconf.Node{})
			if err != nil || c.Device.String() != kubeletDevice {
				t.Errorf("%s, %v: device %v, %v, want kubelet's", name, element, c.Device, err)
			}
			// A node that lets pods choose changes nothing, as Multus does not ask the pod then.
			c, err = a.add(t).parse(t, netconf.Node{PodMayChooseDevice: true})
			if err != nil || c.Device.String() != kubeletDevice {
				t.Errorf("%s, %v, pods may choose: device %v, %v, want kubelet's", name, element, c.Device, err)
			}
		}
	}
}

// TestAnnotationOverArgs: the pod's cni-args stand over the network's, so the network's are no safer.
func TestAnnotationOverArgs(t *testing.T) {
	p := newPod(t, "annotated")
	network := vfNetwork(object{"args": object{"cni": object{"debug": false}}})
	c, err := annotated{network: network, netns: p.path, element: object{"cni-args": object{"debug": true}}}.add(t).parse(t, netconf.Node{})
	if err != nil || !c.Debug {
		t.Errorf("debug %v, %v; the pod's word counts", c.Debug, err)
	}
}

// TestAnnotationOfNames: names that the pod gives its interface. What Multus and libcni let through, podfabric judges.
func TestAnnotationOfNames(t *testing.T) {
	p := newPod(t, "annotated")
	for _, name := range []string{
		"..", "../x", "a/b", "a b", "a\nb", "a\x1b[2J", "\u202ea", "$(reboot)", "`id`", "a;b", strings.Repeat("a", 16), "lo", "all", "default", "eth%d", "-a", "a\x00b",
	} {
		list, errText := annotated{network: vfNetwork(nil), netns: p.path, element: object{"interface": name}}.calls(t)
		for _, c := range list {
			if c.Env["CNI_COMMAND"] != "ADD" {
				continue
			}
			if got, err := c.parse(t, netconf.Node{}); err == nil {
				t.Errorf("interface %q is taken as %q", name, got.Request.IfName)
			}
		}
		t.Logf("%q: %d calls, Multus: %s", name, len(list), errText)
	}
}

// TestAnnotationOfRuntime: containerd's arguments and Multus' own stand side by side.
func TestAnnotationOfRuntime(t *testing.T) {
	p := newPod(t, "annotated")
	call := annotated{network: vfNetwork(nil), netns: p.path}.add(t)
	if !strings.Contains(call.Env["CNI_ARGS"], "IgnoreUnknown=true") || !strings.Contains(call.Env["CNI_ARGS"], "IgnoreUnknown=1") {
		t.Errorf("CNI_ARGS %q: Multus does otherwise now, and this test proves nothing", call.Env["CNI_ARGS"])
	}
	c, err := call.parse(t, netconf.Node{})
	if err != nil || c.Request.Pod != (netconf.Pod{Namespace: "team-a", Name: "pod-0", UID: podUID}) {
		t.Errorf("pod %+v, %v", c.Request.Pod, err)
	}
}

// TestAnnotationLive runs podfabric behind Multus: a macvlan whose pod asks for a MAC, an address and another name.
func TestAnnotationLive(t *testing.T) {
	network := with(leased(nil), object{"capabilities": object{"ips": true, "mac": true}})
	subnet := fmt.Sprint(network["ipam"])
	for name, test := range map[string]struct {
		network object
		element object
		refused string
	}{
		"taken":              {network, object{"mac": "02:00:00:00:00:0a", "interface": "net7"}, ""},
		"without capability": {with(network, object{"capabilities": nil}), object{"mac": "02:00:00:00:00:0a"}, "CNI_ARGS MAC"},
		"of another kind":    {network, object{"cni-args": object{"master": "lo"}}, "args.cni.master"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, "annotated")
			before := look(t, p)
			list, errText := annotated{network: with(test.network, object{"mac": nil}), netns: p.path, element: test.element, run: true}.calls(t)
			t.Logf("%s; %s", subnet, errText)
			if test.refused != "" {
				if !strings.Contains(errText, test.refused) {
					t.Errorf("Multus says %q, want a refusal of %s", errText, test.refused)
				}
				before.unchanged(t, p)
				return
			}
			if errText != "" || !slices.ContainsFunc(list, func(c multusCall) bool { return c.Env["CNI_IFNAME"] == "net7" }) {
				t.Fatalf("%s, %+v", errText, list)
			}
			if out := p.ip(t, "-o", "link", "show", "net7"); !strings.Contains(out, "02:00:00:00:00:0a") || !strings.Contains(out, "@if") {
				t.Errorf("the pod has %s", out)
			}
			c := call{network: with(test.network, object{"mac": nil}), id: "annotated", ifname: "net7", netns: p.path}
			if f := c.bare(t, "DEL").failure(t); f != nil {
				t.Errorf("DEL: %+v", f)
			}
		})
	}
}
