// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/kernel"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/rdmans"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
	"github.com/podfabric/podfabric/rdmans/sysfs"
)

// shownNode is a node with a PF and three VFs: one at home, one in a pod, one in a namespace that two others keep alive.
type shownNode struct {
	devices []kernel.Device
	home    []sysfs.Function
	records []record.Record
	broken  []error
	mode    rdmans.Mode
	user    bool

	lost []plugin.Unrecorded
	gone map[string]string // by container
	room error
}

func (n *shownNode) Unrecorded(context.Context) ([]plugin.Unrecorded, error) { return n.lost, nil }

func (n *shownNode) Gone(_ context.Context, r record.Record) (string, error) {
	return n.gone[r.Owner.ContainerID], nil
}
func (n *shownNode) Room() error { return n.room }

func (n *shownNode) Mode() (rdmans.Mode, error) {
	if n.mode == "" {
		return "", rdmans.ErrNoRDMA
	}
	return n.mode, nil
}

func (n *shownNode) Inventory(context.Context) ([]kernel.Device, error) {
	if n.user {
		return nil, errors.New("not for users")
	}
	return n.devices, nil
}
func (n *shownNode) AtHome() ([]sysfs.Function, error)   { return n.home, nil }
func (n *shownNode) Records() ([]record.Record, []error) { return n.records, n.broken }
func (n *shownNode) Privileged() bool                    { return !n.user }
func (n *shownNode) Now() time.Time                      { return time.Date(2026, 1, 2, 5, 4, 5, 0, time.UTC) }

func fn(f uint8) pci.Addr { return pci.Addr{Bus: 0x3b, Function: f} }

func exampleNode() *shownNode {
	home := kernel.Where{NetNS: kernel.HostNS}
	pod := kernel.Where{NetNS: "/run/netns/cni-1", Holders: []rdmans.Holder{{Mount: "/run/netns/cni-1"}, {PID: 9, Comm: "pause"}}}
	stray := kernel.Where{NetNS: "net:[4026532009]", Holders: []rdmans.Holder{{PID: 71, Comm: "nginx"}, {PID: 72, Comm: "evil\x1b[2J"}}}
	vf := func(f uint8, number int, link string, at kernel.Where, rdma string, uverbs int) kernel.Device {
		return kernel.Device{
			Function: sysfs.Function{PCI: fn(f), PF: fn(0), Number: number, Driver: "mlx5_core", NUMA: -1},
			Links:    []kernel.LinkAt{{Where: at, Name: link, MAC: "02:00:00:00:00:0" + string('0'+rune(f)), MTU: 1500}},
			RDMA: []kernel.RDMAAt{{
				Where: at, Device: rdmans.Device{Index: uint32(f), Name: rdma, NodeGUID: "0200:00ff:fe00:0000", Ports: 1}, Uverbs: uverbs,
			}},
		}
	}
	hidden := kernel.Device{
		Function: sysfs.Function{PCI: fn(5), PF: fn(0), Number: 3, Driver: "mlx5_core"}, Links: []kernel.LinkAt{},
		RDMA: []kernel.RDMAAt{{Device: rdmans.Device{Name: "mlx5_5"}, Uverbs: 5}},
	}
	soft := kernel.Device{Function: sysfs.Function{Number: -1, NUMA: -1}, RDMA: []kernel.RDMAAt{{
		Where: pod, Device: rdmans.Device{Index: 9, Name: "pf0123456789", NodeGUID: "0200:00ff:fe00:0009"}, Uverbs: 9,
	}}}
	return &shownNode{
		mode: rdmans.Exclusive,
		devices: []kernel.Device{
			{
				Function: sysfs.Function{PCI: fn(0), Driver: "mlx5_core", Number: -1, TotalVFs: 16, NumVFs: 4},
				Links:    []kernel.LinkAt{{Where: home, Name: "ens1f0np0", MAC: "02:00:00:00:00:01", MTU: 9000, Up: true}},
				RDMA:     []kernel.RDMAAt{{Where: home, Device: rdmans.Device{Name: "mlx5_0", NodeGUID: "0200:00ff:fe00:0001", Ports: 1}}},
			},
			vf(2, 0, "ens1f0v0", home, "mlx5_2", 2), vf(3, 1, "net1", pod, "mlx5_3", 3), vf(4, 2, "net1", stray, "mlx5_4", 4), hidden, soft,
		},
		records: []record.Record{
			{
				State: record.Done, Owner: attach.Owner{ContainerID: "c1", IfName: "net1"}, Pod: netconf.Pod{Namespace: "team-a", Name: "train-0"},
				Network: "rail0", Kind: netconf.KindVF, Device: bus.PCI(fn(3)), Moved: true, NetNS: attach.NetNS{Path: "/var/run/netns/cni-1", Dev: 4, Ino: 1},
				Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.0.7/16")}, Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			},
			{
				State: record.Returning, Owner: attach.Owner{ContainerID: "c0", IfName: "net1"}, Pod: netconf.Pod{Name: "old"}, Network: "rail0",
				Kind: netconf.KindVF, Device: bus.PCI(fn(4)), NetNS: attach.NetNS{Path: "/var/run/netns/cni-0", Dev: 4, Ino: 4026532009},
				Created: time.Date(2026, 1, 2, 5, 4, 0, 0, time.UTC),
			},
		},
	}
}

// runShow gives standard output and standard error.
func runShow(t *testing.T, n shower, args ...string) (string, string) {
	t.Helper()
	var stdout, stderr strings.Builder
	s := streams{strings.NewReader(""), &stdout, &stderr}
	if code := finish(t.Context(), newShow(n, s), args, s); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	return stdout.String(), stderr.String()
}

func TestShowTable(t *testing.T) {
	t.Parallel()
	n := exampleNode()
	n.records[1].NetNS.Ino = 5 // its path was given to another since
	out, _ := runShow(t, n)
	want := strings.TrimLeft(`
RDMA mode: exclusive

PCI           TYPE  DRIVER     NETDEV     RDMA          UVERBS  NODE GUID            WHERE                                                   OWNER
0000:3b:00.0  pf    mlx5_core  ens1f0np0  mlx5_0        0       0200:00ff:fe00:0001  host                                                    -
0000:3b:00.2  vf 0  mlx5_core  ens1f0v0   mlx5_2        2       0200:00ff:fe00:0000  host                                                    -
0000:3b:00.3  vf 1  mlx5_core  net1       mlx5_3        3       0200:00ff:fe00:0000  pod team-a/train-0                                      team-a/train-0 net1
0000:3b:00.4  vf 2  mlx5_core  net1       mlx5_4        4       0200:00ff:fe00:0000  net:[4026532009] (nginx (pid 71), evil?[2J (pid 72))  old net1 (returning)
0000:3b:00.5  vf 3  mlx5_core  -          mlx5_5        5       -                    not to be seen                                          -
-             soft  -          -          pf0123456789  9       0200:00ff:fe00:0009  pod team-a/train-0                                      -

POD             NETWORK  INTERFACE  DEVICE        RDMA   STATE      ADDRESSES    AGE
team-a/train-0  rail0    net1       0000:3b:00.3  moved  done       10.1.0.7/16  2h
old             rail0    net1       0000:3b:00.4  none   returning  -            5s
`, "\n")
	if diff := cmp.Diff(squeeze(want), squeeze(out)); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

// TestShowOfADeadPod: who keeps a dead pod's namespace alive is what keeps its devices.
func TestShowOfADeadPod(t *testing.T) {
	t.Parallel()
	out, _ := runShow(t, exampleNode())
	if want := "net:[4026532009] of pod old, which is gone (nginx (pid 71), evil?[2J (pid 72))"; !strings.Contains(out, want) {
		t.Errorf("the table lacks %q:\n%s", want, out)
	}
}

// squeeze makes every run of blanks two, so that the widths of columns are not compared.
func squeeze(s string) string {
	for strings.Contains(s, "   ") {
		s = strings.ReplaceAll(s, "   ", "  ")
	}
	return s
}

func TestShowJSON(t *testing.T) {
	t.Parallel()
	out, _ := runShow(t, exampleNode(), "--json")
	if lists := nullLists(t, out); len(lists) > 0 {
		t.Errorf("lists are null: %v", lists)
	}
	var v nodeView
	must(t, json.Unmarshal([]byte(out), &v))
	byPCI := map[string]deviceView{}
	for _, d := range v.Devices {
		byPCI[deref(d.PCI)] = d
	}
	if d := byPCI["0000:3b:00.3"]; d.Owner == nil || d.Owner.ContainerID != "c1" || deref(d.RDMA[0].Pod) != "team-a/train-0" {
		t.Errorf("the VF in a pod: %+v", d)
	}
	// The namespace of a record is known by its inode, too.
	if d := byPCI["0000:3b:00.4"]; deref(d.Netdevs[0].Pod) != "old" || len(d.Netdevs[0].Holders) != 2 {
		t.Errorf("the VF in a stray namespace: %+v", d)
	}
	if d := byPCI["0000:3b:00.5"]; d.RDMA[0].NetNS != nil || d.RDMA[0].Index != nil || d.RDMA[0].Uverbs == nil || *d.RDMA[0].Uverbs != 5 {
		t.Errorf("the VF that nobody sees: %+v", d)
	}
	if d := byPCI["0000:3b:00.0"]; d.Type != "pf" || d.VF != nil || d.PF != nil || d.Owner != nil || *d.RDMA[0].Index != 0 {
		t.Errorf("the PF: %+v", d)
	}
}

// nullLists names the fields of a JSON text that are null and are lists in the documentation.
func nullLists(t *testing.T, text string) []string {
	t.Helper()
	var found []string
	for _, name := range []string{"devices", "attachments", "warnings", "netdevs", "rdma", "holders", "addresses", "inTheWay", "persistent", "notes", "ignored"} {
		if strings.Contains(text, `"`+name+`": null`) {
			found = append(found, name)
		}
	}
	return found
}

func TestShowEmpty(t *testing.T) {
	t.Parallel()
	out, _ := runShow(t, &shownNode{})
	if diff := cmp.Diff("RDMA mode: none\n\nno SR-IOV and no RDMA devices\n\nno attachments\n", out); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	out, _ = runShow(t, &shownNode{}, "--json")
	if lists := nullLists(t, out); len(lists) > 0 {
		t.Errorf("lists are null: %v", lists)
	}
}

// TestShowUnprivileged: what only root sees is missing, which is said; a record that cannot be read is said, too.
func TestShowUnprivileged(t *testing.T) {
	t.Parallel()
	n := exampleNode()
	n.user = true
	n.home = []sysfs.Function{
		{PCI: fn(0), TotalVFs: 16, Number: -1, Net: []string{"ens1f0np0"}, RDMA: []string{"mlx5_0"}, Uverbs: []sysfs.Uverbs{{Number: 0, Device: "mlx5_0"}}},
		{PCI: fn(3), PF: fn(0), Number: 1, Uverbs: []sysfs.Uverbs{{Number: 3, Device: "mlx5_3"}}},
		{PCI: fn(7), Number: -1, Net: []string{"eth0"}},
	}
	out, errs := runShow(t, n)
	if !strings.Contains(errs, "run it as root") {
		t.Errorf("standard error: %q", errs)
	}
	if strings.Contains(out, "team-a") || strings.Contains(out, "eth0") {
		t.Errorf("it shows what it should not:\n%s", out)
	}
	for _, want := range []string{"ens1f0np0", "mlx5_3", "not to be seen"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q:\n%s", want, out)
		}
	}
	m := exampleNode()
	m.broken = []error{&record.UnreadableError{File: "/run/podfabric/attachments/x/net1.json", Reason: "it is not JSON of a record"}}
	if _, errs := runShow(t, m); !strings.Contains(errs, "attachments/x/net1.json: it is not JSON") {
		t.Errorf("standard error: %q", errs)
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int64]string{-5: "0s", 0: "0s", 119: "119s", 120: "2m", 7199: "119m", 7200: "2h", 172799: "47h", 172800: "2d"} {
		if got := age(&seconds); got != want {
			t.Errorf("age(%d) = %s, want %s", seconds, got, want)
		}
	}
}

// A sub-function has the PCI address of its PF and is another device.
func TestShowSubFunction(t *testing.T) {
	t.Parallel()
	at := kernel.Where{NetNS: kernel.HostNS}
	n := &shownNode{
		mode: rdmans.Exclusive,
		devices: []kernel.Device{{
			Function: sysfs.Function{PCI: fn(0), Aux: "mlx5_core.sf.4", Driver: "mlx5_core.sf", Number: -1, NUMA: -1},
			Links:    []kernel.LinkAt{{Where: at, Name: "enp59s0f0s4", MAC: "02:00:00:00:00:04", MTU: 1500}}, RDMA: []kernel.RDMAAt{},
		}},
		records: []record.Record{
			{
				State: record.Done, Owner: attach.Owner{ContainerID: "c1", IfName: "net1"}, Pod: netconf.Pod{Name: "a"}, Network: "rail0",
				Device: bus.ID{Aux: "mlx5_core.sf.4"},
			},
			{
				State: record.Done, Owner: attach.Owner{ContainerID: "c2", IfName: "net1"}, Pod: netconf.Pod{Name: "b"}, Network: "rail1",
				Master: attach.Lower{Name: "ens1f0np0", Index: 4}, Own: attach.OwnLink{Kind: "macvlan", Name: "net1"},
			},
		},
	}
	out, _ := runShow(t, n)
	for _, want := range []string{"mlx5_core.sf.4  sf    mlx5_core.sf", "a net1\n", "rail0    net1       mlx5_core.sf.4", "rail1    net1       ens1f0np0"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	out, _ = runShow(t, n, "--json")
	for _, want := range []string{`"pci": null`, `"auxiliary": "mlx5_core.sf.4"`, `"pf": "0000:3b:00.0"`, `"type": "sf"`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}
