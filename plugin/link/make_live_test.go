// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"github.com/podfabric/podfabric/plugin/link"
	"github.com/podfabric/podfabric/rdmans/pci"
)

func TestAdd(t *testing.T) {
	t.Parallel()
	home, pod := newSpace(t), newSpace(t)
	v := home.add(t, veth("v0", "p0"))
	n := link.New{
		Kind: "macvlan", Mode: "bridge", Lower: v.Index, Name: "net1", MAC: "02:00:00:00:00:09", MTU: 1400, NetNS: int(pod.ns.Fd()), Index: 1 << 20,
	}
	must(t, home.Add(n))
	got := pod.get(t, "net1")
	nsid, err := pod.NSID(int(home.ns.Fd()))
	must(t, err)
	want := link.Link{
		Index: 1 << 20, Name: "net1", Type: "ether", Kind: "macvlan", MAC: "02:00:00:00:00:09", MTU: 1400, Far: link.Far{Index: v.Index, NSID: nsid},
		Traits: got.Traits,
	}
	if diff := cmp.Diff(want, got); diff != "" || nsid < 0 {
		t.Errorf("namespace %d (-want +got):\n%s", nsid, diff)
	}
	if diff := cmp.Diff([]string{"lo", "p0", "v0"}, home.names(t)); diff != "" {
		t.Errorf("at home (-want +got):\n%s", diff)
	}
	must(t, pod.Del(got.Index))
	if err := pod.Del(got.Index); !errors.Is(err, link.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
	if third := newSpace(t); func() int { id, _ := third.NSID(int(home.ns.Fd())); return id }() != -1 {
		t.Error("a namespace that knows no other has a number for one")
	}
}

func TestLinksThatTheKernelRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*link.New)
		want   error
		text   string
	}{
		"name taken":              {change: func(n *link.New) { n.Name = "lo" }, want: link.ErrNameTaken},
		"index taken":             {change: func(n *link.New) { n.Index = 1 }, want: link.ErrNameTaken}, // of lo: EEXIST, or EBUSY by kernel
		"no link below":           {change: func(n *link.New) { n.Lower = 4711 }, want: link.ErrNotFound},
		"MTU above that below":    {change: func(n *link.New) { n.MTU = 1501 }, want: link.ErrRefused, text: "MTU 1501 is above the 1500 of v0"},
		"a name that is no name":  {change: func(n *link.New) { n.Name = "a/b" }, want: link.ErrRefused},
		"a MAC that is no MAC":    {change: func(n *link.New) { n.MAC = "x" }, text: "address x: invalid MAC address"},
		"a multicast MAC":         {change: func(n *link.New) { n.MAC = "01:00:5e:00:00:01" }, want: link.ErrRefused, text: "no MAC that a link can have"},
		"a kind that is no kind":  {change: func(n *link.New) { n.Kind = "vlan" }, want: link.ErrRefused},
		"a mode of another kind":  {change: func(n *link.New) { n.Mode = "l2" }, want: link.ErrRefused, text: `mode "l2"`},
		"l3, which nobody tested": {change: func(n *link.New) { n.Kind, n.Mode = "ipvlan", "l3" }, want: link.ErrRefused, text: `mode "l3"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, pod := newSpace(t), newSpace(t)
			n := link.New{
				Kind: "macvlan", Mode: "bridge", Lower: home.add(t, veth("v0", "p0")).Index, Name: "net1", MAC: "02:00:00:00:00:09",
				NetNS: int(pod.ns.Fd()),
			}
			tt.change(&n)
			err := home.Add(n)
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error %v, want %v with %q", err, tt.want, tt.text)
			}
			if diff := cmp.Diff([][]string{{"lo", "p0", "v0"}, {"lo"}}, [][]string{home.names(t), pod.names(t)}); diff != "" {
				t.Errorf("links (-want +got):\n%s", diff)
			}
		})
	}
}

// The other end of a veth is far too, and it is what it is: a link with the index that it has there.
func TestFarEndOfAVeth(t *testing.T) {
	t.Parallel()
	home, pod := newSpace(t), newSpace(t)
	v := home.add(t, veth("v0", "p0"))
	must(t, home.Move(v.Index, link.Change{Name: "net1", NetNS: int(pod.ns.Fd())}))
	got := pod.get(t, "net1")
	if want := home.get(t, "p0").Index; got.Far.Index != want || got.Lower != 0 {
		t.Errorf("%+v, want %d", got, want)
	}
	if _, err := home.ByIndex(4711); !errors.Is(err, link.ErrNotFound) {
		t.Errorf("by no index: %v", err)
	}
}

// A veth has no VFs and no switch, and takes no setting of one.
func TestVFsOfNoPF(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	v := s.add(t, veth("v0", "p0"))
	if vfs, err := s.VFs(v.Index); len(vfs) != 0 || err != nil {
		t.Errorf("VFs %v, %v", vfs, err)
	}
	if _, err := s.VFs(4711); !errors.Is(err, link.ErrNotFound) {
		t.Errorf("VFs of nothing: %v", err)
	}
	for name, err := range map[string]error{
		"VLAN": s.SetVFVLAN(v.Index, 0, 1, 0, "802.1q"), "802.1ad": s.SetVFVLAN(v.Index, 0, 1, 0, "802.1ad"), "MAC": s.SetVFMAC(v.Index, 0, "02:00:00:00:00:01"),
		"rates": s.SetVFRate(v.Index, 0, 0, 10), "spoofchk": s.SetVFSpoofchk(v.Index, 0, true), "trust": s.SetVFTrust(v.Index, 0, true),
		"link_state": s.SetVFLinkState(v.Index, 0, "enable"),
	} {
		if !errors.Is(err, link.ErrUnsupported) {
			t.Errorf("%s: %v, want %v", name, err, link.ErrUnsupported)
		}
	}
	if err := s.SetVFLinkState(v.Index, 0, "up"); !errors.Is(err, link.ErrRefused) {
		t.Errorf("a state that is none: %v", err)
	}
	if err := s.SetVFMAC(v.Index, 0, "x"); err == nil {
		t.Error("a MAC that is none was taken")
	}
	if mode, err := s.ESwitch(pci.Addr{Domain: 0xffff}); mode != "" || err != nil {
		t.Errorf("switch of nothing: %q, %v", mode, err)
	}
}

// A port of a bridge takes no macvlan, and one that is for itself no second.
func TestAddOnWhatIsInUse(t *testing.T) {
	t.Parallel()
	home, pod := newSpace(t), newSpace(t)
	v, w := home.add(t, veth("v0", "p0")), home.get(t, "p0")
	br := home.add(t, &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}})
	must(t, home.do(func() error {
		h, err := netlink.NewHandle()
		if err != nil {
			return err
		}
		defer h.Close()
		return h.LinkSetMasterByIndex(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: w.Index}}, br.Index)
	}))
	n := link.New{Kind: "macvlan", Mode: "bridge", Lower: w.Index, Name: "net1", NetNS: int(pod.ns.Fd())}
	if err := home.Add(n); !errors.Is(err, link.ErrBusy) {
		t.Errorf("on a port of a bridge: %v", err)
	}
	n.Lower, n.Mode = v.Index, "passthru"
	must(t, home.Add(n))
	n.Name = "net2"
	if err := home.Add(n); !errors.Is(err, link.ErrBusy) || !strings.Contains(err.Error(), "mode passthru wants v0 for itself") {
		t.Errorf("twice for itself: %v", err)
	}
	n.Mode = "private"
	if err := home.Add(n); !errors.Is(err, link.ErrRefused) || !strings.Contains(err.Error(), "another macvlan may have v0 for itself") {
		t.Errorf("beside one for itself: %v", err)
	}
	if names := pod.names(t); !slices.Equal(names, []string{"lo", "net1"}) {
		t.Errorf("the pod has %v", names)
	}
}
