// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/kernel"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// The main thread stays where it is: a thread that was sent elsewhere and not brought back must not be the process's own.
func init() { runtime.LockOSThread() }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pod is a network namespace with one interface net1.
type pod struct {
	ns     ns.NetNS
	path   string
	kernel *kernel.Kernel
}

func newPod(t *testing.T) pod {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes network namespaces: run it as root")
	}
	n, err := ns.TempNetNS()
	must(t, err)
	dir := t.TempDir()
	p := pod{ns: n, path: filepath.Join(dir, "pod"), kernel: kernel.New()}
	p.kernel.RunNetns = dir
	must(t, os.WriteFile(p.path, nil, 0o600))
	must(t, unix.Mount(fmt.Sprintf("/proc/self/fd/%d", n.Fd()), p.path, "", unix.MS_BIND, ""))
	t.Cleanup(func() {
		must(t, unix.Unmount(p.path, unix.MNT_DETACH))
		must(t, n.Close())
	})
	p.ip(t, "link", "add", "net1", "type", "veth", "peer", "name", "peer1")
	// Addresses that the kernel makes up when the other end comes up would be changes of nobody's making.
	p.ip(t, "link", "set", "peer1", "addrgenmode", "none", "up")
	return p
}

// do runs f on a thread in the pod.
func (p pod) do(f func() error) error { return p.ns.Do(func(ns.NetNS) error { return f() }) }

// ip runs ip(8) in the pod.
func (p pod) ip(t *testing.T, args ...string) {
	t.Helper()
	must(t, p.do(func() error {
		out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput()
		if err != nil {
			t.Errorf("ip %s: %s", strings.Join(args, " "), out)
		}
		return err
	}))
}

// lines is the pod's part of a snapshot. The rest of the machine may change meanwhile: other tests run on it.
func (p pod) lines(t *testing.T) string {
	t.Helper()
	snap, err := p.kernel.Snapshot(t.Context())
	must(t, err)
	snap = kernel.Snapshot{NetNS: map[string]kernel.NetNSState{"pod": snap.NetNS[p.path]}}
	return snap.String()
}

func (p pod) open(t *testing.T) *kernel.Session {
	t.Helper()
	s, err := p.kernel.Open(t.Context(), p.path)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func TestSnapshotSeesEveryChange(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	sysctl := func(key, value string) func() {
		return func() {
			must(t, p.do(func() error { return os.WriteFile("/proc/sys/net/"+key, []byte(value), 0) }))
		}
	}
	ip := func(args string) func() { return func() { p.ip(t, strings.Fields(args)...) } }
	for _, c := range []struct {
		name     string
		do, undo func()
	}{
		{"a link", ip("link add br0 type bridge"), ip("link del br0")},
		{"MTU", ip("link set net1 mtu 1400"), ip("link set net1 mtu 1500")},
		{"alternative name", ip("link property add dev net1 altname other"), ip("link property del dev net1 altname other")},
		{"a macvlan", ip("link add mv0 link net1 type macvlan mode bridge"), ip("link del mv0")},
		{"address generation", ip("link set net1 addrgenmode none"), ip("link set net1 addrgenmode eui64")},
		{"IPv4 sysctl", sysctl("ipv4/conf/net1/arp_ignore", "1"), sysctl("ipv4/conf/net1/arp_ignore", "0")},
		{"IPv6 sysctl", sysctl("ipv6/conf/net1/accept_ra", "0"), sysctl("ipv6/conf/net1/accept_ra", "1")},
		{"state", ip("link set peer1 down"), ip("link set peer1 up")},
		{"address", ip("addr add 10.0.0.1/32 dev net1"), ip("addr del 10.0.0.1/32 dev net1")},
		{"route", ip("route add blackhole 10.9.0.0/16"), ip("route del blackhole 10.9.0.0/16")},
		{"rule", ip("rule add from 10.0.0.1 table 100"), ip("rule del from 10.0.0.1 table 100")},
		{"MAC", ip("link set peer1 address 02:00:00:00:00:01"), ip("link set peer1 address 02:00:00:00:00:02")},
	} {
		if c.name == "MAC" {
			c.undo()
		}
		before := p.lines(t)
		c.do()
		if diff := cmp.Diff(before, p.lines(t)); diff == "" {
			t.Errorf("%s: the change is not seen", c.name)
		}
		c.undo()
		if diff := cmp.Diff(before, p.lines(t)); diff != "" {
			t.Errorf("%s: not as before after it was undone (-before +after):\n%s", c.name, diff)
		}
	}
}

// Each step is applied twice, and then its reverse twice: the second time there is nothing to do.
func TestStepsEnsure(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	s := p.open(t)
	at := attach.Place{NS: attach.Pod, Name: "net1"}
	fresh := attach.Traits{
		Flags: "multicast", TxQueue: 1000, LinkMode: "default", Broadcast: "ff:ff:ff:ff:ff:ff", GSO: 65536, GSOSegs: 65535, GRO: 65536,
		GSOIPv4: 65536, GROIPv4: 65536,
	}
	other := attach.Traits{
		Flags: "allmulti debug promisc", Alias: "rail 0", Group: 42, TxQueue: 7, LinkMode: "dormant", Broadcast: "01:02:03:04:05:06", GSO: 4096, GSOSegs: 3,
		GRO: 4097, GSOIPv4: 4098, GROIPv4: 4099,
	}
	steps := []attach.Step{
		attach.SetMAC{Link: attach.Place{NS: attach.Pod, Name: "peer1"}, From: "02:00:00:00:00:02", To: "02:00:00:00:00:01"},
		attach.SetAltName{Link: attach.Place{NS: attach.Pod, Name: "peer1"}, Name: "rail0", To: true},
		attach.SetTraits{Link: at, From: fresh, To: other},
		attach.SetSysctl{NS: attach.Pod, Key: "net/ipv6/conf/net1/accept_ra", From: "1", To: "0"},
		attach.AddAddr{Link: at, Addr: netip.MustParsePrefix("10.1.0.1/24")},
		attach.AddAddr{Link: at, Addr: netip.MustParsePrefix("fd00:1::1/64")},
		attach.SetUp{Link: at, To: true},
		attach.AddRoute{Link: at, Dst: netip.MustParsePrefix("10.2.0.0/16"), Via: netip.MustParseAddr("10.1.0.254")},
		attach.AddRoute{Link: at, Dst: netip.MustParsePrefix("fd00:2::/48"), Via: netip.MustParseAddr("fd00:1::fe")},
		attach.AddRoute{Link: at, Dst: netip.MustParsePrefix("10.3.0.0/16")},
	}
	must(t, s.Apply(t.Context(), steps[0].Reverse()))
	before := p.lines(t)
	for _, step := range steps {
		was := p.lines(t)
		for range 2 {
			if err := s.Apply(t.Context(), step); err != nil {
				t.Fatalf("%s: %v", step, err)
			}
		}
		if was == p.lines(t) {
			t.Errorf("%s: nothing changed", step)
		}
	}
	for _, step := range slices.Backward(steps) {
		for range 2 {
			if err := s.Apply(t.Context(), step.Reverse()); err != nil {
				t.Fatalf("%s: %v", step.Reverse(), err)
			}
		}
	}
	if diff := cmp.Diff(before, p.lines(t)); diff != "" {
		t.Errorf("left behind (-before +after):\n%s", diff)
	}
}

func TestStepsOnWhatIsNotThere(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	s := p.open(t)
	none := attach.Place{NS: attach.Pod, Name: "none"}
	prefix := netip.MustParsePrefix("10.1.0.1/24")
	for _, step := range []attach.Step{
		attach.SetUp{Link: none, To: true},
		attach.SetMAC{Link: none, To: "02:00:00:00:00:01"},
		attach.SetAltName{Link: none, Name: "rail0"},
		attach.SetTraits{Link: none, To: attach.Traits{Group: 1}},
		attach.AddAddr{Link: none, Addr: prefix},
		attach.AddRoute{Link: none, Dst: prefix},
		attach.AddAddr{Link: attach.Place{NS: attach.Elsewhere, Name: "net1"}, Addr: prefix},
		attach.MoveLink{Device: bus.PCI(pci.Addr{Domain: 0xffff}), From: none, To: attach.Place{NS: attach.Host, Name: "eth9"}},
	} {
		if err := s.Apply(t.Context(), step); !errors.Is(err, attach.ErrConflict) {
			t.Errorf("%s: %v, want a conflict", step, err)
		}
	}
	for _, step := range []attach.Step{attach.DelAddr{Link: none, Addr: prefix}, attach.DelRoute{Link: none, Dst: prefix}} {
		must(t, s.Apply(t.Context(), step))
	}
	err := s.Apply(t.Context(), attach.SetSysctl{NS: attach.Pod, Key: "net/ipv6/conf/none/accept_ra", To: "0"})
	if err == nil || strings.Contains(err.Error(), "no such file or directory") {
		t.Errorf("sysctl of nothing: %v", err)
	}
}

func TestObserveWithoutADevice(t *testing.T) {
	t.Parallel()
	p := newPod(t)
	s := p.open(t)
	f, err := s.Observe(t.Context(), attach.Query{Device: bus.PCI(pci.Addr{Domain: 0xffff}), Soft: "pf0000000000"})
	must(t, err)
	if f.Function.Exists || f.Link != nil || f.RDMA != nil || f.Soft != nil {
		t.Errorf("%+v", f)
	}
	if diff := cmp.Diff([]string{"lo", "net1", "peer1"}, f.PodLinks); diff != "" {
		t.Errorf("links of the pod (-want +got):\n%s", diff)
	}
	if got := s.PodNS(); got.Path != p.path || got.Ino == 0 {
		t.Errorf("pod %+v", got)
	}
	host, err := p.kernel.Open(t.Context(), "")
	must(t, err)
	if !host.PodNS().IsZero() {
		t.Errorf("pod of a session without one: %+v", host.PodNS())
	}
	must(t, host.Close())
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "leftover")
	must(t, os.WriteFile(file, nil, 0o600))
	for path, want := range map[string]error{
		file: attach.ErrNoNetNS, "/run/netns/none": attach.ErrNoNetNS, "/proc/self/ns/net": attach.ErrOwnNetNS,
	} {
		s, err := kernel.New().Open(t.Context(), path)
		if !errors.Is(err, want) || s != nil || strings.Contains(err.Error(), "no such file or directory") {
			t.Errorf("%s: %v, %v, want %v", path, s, err, want)
		}
	}
}
