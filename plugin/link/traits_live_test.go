// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"github.com/podfabric/podfabric/plugin/link"
)

// run runs a command in the namespace and gives what it printed.
func (s space) run(t *testing.T, args ...string) string {
	t.Helper()
	var out []byte
	must(t, s.do(func() error {
		var err error
		if out, err = exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", args, out)
		}
		return err
	}))
	return string(out)
}

// set changes v0 by ip(8), or by the library what older ones do not know.
func (s space) set(t *testing.T, args []string) {
	t.Helper()
	sizes := map[string]func(*netlink.Handle, netlink.Link, int) error{
		"gso_ipv4_max_size": (*netlink.Handle).LinkSetGSOIPv4MaxSize, "gro_ipv4_max_size": (*netlink.Handle).LinkSetGROIPv4MaxSize,
	}
	set, size := sizes[args[0]]
	if !size {
		s.run(t, append(strings.Fields("ip link set dev v0"), args...)...)
		return
	}
	n, err := strconv.Atoi(args[1])
	must(t, err)
	must(t, s.do(func() error {
		h, err := netlink.NewHandle()
		if err != nil {
			return err
		}
		defer h.Close()
		l, err := h.LinkByName("v0")
		if err != nil {
			return err
		}
		return set(h, l, n)
	}))
}

// All that ip(8) can set on a netdev of those that stay with it, as it is read, kept over a move, and set back in one message.
func TestTraitsStayWithALink(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args   string
		change func(*link.Traits)
	}{
		{"promisc on", func(x *link.Traits) { x.Flags = "multicast promisc" }},
		{"allmulticast on", func(x *link.Traits) { x.Flags = "allmulti multicast" }},
		{"multicast off", func(x *link.Traits) { x.Flags = "" }},
		{"arp off", func(x *link.Traits) { x.Flags = "multicast noarp" }},
		{"dynamic on", func(x *link.Traits) { x.Flags = "dynamic multicast" }},
		{"alias rail\xff0", func(x *link.Traits) { x.Alias = "rail\uFFFD0" }},
		{"group 42", func(x *link.Traits) { x.Group = 42 }},
		{"txqueuelen 0", func(x *link.Traits) { x.TxQueue = 0 }},
		{"mode dormant", func(x *link.Traits) { x.LinkMode = "dormant" }},
		{"broadcast 01:02:03:04:05:06", func(x *link.Traits) { x.Broadcast = "01:02:03:04:05:06" }},
		{"gso_max_size 4096", func(x *link.Traits) { x.GSO, x.GSOIPv4 = 4096, 4096 }},
		{"gso_max_segs 3", func(x *link.Traits) { x.GSOSegs = 3 }},
		{"gro_max_size 4097", func(x *link.Traits) { x.GRO, x.GROIPv4 = 4097, 4097 }},
		{"gso_ipv4_max_size 4098", func(x *link.Traits) { x.GSOIPv4 = 4098 }},
		{"gro_ipv4_max_size 4099", func(x *link.Traits) { x.GROIPv4 = 4099 }},
	} {
		t.Run(strings.ToValidUTF8(tt.args, "?"), func(t *testing.T) {
			t.Parallel()
			home, pod := newSpace(t), newSpace(t)
			l := pod.add(t, plain("v0"))
			want := l.Traits
			pod.set(t, strings.SplitN(tt.args, " ", 2))
			tt.change(&want)
			if diff := cmp.Diff(want, pod.get(t, "v0").Traits); diff != "" {
				t.Errorf("in the pod (-want +got):\n%s", diff)
			}
			must(t, pod.Move(l.Index, link.Change{Name: "v0", NetNS: int(home.ns.Fd())}))
			moved := home.get(t, "v0")
			if diff := cmp.Diff(want, moved.Traits); diff != "" {
				t.Errorf("after the move (-want +got):\n%s", diff)
			}
			must(t, home.SetTraits(moved.Index, moved.Traits, l.Traits))
			if diff := cmp.Diff(l.Traits, home.get(t, "v0").Traits); diff != "" {
				t.Errorf("set back (-want +got):\n%s", diff)
			}
		})
	}
}

// A program may need a netdev to be promiscuous, and so may a macvlan on it: that is not the user's flag, and stays.
func TestTraitsLeaveTheKernelsOwnPromiscuity(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	l := s.add(t, plain("v0"))
	s.run(t, "ip", "link", "add", "link", "v0", "name", "mv0", "type", "macvlan", "mode", "passthru")
	for _, command := range []string{"ip link set mv0 promisc on", "ip link set mv0 up", "ip link set v0 up", "ip link set v0 promisc on"} {
		s.run(t, strings.Fields(command)...)
	}
	count := func() string {
		_, after, _ := strings.Cut(s.run(t, "ip", "-d", "link", "show", "dev", "v0"), "promiscuity ")
		n, _, _ := strings.Cut(after, " ")
		return n
	}
	if n := count(); n != "2" {
		t.Fatalf("promiscuity %s; this test wants 2", n)
	}
	must(t, s.SetTraits(l.Index, s.get(t, "v0").Traits, l.Traits))
	if n, flags := count(), s.get(t, "v0").Traits.Flags; n != "1" || flags != "multicast" {
		t.Errorf("promiscuity %s, flags %q", n, flags)
	}
}

func TestTraitsThatAreRefused(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	l := s.add(t, plain("v0"))
	to := l.Traits
	to.GSO = 1 << 20
	if err := s.SetTraits(l.Index, l.Traits, to); !errors.Is(err, link.ErrRefused) {
		t.Errorf("GSO size 1048576: %v", err)
	}
	to = l.Traits
	if to.Broadcast = "x"; s.SetTraits(l.Index, l.Traits, to) == nil {
		t.Error("a broadcast address that is none is set")
	}
	to.Broadcast, to.Group = "", 1
	if err := s.SetTraits(4711, l.Traits, to); !errors.Is(err, link.ErrNotFound) {
		t.Errorf("no such link: %v", err)
	}
}
