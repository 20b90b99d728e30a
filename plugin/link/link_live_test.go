// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"errors"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"github.com/podfabric/podfabric/plugin/link"
)

// The main thread stays where it is: a thread that was sent elsewhere and not brought back must not be the process's own.
func init() { runtime.LockOSThread() }

// space is a fresh network namespace that dies with the test.
type space struct {
	ns ns.NetNS
	*link.Conn
}

func (s space) do(f func() error) error { return s.ns.Do(func(ns.NetNS) error { return f() }) }

func newSpace(t *testing.T) space {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes network namespaces: run it as root")
	}
	n, err := ns.TempNetNS()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, n.Close()) })
	s := space{ns: n}
	s.Conn, err = link.Open(s.do)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// add makes a netdev in the namespace with the library alone.
func (s space) add(t *testing.T, l netlink.Link) link.Link {
	t.Helper()
	must(t, s.do(func() error {
		h, err := netlink.NewHandle()
		if err != nil {
			return err
		}
		defer h.Close()
		return h.LinkAdd(l)
	}))
	return s.get(t, l.Attrs().Name)
}

func (s space) get(t *testing.T, name string) link.Link {
	t.Helper()
	l, err := s.ByName(name)
	must(t, err)
	return l
}

func (s space) names(t *testing.T) []string {
	t.Helper()
	links, err := s.List()
	must(t, err)
	var names []string
	for _, l := range links {
		names = append(names, l.Name)
	}
	slices.Sort(names)
	return names
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// plain is any netdev. It is a veth, and not a dummy, because that is what every kernel has that runs containers.
func plain(name string) netlink.Link { return veth(name, name+"-peer") }

func veth(name, peer string) netlink.Link {
	return &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name, MTU: 1500}, PeerName: peer}
}

func TestMoveRenamesAndSetsTheMTUInOneMessage(t *testing.T) {
	t.Parallel()
	home, pod := newSpace(t), newSpace(t)
	l := home.add(t, veth("v0", "peer0"))
	must(t, home.SetUp(l.Index, true))
	must(t, home.Move(l.Index, link.Change{Name: "net1", MTU: 1400, NetNS: int(pod.ns.Fd())}))
	got := pod.get(t, "net1")
	if got.MTU != 1400 || got.Up || got.MAC != l.MAC {
		t.Errorf("in the pod: %+v, want MTU 1400, down, MAC %s", got, l.MAC)
	}
	if diff := cmp.Diff([]string{"lo", "peer0"}, home.names(t)); diff != "" {
		t.Errorf("left at home (-want +got):\n%s", diff)
	}
	must(t, pod.Move(got.Index, link.Change{Name: "v0", MTU: 1500, NetNS: int(home.ns.Fd())}))
	back := home.get(t, "v0")
	if back.MTU != 1500 {
		t.Errorf("back with MTU %d", back.MTU)
	}
}

// Both ways in which the kernel fails a move after it has moved (do_setlink in net/core/rtnetlink.c).
func TestMoveThatFailsHalfDone(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change link.Change
		taken  string
		want   error
	}{
		{name: "name taken", change: link.Change{Name: "net1"}, taken: "net1", want: link.ErrNameTaken},
		{name: "MTU too large", change: link.Change{Name: "net1", MTU: 70000}, want: link.ErrRefused},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			home, pod := newSpace(t), newSpace(t)
			l := home.add(t, veth("v0", "peer0"))
			if tt.taken != "" {
				pod.add(t, plain(tt.taken))
			}
			tt.change.NetNS = int(pod.ns.Fd())
			err := home.Move(l.Index, tt.change)
			if !errors.Is(err, tt.want) {
				t.Fatalf("error %v, want %v", err, tt.want)
			}
			if names := pod.names(t); !slices.ContainsFunc(names, func(n string) bool { return n == "v0" || n == "net1" && tt.taken == "" }) {
				t.Errorf("pod has %v: the link did not get there", names)
			}
			if names := home.names(t); slices.Contains(names, "v0") {
				t.Errorf("home still has %v", names)
			}
		})
	}
}

func TestRenameAndMTUWithoutMoving(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	l := s.add(t, veth("v0", "p0"))
	must(t, s.Move(l.Index, link.Change{Name: "v1", MTU: 1300, NetNS: -1}))
	if got := s.get(t, "v1"); got.MTU != 1300 || got.Index != l.Index {
		t.Errorf("%+v", got)
	}
	err := s.Move(l.Index, link.Change{Name: "p0", NetNS: -1})
	if !errors.Is(err, link.ErrNameTaken) {
		t.Errorf("rename onto a taken name: %v", err)
	}
	if err := s.Move(4711, link.Change{Name: "x", NetNS: -1}); !errors.Is(err, link.ErrNotFound) {
		t.Errorf("rename of nothing: %v", err)
	}
}

func TestAddressesAreUsableAtOnce(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	l := s.add(t, veth("v0", "p0"))
	must(t, s.SetUp(s.get(t, "p0").Index, true))
	must(t, s.SetUp(l.Index, true))
	v4, v6 := netip.MustParsePrefix("10.1.2.3/24"), netip.MustParsePrefix("fd00:1::3/64")
	for _, p := range []netip.Prefix{v4, v6} {
		must(t, s.AddAddr(l.Index, p))
		if err := s.AddAddr(l.Index, p); !errors.Is(err, link.ErrExists) {
			t.Errorf("%s twice: %v", p, err)
		}
	}
	global := func() []link.Addr {
		addrs, err := s.Addrs(l.Index)
		must(t, err)
		return slices.DeleteFunc(addrs, func(a link.Addr) bool { return a.Scope != 0 })
	}
	if diff := cmp.Diff([]link.Addr{{Prefix: v4}, {Prefix: v6}}, global(), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("addresses (-want +got), none of them tentative:\n%s", diff)
	}
	must(t, s.DelAddr(l.Index, v6))
	if err := s.DelAddr(l.Index, v6); !errors.Is(err, link.ErrNotFound) {
		t.Errorf("take off twice: %v", err)
	}
	if len(global()) != 1 {
		t.Errorf("left: %v", global())
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	l := s.add(t, veth("v0", "p0"))
	other := s.add(t, plain("d0"))
	for _, index := range []int{l.Index, s.get(t, "p0").Index, other.Index} {
		must(t, s.SetUp(index, true))
	}
	must(t, s.AddAddr(l.Index, netip.MustParsePrefix("10.1.2.3/24")))
	must(t, s.AddAddr(l.Index, netip.MustParsePrefix("fd00:1::3/64")))
	tests := []struct{ dst, via string }{
		{dst: "10.9.0.0/16", via: "10.1.2.1"},
		{dst: "10.10.0.0/16"},
		{dst: "0.0.0.0/0", via: "10.1.2.1"},
		{dst: "fd00:9::/48", via: "fd00:1::1"},
		{dst: "fd00:a::/48"},
		{dst: "::/0", via: "fd00:1::1"},
	}
	for _, tt := range tests {
		dst := netip.MustParsePrefix(tt.dst)
		var via netip.Addr
		if tt.via != "" {
			via = netip.MustParseAddr(tt.via)
		}
		has := func(want bool) {
			t.Helper()
			routes, err := s.Routes(l.Index)
			must(t, err)
			got := slices.ContainsFunc(routes, func(r link.Route) bool { return r.Dst == dst && r.Via == via })
			if got != want {
				t.Errorf("route to %s via %q there: %v, want %v, in %v", tt.dst, tt.via, got, want, routes)
			}
		}
		has(false)
		must(t, s.AddRoute(l.Index, dst, via))
		has(true)
		if err := s.AddRoute(l.Index, dst, via); !errors.Is(err, link.ErrExists) {
			t.Errorf("route to %s twice: %v", tt.dst, err)
		}
		must(t, s.DelRoute(l.Index, dst, via))
		has(false)
		if err := s.DelRoute(l.Index, dst, via); !errors.Is(err, link.ErrNotFound) {
			t.Errorf("remove route to %s twice: %v", tt.dst, err)
		}
	}
}

func TestSysctlIsOfTheNamespace(t *testing.T) {
	t.Parallel()
	a, b := newSpace(t), newSpace(t)
	for _, s := range []space{a, b} {
		s.add(t, plain("net1"))
	}
	const key = "net/ipv6/conf/net1/accept_ra"
	must(t, a.SetSysctl(key, "0"))
	for s, want := range map[*space]string{&a: "0", &b: "1"} {
		got, err := s.Sysctl(key)
		must(t, err)
		if got != want {
			t.Errorf("%s = %s, want %s", key, got, want)
		}
	}
	bad := map[string]error{
		"net/ipv6/conf/none/accept_ra": link.ErrNotFound, "net/../kernel/hostname": link.ErrNotFound, "kernel/hostname": link.ErrNotFound,
	}
	for key, want := range bad {
		err := a.SetSysctl(key, "0")
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", key, err, want)
		}
		if strings.Contains(err.Error(), "no such file") {
			t.Errorf("%s: text that Multus takes for done: %v", key, err)
		}
	}
	if err := a.SetSysctl(key, "many"); !errors.Is(err, link.ErrRefused) {
		t.Errorf("a bad value: %v", err)
	}
}

func TestMAC(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	l := s.add(t, plain("d0"))
	must(t, s.SetMAC(l.Index, "02:00:00:00:00:07"))
	if got := s.get(t, "d0").MAC; got != "02:00:00:00:00:07" {
		t.Errorf("MAC %s", got)
	}
	if err := s.SetMAC(l.Index, "xx"); err == nil {
		t.Error("an illegal MAC was taken")
	}
}

func TestUses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		make func(t *testing.T, s space, l link.Link)
		want []string
	}{
		{name: "nothing", make: func(*testing.T, space, link.Link) {}},
		{name: "link-local address only", make: func(t *testing.T, s space, l link.Link) { t.Helper(); must(t, s.SetUp(l.Index, true)) }},
		{
			name: "address and default route",
			make: func(t *testing.T, s space, l link.Link) {
				t.Helper()
				must(t, s.SetUp(l.Index, true))
				must(t, s.AddAddr(l.Index, netip.MustParsePrefix("10.0.0.5/24")))
				must(t, s.AddRoute(l.Index, netip.MustParsePrefix("0.0.0.0/0"), netip.MustParseAddr("10.0.0.1")))
			},
			want: []string{"it carries address 10.0.0.5/24", "it carries the default route"},
		},
		{
			name: "port of a bridge",
			make: func(t *testing.T, s space, l link.Link) {
				t.Helper()
				br := s.add(t, &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}})
				must(t, s.do(func() error {
					h, err := netlink.NewHandle()
					if err != nil {
						return err
					}
					defer h.Close()
					return h.LinkSetMasterByIndex(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: l.Index}}, br.Index)
				}))
			},
			want: []string{"it is a port of bridge br0"},
		},
		{
			name: "macvlan on it",
			make: func(t *testing.T, s space, l link.Link) {
				t.Helper()
				s.add(t, &netlink.Macvlan{LinkAttrs: netlink.LinkAttrs{Name: "mv0", ParentIndex: l.Index}, Mode: netlink.MACVLAN_MODE_BRIDGE})
			},
			want: []string{"macvlan mv0 sits on it"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			l := s.add(t, plain("d0"))
			tt.make(t, s, l)
			links, err := s.List()
			must(t, err)
			got, err := s.Uses(s.get(t, "d0"), links)
			must(t, err)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("uses (-want +got):\n%s", diff)
			}
		})
	}
}
