// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
	"github.com/podfabric/podfabric/rdmans/sysfs/sysfstest"
)

func nowhere() bus.ID { return bus.PCI(pci.Addr{Domain: 0xffff}) }

func sf(number string) bus.ID { return bus.ID{Aux: "mlx5_core.sf." + number} }

// wait polls for a condition of the kernel.
func wait(t *testing.T, what string, f func() bool) {
	t.Helper()
	for until := time.Now().Add(10 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("waited 10 s for %s", what)
		}
	}
}

// An attachment's own link is found under whatever name, as long as it sits on the master.
func TestObserveOwnLink(t *testing.T) {
	const mac = "02:00:00:00:0b:01"
	on, other := master(t, "pfown0"), master(t, "pfown1")
	home(t, "link set pfown0 up", "")
	prefix := netip.MustParsePrefix("10.1.0.1/24")
	for name, tt := range map[string]struct {
		kind      string
		meanwhile []string
		on        attach.Lower
		want      string // name in the pod; empty: not found
	}{
		"as it was made":           {kind: "macvlan", on: on, want: "net2"},
		"renamed":                  {kind: "macvlan", on: on, meanwhile: []string{"link set net2 name lan"}, want: "lan"},
		"another MAC":              {kind: "macvlan", on: on, meanwhile: []string{"link set net2 address 02:00:00:00:0b:09"}, want: "net2"},
		"on another master":        {kind: "macvlan", on: other},
		"gone":                     {kind: "macvlan", on: on, meanwhile: []string{"link del net2"}},
		"two of its kind, renamed": {kind: "macvlan", on: on, meanwhile: []string{"link set net2 name lan", "link add link lan name twin address " + mac + " type macvlan"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t)
			s := p.open(t)
			add := attach.AddLink{Kind: tt.kind, Master: tt.on, Mode: "bridge", Link: atNet2(), MAC: mac}
			known := attach.OwnLink{Kind: tt.kind, Name: "net2", MAC: mac}
			must(t, s.Apply(t.Context(), add))
			must(t, s.Apply(t.Context(), attach.AddAddr{Link: atNet2(), Addr: prefix}))
			for _, args := range tt.meanwhile {
				p.ip(t, strings.Fields(args)...)
			}
			f, err := s.Observe(t.Context(), attach.Query{Master: on, Own: known})
			must(t, err)
			if f.Master == nil || f.Master.Name != "pfown0" || f.Master.Kind != "veth" || !f.Master.Up || f.Master.MTU != 1500 || f.Master.Type != "ether" ||
				f.Master.MAC != shown(t, nil)["pfown0"].MAC || len(f.Master.RDMA) != 0 || f.RDMA != nil || f.Function.Exists || !f.Function.ID.IsZero() {
				t.Errorf("master %+v, function %+v", f.Master, f.Function)
			}
			if tt.want == "" {
				if f.Link != nil {
					t.Errorf("found %+v", f.Link)
				}
				return
			}
			l := f.Link
			if l == nil || l.Name != tt.want || l.NS != attach.Pod || l.Kind != tt.kind || len(l.InUse) != 0 || l.Index != shown(t, &p)[tt.want].Index ||
				!slices.Contains(l.Addrs, prefix) {
				t.Errorf("link %+v, want %s", l, tt.want)
			}
		})
	}
}

func TestObserveAMasterThatIsGone(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	f, err := p.open(t).Observe(t.Context(), attach.Query{Master: attach.Lower{Name: "eth9", Index: 4711}, Own: attach.OwnLink{Kind: "veth", Name: "net1"}})
	must(t, err)
	if f.Master != nil || f.Link != nil || f.RDMA != nil || f.Function.Exists || len(f.PodLinks) == 0 {
		t.Errorf("%+v", f)
	}
}

func TestBehindAnInterface(t *testing.T) {
	const mac = "02:00:00:00:0c:01"
	on := master(t, "pfbeh0")
	p := newPod(t)
	s := p.open(t)
	must(t, s.Apply(t.Context(), attach.AddLink{
		Kind: "macvlan", Master: on, Mode: "bridge", Link: attach.Place{NS: attach.Pod, Name: "mv"}, MAC: mac,
	}))
	for _, args := range []string{
		"link add link mv name mvmv type macvlan", "link add link net1 name mvin type macvlan", "link add bridge0 type bridge",
	} {
		p.ip(t, strings.Fields(args)...)
	}
	home(t, "link add pfve type veth peer name pfve1", "link del pfve")
	home(t, "link set pfve1 netns "+p.path, "")
	for name, want := range map[string]attach.Behind{
		"mv":      {Kind: "macvlan", Master: on},
		"mvmv":    {Kind: "macvlan", Master: on}, // the kernel puts it beside the one that it was made on
		"pfve1":   {Kind: "veth"},                // its other end is at home, and no lower link
		"net1":    {Kind: "veth"},
		"bridge0": {Kind: "bridge"},
		"mvin":    {Kind: "macvlan"}, // on a link of the pod
	} {
		got, err := s.Behind(t.Context(), name)
		want.Type, want.MAC = "ether", shown(t, &p)[name].MAC
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	if _, err := s.Behind(t.Context(), "none"); !errors.Is(err, attach.ErrConflict) || !strings.Contains(err.Error(), "the pod has no interface none") {
		t.Errorf("behind nothing: %v", err)
	}
	// The index of the master is another netdev's in a third namespace, which is not home.
	third := newPod(t)
	third.ip(t, "link", "add", "link", "net1", "name", "strange", "type", "macvlan")
	third.ip(t, "link", "set", "strange", "netns", p.path)
	if got, err := s.Behind(t.Context(), "strange"); err != nil || got.Master.Index != 0 || got.Kind != "macvlan" {
		t.Errorf("behind a link from a third namespace: %+v, %v", got, err)
	}
}

func TestLinksAtHome(t *testing.T) {
	master(t, "pflnk0")
	home(t, "link property add dev pflnk0 altname pfrail0", "")
	master(t, "pflnk1")
	home(t, "link add pflnkb type bridge", "link del pflnkb")
	home(t, "link set pflnk1 master pflnkb", "")
	home(t, "link set pflnkb up", "")
	home(t, "addr add 10.77.0.1/24 dev pflnkb", "")
	home(t, "route add default via 10.77.0.2", "")
	p := newPod(t)
	s := p.open(t)
	links, err := s.Links(t.Context())
	must(t, err)
	byName := map[string]attach.Candidate{}
	for _, l := range links {
		byName[l.Name] = l
	}
	ip := shown(t, nil)
	want := map[string]attach.Candidate{
		"pflnk0": {Name: "pflnk0", AltNames: []string{"pfrail0"}, Kind: "veth", Type: "ether"},
		"pflnk1": {Name: "pflnk1", Kind: "veth", Type: "ether", Default: true}, // as a port of what carries it
		"pflnkb": {Name: "pflnkb", Kind: "bridge", Type: "ether", Default: true},
	}
	for name, w := range want {
		w.Index, w.MAC = ip[name].Index, ip[name].MAC
		if diff := cmp.Diff(w, byName[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if len(links) != len(ip) || !slices.IsSortedFunc(links, func(a, b attach.Candidate) int { return a.Index - b.Index }) {
		t.Errorf("%d links, ip shows %d: %+v", len(links), len(ip), links)
	}
	f, err := s.Observe(t.Context(), attach.Query{Master: lower(t, "pflnkb")})
	must(t, err)
	if f.Master == nil || !f.Master.Default || f.Master.Kind != "bridge" || f.Link != nil {
		t.Errorf("master %+v", f.Master)
	}
}

// A recorded tree has no network namespace, so all that is in it is what sysfs alone shows.
func TestObserveASubFunction(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	p.kernel.Sysfs = sysfstest.Extract(t, "../../rdmans/sysfs/testdata/mlx5-sf.txtar")
	f, err := p.open(t).Observe(t.Context(), attach.Query{Device: sf("5"), VF: true})
	must(t, err)
	want := attach.Function{ID: sf("5"), Exists: true, Driver: "mlx5_core.sf", Number: -1, PF: pci.Addr{Bus: 0x3b}, NUMA: 1}
	if f.Function.Inode == 0 {
		t.Error("its folder has no inode")
	}
	f.Function.Inode = 0 // of a folder that this test made
	if diff := cmp.Diff(want, f.Function); diff != "" {
		t.Errorf("function (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&attach.RDMA{Name: "mlx5_9", NS: attach.Elsewhere, Uverbs: 9}, f.RDMA); diff != "" {
		t.Errorf("RDMA device (-want +got):\n%s", diff)
	}
	if f.VF != nil || f.Siblings != nil || f.Link != nil {
		t.Errorf("%+v", f)
	}
	devices, err := p.kernel.Inventory(t.Context())
	must(t, err)
	var ids []bus.ID
	for _, d := range devices {
		ids = append(ids, d.ID())
	}
	if diff := cmp.Diff([]bus.ID{bus.PCI(pci.Addr{Bus: 0x3b}), sf("4"), sf("5")}, ids); diff != "" {
		t.Errorf("inventory (-want +got):\n%s", diff)
	}
	must(t, err)
}

// The kernel makes a macvlan that is to sit on another one on what is below that.
func TestMasterThatIsAMacvlan(t *testing.T) {
	const mac = "02:00:00:00:0c:01"
	on := master(t, "pfshim0")
	home(t, "link add pfshim1 link pfshim0 type macvlan mode bridge", "link del pfshim1")
	p := newPod(t)
	s := p.open(t)
	links, err := s.Links(t.Context())
	must(t, err)
	got := map[string]attach.Lower{}
	for _, c := range links {
		got[c.Name] = c.Master("macvlan")
	}
	if got["pfshim0"] != on || got["pfshim1"] != on || got["lo"].Name != "lo" {
		t.Fatalf("masters are %v, want %v", got, on)
	}
	must(t, s.Apply(t.Context(), attach.AddLink{Kind: "macvlan", Master: lower(t, "pfshim1"), Mode: "bridge", Link: atNet2(), MAC: mac}))
	f, err := s.Observe(t.Context(), attach.Query{Master: on, Own: attach.OwnLink{Kind: "macvlan", Name: "net2", MAC: mac}})
	must(t, err)
	if f.Link == nil || f.Link.Name != "net2" {
		t.Errorf("link %+v", f.Link)
	}
}
