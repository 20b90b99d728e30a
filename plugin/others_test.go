// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/delegate"
	"github.com/podfabric/podfabric/plugin/devinfo"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// named gives one of kinds().
func named(name string) kind { return some(name)[0] }

// TestOtherKindsRefused has what only the plugin can find out, beside the tables of attach.Guard and netconf.
func TestOtherKindsRefused(t *testing.T) {
	t.Parallel()
	chained := named("chained behind host-device").request
	master := named("macvlan").request
	tests := []struct {
		name   string
		mode   attach.Mode
		before func(t *testing.T, m *machine)
		r      request
		code   uint
		words  []string
	}{
		{"nothing of that name in the pod", attach.Exclusive, nil, chained, 7, []string{"put the plugin that makes the interface before podfabric", "net1"}},
		{
			"another device than the one named", attach.Exclusive, func(_ *testing.T, m *machine) { m.Give(vfAddr(4), netnsOf("pod1"), "net1") },
			chained, 7,
			[]string{"remove deviceID", "0000:3b:00.3", "0000:3b:00.4"},
		},
		{
			"a veth", attach.Exclusive, func(_ *testing.T, m *machine) { m.AddVeth(netnsOf("pod1"), "net1") },
			chained, 102,
			[]string{"veth", "rdma.mode to off"},
		},
		{
			"macvlan of an exclusive node", attach.Exclusive, func(_ *testing.T, m *machine) { m.MakeMacvlan(netnsOf("pod1"), "net1", "ens1f0") },
			request{pod: "pod1", keys: behind(bus.ID{}), ipam: chainedIPAM},
			101,
			[]string{"shared"},
		},
		{"the loopback", attach.Shared, nil, request{pod: "pod1", keys: `"master":"lo"`}, 102, []string{"network card", "ens1f0"}},
		{
			"a master that is down", attach.Shared, func(_ *testing.T, m *machine) { m.SetPodUp("", "ens2f0", false) },
			request{pod: "pod1", keys: `"master":"ens2f0"`, more: `,"rdma":{"wait":"30ms"}`},
			105,
			[]string{"ip link set ens2f0 up"},
		},
		{
			"a master that another pod has whole", attach.Exclusive, func(t *testing.T, m *machine) {
				t.Helper()
				m.pod("pod2")
				m.mustAdd(t, request{pod: "pod2", of: otherPF(), keys: `"device":"ens2f0"`})
			}, request{pod: "pod1", keys: `"master":"ens2f0"`, more: rdmaOff}, 11, []string{"0000:3c:00.0", "owned by pod team-a/pod2", "cid-pod2"},
		},
		{"no such master", attach.Shared, nil, request{pod: "pod1", keys: `"master":"ens9"`}, 11, []string{"ens9", "ens1f0"}},
		{"two masters", attach.Shared, nil, request{pod: "pod1", keys: `"master":{"pfNames":["ens*"]}`}, 7, []string{"ens1f0", "ens2f0"}},
		{
			"the node's own link by a pattern", attach.Shared, func(_ *testing.T, m *machine) { m.SetDefault("ens2f0", true) },
			request{pod: "pod1", keys: `"master":{"pfNames":["ens2*"]}`},
			103,
			[]string{"default route", "ens2f0"},
		},
		{
			"an address that another pod has on the port", attach.Shared, func(t *testing.T, m *machine) {
				t.Helper()
				m.pod("pod2")
				other := master
				other.pod, other.ipam = "pod2", oneAddress
				m.mustAdd(t, other)
			}, func() request {
				r := master
				r.ipam = `{"type":"static","addresses":[{"address":"10.5.0.5/24"}]}`
				return r
			}(), 11, []string{"10.5.0.5", "mlx5_0"},
		},
		{
			"a card with links of other pods on it", attach.Exclusive, func(t *testing.T, m *machine) {
				t.Helper()
				m.pod("pod2")
				m.mustAdd(t, request{pod: "pod2", keys: `"master":"ens2f0"`, more: rdmaOff})
			}, named("device by name").request, 103, []string{"net1 of pod team-a/pod2", "overrideGuards"},
		},
		{"a bridge", attach.Exclusive, func(_ *testing.T, m *machine) { m.AddLink("", "br0") }, request{pod: "pod1", keys: `"device":"br0"`}, 102, []string{"network card", "br0"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, tt.mode)
			m.pod("pod1")
			if tt.before != nil {
				tt.before(t, m)
			}
			before := m.state(t)
			answered(t, m.add(t, tt.r), tt.code, tt.words...)
			m.same(t, "ADD", before)
			m.mustDel(t, tt.r) // as the runtime does after a failed ADD
			m.same(t, "DEL", before)
		})
	}
}

// A pod may do to its interface what it likes: the link is found by what it is, and nothing else is touched.
func TestDelFindsTheLinkOfAMaster(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*machine){
		"renamed": func(m *machine) { m.RenamePodLink(netnsOf("pod1"), "net1", "fast0") },
		"renamed, another": func(m *machine) {
			m.RenamePodLink(netnsOf("pod1"), "net1", "fast0")
			m.AddLink(netnsOf("pod1"), "net1")
		},
		"another MAC":         func(m *machine) { m.SetPodMAC(netnsOf("pod1"), "net1", "02:99:00:00:00:01") },
		"down":                func(m *machine) { m.SetPodUp(netnsOf("pod1"), "net1", false) },
		"deleted":             func(m *machine) { m.DelPodLink(netnsOf("pod1"), "net1") },
		"the namespace died":  func(m *machine) { m.KillNetNS(netnsOf("pod1")) },
		"the namespace stays": func(m *machine) { m.HoldNetNS(netnsOf("pod1"), 3) },
	} {
		for _, kind := range []string{"macvlan", "macvlan, delegate", "macvlan, passthru"} {
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				k := named(kind)
				m := newMachine(t, k.mode)
				m.pod("pod1")
				m.mustAdd(t, k.request)
				spoil(m)
				m.mustDel(t, k.request)
				if dump := m.Dump(); strings.Contains(dump, "kind macvlan") && !strings.Contains(name, "stays") {
					t.Errorf("the link is still there:\n%s", dump)
				}
				if held := m.ipam.holds(); len(held) > 0 {
					t.Error(held)
				}
				if files := m.files(t, "run/attachments"); len(files) != 3 { // the bystander's
					t.Error(files)
				}
			})
		}
	}
}

// The other plugin is asked last, after our own look, and may lack each of these verbs.
func TestVerbsPassedOn(t *testing.T) {
	t.Parallel()
	k := named("macvlan, delegate")
	m := newMachine(t, k.mode)
	m.pod("pod1")
	m.mustAdd(t, k.request)
	raw := k.raw()
	must(t, m.plugin.Check(t.Context(), raw))
	must(t, m.plugin.Status(t.Context(), raw))
	with := raw
	with.Stdin = []byte(strings.Replace(string(raw.Stdin), "{", `{"cni.dev/valid-attachments":[{"containerID":"cid-pod1","ifname":"net1"},{"containerID":"cid-bystander","ifname":"net1"}],`, 1))
	must(t, m.plugin.GC(t.Context(), with))
	want := []string{"CHECK " + string(raw.Stdin), "STATUS " + string(raw.Stdin), "GC " + string(with.Stdin)}
	if diff := cmp.Diff(want, m.ipam.asked); diff != "" {
		t.Errorf("the other IPAM plugin was asked (-want +got):\n%s", diff)
	}

	busy := &delegate.Error{Plugin: "other-ipam", Verb: "STATUS", Code: 50, Msg: "the pool is gone"}
	m.ipam.answers = map[string]error{
		"CHECK": fmt.Errorf("%w: it says", delegate.ErrNoCheck), "STATUS": busy, "GC": &delegate.Error{Plugin: "other-ipam", Verb: "GC", Code: 11, Msg: "later"},
	}
	must(t, m.plugin.Check(t.Context(), raw))
	answered(t, m.plugin.Status(t.Context(), raw), 50, "the pool is gone")
	answered(t, m.plugin.GC(t.Context(), with), 11, "later")
	m.ipam.answers["CHECK"] = &delegate.Error{Plugin: "other-ipam", Verb: "CHECK", Msg: "10.9.0.1 is free"}
	answered(t, m.plugin.Check(t.Context(), raw), 109, "10.9.0.1 is free")
	m.DelPodLink(netnsOf("pod1"), "net1")
	answered(t, m.plugin.Check(t.Context(), raw), 102, "net1")

	// Without a list GC does nothing, and asks nobody.
	asked := len(m.ipam.asked)
	must(t, m.plugin.GC(t.Context(), raw))
	if len(m.ipam.asked) != asked {
		t.Errorf("GC without a list: %v", m.ipam.asked[asked:])
	}
}

// TestChainedResult: what the plugin before said stands, whatever version it speaks, and a plugin behind finds it.
func TestChainedResult(t *testing.T) {
	t.Parallel()
	for _, version := range netconf.Versions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			m.pod("pod1")
			m.Give(vfAddr(3), netnsOf("pod1"), "net1")
			m.address("pod1", "10.8.0.5/24")
			four := ""
			if version < "1" {
				four = `"version":"4",`
			}
			r := request{
				pod: "pod1", of: vfAddr(3), ipam: chainedIPAM, version: version, keys: `"deviceID":"0000:3b:00.3","prevResult":{"cniVersion":"` + version + `",
				"interfaces":[{"name":"veth1","mac":"02:00:00:00:00:09"},{"name":"eth0","sandbox":"/run/netns/pod1"},{"name":"net1","sandbox":"/run/netns/pod1"}],
				"ips":[{` + four + `"interface":1,"address":"10.244.0.7/24"},{` + four + `"interface":2,"address":"10.8.0.5/24","gateway":"10.8.0.1"}],
				"routes":[{"dst":"10.0.0.0/8","gw":"10.8.0.1"}],"dns":{"nameservers":["10.0.0.53"]}}`,
			}
			result, err := m.plugin.Add(t.Context(), r.raw())
			must(t, err)
			text, err := json.Marshal(result)
			must(t, err)
			var got, want any
			must(t, json.Unmarshal(text, &got))
			must(t, json.Unmarshal([]byte(`{"cniVersion":"1.1.0","interfaces":[{"name":"veth1","mac":"02:00:00:00:00:09"},{"name":"eth0","sandbox":"/run/netns/pod1"},
				{"name":"net1","sandbox":"/run/netns/pod1","mac":"02:54:00:3b:00:03","mtu":1500,"pciID":"0000:3b:00.3"}],
				"ips":[{"interface":1,"address":"10.244.0.7/24"},{"interface":2,"address":"10.8.0.5/24","gateway":"10.8.0.1"}],
				"routes":[{"dst":"10.0.0.0/8","gw":"10.8.0.1"}],"dns":{"nameservers":["10.0.0.53"]}}`), &want))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			rec, err := m.plugin.Records.Load(r.owner())
			must(t, err)
			if len(rec.Addresses) != 1 || rec.Addresses[0] != netip.MustParsePrefix("10.8.0.5/24") {
				t.Errorf("recorded addresses %v: eth0's is another's", rec.Addresses)
			}
		})
	}
}

// TestDeviceInfo has the file that Multus reads, written and refreshed.
func TestDeviceInfo(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.plugin.DevInfo = devinfo.Store{Root: m.dir}
	m.pod("pod1")
	const file = "/var/run/k8s.cni.cncf.io/devinfo/cni/rail0-cid-pod1-net1-device.json"
	must(t, os.MkdirAll(filepath.Dir(m.dir+file), 0o755))
	must(t, os.WriteFile(m.dir+file, []byte(`{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:3b:00.3","rdma-device":"old"}}`), 0o600))
	r := request{pod: "pod1", dev: 3, more: `,"capabilities":{"CNIDeviceInfoFile":true},"runtimeConfig":{"CNIDeviceInfoFile":"` + file + `"}`}
	m.mustAdd(t, r)
	text, err := os.ReadFile(m.dir + file)
	must(t, err)
	const want = `{"pci":{"pci-address":"0000:3b:00.3","pf-pci-address":"0000:3b:00.0","rdma-device":"mlx5_3"},"type":"pci","version":"1.1.0"}`
	if string(text) != want {
		t.Errorf("file is %s, want %s", text, want)
	}
	m.mustDel(t, r)

	// One that cannot be written stops no pod.
	must(t, os.Remove(m.dir+file))
	must(t, os.MkdirAll(m.dir+file, 0o755))
	m.mustAdd(t, r)
	if !m.log.has("WARN", "device-info") {
		t.Errorf("nothing in the log:\n%s", m.log.text.String())
	}
	m.mustDel(t, r)
}

// TestVFSettings: what was set is held against what is there, and what an earlier tool left comes back at DEL.
func TestVFSettings(t *testing.T) {
	t.Parallel()
	k := named("VF with settings")
	m := newMachine(t, k.mode)
	m.pod("pod1")
	earlier := m.VFState(vfAddr(3))
	earlier.VLAN, earlier.Proto, earlier.Trust, earlier.MaxTxRate = 42, "802.1q", true, 77
	m.SetVFState(vfAddr(3), earlier)
	before := m.state(t)
	m.mustAdd(t, k.request)
	want := attach.VFState{
		MAC: "02:11:22:33:44:55", VLAN: 100, QoS: 3, Proto: "802.1q", Trust: true, LinkState: "enable", MaxTxRate: 1000,
	}
	if diff := cmp.Diff(want, m.VFState(vfAddr(3))); diff != "" {
		t.Errorf("VF (-want +got):\n%s", diff)
	}
	must(t, m.plugin.Check(t.Context(), k.raw()))
	loose := want
	loose.Trust, loose.MaxTxRate = false, 5
	m.SetVFState(vfAddr(3), loose)
	must(t, m.plugin.Check(t.Context(), k.raw()))
	if !m.log.has("WARN", "trust") {
		t.Errorf("no warning of trust:\n%s", m.log.text.String())
	}
	loose.VLAN = 7
	m.SetVFState(vfAddr(3), loose)
	answered(t, m.plugin.Check(t.Context(), k.raw()), 102, "vlan", "7", "100")
	m.mustDel(t, k.request)
	m.same(t, "DEL", before)
	if n := m.Resets(vfAddr(3)); n != 1 {
		t.Errorf("%d resets, want 1", n)
	}
}

// A driver that cannot do a setting, or only says that it did, leaves nothing behind.
func TestVFSettingRefused(t *testing.T) {
	t.Parallel()
	k := named("VF with settings")
	for _, what := range []attach.VFSetting{attach.VFVLAN, attach.VFMAC, attach.VFRate, attach.VFSpoofchk, attach.VFTrust, attach.VFLinkState} {
		for name, refuse := range map[string]func(*machine){
			"an error": func(m *machine) { m.RefuseVF(what, errors.New("operation not supported")) },
			"silence":  func(m *machine) { m.IgnoreVF(what, true) },
		} {
			t.Run(string(what)+", "+name, func(t *testing.T) {
				t.Parallel()
				m := newMachine(t, k.mode)
				m.pod("pod1")
				// Else there is nothing to change.
				state := m.VFState(vfAddr(3))
				state.Spoofchk = true
				m.SetVFState(vfAddr(3), state)
				before := m.state(t)
				refuse(m)
				err := m.add(t, k.request)
				if err == nil {
					t.Fatal("no error")
				}
				readable(t, err)
				if !strings.Contains(err.Error(), "set "+string(what)+" of vf 1") {
					t.Errorf("the error does not name the setting: %v", err)
				}
				m.same(t, "ADD", before)
			})
		}
	}
}

// A VF whose settings could not be put back, since its PF was away, is not the next pod's until they are.
func TestPFAwayAtDel(t *testing.T) {
	t.Parallel()
	k := named("VF with settings")
	m := newMachine(t, k.mode)
	m.pod("pod1")
	m.pod("pod2")
	m.AddNetNS("/run/netns/elsewhere")
	before := m.state(t)
	m.mustAdd(t, k.request)
	m.Give(vfAddr(0), "/run/netns/elsewhere", "eth7")
	m.mustDel(t, k.request)
	if !m.log.has("WARN", "not home yet") {
		t.Errorf("no warning:\n%s", m.log.text.String())
	}
	next := request{pod: "pod2", dev: 3}
	answered(t, m.add(t, next), 11, "PF 0000:3b:00.0", "pod1")
	m.Give(vfAddr(0), "", "ens1f0")
	m.mustAdd(t, next)
	if v := m.VFState(vfAddr(3)); v.VLAN != 0 {
		t.Errorf("VLAN %d is another pod's", v.VLAN)
	}
	m.mustDel(t, next)
	drop := func(lines []string) []string {
		return slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
			return strings.Contains(l, "ens1f0 ") || strings.Contains(l, "ens1f0.100") || strings.Contains(l, "gid") || strings.Contains(l, "elsewhere")
		})
	}
	if diff := cmp.Diff(drop(before), drop(m.state(t))); diff != "" {
		t.Errorf("state (-before +after):\n%s", diff)
	}
}

// The driver of a VF was bound again while a pod had it: another RDMA device, and still the tenant's VLAN. A VF that was made anew
// has none of it, and what somebody chose since stays.
func TestVLANGoesThoughTheDriverWasBoundAgain(t *testing.T) {
	t.Parallel()
	k := named("VF with settings")
	m := newMachine(t, k.mode)
	m.pod("pod1")
	start := m.VFState(vfAddr(3))
	m.mustAdd(t, k.request)
	m.Rebind(vfAddr(3), "")
	chosen := m.VFState(vfAddr(3))
	chosen.MaxTxRate = 77
	m.SetVFState(vfAddr(3), chosen)
	m.mustDel(t, k.request)
	start.MaxTxRate = 77
	if diff := cmp.Diff(start, m.VFState(vfAddr(3))); diff != "" {
		t.Errorf("VF (-want +got):\n%s", diff)
	}
}
