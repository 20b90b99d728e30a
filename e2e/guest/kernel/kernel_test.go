// SPDX-License-Identifier: Apache-2.0

//go:build lab

// Package kernel_test holds plugin/kernel and rdmans to the real kernel, in exclusive mode: what they see, what they change, and
// what the kernel does by itself when a namespace dies or a move fails half done.
package kernel_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/podfabric/podfabric/e2e/guest/node"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/kernel"
	"github.com/podfabric/podfabric/plugin/link"
	"github.com/podfabric/podfabric/rdmans"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// The last two VFs of the NIC have no RDMA device, for soft RoCE.
//
//lab:boot pfs=1 vfs=6 mode=exclusive seconds=900 rdmasim=0000:01:00.0,0000:01:10.0,0000:01:10.2,0000:01:10.4,0000:01:10.6

func init() { node.Main() }

func open(t *testing.T, ns *node.NS) *kernel.Session {
	t.Helper()
	path := ""
	if ns != nil {
		path = ns.Path
	}
	s, err := kernel.New().Open(t.Context(), path)
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func addr(t *testing.T, s string) pci.Addr {
	t.Helper()
	a, err := pci.Parse(s)
	must(t, err)
	return a
}

func observe(t *testing.T, s *kernel.Session, a pci.Addr) attach.Facts {
	t.Helper()
	f, err := s.Observe(t.Context(), attach.Query{Device: bus.PCI(a)})
	must(t, err)
	return f
}

// apply applies each step twice: the second time there is nothing to do, and that is success too.
func apply(t *testing.T, s *kernel.Session, steps ...attach.Step) {
	t.Helper()
	for _, step := range steps {
		for range 2 {
			if err := s.Apply(t.Context(), step); err != nil {
				t.Fatalf("%s: %v", step, err)
			}
		}
	}
}

func snapshot(t *testing.T) kernel.Snapshot {
	t.Helper()
	snap, err := kernel.New().Snapshot(t.Context())
	must(t, err)
	return snap
}

// in is the way into a pod for a function whose facts are known.
func in(f attach.Facts) (attach.MoveLink, attach.MoveRDMA) {
	link := attach.MoveLink{Device: f.Function.ID, From: f.Link.Place, MTU: [2]int{f.Link.MTU, 1400}}
	link.To = attach.Place{NS: attach.Pod, Name: "net1"}
	rdma := attach.MoveRDMA{Index: f.RDMA.Index, GUID: f.RDMA.NodeGUID, Name: f.RDMA.Name, From: attach.Host, To: attach.Pod}
	return link, rdma
}

// A link gets another index in every namespace; all else must come back.
var facts = cmp.Options{cmpopts.IgnoreFields(attach.Link{}, "Index"), cmpopts.EquateEmpty()}

// inodeOf asks stat(1) for the folder of a function.
func inodeOf(t *testing.T, function string) uint64 {
	t.Helper()
	inode, err := strconv.ParseUint(strings.TrimSpace(node.Run(t, "stat", "-L", "-c", "%i", "/sys/bus/pci/devices/"+function)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return inode
}

func TestMoveAndReturn(t *testing.T) {
	ns := node.NewNS(t)
	vf := node.VF(t, 1, 0)
	s, a := open(t, ns), addr(t, vf)
	machine, before := snapshot(t), observe(t, s, a)
	want := attach.Function{
		ID: bus.PCI(a), Exists: true, Driver: "igbvf", VF: true, PF: addr(t, node.PF(t, 1)), PFLink: node.Netdev(node.PF(t, 1)), PFMTU: 1500, NUMA: before.Function.NUMA,
		Inode: inodeOf(t, vf),
	}
	if diff := cmp.Diff(want, before.Function); diff != "" {
		t.Errorf("function (-want +got):\n%s", diff)
	}
	devices := node.RDMA(t, nil)
	i := slices.IndexFunc(devices, func(d node.RDMADevice) bool { return d.Name == node.IBDev(vf) })
	if r := before.RDMA; r == nil || i < 0 || r.NodeGUID != devices[i].GUID || int(r.Index) != devices[i].Index || r.NS != attach.Host ||
		r.Ports != 1 || r.LinkLayer != "Ethernet" || r.Uverbs < 0 || len(r.Users) != 0 {
		t.Fatalf("RDMA device at home: %+v, rdma says %+v", r, devices)
	}

	link, rdma := in(before)
	at := attach.Place{NS: attach.Pod, Name: "net1"}
	v4, v6 := netip.MustParsePrefix("10.9.0.1/24"), netip.MustParsePrefix("fd00:9::1/64")
	steps := []attach.Step{
		link,
		attach.SetSysctl{NS: attach.Pod, Key: "net/ipv6/conf/net1/accept_ra", From: "1", To: "0"},
		rdma,
		attach.AddAddr{Link: at, Addr: v4},
		attach.AddAddr{Link: at, Addr: v6},
		attach.SetUp{Link: at, To: true},
		attach.AddRoute{Link: at, Dst: netip.MustParsePrefix("10.10.0.0/16"), Via: netip.MustParseAddr("10.9.0.254")},
	}
	apply(t, s, steps...)
	there := observe(t, s, a)
	if l := there.Link; l == nil || l.Place != at || l.MTU != 1400 || !l.Up || l.MAC != before.Link.MAC || len(l.InUse) != 0 {
		t.Errorf("link in the pod: %+v", l)
	}
	wantRDMA := *before.RDMA
	wantRDMA.NS = attach.Pod
	if diff := cmp.Diff(&wantRDMA, there.RDMA); diff != "" {
		t.Errorf("RDMA device in the pod (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"lo", "net1"}, there.PodLinks); diff != "" {
		t.Errorf("links of the pod (-want +got):\n%s", diff)
	}
	if hostOnly := observe(t, open(t, nil), a); hostOnly.Link != nil || hostOnly.RDMA == nil || hostOnly.RDMA.NS != attach.Elsewhere ||
		hostOnly.RDMA.Name != before.RDMA.Name || hostOnly.RDMA.Uverbs != before.RDMA.Uverbs {
		t.Errorf("seen without the pod: link %+v, RDMA %+v", hostOnly.Link, hostOnly.RDMA)
	}
	var ports []attach.Port
	node.Wait(t, "GIDs of both addresses and an active port", func() bool {
		var err error
		ports, err = s.Ports(t.Context(), attach.Pod, there.RDMA.Name)
		must(t, err)
		return len(ports) == 1 && ports[0].State == "ACTIVE" && hasGID(ports[0], "::ffff:10.9.0.1") && hasGID(ports[0], "fd00:9::1")
	})
	if p := ports[0]; p.RateMbps != 400000 || p.TableSize != 128 || p.LinkLayer != "Ethernet" || p.Number != 1 {
		t.Errorf("port %+v", p)
	}
	t.Logf("in the pod: %+v, %d GIDs: %+v", *there.RDMA, len(ports[0].GIDs), ports[0].GIDs)

	for _, step := range slices.Backward(steps) {
		if back := step.Reverse(); back != nil {
			apply(t, s, back)
		}
	}
	if diff := cmp.Diff(before, observe(t, s, a), facts); diff != "" {
		t.Errorf("facts after the return (-before +after):\n%s", diff)
	}
	if diff := kernel.Diff(machine, snapshot(t)); len(diff) != 0 {
		t.Errorf("left behind:\n%s", strings.Join(diff, "\n"))
	}
}

func hasGID(p attach.Port, gid string) bool {
	return slices.ContainsFunc(p.GIDs, func(g attach.GID) bool {
		return g.Addr == netip.MustParseAddr(gid) && g.Type == attach.RoCEv2 && g.Netdev == "net1"
	})
}

func TestMoveLinkThatFailsHalfDone(t *testing.T) {
	for name, tt := range map[string]struct {
		mtu   int
		taken bool
		want  error
	}{
		"name taken":    {taken: true, mtu: 1400, want: link.ErrNameTaken},
		"MTU too large": {mtu: 100000, want: link.ErrRefused},
	} {
		t.Run(name, func(t *testing.T) {
			ns := node.NewNS(t)
			if tt.taken {
				ns.Run(t, "ip", "link", "add", "net1", "type", "bridge")
			}
			s, a := open(t, ns), addr(t, node.VF(t, 1, 0))
			machine, before := snapshot(t), observe(t, s, a)
			step, _ := in(before)
			step.MTU[1] = tt.mtu
			err := s.Apply(t.Context(), step)
			if !errors.Is(err, tt.want) {
				t.Fatalf("error %v, want %v", err, tt.want)
			}
			t.Log(err)
			half := observe(t, s, a)
			if half.Link == nil || half.Link.NS != attach.Pod {
				t.Errorf("after the failure the link is %+v, want it in the pod", half.Link)
			}
			apply(t, s, step.Reverse())
			if diff := kernel.Diff(machine, snapshot(t)); len(diff) != 0 {
				t.Errorf("left behind:\n%s", strings.Join(diff, "\n"))
			}
		})
	}
}

func TestNamespaceDiesWithTheNameTaken(t *testing.T) {
	ns := node.NewNS(t)
	vf, other := node.VF(t, 1, 0), node.VF(t, 1, 1)
	a := addr(t, vf)
	s, err := kernel.New().Open(t.Context(), ns.Path)
	must(t, err)
	machine, before, otherBefore := snapshot(t), observe(t, s, a), observe(t, s, addr(t, other))
	moveLink, moveRDMA := in(before)
	apply(t, s, moveLink, moveRDMA)
	apply(t, s, attach.RenameRDMA{Index: otherBefore.RDMA.Index, NS: attach.Host, From: otherBefore.RDMA.Name, To: before.RDMA.Name})
	must(t, s.Close())
	ns.Kill(t)

	host := open(t, nil)
	var after attach.Facts
	node.Wait(t, "both devices at home", func() bool {
		after = observe(t, host, a)
		return after.Link != nil && after.RDMA != nil && after.RDMA.NS == attach.Host
	})
	t.Logf("came home as link %s and RDMA device %s", after.Link.Name, after.RDMA.Name)
	if after.Link.Name != "net1" || !strings.HasPrefix(after.RDMA.Name, "ibdev") || after.RDMA.Index != before.RDMA.Index ||
		after.RDMA.NodeGUID != before.RDMA.NodeGUID {
		t.Errorf("link %+v, RDMA %+v", after.Link, after.RDMA)
	}
	taken := attach.RenameRDMA{Index: after.RDMA.Index, NS: attach.Host, From: after.RDMA.Name, To: before.RDMA.Name}
	if err := host.Apply(t.Context(), taken); !errors.Is(err, rdmans.ErrNameTaken) {
		t.Errorf("rename onto a taken name: %v", err)
	}
	apply(t, host,
		attach.RenameRDMA{Index: otherBefore.RDMA.Index, NS: attach.Host, From: before.RDMA.Name, To: otherBefore.RDMA.Name},
		taken,
		attach.MoveLink{Device: bus.PCI(a), From: after.Link.Place, To: before.Link.Place, MTU: [2]int{after.Link.MTU, before.Link.MTU}},
	)
	diff := slices.DeleteFunc(kernel.Diff(machine, snapshot(t)), func(l string) bool { return strings.Contains(l, ns.Path) })
	if len(diff) != 0 {
		t.Errorf("left behind:\n%s", strings.Join(diff, "\n"))
	}
}

func TestOpenTellsWhatIsWrongWithAPath(t *testing.T) {
	file := filepath.Join(t.TempDir(), "leftover")
	must(t, os.WriteFile(file, nil, 0o600))
	for path, want := range map[string]error{
		file: attach.ErrNoNetNS, "/run/netns/none": attach.ErrNoNetNS, file + "/below": attach.ErrNoNetNS, "/proc/self/ns/mnt": attach.ErrNoNetNS,
		"/proc/self/ns/net": attach.ErrOwnNetNS, "/proc/1/ns/net": attach.ErrOwnNetNS,
	} {
		s, err := kernel.New().Open(t.Context(), path)
		if !errors.Is(err, want) {
			t.Errorf("open %s: %v, want %v", path, err, want)
		}
		if s != nil || strings.Contains(err.Error(), "no such file or directory") {
			t.Errorf("open %s: %v, %v", path, s, err)
		}
	}
}

func TestConflicts(t *testing.T) {
	ns := node.NewNS(t)
	s, a := open(t, ns), addr(t, node.VF(t, 1, 0))
	f := observe(t, s, a)
	pod := attach.Place{NS: attach.Pod, Name: "net1"}
	for _, step := range []attach.Step{
		attach.MoveLink{Device: bus.PCI(addr(t, "0000:01:1f.7")), From: f.Link.Place, To: pod},
		attach.MoveRDMA{Index: 4711, GUID: f.RDMA.NodeGUID, From: attach.Host, To: attach.Pod},
		attach.MoveRDMA{Index: f.RDMA.Index, GUID: "0000:0000:0000:0001", From: attach.Host, To: attach.Pod},
		attach.RenameRDMA{Index: 4711, NS: attach.Host, From: "a", To: "b"},
		attach.AddAddr{Link: pod, Addr: netip.MustParsePrefix("10.0.0.1/8")},
		attach.SetUp{Link: pod, To: true},
		attach.AddSoftRoCE{Name: "pfx", Link: pod},
	} {
		if err := s.Apply(t.Context(), step); !errors.Is(err, attach.ErrConflict) {
			t.Errorf("%s: %v, want a conflict", step, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Apply(ctx, attach.SetUp{Link: f.Link.Place, To: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

// A device that moves while it is looked at never makes Observe fail, nor is it seen with another index.
func TestObserveWhileDevicesMove(t *testing.T) {
	ns := node.NewNS(t)
	s, mover, a := open(t, ns), open(t, ns), addr(t, node.VF(t, 1, 2))
	before := observe(t, s, a)
	moveLink, moveRDMA := in(before)
	// The mover makes one step for each look, at the same time as it.
	look, done := make(chan struct{}), make(chan error)
	go func() {
		steps := []attach.Step{moveLink, moveRDMA, moveRDMA.Reverse(), moveLink.Reverse()}
		var err error
		for i := 0; ; i++ {
			if _, more := <-look; !more && i%len(steps) == 0 {
				done <- err
				return
			}
			err = errors.Join(err, mover.Apply(t.Context(), steps[i%len(steps)]))
		}
	}()
	seen := map[string]int{}
	for range 40 {
		look <- struct{}{}
		f := observe(t, s, a)
		if r := f.RDMA; r == nil {
			seen["nowhere"]++
		} else {
			seen[string(r.NS)]++
			if r.NS != attach.Elsewhere && (r.Index != before.RDMA.Index || r.NodeGUID != before.RDMA.NodeGUID) {
				t.Errorf("saw another device: %+v", r)
			}
		}
	}
	close(look)
	must(t, <-done)
	t.Logf("the RDMA device was seen %v times", seen)
	if seen["host"] == 0 || seen["pod"] == 0 {
		t.Errorf("seen only %v", seen)
	}
	if diff := cmp.Diff(before, observe(t, s, a), facts); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}
