// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
)

func TestClash(t *testing.T) {
	t.Parallel()
	prefixes := func(texts ...string) []netip.Prefix {
		var out []netip.Prefix
		for _, s := range texts {
			out = append(out, netip.MustParsePrefix(s))
		}
		return out
	}
	v4 := prefixes("10.1.0.5/24")
	full := &netconf.Problem{
		Code: netconf.CodeNotReady, Remedy: "use another device, or delete pods on this one, for each takes entries of its GID table",
		Field: "port 1 of mlx5_0", Found: "GID table of mlx5_0 is full (2)",
	}
	twice := func(addr, found string) *netconf.Problem {
		return &netconf.Problem{
			Code: netconf.CodeTryLater, Remedy: "give this pod an address of its own, or delete whatever else has " + addr + " on this device",
			Field: "port 1 of mlx5_0", Found: found, Right: "each address once on a port",
		}
	}
	ours := gid(3, "::ffff:10.1.0.5", v2, "net1")
	theirs := gid(7, "::ffff:10.1.0.5", v2, "net1")
	tests := []struct {
		name  string
		rdma  netconf.RDMA
		addrs []netip.Prefix
		gids  []attach.GID
		size  int
		most  int
		want  *netconf.Problem
	}{
		{name: "before", addrs: v4, gids: table()},
		{name: "another address", addrs: v4, gids: table(gid(3, "::ffff:10.1.0.50", v2, "net1"))},
		{name: "v1 alone is no other's RoCE v2", addrs: v4, gids: table(gid(2, "::ffff:10.1.0.5", v1, "net1"))},
		{name: "taken", addrs: v4, gids: table(ours), want: twice("10.1.0.5", "a RoCE v2 GID of 10.1.0.5 at index 3 already")},
		{name: "taken by a VLAN", addrs: v4, gids: table(gid(3, "::ffff:10.1.0.5", v2, "net1.100")), want: twice("10.1.0.5", "a RoCE v2 GID of 10.1.0.5 at index 3 already")},
		{
			name: "the second address taken", addrs: prefixes("10.1.0.5/24", "fd00::5/64"), gids: table(gid(5, "fd00::5", v2, "net9")),
			want: twice("fd00::5", "a RoCE v2 GID of fd00::5 at index 5 already"),
		},
		{name: "taken, RDMA off", rdma: netconf.RDMA{Mode: netconf.RDMAOff}, addrs: v4, gids: table(ours)},
		{name: "taken, RDMA not required", rdma: netconf.RDMA{Require: netconf.RequireNo}, addrs: v4, gids: table(ours), want: twice("10.1.0.5", "a RoCE v2 GID of 10.1.0.5 at index 3 already")},
		{name: "no address", gids: table(ours)},
		{name: "after: ours", addrs: v4, gids: table(ours), most: 1},
		{name: "after: two ADDs at once", addrs: v4, gids: table(ours, theirs), most: 1, want: twice("10.1.0.5", "a RoCE v2 GID of 10.1.0.5 at index 7 already")},
		{name: "full", addrs: v4, gids: table(), size: 2, want: full},
		{name: "full, RDMA not required", rdma: netconf.RDMA{Require: netconf.RequireNo}, addrs: v4, gids: table(), size: 2},
		{name: "full, no address", gids: table(), size: 2},
		{name: "full, RDMA off", rdma: netconf.RDMA{Mode: netconf.RDMAOff}, addrs: v4, gids: table(), size: 2},
		{name: "full with ours in it", addrs: v4, gids: table(ours), size: 3, most: 1},
		{name: "taken in a full table", addrs: v4, gids: table(ours), size: 3, want: twice("10.1.0.5", "a RoCE v2 GID of 10.1.0.5 at index 3 already")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			port := attach.Port{Device: "mlx5_0", Number: 1, State: "ACTIVE", GIDs: tt.gids, TableSize: tt.size}
			if tt.size == 0 {
				port.TableSize = 128
			}
			err := attach.Clash(netconf.Conf{RDMA: tt.rdma}, tt.addrs, []attach.Port{port}, tt.most)
			if tt.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if diff := cmp.Diff(tt.want, problem(t, err)); diff != "" {
				t.Errorf("problem (-want +got):\n%s", diff)
			}
		})
	}
}

// review.md lab 2: two macvlan pods with one address make two equal entries on the PF's table.
func TestClashOnAMachine(t *testing.T) {
	t.Parallel()
	sc := play(t, plan(t, "macvlan"))
	ports := func() []attach.Port {
		out, err := sc.s.Ports(t.Context(), attach.Pod, "mlx5_0")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	addrs := sc.addrs.Prefixes()
	if err := attach.Clash(sc.conf, addrs, ports(), 0); err != nil {
		t.Error(err)
	}
	if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
		t.Fatal(err)
	}
	if err := attach.Clash(sc.conf, addrs, ports(), 1); err != nil {
		t.Error(err)
	}
	if p := problem(t, attach.Clash(sc.conf, addrs, ports(), 0)); p.Code != netconf.CodeTryLater {
		t.Errorf("code %d", p.Code)
	}
	const other = "/run/netns/pod-b"
	sc.k.AddNetNS(other)
	sc.k.MakeMacvlan(other, "net1", "ens1f0")
	sc.k.PutAddr(other, "net1", addrs[0])
	if p := problem(t, attach.Clash(sc.conf, addrs, ports(), 1)); p.Code != netconf.CodeTryLater {
		t.Errorf("code %d", p.Code)
	}
	full := play(t, plan(t, "ipvlan"))
	full.k.FillGIDs("mlx5_0", 128, 128)
	table, err := full.s.Ports(t.Context(), attach.Pod, "mlx5_0")
	if err != nil {
		t.Fatal(err)
	}
	if p := problem(t, attach.Clash(full.conf, addrs, table, 0)); p.Found != "GID table of mlx5_0 is full (128)" {
		t.Errorf("found %q", p.Found)
	}
}

// A macvlan's GIDs come on the table of the PF below it, each under an index of its own; RDMA works when they are there.
func TestReadyOnAMaster(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"macvlan", "macvlan-ipv6", "macvlan-everything", "macvlan-vlan", "ipvlan", "ipvlan-bond"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := plan(t, name)
			sc := play(t, p)
			sc.k.SetGIDDelay(2)
			if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
				t.Fatal(err)
			}
			if got := looks(t, sc); got != 3 {
				t.Errorf("ready after %d looks, want 3", got)
			}
		})
	}
	for name, want := range map[string]bool{"macvlan-exclusive-off": true, "vf-userspace": true, "macvlan-passthru": true, "macvlan": false, "device-sf": false} {
		sc := play(t, plan(t, name))
		if missing, ok := attach.Ready(sc.conf, sc.before, sc.addrs.Prefixes(), nil); ok != want {
			t.Errorf("%s: missing %q, ok %t", name, missing, ok)
		}
	}
}

func TestOwnMAC(t *testing.T) {
	t.Parallel()
	if got := attach.OwnMAC(attach.Owner{ContainerID: "c1", IfName: "net1"}); got != ownMAC {
		t.Errorf("got %s, want %s", got, ownMAC)
	}
	if got := attach.OwnMAC(attach.Owner{ContainerID: "c1", IfName: "net2"}); got == ownMAC {
		t.Error("two interfaces of a pod have one MAC")
	}
}

// Two pods sit on one master; each goes its own way.
func TestTwoPodsOnOneMaster(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"macvlan", "ipvlan"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const second = "/run/netns/pod-b"
			p := plan(t, name)
			p.setup = func(k *attachtest.Kernel) { k.AddNetNS(second) }
			sc := play(t, p)
			if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
				t.Fatal(err)
			}
			withFirst := sc.k.Dump()
			other := *sc
			other.conf.Request.ContainerID, other.conf.Request.NetNS = "c2", second
			other.s = open(t, sc.k, second)
			if name == "macvlan" {
				other.query.Own.MAC = attach.OwnMAC(attach.Owner{ContainerID: "c2", IfName: "net1"})
			}
			other.before = other.observe(t, other.s)
			other.steps = attach.Plan(other.conf, other.before, attach.Addresses{Addrs: []netconf.Address{address("10.1.0.6/24")}}, "")
			if err := attach.Run(t.Context(), other.s, other.steps); err != nil {
				t.Fatal(err)
			}
			if err := other.home(t, other.s); err != nil {
				t.Fatal(err)
			}
			same(t, "state with the first pod only", withFirst, sc.k.Dump())
			if err := sc.home(t, sc.s); err != nil {
				t.Fatal(err)
			}
			same(t, "state after both", sc.start, sc.k.Dump())
		})
	}
}
