// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const uid = "5e3dbf8b-0000-4000-8000-000000000001"

// multus are the arguments that Multus gives to every plugin.
func multus(more ...[2]string) [][2]string {
	return append([][2]string{
		{"IgnoreUnknown", "true"},
		{"K8S_POD_NAMESPACE", "team-a"},
		{"K8S_POD_NAME", "train-0"},
		{"K8S_POD_INFRA_CONTAINER_ID", "caller"},
		{"K8S_POD_UID", uid},
	}, more...)
}

// leased is a network whose addresses podfabric hands out itself.
func leased(more object) object {
	return with(with(network(versions()[4]), object{
		"mac": nil, "ipam": object{"type": "range", "ranges": [][]object{{{"subnet": "192.0.2.0/28", "scope": "node"}}}},
	}), more)
}

// What runtimes and Multus add to a network, and what a pod's author reaches by it.
func TestWhatCallersInject(t *testing.T) {
	const fromPod, fromRuntime = "02:00:5e:00:53:aa", "02:00:5e:00:53:bb"
	capable := object{"capabilities": object{
		"mac": true, "ips": true, "CNIDeviceInfoFile": true, "portMappings": true, "bandwidth": true, "deviceID": true, "infinibandGUID": true,
	}}
	neighbour := newPod(t, "neighbour")
	other := call{
		network: leased(with(capable, object{"mac": "02:00:5e:00:53:cc"})), id: "neighbour", netns: neighbour.path,
		caps: object{"ips": []string{"192.0.2.14"}},
	}
	other.ok(t, "ADD")
	for name, tt := range map[string]struct {
		network object
		args    [][2]string
		caps    object
		shows   []string // in the pod's ip addr show net1
		code    uint     // of a refusal
		texts   []string // of a refusal
	}{
		"nothing":           {network: leased(nil), shows: []string{"link/ether 02:"}},
		"the network's MAC": {network: leased(object{"mac": mac}), shows: []string{mac}},
		"runtimeConfig.mac": {
			network: leased(with(capable, object{"mac": mac})),
			caps:    object{"mac": fromRuntime},
			shows:   []string{fromRuntime},
		},
		"MAC of CNI_ARGS": {
			network: leased(with(capable, object{"mac": mac})),
			args:    multus([2]string{"MAC", fromPod}),
			shows:   []string{fromPod},
		},
		"both MACs": {
			network: leased(capable),
			args:    multus([2]string{"MAC", fromPod}),
			caps:    object{"mac": fromRuntime},
			shows:   []string{fromRuntime},
		},
		"MAC without the capability": {
			network: leased(nil),
			args:    multus([2]string{"MAC", fromPod}),
			code:    7, texts: []string{`"capabilities": {"mac": true}`},
		},
		"MAC of a group": {
			network: leased(capable),
			caps:    object{"mac": "01:00:5e:00:53:bb"},
			code:    7, texts: []string{"unicast"},
		},
		"runtimeConfig.ips": {
			network: leased(capable),
			caps:    object{"ips": []string{"192.0.2.5"}},
			shows:   []string{"192.0.2.5/28"},
		},
		"IP of CNI_ARGS": {
			network: leased(capable), args: multus([2]string{"IP", "192.0.2.6"}),
			shows: []string{"192.0.2.6/28"},
		},
		"IP without the capability": {
			network: leased(nil),
			args:    multus([2]string{"IP", "192.0.2.6"}),
			code:    7, texts: []string{`"capabilities": {"ips": true}`},
		},
		"an address of another block": {
			network: leased(capable),
			caps:    object{"ips": []string{"192.0.2.99"}},
			code:    7, texts: []string{"192.0.2.99"},
		},
		"port mappings and bandwidth": {
			network: leased(capable),
			caps:    object{"portMappings": []object{{"hostPort": 80, "containerPort": 80}}, "bandwidth": object{"ingressRate": 1}},
			shows:   []string{"net1"},
		},
		"an InfiniBand GUID": {
			network: leased(capable),
			caps:    object{"infinibandGUID": "00:11:22:33:44:55:66:77"},
			code:    7, texts: []string{"infinibandGUID"},
		},
		"a device of the pod's choice": {
			network: leased(capable),
			caps:    object{"deviceID": "0000:3b:00.2"},
			code:    7, texts: []string{"runtimeConfig.deviceID", "0000:3b:00.2"},
		},
		"the shared plugin's number": {
			network: leased(object{"deviceID": "17", "pciBusID": "17"}),
			shows:   []string{"net1"},
		},
		"the number, twice": {
			network: leased(with(capable, object{"deviceID": "17", "pciBusID": "17"})),
			caps:    object{"deviceID": "17"},
			shows:   []string{"net1"},
		},
		"arguments of Multus": {network: leased(nil), args: multus(), shows: []string{"net1"}},
		"a UID that is a path": {
			network: leased(nil),
			args:    [][2]string{{"K8S_POD_UID", "../../../../../../etc/podfabric-tests"}},
			code:    4, texts: []string{"K8S_POD_UID"},
		},
		"cni-args of the pod": {
			network: leased(object{"args": object{"cni": object{"vlan": 5}}}),
			code:    7, texts: []string{"args.cni.vlan"},
		},
		"cni-args debug": {
			network: leased(object{"args": object{"cni": object{"debug": true}}}),
			shows:   []string{"net1"},
		},
		"a device-info file": {
			network: leased(capable),
			caps:    object{"CNIDeviceInfoFile": "/var/run/k8s.cni.cncf.io/devinfo/cni/x.json"},
			shows:   []string{"net1"},
		},
		"a device-info file elsewhere": {
			network: leased(capable),
			caps:    object{"CNIDeviceInfoFile": "/etc/cron.d/x"},
			code:    7, texts: []string{"CNIDeviceInfoFile"},
		},
		"arguments of another caller": {
			network: leased(nil),
			args:    [][2]string{{"IgnoreUnknown", "1"}, {"com.example/x", "y"}},
			shows:   []string{"net1"},
		},
		"a capability nobody knows": {
			network: leased(object{"capabilities": object{"teleport": true}}),
			caps:    object{"teleport": 7},
			shows:   []string{"net1"},
		},
		"dns and aliases of a runtime": {
			network: leased(object{"capabilities": object{"dns": true, "aliases": true}}),
			caps:    object{"dns": object{"servers": []string{"192.0.2.1"}}, "aliases": []string{"a"}},
			shows:   []string{"net1"},
		},
		"ranges of a runtime": {
			network: leased(object{"capabilities": object{"ipRanges": true}}),
			caps:    object{"ipRanges": [][]object{{{"subnet": "10.0.0.0/8"}}}},
			code:    7, texts: []string{"ipRanges"},
		},
		"a MAC that another pod has": {
			network: leased(object{"mac": "02:00:5e:00:53:cc"}),
			code:    103, texts: []string{"another MAC"},
		},
		"an address that another has": {
			network: leased(capable),
			caps:    object{"ips": []string{"192.0.2.14"}},
			code:    7, texts: []string{"192.0.2.14"},
		},
		"a MAC of nobody, like another": {
			network: leased(object{"mac": "02-00-5E-00-53-CD"}),
			shows:   []string{"02:00:5e:00:53:cd"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, "caller")
			before := look(t, p, neighbour)
			c := call{network: tt.network, id: "caller", netns: p.path, args: tt.args, caps: tt.caps}
			if tt.code != 0 {
				c.refused(t, "ADD", tt.code, tt.texts...)
				before.unchanged(t, p, neighbour)
			} else {
				c.ok(t, "ADD")
				shown := p.ip(t, "addr", "show", "net1")
				for _, want := range tt.shows {
					if !strings.Contains(shown, want) {
						t.Errorf("wanted %q: %s", want, shown)
					}
				}
				c.ok(t, "CHECK")
			}
			c.ok(t, "DEL")
			before.unchanged(t, p, neighbour)
		})
	}
	other.ok(t, "DEL")
}

// The hint lies where the pod's UID says, as long as the pod has an attachment.
func TestHintOfThePod(t *testing.T) {
	p := newPod(t, "hint")
	c := call{network: leased(nil), id: "hint", netns: p.path, args: multus()}
	file := filepath.Join("/run/podfabric/pods", uid, "fabric.json")
	c.ok(t, "ADD")
	text, err := os.ReadFile(file)
	if err != nil || !json.Valid(text) {
		t.Errorf("the hint: %v: %s", err, text)
	}
	c.ok(t, "DEL")
	if _, err := os.Stat(file); err == nil {
		t.Error("the hint outlives the attachment")
	}
}

// A device-info file of a device that is not the attachment's own is left as its device plugin wrote it.
func TestDeviceInfoOfAMasterIsLeftAlone(t *testing.T) {
	const file, text = "/run/k8s.cni.cncf.io/devinfo/cni/shared.json", `{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:3b:00.0"}}`
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newPod(t, "devinfo")
	c := call{
		network: leased(object{"capabilities": object{"CNIDeviceInfoFile": true}}), id: "devinfo", netns: p.path,
		caps: object{"CNIDeviceInfoFile": file},
	}
	c.ok(t, "ADD")
	c.ok(t, "DEL")
	if now, err := os.ReadFile(file); err != nil || string(now) != text {
		t.Errorf("the file: %v: %s", err, now)
	}
}
