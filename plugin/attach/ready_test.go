// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"net/netip"
	"testing"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
)

func gid(index int, addr, kind, netdev string) attach.GID {
	return attach.GID{Index: index, Addr: netip.MustParseAddr(addr), Type: kind, Netdev: netdev}
}

const (
	v1 = "IB/RoCE v1"
	v2 = "RoCE v2"
)

// table is what an rdmasim port shows for one IPv4 address (lab/README.md fact 6), with further entries.
func table(more ...attach.GID) []attach.GID {
	return append([]attach.GID{gid(0, "fe80::54:ff:fe3b:1000", v1, "net1"), gid(1, "fe80::54:ff:fe3b:1000", v2, "net1")}, more...)
}

func TestReady(t *testing.T) {
	t.Parallel()
	const need = "port 1 of mlx5_4 has no RoCE v2 GID of "
	v4 := []string{"10.1.0.5/24"}
	dual := []string{"10.1.0.5/24", "fd00::5/64"}
	tests := []struct {
		name    string
		require netconf.Require
		addrs   []string
		gids    []attach.GID
		state   string
		size    int
		missing string
	}{
		{name: "active", addrs: v4, gids: table(gid(2, "::ffff:10.1.0.5", v1, "net1"), gid(3, "::ffff:10.1.0.5", v2, "net1")), state: "ACTIVE"},
		{name: "port down", addrs: v4, gids: table(gid(3, "::ffff:10.1.0.5", v2, "net1")), state: "DOWN", missing: "port 1 of mlx5_4 is DOWN"},
		{name: "port down, gid asked", require: netconf.RequireGID, addrs: v4, gids: table(gid(3, "::ffff:10.1.0.5", v2, "net1")), state: "DOWN"},
		{name: "nothing asked", require: netconf.RequireNo, addrs: v4, state: "DOWN"},
		{name: "no address", state: "DOWN"},
		{name: "no address, active asked", require: netconf.RequireActive, state: "DOWN", missing: "port 1 of mlx5_4 is DOWN"},
		{name: "no address, active", require: netconf.RequireActive, state: "ACTIVE"},
		{name: "v1 only", addrs: v4, gids: table(gid(2, "::ffff:10.1.0.5", v1, "net1")), state: "ACTIVE", missing: need + "10.1.0.5"},
		{name: "type refused", addrs: v4, gids: table(gid(2, "::ffff:10.1.0.5", "", "net1")), state: "ACTIVE", missing: need + "10.1.0.5"},
		{name: "another spelling of the type", addrs: v4, gids: table(gid(2, "::ffff:10.1.0.5", "RoCE V2", "")), state: "ACTIVE", missing: need + "10.1.0.5"},
		{name: "wrong address", addrs: v4, gids: table(gid(3, "::ffff:10.1.0.50", v2, "net1")), state: "ACTIVE", missing: need + "10.1.0.5"},
		{name: "link-local only", addrs: v4, gids: table(), state: "ACTIVE", missing: need + "10.1.0.5"},
		{name: "empty", addrs: v4, state: "DOWN", missing: need + "10.1.0.5; port 1 of mlx5_4 is DOWN"},
		{name: "full", addrs: v4, gids: table(), state: "ACTIVE", size: 2, missing: need + "10.1.0.5: GID table of mlx5_4 is full (2)"},
		{name: "full, and there", addrs: v4, gids: table(gid(2, "::ffff:10.1.0.5", v2, "net1")), state: "ACTIVE", size: 3},
		{name: "one of two", addrs: dual, gids: table(gid(3, "::ffff:10.1.0.5", v2, "net1")), state: "ACTIVE", missing: need + "fd00::5"},
		{name: "both", addrs: dual, gids: table(gid(3, "::ffff:10.1.0.5", v2, "net1"), gid(5, "fd00::5", v2, "net1")), state: "ACTIVE"},
		{
			name: "duplicates", addrs: v4, state: "ACTIVE",
			gids: table(gid(3, "::ffff:10.1.0.5", v2, "net1.100"), gid(7, "::ffff:10.1.0.5", v2, "net1")),
		},
		{
			name: "only another netdev's", addrs: v4, state: "ACTIVE", missing: need + "10.1.0.5",
			gids: table(gid(3, "::ffff:10.1.0.5", v2, "net1.100")),
		},
		{name: "netdev refused", addrs: v4, gids: table(gid(3, "::ffff:10.1.0.5", v2, "")), state: "ACTIVE"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			size := tt.size
			if size == 0 {
				size = 128
			}
			port := attach.Port{Device: "mlx5_4", Number: 1, State: tt.state, GIDs: tt.gids, TableSize: size}
			var addrs []netip.Prefix
			for _, a := range tt.addrs {
				addrs = append(addrs, netip.MustParsePrefix(a))
			}
			c := conf(func(c *netconf.Conf) { c.RDMA.Require = tt.require })
			missing, ok := attach.Ready(c, good(), addrs, []attach.Port{port})
			if missing != tt.missing || ok != (tt.missing == "") {
				t.Errorf("missing %q, ok %t; want %q", missing, ok, tt.missing)
			}
		})
	}
}

func TestReadyByDefault(t *testing.T) {
	t.Parallel()
	addrs := []netip.Prefix{netip.MustParsePrefix("10.1.0.5/24")}
	plain := good()
	plain.RDMA = nil
	if missing, ok := attach.Ready(conf(), good(), addrs, nil); ok || missing != "the pod has no RDMA device" {
		t.Errorf("with a device: missing %q, %t", missing, ok)
	}
	if missing, ok := attach.Ready(conf(), plain, addrs, nil); !ok {
		t.Errorf("without a device: missing %q", missing)
	}
	if missing, ok := attach.Ready(conf(func(c *netconf.Conf) { c.RDMA.SoftRoCE = true }), plain, addrs, nil); ok {
		t.Errorf("soft RoCE: missing %q", missing)
	}
	if missing, ok := attach.Ready(conf(func(c *netconf.Conf) { c.RDMA.Mode = netconf.RDMAOff }), good(), addrs, nil); !ok {
		t.Errorf("off: missing %q", missing)
	}
}

// On the fake, where GIDs come some looks after the address, as they do on a machine.
func TestReadyComesAfterTheAddress(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"exclusive", "exclusive-ipv6", "shared", "soft-roce-dual-mtu-up"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := plan(t, name)
			sc := play(t, p)
			sc.k.SetGIDDelay(3)
			if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
				t.Fatal(err)
			}
			if got := looks(t, sc); got != 4 {
				t.Errorf("ready after %d looks, want 4", got)
			}
		})
	}
}

func looks(t *testing.T, sc *scene) int {
	t.Helper()
	for n := 1; n < 10; n++ {
		now := sc.observe(t, sc.s)
		dev := now.RDMA
		if sc.soft != "" {
			dev = now.Soft
		}
		ports, err := sc.s.Ports(t.Context(), attach.Pod, dev.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := attach.Ready(sc.conf, sc.before, sc.addrs.Prefixes(), ports); ok {
			return n
		}
	}
	return -1
}

func TestReadyNeverComesWithoutCarrierOrSlot(t *testing.T) {
	t.Parallel()
	for name, setup := range map[string]func(*attachtest.Kernel){
		"carrier": func(k *attachtest.Kernel) { k.SetCarrier(vf(), false) },
		"slots":   func(k *attachtest.Kernel) { k.FillGIDs("mlx5_1", 128, 128) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := plan(t, "exclusive")
			p.setup = setup
			sc := play(t, p)
			if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
				t.Fatal(err)
			}
			if got := looks(t, sc); got != -1 {
				t.Errorf("ready after %d looks", got)
			}
		})
	}
}
