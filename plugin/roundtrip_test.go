// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"encoding/json"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/attach"
)

// kind is one way in which an attachment is made.
type kind struct {
	name string
	mode attach.Mode
	request
	rdma string   // where the RDMA device is then; empty: there is none
	ips  []string // addresses of the result; nil: one that the other IPAM plugin gave
}

func kinds() []kind {
	r := func(dev int, ipam, more string) request {
		return request{pod: "pod1", dev: dev, ipam: ipam, more: more}
	}
	const excl, shared = attach.Exclusive, attach.Shared
	return []kind{
		{"moved", excl, r(3, v4Range, ""), "/run/netns/pod1/mlx5_3", []string{"10.1.0"}},
		{"moved, IPv6", excl, r(3, v6Range, ""), "/run/netns/pod1/mlx5_3", []string{"fd00:1::"}},
		{
			"moved, dual, rail, MTU, up at home", excl, r(upVF, dualRange, `,"rail":1,"mtu":"pf","rdma":{"mode":"move"}`),
			"/run/netns/pod1/mlx5_4",
			[]string{"10.1.0", "fd00:1::"},
		},
		{"moved, no address", excl, r(3, noIPAM, ""), "/run/netns/pod1/mlx5_3", []string{}},
		{"moved, delegate", excl, r(3, delegated, `,"mtu":4000`), "/run/netns/pod1/mlx5_3", nil},
		{"shared", shared, r(3, dualStatic, ""), "host/mlx5_3", []string{"10.1.0.77", "fd00:1::77"}},
		{"shared, delegate", shared, r(upVF, delegated, `,"rdma":{"mode":"share"}`), "host/mlx5_4", nil},
		{"off", excl, r(3, dualRange, rdmaOff), "host/mlx5_3", []string{"10.1.0", "fd00:1::"}},
		{"off, without RDMA", attach.NoRDMA, r(softVF, v4Range, rdmaOff), "", []string{"10.1.0"}},
		{"soft", excl, r(softVF, v4Range, softOn), "", []string{"10.1.0"}},
		{"soft, delegate", excl, r(softVF, delegated, softOn), "", nil},
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
			before := m.state(t)
			r, err := m.plugin.Add(t.Context(), k.raw())
			if err != nil {
				t.Fatalf("ADD: %v", err)
			}
			if want, got := [2]string{"/run/netns/pod1/net1", k.rdma}, m.where(k.dev); got != want {
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
			if !regexp.MustCompile(`link /run/netns/pod1/net1 pci .* up true`).MatchString(m.Dump()) {
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
