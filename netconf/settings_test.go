// SPDX-License-Identifier: Apache-2.0

package netconf_test

import (
	"testing"

	"github.com/podfabric/podfabric/netconf"
)

func TestParseVFSettings(t *testing.T) {
	t.Parallel()
	accepts(t, []accept{
		{
			name: "everything", stdin: vf(`,"link":"vf","vlan":100,"vlanQoS":3,"vlanProto":"802.1ad","mac":"0200.5e10.0001","spoofchk":"off",` +
				`"trust":"on","link_state":"enable","min_tx_rate":100,"max_tx_rate":200,"vf":{"baseline":"reset","flr":true}`),
			want: base(), set: func(c *netconf.Conf) {
				c.Inferred, c.MAC = false, "02:00:5e:10:00:01"
				c.VF = netconf.VFSettings{
					VLAN: new(100), QoS: new(3), Proto: netconf.Proto8021AD, Spoofchk: new(false), Trust: new(true),
					LinkState: netconf.LinkEnable, MinTxRate: new(100), MaxTxRate: new(200), Baseline: netconf.BaselineReset, FLR: true,
				}
			},
		},
		{
			name: "zeros clear", stdin: vf(`,"vlan":0,"vlanQoS":0,"vlanProto":"802.1Q","min_tx_rate":7,"max_tx_rate":0`),
			want: base(), set: func(c *netconf.Conf) {
				c.VF = netconf.VFSettings{
					VLAN: new(0), QoS: new(0), Proto: netconf.Proto8021Q, MinTxRate: new(7), MaxTxRate: new(0), Baseline: netconf.BaselineKeep,
				}
			},
		},
		{
			name:  "empty words are none, as with sriov-cni",
			stdin: vf(`,"mac":"","spoofchk":"","trust":"","link_state":"","vlanProto":"","vf":{}`), want: base(),
		},
	})
}

func TestAsksPF(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]bool{
		"": false, `,"vf":{"baseline":"keep","flr":false}`: false, `,"mtu":9000`: false,
		`,"vlan":0`: true, `,"mac":"02:00:00:00:00:01"`: true, `,"spoofchk":"on"`: true, `,"trust":"off"`: true, `,"link_state":"auto"`: true,
		`,"min_tx_rate":0`: true, `,"max_tx_rate":0`: true, `,"vf":{"baseline":"reset"}`: true, `,"vf":{"flr":true}`: true,
	} {
		c, err := netconf.Parse(raw(vf(keys)), netconf.Node{})
		if err != nil || c.AsksPF() != want {
			t.Errorf("%s: %v, %v; want %v", keys, c.AsksPF(), err, want)
		}
	}
	c, err := netconf.Parse(raw(network(`,"device":"ens1","mac":"02:00:00:00:00:01"`)), netconf.Node{})
	if err != nil || c.AsksPF() {
		t.Errorf("device: %v, %v; a whole device has no PF to ask", c.AsksPF(), err)
	}
}

// The precedence is that of sriov-cni and macvlan: the configuration, above it CNI_ARGS, above that runtimeConfig. Both of the
// pod's need the network's consent.
func TestParseMACPrecedence(t *testing.T) {
	t.Parallel()
	const own, args, run = "02:00:00:00:00:01", "02:00:00:00:00:02", "02:00:00:00:00:03"
	const optIn = `,"capabilities":{"mac":true}`
	for _, tt := range []struct{ keys, args, want string }{
		{`,"mac":"` + own + `"`, "", own},
		{`,"mac":"` + own + `"`, "MAC=", own},
		{`,"mac":"` + own + `"` + optIn, "MAC=" + args, args},
		{`,"mac":"` + own + `"` + optIn + `,"runtimeConfig":{"mac":"` + run + `"}`, "MAC=" + args, run},
		{`,"mac":"` + own + `"` + optIn + `,"runtimeConfig":{"mac":""}`, "MAC=" + args, args},
		{optIn + `,"runtimeConfig":{"mac":"02-00-00-00-00-0A"}`, "", "02:00:00:00:00:0a"},
		{optIn, "MAC=" + args, args},
		{"", "MAC=;IP=", ""},
	} {
		for _, doc := range []string{vf(tt.keys), network(`,"master":"ens1"` + tt.keys), network(`,"device":"ens1"` + tt.keys)} {
			r := raw(doc)
			r.Args = tt.args
			c, err := netconf.Parse(r, netconf.Node{})
			if err != nil || c.MAC != tt.want || len(c.Warnings) > 0 {
				t.Errorf("%s, CNI_ARGS %s: %q, %v, %q; want %q", doc, tt.args, c.MAC, err, c.Warnings, tt.want)
			}
		}
	}
}

// A PCI address without link may turn out to be a PF, so a node that allows either kind lets it pass; attach.Guard asks again.
func TestParseAllowsInferred(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		`{"allow":{"kinds":["vf"]}}`: true, `{"allow":{"kinds":["device"]}}`: true, `{"allow":{"kinds":["macvlan","chained"]}}`: false,
	} {
		if _, err := netconf.Parse(raw(vf("")), node(t, text)); (err == nil) != ok {
			t.Errorf("%s: %v; want it taken: %v", text, err, ok)
		}
	}
	_, err := netconf.Parse(raw(vf(`,"link":"vf"`)), node(t, `{"allow":{"kinds":["device"]}}`))
	if p := problem(t, err); p.Field != "link" {
		t.Errorf("link said: %v", p)
	}
}

func TestParseDeviceInfo(t *testing.T) {
	t.Parallel()
	for file, ok := range map[string]bool{
		"": true, "/var/run/k8s.cni.cncf.io/devinfo/cni/a-net1": true, "/run/k8s.cni.cncf.io/devinfo/cni/a.json": true,
		"/run/k8s.cni.cncf.io/devinfo/a.json": false, "/var/run/k8s.cni.cncf.io/devinfo/dp/openshift.io-vf-0000:3b:00.4-device.json": false,
		"/run/k8s.cni.cncf.io/devinfo/": false, "/run/k8s.cni.cncf.io/devinfo": false, "/run/k8s.cni.cncf.io/devinfox/a": false,
		"/run/k8s.cni.cncf.io/devinfo/../../a": false, "/run/k8s.cni.cncf.io/devinfo/./a": false, "/run/k8s.cni.cncf.io/devinfo//a": false,
		"/run/k8s.cni.cncf.io/devinfo/..": false, "run/k8s.cni.cncf.io/devinfo/a": false, "/etc/passwd": false, "/": false,
		`/run/k8s.cni.cncf.io/devinfo/a\u0000b`: false, `/run/k8s.cni.cncf.io/devinfo/a\nb`: false, "//run/k8s.cni.cncf.io/devinfo/a": false,
		"/var/run/k8s.cni.cncf.io/devinfo/a/": false,
	} {
		c, err := netconf.Parse(raw(vf(`,"runtimeConfig":{"CNIDeviceInfoFile":"`+file+`"}`)), netconf.Node{})
		switch {
		case ok && (err != nil || c.DeviceInfo != file):
			t.Errorf("%q: %q, %v", file, c.DeviceInfo, err)
		case !ok && problem(t, err).Field != "runtimeConfig.CNIDeviceInfoFile":
			t.Errorf("%q: %v", file, err)
		}
	}
	_, err := netconf.Parse(raw(vf(`,"runtimeConfig":{"CNIDeviceInfoFile":7}`)), netconf.Node{})
	if p := problem(t, err); p.Found != "7" {
		t.Errorf("a number: %v", p)
	}
}
