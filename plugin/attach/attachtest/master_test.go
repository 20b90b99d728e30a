// SPDX-License-Identifier: Apache-2.0

package attachtest_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
	"github.com/podfabric/podfabric/rdmans/bus"
)

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func busOf(n uint8) bus.ID { return bus.PCI(pf(n)) }

// What is below a master, through VLANs and bonds [review.md 26, 38]; the index is what counts.
func TestObserveMaster(t *testing.T) {
	t.Parallel()
	k, s := masters(t, attach.Exclusive)
	k.AddVF(attachtest.VF{ID: fn(0), PF: pf(0), Link: "vf0", RDMA: "mlx5_2"})
	k.AddPF(attachtest.PF{PCI: pf(2), Link: "ens1f2"})
	k.AddBond("bond0", "ens1f1", "ens1f0")
	k.AddBond("bond1", "ens1f2")
	k.AddVLAN("bond0", "bond0.7", 7)
	k.SetDefault("bond0.7", true)
	k.SetDefault("bond1", true)
	tests := []struct {
		master string
		want   attach.Master
		device bus.ID
		rdma   string
	}{
		{"ens1f0", attach.Master{Kind: "device", MTU: 9000, RDMA: []string{"mlx5_0"}}, busOf(0), "mlx5_0"},
		{"ens1f0.100", attach.Master{Kind: "vlan", MTU: 9000, RDMA: []string{"mlx5_0"}}, busOf(0), "mlx5_0"},
		{"bond0", attach.Master{Kind: "bond", MTU: 1500, RDMA: []string{"mlx5_0", "mlx5_1"}}, busOf(0), "mlx5_0"},
		{"bond0.7", attach.Master{Kind: "vlan", MTU: 1500, Default: true, RDMA: []string{"mlx5_0", "mlx5_1"}}, busOf(0), "mlx5_0"},
		{"ens1f2", attach.Master{Kind: "device", MTU: 1500, Default: true}, busOf(2), ""}, // as a port
		{"bond1", attach.Master{Kind: "bond", MTU: 1500, Default: true}, busOf(2), ""},
		{"vf0", attach.Master{Kind: "device", MTU: 1500, RDMA: []string{"mlx5_2"}}, fn(0), "mlx5_2"},
		{"dummy0", attach.Master{Kind: "dummy", MTU: 1500}, bus.ID{}, ""},
	}
	for _, tt := range tests {
		q := attach.Query{Master: lower(t, s, tt.master)}
		q.Master.Name = "another by now"
		f, err := s.Observe(t.Context(), q)
		if err != nil || f.Master == nil {
			t.Fatalf("%s: %+v, error %v", tt.master, f, err)
		}
		tt.want.Name, tt.want.Type, tt.want.Index = tt.master, "ether", q.Master.Index
		tt.want.MAC, tt.want.Up = f.Master.MAC, tt.master != "vf0" && tt.master != "dummy0"
		if diff := cmp.Diff(&tt.want, f.Master); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.master, diff)
		}
		rdma := ""
		if f.RDMA != nil {
			rdma = f.RDMA.Name
		}
		if f.Function.ID != tt.device || rdma != tt.rdma || f.Link != nil || f.Function.Exists == tt.device.IsZero() {
			t.Errorf("%s: function %+v, RDMA %q, link %+v", tt.master, f.Function, rdma, f.Link)
		}
	}
	gone := lower(t, s, "ens1f0")
	k.Give(busOf(0), podB, "x")
	if f, err := s.Observe(t.Context(), attach.Query{Master: gone}); err != nil || f.Master != nil || f.RDMA != nil {
		t.Errorf("master away: %+v, error %v", f, err)
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	k, s := masters(t, attach.Exclusive)
	k.AddVF(attachtest.VF{ID: fn(0), PF: pf(0), Link: "vf0", RDMA: "mlx5_2"})
	k.AddSF(attachtest.SF{ID: bus.ID{Aux: "mlx5_core.sf.4"}, PF: pf(0), Link: "en4", RDMA: "mlx5_3"})
	k.SetHostAltNames("ens1f1", "rail1")
	k.SetDefault("ens1f1", true)
	must(t, s, attach.MoveRDMA{Index: 1, GUID: "0254:00ff:fe01:0100", From: attach.Host, To: attach.Pod}) // mlx5_1
	k.MakeMacvlan(podA, "net1", "ens1f0")
	got, err := s.Links(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if i > 0 && got[i].Index <= got[i-1].Index {
			t.Errorf("not by index: %+v", got)
		}
		got[i].Index = 0
	}
	const root = "/sys/devices/pci0000:00/"
	want := []attach.Candidate{
		{Name: "lo", Type: "loopback", Kind: "device", MAC: "00:00:00:00:00:00"},
		{Name: "ens1f0", Type: "ether", Kind: "device", MAC: "02:54:00:01:00:00", Device: busOf(0), Path: root + "0000:01:00.0", RDMA: []string{"mlx5_0"}},
		{Name: "ens1f1", AltNames: []string{"rail1"}, Type: "ether", Kind: "device", MAC: "02:54:00:01:01:00", Device: busOf(1), Path: root + "0000:01:01.0", Default: true},
		{Name: "ens1f0.100", Type: "ether", Kind: "vlan", MAC: "02:54:00:01:00:00", Lower: attach.Lower{Name: "ens1f0", Index: 2}},
		{Name: "dummy0", Type: "ether", Kind: "dummy", MAC: "02:00:00:00:00:01"},
		{Name: "vf0", Type: "ether", Kind: "device", MAC: "02:54:00:01:10:00", Device: fn(0), Path: root + "0000:01:10.0", VF: true, RDMA: []string{"mlx5_2"}},
		{Name: "en4", Type: "ether", Kind: "device", MAC: "02:5f:00:00:00:04", Device: bus.ID{Aux: "mlx5_core.sf.4"}, Path: root + "0000:01:00.0/mlx5_core.sf.4", RDMA: []string{"mlx5_3"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

func behind(t *testing.T, s *attachtest.Session, name string) attach.Behind {
	t.Helper()
	b, err := s.Behind(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What the plugins of containernetworking and sriov-cni leave in a pod.
func TestBehind(t *testing.T) {
	t.Parallel()
	k, s := masters(t, attach.Exclusive)
	k.AddVF(attachtest.VF{ID: fn(0), PF: pf(0), Link: "vf0", RDMA: "mlx5_2"})
	k.Give(fn(0), podA, "sriov")
	k.Give(busOf(1), podA, "hostdev")
	k.MakeMacvlan(podA, "mv", "ens1f0")
	k.MakeVLAN(podA, "vl", "ens1f0", 5)
	k.AddVeth(podA, "eth0")
	k.MakeIpvlan(podA, "iv", "dummy0")
	k.MakeMacvlan(podA, "hidden", "ens1f0.100")
	hidden := lower(t, s, "ens1f0.100")
	master := lower(t, s, "ens1f0")
	want := map[string]attach.Behind{
		"sriov":   {Device: fn(0), Kind: "device", Type: "ether", MAC: "02:54:00:01:10:00"},
		"hostdev": {Device: busOf(1), Kind: "device", Type: "ether", MAC: "02:54:00:01:01:00"},
		"mv":      {Master: master, Kind: "macvlan", Type: "ether"},
		"vl":      {Master: master, Kind: "vlan", Type: "ether"},
		"iv":      {Master: lower(t, s, "dummy0"), Kind: "ipvlan", Type: "ether"},
		"eth0":    {Kind: "veth", Type: "ether"},
		"hidden":  {Master: hidden, Kind: "macvlan", Type: "ether"},
	}
	for name, w := range want {
		got := behind(t, s, name)
		if w.MAC == "" {
			w.MAC = got.MAC
		}
		if diff := cmp.Diff(w, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	f, err := s.Observe(t.Context(), attach.Query{Device: fn(0)})
	if err != nil || f.Link == nil || f.Link.Place != at(attach.Pod, "sriov") || !f.Link.Up || f.RDMA.NS != attach.Host {
		t.Errorf("facts of a VF that another plugin gave: %+v, error %v", f.Link, err)
	}
	f, err = s.Observe(t.Context(), attach.Query{Own: attach.OwnLink{Kind: "veth", Name: "eth0"}})
	if err != nil || f.Link == nil || f.Link.Name != "eth0" || f.Master != nil {
		t.Errorf("facts of a veth: %+v, error %v", f.Link, err)
	}
	k.Give(busOf(0), podB, "x") // a master that cannot be seen
	if got := behind(t, s, "mv"); got.Master != (attach.Lower{}) {
		t.Errorf("master away: %+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ask := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := s.Behind(ctx, "mv"); return err },
		func(ctx context.Context) error { _, err := s.Links(ctx); return err },
	} {
		if err := ask(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	}
	for _, session := range []*attachtest.Session{s, open(t, k, "")} {
		if _, err := session.Behind(t.Context(), "net9"); !errors.Is(err, attach.ErrConflict) {
			t.Errorf("error %v", err)
		}
	}
	k.KillNetNS(podA)
	if diff := cmp.Diff([2]string{"host/sriov", "host/mlx5_2"}, k.Where(fn(0))); diff != "" {
		t.Errorf("a VF whose pod died (-want +got):\n%s", diff)
	}
	for _, l := range mustLinks(t, s) {
		if l.Kind == "veth" {
			t.Errorf("half a pair: %+v", l)
		}
	}
}

func mustLinks(t *testing.T, s *attachtest.Session) []attach.Candidate {
	t.Helper()
	links, err := s.Links(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return links
}

// PFs and SFs move as VFs do and come home as they do (cni-anchors.md §4.4). A bond loses a port that leaves
// (bond_netdev_event). What the node does with a link is said of it.
func TestWholeDevices(t *testing.T) {
	t.Parallel()
	sf := bus.ID{Aux: "mlx5_core.sf.4"}
	for _, id := range []bus.ID{busOf(0), sf} {
		t.Run(id.String(), func(t *testing.T) {
			t.Parallel()
			k, s := masters(t, attach.Exclusive)
			k.AddSF(attachtest.SF{ID: sf, PF: pf(0), Link: "en4", RDMA: "mlx5_3"})
			home := k.Where(id)
			f, err := s.Observe(t.Context(), attach.Query{Device: id, VF: true})
			if err != nil || f.Link == nil || f.RDMA == nil || f.Function.VF || f.VF != nil || f.Link.Kind != "device" || f.Function.PF.IsZero() == id.SF() {
				t.Fatalf("facts %+v, error %v", f, err)
			}
			net1 := at(attach.Pod, "net1")
			rdma := attach.MoveRDMA{Index: f.RDMA.Index, GUID: f.RDMA.NodeGUID, From: attach.Host, To: attach.Pod}
			must(t, s, attach.MoveLink{Device: id, From: f.Link.Place, To: net1, MTU: [2]int{f.Link.MTU, 4200}}, rdma)
			if got := k.Where(id); got[0] != podA+"/net1" {
				t.Errorf("at %v", got)
			}
			k.KillNetNS(podA)
			if got := k.Where(id); got != [2]string{"host/net1", home[1]} {
				t.Errorf("at %v, home is %v", got, home)
			}
		})
	}
	k, s := masters(t, attach.Exclusive)
	for n := range uint8(3) {
		k.AddVF(attachtest.VF{ID: fn(n), PF: pf(0), Link: fmt.Sprintf("vf%d", n), Number: int(n)})
	}
	k.AddBond("bond0", "ens1f0", "ens1f1")
	k.SetDefault("ens1f0", true)
	f, err := s.Observe(t.Context(), attach.Query{Device: busOf(0)})
	want := []string{"vlan ens1f0.100 sits on it", "it is a port of bond bond0", "it carries the default route"}
	if err != nil || f.Function.NumVFs != 3 || cmp.Diff(want, f.Link.InUse) != "" {
		t.Errorf("%d VFs, uses %q, error %v", f.Function.NumVFs, f.Link.InUse, err)
	}
	k.Give(busOf(0), podA, "x")
	b, err := s.Observe(t.Context(), attach.Query{Master: lower(t, s, "bond0")})
	if err != nil || cmp.Diff([]string{"mlx5_1"}, b.Master.RDMA) != "" {
		t.Errorf("bond after a port left: %+v, error %v", b.Master, err)
	}
}
