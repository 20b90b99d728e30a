// SPDX-License-Identifier: Apache-2.0

package netconf_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// raw is one ADD by a runtime without Kubernetes.
func raw(stdin string) netconf.Raw {
	return netconf.Raw{
		Stdin: []byte(stdin), ContainerID: "c0ffee", NetNS: "/run/netns/a", IfName: "net1", Path: "/opt/cni/bin",
	}
}

// vf wraps keys, each with a comma before it, into a configuration that is accepted without them.
func vf(keys string) string {
	return `{"cniVersion":"1.1.0","name":"rail0","type":"podfabric","deviceID":"0000:3b:00.2"` + keys + `}`
}

// values lets go-cmp compare values of net/netip, which have no exported fields.
func values() cmp.Option { return cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}) }

// node parses a node file that is right.
func node(t *testing.T, text string) netconf.Node {
	t.Helper()
	n, err := netconf.ParseNode([]byte(text))
	if err != nil {
		t.Fatalf("node file %s: %v", text, err)
	}
	return n
}

// problem asserts that err is a *Problem that a person can act on.
func problem(t *testing.T, err error) *netconf.Problem {
	t.Helper()
	var p *netconf.Problem
	if !errors.As(err, &p) {
		t.Fatalf("got %v, want a *netconf.Problem", err)
	}
	if p.Remedy == "" || strings.HasSuffix(p.Remedy, ".") {
		t.Errorf("remedy %q: want a sentence without a final period", p.Remedy)
	}
	if !strings.HasPrefix(p.Error(), p.Remedy) {
		t.Errorf("error %q does not begin with its remedy %q", p.Error(), p.Remedy)
	}
	if strings.ContainsAny(p.Error(), "\n\r\x00\x1b") {
		t.Errorf("error %q holds control characters", p.Error())
	}
	if strings.Contains(p.Error(), "no such file or directory") {
		t.Errorf("error %q holds the text that Multus takes as done", p.Error())
	}
	return p
}

// base is the Conf of vf("") through raw.
func base() netconf.Conf {
	return netconf.Conf{
		CNIVersion: "1.1.0", Name: "rail0", Kind: netconf.KindVF, Inferred: true, Device: bus.PCI(pci.Addr{Bus: 0x3b, Function: 2}),
		VF:   netconf.VFSettings{Baseline: netconf.BaselineKeep},
		RDMA: netconf.RDMA{Mode: netconf.RDMAAuto, Wait: time.Second},
		Hint: netconf.Hint{Volume: "podfabric", NCCL: "2.21", NoRight: netconf.NoRightWarn},
		Request: netconf.Request{
			ContainerID: "c0ffee", IfName: "net1", NetNS: "/run/netns/a", Path: "/opt/cni/bin",
		},
	}
}

func TestParseAccepts(t *testing.T) {
	t.Parallel()
	addr, prefix := netip.MustParseAddr, netip.MustParsePrefix
	tests := []struct {
		name  string
		stdin string
		node  string
		raw   func(*netconf.Raw)
		want  func(*netconf.Conf)
	}{
		{name: "the least", stdin: vf("")},
		{name: "null is absent", stdin: vf(`,"mtu":null,"vlan":null,"rdma":null,"ipam":null,"args":null,"prevResult":null`)},
		{name: "link said", stdin: vf(`,"link":"vf"`), want: func(c *netconf.Conf) { c.Inferred = false }},
		{name: "pciBusID as Multus adds it", stdin: vf(`,"pciBusID":"0000:3b:00.2"`)},
		{
			name:  "pciBusID alone, upper case",
			stdin: `{"cniVersion":"0.3.0","name":"rail0","type":"podfabric","pciBusID":"0000:3B:00.2"}`,
			want:  func(c *netconf.Conf) { c.CNIVersion = "0.3.0" },
		},
		{
			name: "everything of the sections", stdin: vf(`,"mtu":9000,"rail":7,
				"rdma":{"mode":"move","require":"gid","softRoCE":true,"wait":"1500ms"},
				"hint":{"role":"compute","volume":"fabric","require":true,"nccl":">=2.19.4","noRight":"fail","failClosed":true,
					"trafficClass":106},
				"dns":{"nameservers":["10.0.0.53"],"domain":"d","search":["s"],"options":["o"]},
				"ipam":{"type":"nv-ipam","poolName":"my-pool"},"args":{"cni":{"debug":true}}`),
			want: func(c *netconf.Conf) {
				c.MTU.Bytes, c.Rail, c.Debug = 9000, new(7), true
				c.RDMA = netconf.RDMA{Mode: netconf.RDMAMove, Require: netconf.RequireGID, SoftRoCE: true, Wait: 1500 * time.Millisecond}
				c.Hint = netconf.Hint{
					Role: netconf.RoleCompute, Volume: "fabric", Require: true, NCCL: "2.19.4", NoRight: netconf.NoRightFail,
					FailClosed: true, TrafficClass: new(106),
				}
				c.IPAM = netconf.IPAM{
					Kind: netconf.IPAMDelegate, Plugin: "nv-ipam",
					DNS: types.DNS{Nameservers: []string{"10.0.0.53"}, Domain: "d", Search: []string{"s"}, Options: []string{"o"}},
				}
			},
		},
		{name: "mtu of the PF", stdin: vf(`,"mtu":"pf"`), want: func(c *netconf.Conf) { c.MTU.FromPF = true }},
		{name: "no traffic class", stdin: vf(`,"hint":{"trafficClass":null,"role":"other"}`), want: func(c *netconf.Conf) { c.Hint.Role = netconf.RoleOther }},
		{
			name: "a pod of Kubernetes", stdin: vf(""),
			raw: func(r *netconf.Raw) {
				r.Args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=team-a;K8S_POD_NAME=job-0;K8S_POD_INFRA_CONTAINER_ID=c0ffee;" +
					"K8S_POD_UID=0b3e7c1a-4f51-4a64-9d0e-3d7f4c2b1a00;X=1;"
			},
			want: func(c *netconf.Conf) {
				c.Request.Args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=team-a;K8S_POD_NAME=job-0;K8S_POD_INFRA_CONTAINER_ID=c0ffee;" +
					"K8S_POD_UID=0b3e7c1a-4f51-4a64-9d0e-3d7f4c2b1a00;X=1;"
				c.Request.Pod = netconf.Pod{Namespace: "team-a", Name: "job-0", UID: "0b3e7c1a-4f51-4a64-9d0e-3d7f4c2b1a00"}
			},
		},
		{
			name: "unknown keys are warned of", stdin: vf(`,"trunk":[1],"mtuu":1,"if 0\u001b":"x"`),
			want: func(c *netconf.Conf) {
				c.Warnings = []string{
					"trunk is not a key of podfabric and has no effect; did you mean \"trust\"?",
					"mtuu is not a key of podfabric and has no effect; did you mean \"mtu\"?",
					`"if 0\x1b" is not a key of podfabric and has no effect`,
				}
			},
		},
		{
			name: "logs are the node's", stdin: vf(`,"logLevel":"debug","logFile":"/etc/passwd"`),
			want: func(c *netconf.Conf) {
				c.Warnings = []string{
					"logLevel has no effect: where podfabric logs is set in /etc/podfabric/node.json",
					"logFile has no effect: where podfabric logs is set in /etc/podfabric/node.json",
				}
			},
		},
		{name: "no ipam by an empty object", stdin: vf(`,"ipam":{}`)},
		{name: "no ipam by its type", stdin: vf(`,"ipam":{"type":"none"}`)},
		{
			name: "gid required without addresses", stdin: vf(`,"rdma":{"require":"active"}`),
			want: func(c *netconf.Conf) {
				c.RDMA.Require = netconf.RequireActive
				c.Warnings = []string{"rdma.require asks for the GID of an address, and without ipam there is none to wait for"}
			},
		},
		{
			name: "a device that the node lets the pod choose", node: `{"podMayChooseDevice":true}`,
			stdin: vf(`,"capabilities":{"deviceID":true},"runtimeConfig":{"deviceID":"0000:3b:00.5"}`),
			want: func(c *netconf.Conf) {
				c.Device.PCI.Function = 5
				c.Warnings = []string{`runtimeConfig.deviceID: the pod chose device "0000:3b:00.5" instead of "0000:3b:00.2"`}
			},
		},
		{
			name: "the same device from the pod", stdin: vf(`,"runtimeConfig":{"deviceID":"0000:3B:00.2","CNIDeviceInfoFile":"/var/run/k8s.cni.cncf.io/devinfo/cni/x"}`),
			want: func(c *netconf.Conf) { c.DeviceInfo = "/var/run/k8s.cni.cncf.io/devinfo/cni/x" },
		},
		{
			name: "what the runtime adds is warned of", stdin: vf(`,"runtimeConfig":{"portMappings":[],"x":null},"args":{"labels":{}}`),
			raw: func(r *netconf.Raw) { r.Args = "FOO=1" },
			want: func(c *netconf.Conf) {
				c.Request.Args = "FOO=1"
				c.Warnings = []string{
					"args.labels has no effect: it is for another plugin",
					"runtimeConfig.portMappings has no effect: a rail has no port mappings",
					"CNI_ARGS FOO has no effect: podfabric knows no such argument",
				}
			},
		},
		{
			name: "static", stdin: vf(`,"ipam":{"type":"static","addresses":[{"address":"10.1.0.7/24","gateway":"10.1.0.1"},
				{"address":"fd00::7/64","gateway":"fe80::1"}],"routes":[{"dst":"10.2.0.0/16"},{"dst":"fd01::/64","gw":"fd00::1"},
				{"dst":"10.3.0.0/16","gw":"10.1.0.2"}],"dns":{"domain":"ipam"}},"dns":{"domain":"top"}`),
			want: func(c *netconf.Conf) {
				c.IPAM = netconf.IPAM{
					Kind: netconf.IPAMStatic,
					Static: []netconf.Address{
						{Prefix: prefix("10.1.0.7/24"), Gateway: addr("10.1.0.1")},
						{Prefix: prefix("fd00::7/64"), Gateway: addr("fe80::1")},
					},
					Routes: []netconf.Route{
						{Dst: prefix("10.2.0.0/16"), Via: addr("10.1.0.1")},
						{Dst: prefix("fd01::/64"), Via: addr("fd00::1")},
						{Dst: prefix("10.3.0.0/16"), Via: addr("10.1.0.2")},
					},
					DNS: types.DNS{Domain: "ipam"},
				}
			},
		},
		{
			name:  "static, on the link, with the default route asked for",
			stdin: vf(`,"ipam":{"type":"static","addresses":[{"address":"10.1.0.7/31"}],"defaultRoute":true,"routes":[{"dst":"0.0.0.0/0"}]}`),
			want: func(c *netconf.Conf) {
				c.IPAM = netconf.IPAM{
					Kind: netconf.IPAMStatic, DefaultRoute: true, Static: []netconf.Address{{Prefix: prefix("10.1.0.7/31")}},
					Routes: []netconf.Route{{Dst: prefix("0.0.0.0/0")}},
				}
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := raw(tt.stdin)
			if tt.raw != nil {
				tt.raw(&r)
			}
			got, err := netconf.Parse(r, node(t, tt.node))
			if err != nil {
				t.Fatal(err)
			}
			want := base()
			if tt.want != nil {
				tt.want(&want)
			}
			if want.IPAM.Kind == netconf.IPAMDelegate {
				want.IPAM.Delegate = r.Stdin
			}
			if diff := cmp.Diff(want, got, values()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// The specification's own list; 0.1.0 and 0.2.0 have no interfaces in their results.
func TestParseVersions(t *testing.T) {
	t.Parallel()
	for version, ok := range map[string]bool{
		"0.1.0": false, "0.2.0": false, "0.3.0": true, "0.3.1": true, "0.4.0": true, "1.0.0": true, "1.1.0": true, "1.2.0": false,
		"": false, "1.1": false, "2.0.0": false,
	} {
		_, err := netconf.Parse(raw(`{"cniVersion":"`+version+`","name":"n","deviceID":"0000:3b:00.2"}`), netconf.Node{})
		if ok != (err == nil) {
			t.Errorf("version %q: accepted %v, want %v", version, err == nil, ok)
		}
		if !ok && problem(t, err).Code != netconf.CodeVersion {
			t.Errorf("version %q: code %d, want 1", version, problem(t, err).Code)
		}
	}
}

// A delegate reads the document itself, so not one byte of it may differ (nv-ipam: deviceID at its top).
func TestParsePassesDocumentOn(t *testing.T) {
	t.Parallel()
	stdin := vf(`,  "ipam":{"type":"nv-ipam","poolName":"p", "defaultRoute":true, "unknown" : [1,{"a":null}]}`)
	r := raw(stdin)
	c, err := netconf.Parse(r, netconf.Node{})
	if err != nil {
		t.Fatal(err)
	}
	r.Stdin[0] = 'x'
	if diff := cmp.Diff(stdin, string(c.IPAM.Delegate)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if !c.IPAM.DefaultRoute {
		t.Error("ipam.defaultRoute is lost on the way to the caller")
	}
}
