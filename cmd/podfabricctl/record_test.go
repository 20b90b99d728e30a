// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/podfabric/podfabric/plugin/kernel"
	"github.com/podfabric/podfabric/rdmans"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/sysfs"
	"github.com/podfabric/podfabric/rdmans/sysfs/sysfstest"
)

// recordedNode has a sysfs made of files.
type recordedNode struct {
	dir  string
	snap kernel.Snapshot
}

func (n *recordedNode) Sysfs() (*os.Root, error)                          { return os.OpenRoot(n.dir) }
func (n *recordedNode) Snapshot(context.Context) (kernel.Snapshot, error) { return n.snap, nil }
func (n *recordedNode) Privileged() bool                                  { return true }

// TestRecord: what podfabric reads of a record is what it reads of the machine, but for the addresses.
func TestRecord(t *testing.T) {
	t.Parallel()
	const guid = "0254:00ff:fe12:3456" // of the fixture's mlx5_2
	n := &recordedNode{dir: sysfstest.Extract(t, "../../rdmans/sysfs/testdata/mlx5-node.txtar"), snap: kernel.Snapshot{
		Mode: "exclusive",
		NetNS: map[string]kernel.NetNSState{
			kernel.HostNS: {
				Links: map[string]kernel.LinkState{
					"ens1f0v0":     {MAC: "00:54:00:12:34:56", MTU: 1500, Parent: bus.PCI(fn(2))},
					"cali12345678": {MAC: "ee:ee:ee:ee:ee:ee"},
				},
				RDMA: map[string]rdmans.Device{"mlx5_2": {Index: 2, Name: "mlx5_2", NodeGUID: guid, Ports: 1}},
			},
			"/run/netns/secret": {Links: map[string]kernel.LinkState{"net1": {Parent: bus.PCI(fn(3))}}},
		},
	}}
	var out strings.Builder
	s := streams{strings.NewReader(""), &out, &out}
	if code := finish(t.Context(), newRecord(n, s), nil, s); code != 0 {
		t.Fatalf("exit code %d: %s", code, out.String())
	}
	text := out.String()
	for _, secret := range []string{guid, "12:34:56", "12:3456", "b8ce", "0a09:0001", "fd00:0009", "cali", "secret"} {
		if strings.Contains(text, secret) {
			t.Errorf("the record holds %q", secret)
		}
	}
	file := filepath.Join(t.TempDir(), "record.txtar")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	dir := sysfstest.Extract(t, file)
	before, after := readAll(t, n.dir), readAll(t, dir)
	inode := cmpopts.IgnoreFields(sysfs.Function{}, "Inode") // another folder
	if diff := cmp.Diff(before.functions, after.functions, inode); diff != "" {
		t.Errorf("functions (-machine +record):\n%s", diff)
	}
	if diff := cmp.Diff(before.ports, after.ports, cmp.Comparer(func(a, b netip.Addr) bool { return a.Is4In6() == b.Is4In6() })); diff != "" {
		t.Errorf("ports (-machine +record):\n%s", diff)
	}
	var facts netlinkFacts
	data, err := os.ReadFile(filepath.Join(dir, "netlink.json"))
	must(t, err)
	must(t, json.Unmarshal(data, &facts))
	if len(facts.Links) != 1 || len(facts.RDMA) != 1 || facts.Mode != "exclusive" {
		t.Fatalf("netlink facts: %+v", facts)
	}
	// One MAC, its GUID and its link-local GID had the same origin, and have it still.
	if got := after.guid; got != facts.RDMA[0].NodeGUID || got != "0000:00ff:fe00:0001" && got != "0200:00ff:fe00:0001" {
		t.Errorf("GUID %s in sysfs, %s in netlink", got, facts.RDMA[0].NodeGUID)
	}
	if facts.Links[0].MAC != "02:00:00:00:00:01" {
		t.Errorf("MAC %s", facts.Links[0].MAC)
	}
}

type reading struct {
	functions []sysfs.Function
	ports     []sysfs.Port
	guid      string
}

func readAll(t *testing.T, dir string) reading {
	t.Helper()
	sys, err := sysfs.Open(dir)
	must(t, err)
	defer func() { _ = sys.Close() }()
	var r reading
	r.functions, err = sys.Functions()
	must(t, err)
	r.ports, err = sys.Ports("mlx5_2")
	must(t, err)
	r.guid, err = sys.NodeGUID("mlx5_2")
	must(t, err)
	return r
}

func TestMask(t *testing.T) {
	t.Parallel()
	m := newMask()
	tests := []struct{ name, got, want string }{
		{"first MAC", m.mac("b8:ce:f6:12:34:56"), "02:00:00:00:00:01"},
		{"second MAC", m.mac("b8:ce:f6:12:34:57"), "02:00:00:00:00:02"},
		{"first MAC again", m.mac("b8:ce:f6:12:34:56"), "02:00:00:00:00:01"},
		{"no MAC", m.mac("00:00:00:00:00:00"), "00:00:00:00:00:00"},
		{"IPoIB", m.mac("80:00:00:00:fe:80:00:00:00:00:00:00:b8:ce:f6:03:00:12:34:56"), ""},
		{"GUID of the first MAC", m.guid("bace:f6ff:fe12:3456"), "0200:00ff:fe00:0001"},
		{"link-local GID of it", m.gid("fe80:0000:0000:0000:bace:f6ff:fe12:3456"), "fe80:0000:0000:0000:0200:00ff:fe00:0001"},
		{"vendor's GUID", m.guid("b8ce:f603:0012:3456"), "0200:0000:0000:0001"},
		{"zero GUID", m.guid("0000:0000:0000:0000"), "0000:0000:0000:0000"},
		{"no GUID", m.guid("hello"), ""},
		{"IPv4", m.gid("0000:0000:0000:0000:0000:ffff:0a09:0001"), "0000:0000:0000:0000:0000:ffff:c612:0001"},
		{"IPv4 again", m.gid("0000:0000:0000:0000:0000:ffff:0a09:0001"), "0000:0000:0000:0000:0000:ffff:c612:0001"},
		{"IPv6", m.gid("fd00:0009:0000:0000:0000:0000:0000:0001"), "2001:0db8:0000:0000:0000:0000:0000:0002"},
		{"empty slot", m.gid("0000:0000:0000:0000:0000:0000:0000:0000"), "0000:0000:0000:0000:0000:0000:0000:0000"},
		{"name of udev's", m.names("class/net/enxb8cef6123456 -> ../../x/net/enxb8cef6123456"), "class/net/enx020000000001 -> ../../x/net/enx020000000001"},
		{"ordinary name", m.names("enp59s0f0np0"), "enp59s0f0np0"},
	}
	for _, tc := range tests {
		if tc.got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, tc.got, tc.want)
		}
	}
}
