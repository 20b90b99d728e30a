// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// prepare does what the plugin before does.
func (k kind) prepare(m *machine) { k.prepareFor(m, k.pod) }

// prepareFor does it for another pod.
func (k kind) prepareFor(m *machine, pod string) {
	if k.before != nil {
		k.before(m, pod)
	}
}

// kind is one way in which an attachment is made.
type kind struct {
	name string
	mode attach.Mode
	request
	rdma string   // where the RDMA device is then; empty: there is none
	ips  []string // addresses of the result; nil: one that the other IPAM plugin gave
	// link is where the device's netdev is then; empty: in the pod.
	link string
	// before is what the plugin before does for a pod; nil: there is none.
	before func(m *machine, pod string)
	// after is what its DEL does, once the pod is gone or the attachment is.
	after func(m *machine, pod string)
}

func kinds() []kind {
	return slices.Concat(vfKinds(), otherKinds())
}

// otherKinds are attachments of what is no VF, and of one that its PF is told about.
func otherKinds() []kind {
	on := func(id bus.ID, keys, ipam, more string) request {
		return request{pod: "pod1", of: id, keys: keys, ipam: ipam, more: more}
	}
	const excl, shared = attach.Exclusive, attach.Shared
	four := []string{"10.1.0"}
	return []kind{
		{
			name: "macvlan", mode: shared, request: on(vfAddr(0), `"link":"macvlan","master":"ens1f0"`, v4Range, ""),
			rdma: "host/mlx5_0", link: "host/ens1f0", ips: four,
		},
		{
			name: "macvlan, delegate", mode: shared,
			request: on(otherPF(), `"link":"macvlan","master":{"rdma":"mlx5_9"},"mode":"vepa","bcqueuelen":500`, delegated, `,"mtu":4000,"mac":"02:11:22:33:44:55"`),
			rdma:    "host/mlx5_9", link: "host/ens2f0",
		},
		{
			name: "macvlan, off", mode: excl, request: on(otherPF(), `"master":{"pci":"0000:3c:00.0"}`, dualRange, rdmaOff),
			rdma: "host/mlx5_9", link: "host/ens2f0", ips: []string{"10.1.0", "fd00:1::"},
		},
		{
			name: "macvlan, passthru", mode: shared, request: on(otherPF(), `"master":{"pfNames":["ens2*"]},"mode":"passthru"`, v4Range, ""),
			rdma: "host/mlx5_9", link: "host/ens2f0", ips: four,
		},
		{
			name: "ipvlan on a VLAN", mode: shared, request: on(vfAddr(0), `"link":"ipvlan","master":"ens1f0.100"`, dualStatic, ""),
			rdma: "host/mlx5_0", link: "host/ens1f0", ips: []string{"10.1.0.77", "fd00:1::77"},
		},
		{
			name: "device by name", mode: excl, request: on(otherPF(), `"device":"ens2f0"`, dualRange, `,"mtu":4000`),
			rdma: "/run/netns/pod1/mlx5_9", ips: []string{"10.1.0", "fd00:1::"},
		},
		{
			name: "device by its ID alone, delegate", mode: excl, request: on(otherPF(), `"deviceID":"0000:3c:00.0"`, delegated, `,"mac":"02:11:22:33:44:55"`),
			rdma: "/run/netns/pod1/mlx5_9",
		},
		{
			name: "sub-function", mode: excl, request: on(subFunction(), `"deviceID":"mlx5_core.sf.4"`, v4Range, ""),
			rdma: "/run/netns/pod1/mlx5_8", ips: four,
		},
		{
			name: "VF with settings", mode: excl,
			request: on(vfAddr(3), `"deviceID":"0000:3b:00.3","vlan":100,"vlanQoS":3,"spoofchk":"off","trust":"on","max_tx_rate":1000,"link_state":"enable"`,
				v4Range, `,"mac":"02:11:22:33:44:55","vf":{"baseline":"reset","flr":true}`),
			rdma: "/run/netns/pod1/mlx5_3", ips: four,
		},
		{
			name: "VF of a program", mode: excl, request: on(vfioVF(), `"deviceID":"0000:3b:01.0","vlan":7`, v4Range, ""), link: "none", ips: four,
		},
		{
			name: "chained behind host-device", mode: excl, request: on(vfAddr(3), behind(vfAddr(3)), chainedIPAM, ""),
			rdma: "/run/netns/pod1/mlx5_3", ips: []string{"10.8.0.5/24"},
			before: func(m *machine, pod string) { m.Give(vfAddr(3), netnsOf(pod), "net1"); m.address(pod, "10.8.0.5/24") },
			after:  func(m *machine, _ string) { m.Give(vfAddr(3), "", "net1") },
		},
		{
			name: "chained behind macvlan", mode: shared, request: on(vfAddr(0), behind(bus.ID{}), chainedIPAM, ""),
			rdma: "host/mlx5_0", link: "host/ens1f0", ips: []string{"10.8.0.5/24"},
			before: func(m *machine, pod string) {
				m.MakeMacvlan(netnsOf(pod), "net1", "ens1f0")
				m.SetPodUp(netnsOf(pod), "net1", false)
				m.SetPodMAC(netnsOf(pod), "net1", "0a:00:00:00:00:0"+pod[len(pod)-1:])
				m.SetPodUp(netnsOf(pod), "net1", true)
				m.address(pod, "10.8.0.5/24")
			},
			after: func(m *machine, pod string) { m.DelPodLink(netnsOf(pod), "net1") },
		},
	}
}

// behind are the keys that a runtime gives a plugin behind another one; with an id Multus has added it.
func behind(id bus.ID) string {
	keys := ""
	if !id.IsZero() {
		keys = fmt.Sprintf(`"deviceID":%q,"pciBusID":%[1]q,`, id)
	}
	return keys + `"prevResult":{"cniVersion":"1.1.0","interfaces":[{"name":"veth1"},{"name":"net1","sandbox":"/run/netns/pod1"}],
		"ips":[{"interface":1,"address":"10.8.0.5/24"}],"routes":[{"dst":"10.0.0.0/8"}],"dns":{"domain":"cluster.local"}}`
}

// address puts one on a pod's interface, as the plugin before does.
func (m *machine) address(pod, text string) {
	m.PutAddr(netnsOf(pod), "net1", netip.MustParsePrefix(text))
}

// vfKinds are the attachments of a VF.
func vfKinds() []kind {
	r := func(dev int, ipam, more string) request {
		return request{pod: "pod1", dev: dev, ipam: ipam, more: more}
	}
	const excl, shared = attach.Exclusive, attach.Shared
	return []kind{
		{name: "moved", mode: excl, request: r(3, v4Range, ""), rdma: "/run/netns/pod1/mlx5_3", ips: []string{"10.1.0"}},
		{name: "moved, IPv6", mode: excl, request: r(3, v6Range, ""), rdma: "/run/netns/pod1/mlx5_3", ips: []string{"fd00:1::"}},
		{
			name: "moved, dual, rail, MTU, up at home", mode: excl,
			request: r(upVF, dualRange, `,"rail":1,"mtu":"pf","rdma":{"mode":"move"}`),
			rdma:    "/run/netns/pod1/mlx5_4",
			ips:     []string{"10.1.0", "fd00:1::"},
		},
		{name: "moved, no address", mode: excl, request: r(3, noIPAM, ""), rdma: "/run/netns/pod1/mlx5_3", ips: []string{}},
		{name: "moved, delegate", mode: excl, request: r(3, delegated, `,"mtu":4000`), rdma: "/run/netns/pod1/mlx5_3", ips: nil},
		{name: "shared", mode: shared, request: r(3, dualStatic, ""), rdma: "host/mlx5_3", ips: []string{"10.1.0.77", "fd00:1::77"}},
		{name: "shared, delegate", mode: shared, request: r(upVF, delegated, `,"rdma":{"mode":"share"}`), rdma: "host/mlx5_4", ips: nil},
		{name: "off", mode: excl, request: r(3, dualRange, rdmaOff), rdma: "host/mlx5_3", ips: []string{"10.1.0", "fd00:1::"}},
		{name: "off, without RDMA", mode: attach.NoRDMA, request: r(softVF, v4Range, rdmaOff), rdma: "", ips: []string{"10.1.0"}},
		{name: "soft", mode: excl, request: r(softVF, v4Range, softOn), rdma: "", ips: []string{"10.1.0"}},
		{name: "soft, delegate", mode: excl, request: r(softVF, delegated, softOn), rdma: "", ips: nil},
	}
}

// TestRoundTrip makes every kind of attachment, and takes it back as if it had never been.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, k.mode)
			m.pod("pod1")
			m.volume(t, "bystander")
			k.prepare(m)
			before := m.state(t)
			r, err := m.plugin.Add(t.Context(), k.raw())
			if err != nil {
				t.Fatalf("ADD: %v", err)
			}
			want := [2]string{or(k.link, "/run/netns/pod1/net1"), k.rdma}
			if k.link == "none" {
				want[0] = ""
			}
			if got := m.Where(k.device()); got != want {
				t.Errorf("devices are at %v, want %v", got, want)
			}
			if len(k.ips) != len(r.IPs) && k.ips != nil {
				t.Errorf("result has addresses %v, want %v", r.IPs, k.ips)
			}
			for i, ip := range k.ips {
				if got := r.IPs[i].Address.String(); !strings.HasPrefix(got, ip) {
					t.Errorf("address %d is %s, want %s…", i, got, ip)
				}
			}
			if up := regexp.MustCompile(`link /run/netns/pod1/net1 pci .* up true`); k.link != "none" && !up.MatchString(m.Dump()) {
				t.Errorf("the pod's interface is not up:\n%s", m.Dump())
			}
			if err := m.plugin.Check(t.Context(), k.raw()); err != nil {
				t.Errorf("CHECK: %v", err)
			}
			for range 2 {
				m.mustDel(t, k.request)
				m.same(t, "DEL", before)
			}
		})
	}
}

// TestResults goes through skel's functions, as a runtime's call does. It has standard output to itself: the CNI library
// prints nowhere else.
func TestResults(t *testing.T) { //nolint:paralleltest // os.Stdout is the process's
	ips := func(version string) string {
		four, six := "", ""
		if version < "1" {
			four, six = `"version":"4",`, `"version":"6",`
		}
		return `[{` + four + `"interface":0,"address":"10.1.0.77/24","gateway":"10.1.0.1"},{` + six + `"interface":0,"address":"fd00:1::77/64"}]`
	}
	for _, version := range []string{"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"} {
		t.Run(version, func(t *testing.T) { //nolint:paralleltest // as above
			m := newMachine(t, attach.Exclusive)
			m.pod("pod1")
			more := ""
			if version >= "1" { // the CNI library has one type for 1.0 and 1.1, and readers pass over what they do not know
				more = `,"mtu":4000,"pciID":"0000:3b:00.3"`
			}
			want := `{"cniVersion":"` + version + `","dns":{"nameservers":["10.0.0.53"]},
				"interfaces":[{"name":"net1","mac":"02:54:00:3b:00:03","sandbox":"/run/netns/pod1"` + more + `}],
				"ips":` + ips(version) + `,"routes":[{"dst":"10.0.0.0/8","gw":"10.1.0.1"}]}`
			r := request{
				pod: "pod1", dev: 3, version: version, ipam: dualStatic, more: `,"mtu":4000,"dns":{"nameservers":["10.0.0.53"]}`,
			}.raw()
			args := &skel.CmdArgs{ContainerID: r.ContainerID, Netns: r.NetNS, IfName: r.IfName, Args: r.Args, Path: r.Path, StdinData: r.Stdin}
			var wantJSON, gotJSON any
			must(t, json.Unmarshal([]byte(want), &wantJSON))
			must(t, json.Unmarshal(printed(t, func() error { return m.plugin.Funcs(time.Now()).Add(args) }), &gotJSON))
			if diff := cmp.Diff(wantJSON, gotJSON); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			for _, do := range []func(*skel.CmdArgs) error{m.plugin.Funcs(time.Now()).Check, m.plugin.Funcs(time.Now()).Del} {
				if out := printed(t, func() error { return do(args) }); len(out) > 0 {
					t.Errorf("printed %q", out)
				}
			}
			if !m.log.has("INFO", "verb=ADD") || !m.log.has("INFO", "verb=DEL") {
				t.Errorf("no line for each verb in the log:\n%s", m.log.text.String())
			}
		})
	}
}

// printed runs do and gives what it wrote to standard output.
func printed(t *testing.T, do func() error) []byte {
	t.Helper()
	r, w, err := os.Pipe()
	must(t, err)
	stdout := os.Stdout
	os.Stdout = w
	err = do()
	os.Stdout = stdout
	must(t, err)
	must(t, w.Close())
	out, err := io.ReadAll(r)
	must(t, err)
	return out
}
