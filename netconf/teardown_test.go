// SPDX-License-Identifier: Apache-2.0

package netconf_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// Nothing that an author can get wrong may fail a DEL.
func TestParseTeardownTakesWhatItCan(t *testing.T) {
	t.Parallel()
	delegate := netconf.IPAM{Kind: netconf.IPAMDelegate, Plugin: "nv-ipam"}
	tests := []struct {
		name    string
		stdin   string
		version string
		want    netconf.IPAM
	}{
		{"right", vf(`,"ipam":{"type":"nv-ipam","poolName":"p"}`), "1.1.0", delegate},
		{"keys of no one, of other kinds, misspelt", vf(`,"x":1,"master":5,"MTU":"z","vlan":{},"rdma":[],"ipam":{"type":"nv-ipam"}`), "1.1.0", delegate},
		{"key twice", vf(`,"mtu":1,"mtu":2,"ipam":{"type":"x"},"ipam":{"type":"nv-ipam"}`), "1.1.0", delegate},
		{"prevResult", vf(`,"prevResult":{"ips":"broken"},"ipam":{"type":"nv-ipam"}`), "1.1.0", delegate},
		{"no version, no device", `{"name":"rail0","ipam":{"type":"nv-ipam"}}`, "", delegate},
		{"odd version", `{"cniVersion":"9.9.9","name":"rail0","ipam":{"type":"nv-ipam"}}`, "9.9.9", delegate},
		{"version as a number", `{"cniVersion":1,"name":"rail0"}`, "", netconf.IPAM{}},
		{"odd name", `{"name":"rail0"}`, "", netconf.IPAM{}},
		{"range, broken", vf(`,"ipam":{"type":"range","ranges":7}`), "1.1.0", netconf.IPAM{Kind: netconf.IPAMRange}},
		{"static", vf(`,"ipam":{"type":"static"}`), "1.1.0", netconf.IPAM{Kind: netconf.IPAMStatic}},
		{"ipam as a number", vf(`,"ipam":7`), "1.1.0", netconf.IPAM{}},
		{"ipam without type", vf(`,"ipam":{"subnet":"x"}`), "1.1.0", netconf.IPAM{}},
		{"ipam type as a list", vf(`,"ipam":{"type":["x"]}`), "1.1.0", netconf.IPAM{}},
		{"dhcp", vf(`,"ipam":{"type":"dhcp"}`), "1.1.0", netconf.IPAM{}},
		{"podfabric itself", vf(`,"ipam":{"type":"podfabric"}`), "1.1.0", netconf.IPAM{}},
		{"ipam of a path", vf(`,"ipam":{"type":"../sh"}`), "1.1.0", netconf.IPAM{}},
		{"ipam of dots", vf(`,"ipam":{"type":".."}`), "1.1.0", netconf.IPAM{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := raw(tt.stdin)
			r.NetNS = ""
			r.Args = "K8S_POD_NAME=job-0;K8S_POD_NAMESPACE=a/b;K8S_POD_UID=../x;MAC=02:00:00:00:00:01"
			got, err := netconf.ParseTeardown(r)
			if err != nil {
				t.Fatal(err)
			}
			want := netconf.Teardown{
				CNIVersion: tt.version, Name: "rail0", IPAM: tt.want,
				Request: netconf.Request{
					ContainerID: "c0ffee", IfName: "net1", Path: "/opt/cni/bin", Args: r.Args, Pod: netconf.Pod{Name: "job-0"},
				},
			}
			if strings.Contains(tt.stdin, "deviceID") {
				want.Device = bus.PCI(pci.Addr{Bus: 0x3b, Function: 2})
			}
			want.Alone = tt.version == "1.1.0" && tt.name != "prevResult"
			if want.IPAM.Kind == netconf.IPAMDelegate {
				want.IPAM.Delegate = []byte(tt.stdin)
			}
			if diff := cmp.Diff(want, got, values()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestTeardownTellsWhoCameBefore has what a DEL tells, without a record, of whose an interface is.
func TestTeardownTellsWhoCameBefore(t *testing.T) {
	t.Parallel()
	const prev = `,"prevResult":{"cniVersion":"1.1.0","interfaces":[{"name":"net1"}]}`
	tests := []struct {
		name, stdin string
		kind        netconf.Kind
		alone       bool
	}{
		{"one plugin, called bare", `{"cniVersion":"1.1.0","name":"rail0","deviceID":"0000:3b:00.2"}`, "", true},
		{"version 0.4.0", `{"cniVersion":"0.4.0","name":"rail0"}`, "", true},
		{"a version that passes no result to DEL", `{"cniVersion":"0.3.1","name":"rail0"}`, "", false},
		{"no version", `{"name":"rail0"}`, "", false},
		{"a list, or a runtime that passes the result to the only one", `{"cniVersion":"1.1.0","name":"rail0"` + prev + `}`, "", false},
		{"named", `{"cniVersion":"1.1.0","name":"rail0","link":"chained"` + prev + `}`, netconf.KindChained, false},
		{"named, macvlan", `{"cniVersion":"1.1.0","name":"rail0","link":"macvlan"` + prev + `}`, netconf.KindMacvlan, false},
		{"a kind of tomorrow", `{"cniVersion":"1.1.0","name":"rail0","link":"teleport"}`, "", true},
		{"not a word", `{"cniVersion":"1.1.0","name":"rail0","link":7}`, "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := netconf.ParseTeardown(raw(tt.stdin))
			if err != nil || got.Kind != tt.kind || got.Alone != tt.alone {
				t.Errorf("kind %q, alone %t, %v; want %q, %t", got.Kind, got.Alone, err, tt.kind, tt.alone)
			}
		})
	}
}

// Names that ADD refuses but that are one segment of a path have no record: DEL must end well.
func TestParseTeardownNames(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"": true, "net1": true, "a$b": true, "abcdefghijklmnopqrst": true, "lo": true, "a b": true,
		".": false, "..": false, "a/b": false, "/": false, "a\x00b": false, "a\nb": false, strings.Repeat("a", 256): false,
	} {
		r := raw(`{"name":"rail0"}`)
		r.IfName = name
		_, errIf := netconf.ParseTeardown(r)
		r = raw(`{"name":"rail0"}`)
		r.ContainerID = name
		_, errID := netconf.ParseTeardown(r)
		for _, err := range []error{errIf, errID} {
			if ok != (err == nil) {
				t.Errorf("%q: %v; want it taken: %v", name, err, ok)
			}
			if err != nil && problem(t, err).Code != netconf.CodeEnvironment {
				t.Errorf("%q: code %d, want 4", name, problem(t, err).Code)
			}
		}
	}
}

func TestParseTeardownRefuses(t *testing.T) {
	t.Parallel()
	for stdin, code := range map[string]uint{
		"": 6, "x": 6, "[]": 6, "{}{}": 6, `{}`: 7, `{"name":""}`: 7, `{"name":7}`: 7, `{"Name":"rail0"}`: 7,
	} {
		_, err := netconf.ParseTeardown(raw(stdin))
		if p := problem(t, err); p.Code != code {
			t.Errorf("%s: code %d, want %d", stdin, p.Code, code)
		}
	}
}

// Without a list that can be trusted GC does nothing, since what is not on it is deleted.
func TestParseTeardownAttachments(t *testing.T) {
	t.Parallel()
	one := []netconf.Attachment{{ContainerID: "a", IfName: "net1"}}
	for stdin, want := range map[string][]netconf.Attachment{
		`{"name":"n"}`: nil,
		`{"name":"n","cni.dev/valid-attachments":null}`:                                               nil,
		`{"name":"n","cni.dev/valid-attachments":{}}`:                                                 nil,
		`{"name":"n","cni.dev/valid-attachments":[]}`:                                                 {},
		`{"name":"n","cni.dev/valid-attachments":[{"containerID":"a","ifname":"net1"}]}`:              one,
		`{"name":"n","cni.dev/attachments":[{"containerID":"a","ifname":"net1"}]}`:                    one,
		`{"name":"n","cni.dev/valid-attachments":[{"containerID":"a","ifname":"net1"},{"ifname":1}]}`: nil,
		`{"name":"n","cni.dev/valid-attachments":["a"]}`:                                              nil,
	} {
		got, err := netconf.ParseTeardown(netconf.Raw{Stdin: []byte(stdin)})
		if err != nil {
			t.Errorf("%s: %v", stdin, err)
		}
		if diff := cmp.Diff(want, got.Attachments); diff != "" {
			t.Errorf("%s (-want +got)\n%s", stdin, diff)
		}
	}
}
