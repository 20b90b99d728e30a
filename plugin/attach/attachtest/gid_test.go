// SPDX-License-Identifier: Apache-2.0

package attachtest_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
)

// table gives the RoCE v2 entries of a device that are no default ones, as "index address netdev".
func table(t *testing.T, s *attachtest.Session, ns attach.NS, device string) []string {
	t.Helper()
	p, err := s.Ports(t.Context(), ns, device)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, g := range p[0].GIDs {
		if g.Type == attach.RoCEv2 && g.Index > 1 {
			out = append(out, fmt.Sprintf("%d %s %s", g.Index, g.Addr.Unmap(), g.Netdev))
		}
	}
	return out
}

// pods opens n pods with a link each, made by add, up, with address 10.0.0.N+1. As attach.Plan does, the address comes first.
func pods(t *testing.T, k *attachtest.Kernel, n int, sysctls bool, add func(*attachtest.Session) attach.AddLink) {
	t.Helper()
	for i := range n {
		path := fmt.Sprintf("/run/netns/p%d", i)
		k.AddNetNS(path)
		s := open(t, k, path)
		step := add(s)
		must(t, s, step)
		if sysctls {
			must(t, s, attach.SetSysctl{NS: attach.Pod, Key: "net/ipv6/conf/net1/addr_gen_mode", To: "1"})
		}
		addr := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 24)
		must(t, s, attach.AddAddr{Link: step.Link, Addr: addr}, attach.SetUp{Link: step.Link, To: true})
	}
}

// review.md lab 11: 40 macvlan pods on a table of 128: 32 get a GID, and nobody is told; without link-local addresses all do,
// and 82 entries are taken.
func TestGIDTableIsACapacity(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		noLocal       bool
		gids, entries int
	}{{false, 32, 128}, {true, 40, 82}} {
		k := attachtest.New(attach.Shared)
		k.AddPF(attachtest.PF{PCI: pf(0), Link: "ens1f0", RDMA: "mlx5_0"})
		k.FillGIDs("mlx5_0", 0, 128)
		pods(t, k, 40, tt.noLocal, func(s *attachtest.Session) attach.AddLink {
			return addMacvlan(t, s, "ens1f0", "net1", "")
		})
		s := open(t, k, "")
		p, err := s.Ports(t.Context(), attach.Host, "mlx5_0")
		if err != nil {
			t.Fatal(err)
		}
		gids := 0
		for _, row := range table(t, s, attach.Host, "mlx5_0") {
			if strings.Contains(row, " 10.0.0.") {
				gids++
			}
		}
		if gids != tt.gids || len(p[0].GIDs) != tt.entries {
			t.Errorf("addr_gen_mode none %t: %d pods with a GID, %d entries; the lab has %d and %d", tt.noLocal, gids, len(p[0].GIDs), tt.gids, tt.entries)
		}
	}
}

// review.md lab 2: slots are taken first come, freed ones again; two equal entries of two netdevs stand side by side, and
// every namespace sees all of them under the names that netdevs have in their own.
func TestGIDsOfPodsOnOnePF(t *testing.T) {
	t.Parallel()
	k, s := masters(t, attach.Shared)
	k.DelPodLink("", "ens1f0.100") // its link-local would be in the table
	attachIn := func(path, addr string) {
		k.AddNetNS(path)
		p := open(t, k, path)
		step := addMacvlan(t, p, "ens1f0", "net1", "")
		must(t, p, step, attach.AddAddr{Link: step.Link, Addr: prefix(addr)},
			attach.SetSysctl{NS: attach.Pod, Key: "net/ipv6/conf/net1/addr_gen_mode", To: "0"}, attach.SetUp{Link: step.Link, To: true})
	}
	v4 := func() []string {
		var out []string
		for _, row := range table(t, s, attach.Pod, "mlx5_0") {
			if strings.Contains(row, " 10.") {
				out = append(out, row)
			}
		}
		return out
	}
	steps := []struct {
		do   func()
		want []string
	}{
		{func() { attachIn("/c", "10.0.0.1/24"); attachIn("/d", "10.0.0.2/24") }, []string{"3 10.0.0.1 net1", "7 10.0.0.2 net1"}},
		{func() { k.KillNetNS("/c") }, []string{"7 10.0.0.2 net1"}},
		{func() { attachIn("/e", "10.0.0.3/24") }, []string{"3 10.0.0.3 net1", "7 10.0.0.2 net1"}},
		{func() { attachIn("/f", "10.0.0.2/24") }, []string{"3 10.0.0.3 net1", "7 10.0.0.2 net1", "11 10.0.0.2 net1"}},
		{func() { k.RenamePodLink("/e", "net1", "data") }, []string{"3 10.0.0.3 data", "7 10.0.0.2 net1", "11 10.0.0.2 net1"}},
	}
	for i, step := range steps {
		step.do()
		if diff := cmp.Diff(step.want, v4()); diff != "" {
			t.Errorf("%d (-want +got):\n%s", i, diff)
		}
	}
}

// review.md lab 10: VLANs, macvlans on them, ipvlans, and bonds, whose entries stand on every port's device whichever is
// active; in exclusive mode too, where the pod does not see the device [lab 1].
func TestGIDsThroughUppers(t *testing.T) {
	t.Parallel()
	for _, mode := range []attach.Mode{attach.Shared, attach.Exclusive} {
		k, s := masters(t, mode)
		k.AddBond("bond0", "ens1f0", "ens1f1")
		k.PutAddr("", "bond0", prefix("10.9.0.1/24"))
		net1, net2, net3 := addMacvlan(t, s, "ens1f0.100", "net1", ownMAC), addIpvlan(t, s, "bond0", "net2"), addIpvlan(t, s, "dummy0", "net3")
		must(t, s, net1, net2, net3)
		for i, l := range []attach.AddLink{net1, net2, net3} {
			must(t, s, attach.AddAddr{Link: l.Link, Addr: prefix(fmt.Sprintf("10.0.%d.1/24", i+1))})
		}
		v4 := func(device string) []string {
			var out []string
			for _, row := range table(t, s, attach.Host, device) {
				if _, rest, _ := strings.Cut(row, " "); strings.HasPrefix(rest, "10.") {
					out = append(out, rest)
				}
			}
			return out
		}
		if diff := cmp.Diff([]string{"10.9.0.1 bond0", "10.0.1.1 net1", "10.0.2.1 net2"}, v4("mlx5_0")); diff != "" {
			t.Errorf("%s, first port (-want +got):\n%s", mode, diff)
		}
		if diff := cmp.Diff([]string{"10.9.0.1 bond0", "10.0.2.1 net2"}, v4("mlx5_1")); diff != "" {
			t.Errorf("%s, second port (-want +got):\n%s", mode, diff)
		}
		if _, err := s.Ports(t.Context(), attach.Pod, "mlx5_0"); (err == nil) != (mode == attach.Shared) {
			t.Errorf("%s: the pod's view: %v", mode, err)
		}
		must(t, s, net1.Reverse(), attach.DelAddr{Link: net2.Link, Addr: prefix("10.0.2.1/24")})
		if diff := cmp.Diff([]string{"10.9.0.1 bond0"}, v4("mlx5_0")); diff != "" {
			t.Errorf("%s, without (-want +got):\n%s", mode, diff)
		}
		k.SetLink(busOf(0), "", 0, false) // review.md lab 7: GIDs outlive a PF that goes down; a VLAN on it is down too
		links := mustLinks(t, s)
		i := slices.IndexFunc(links, func(l attach.Candidate) bool { return l.Name == "ens1f0.100" })
		if f, err := s.Observe(t.Context(), attach.Query{Master: attach.Lower{Index: links[i].Index}}); err != nil || f.Master.Up {
			t.Errorf("VLAN on a PF that is down: %+v, error %v", f.Master, err)
		}
		if got := v4("mlx5_0"); len(got) != 1 {
			t.Errorf("%s, PF down: %q", mode, got)
		}
	}
}

// Seen on Linux 6.18: the link-local address comes with "up" unless addr_gen_mode is 1 by then, stays until "down" whatever is
// written later, and comes back when 0 is written to a link that is up. That of an ipvlan has its dev_id in it, since all on a
// master share a MAC (addrconf_ifid_eui48).
func TestLinkLocalGIDs(t *testing.T) {
	t.Parallel()
	k, s := masters(t, attach.Shared)
	k.DelPodLink("", "ens1f0.100")
	step := addMacvlan(t, s, "ens1f0", "net1", ownMAC)
	mode := func(to string) attach.Step {
		return attach.SetSysctl{NS: attach.Pod, Key: "net/ipv6/conf/net1/addr_gen_mode", To: to}
	}
	up, down := attach.SetUp{Link: step.Link, To: true}, attach.SetUp{Link: step.Link}
	local := []string{"3 fe80::11:22ff:fe33:4455 net1"}
	for i, tt := range []struct {
		step attach.Step
		want []string
	}{{step, nil}, {up, local}, {mode("1"), local}, {down, nil}, {up, nil}, {mode("0"), local}, {down, nil}, {mode("1"), nil}, {up, nil}} {
		must(t, s, tt.step)
		if diff := cmp.Diff(tt.want, table(t, s, attach.Pod, "mlx5_0")); diff != "" {
			t.Errorf("%d, after %s (-want +got):\n%s", i, tt.step, diff)
		}
	}
	before := k.Changes()
	must(t, s, mode("1"))
	must(t, s, addIpvlan(t, s, "ens1f1", "i1"), addIpvlan(t, s, "ens1f1", "i2"))
	must(t, s, attach.SetSysctl{NS: attach.Pod, Key: "net/ipv6/conf/i1/addr_gen_mode", To: "0"}) // as it is
	if got := k.Changes() - before; got != 2 {
		t.Errorf("%d calls", got)
	}
	must(t, s, attach.SetUp{Link: at(attach.Pod, "i1"), To: true}, attach.SetUp{Link: at(attach.Pod, "i2"), To: true})
	// MAC 02:54:00:01:01:00, its universal bit left as it is, with 0001 and 0002 in the middle.
	want := []string{"3 fe80::254:0:101:100 i1", "5 fe80::254:0:201:100 i2"}
	if diff := cmp.Diff(want, table(t, s, attach.Pod, "mlx5_1")); diff != "" {
		t.Errorf("ipvlans (-want +got):\n%s", diff)
	}
	k.DisableIPv6(podB)
	b := open(t, k, podB)
	must(t, b, addMacvlan(t, b, "ens1f0", "net1", ""), up)
	if got := table(t, b, attach.Pod, "mlx5_0"); got != nil {
		t.Errorf("without IPv6: %q", got)
	}
}
