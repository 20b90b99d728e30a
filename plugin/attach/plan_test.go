// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
)

var update = flag.Bool("update", false, "write the golden files anew")

func lines(steps []attach.Step) string {
	var b strings.Builder
	for _, s := range steps {
		b.WriteString(s.String() + "\n")
	}
	return b.String()
}

func TestPlanIsAsTheGoldenFilesSay(t *testing.T) {
	t.Parallel()
	for _, p := range slices.Concat(plans(), chains()) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("testdata", p.name+".golden")
			got := lines(play(t, p).steps)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("plan (-want +got), -update to accept:\n%s", diff)
			}
		})
	}
}

func TestEveryGoldenFileHasAPlan(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*.golden"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".golden")
		if !slices.ContainsFunc(slices.Concat(plans(), chains()), func(p planned) bool { return p.name == name }) {
			t.Errorf("%s belongs to no plan", f)
		}
	}
}

// What a pod must be like after ADD, said here once more and not by the planner.
func TestPlanBringsAboutWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	for _, p := range plans() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			sc := play(t, p)
			if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
				t.Fatal(err)
			}
			now := sc.observe(t, sc.s)
			if sc.before.Function.Userspace() {
				if now.Link != nil || len(now.PodLinks) != 1 {
					t.Errorf("a link: %v, in the pod: %v", now.Link, now.PodLinks)
				}
				return
			}
			want := link(sc)
			want.Index = now.Link.Index
			if diff := cmp.Diff(&want, now.Link, cmp.Comparer(samePrefixes)); diff != "" {
				t.Errorf("link (-want +got):\n%s", diff)
			}
			moved := p.moves
			if got := now.RDMA != nil && now.RDMA.NS == attach.Pod; got != moved {
				t.Errorf("RDMA device in the pod: %t, want %t", got, moved)
			}
			if got := attach.MovesRDMA(sc.steps); got != moved {
				t.Errorf("MovesRDMA: %t, want %t", got, moved)
			}
			if soft := now.Soft != nil && now.Soft.NS == attach.Pod; soft != (p.soft != "") {
				t.Errorf("soft RDMA device in the pod: %t", soft)
			}
			dump := sc.k.Dump()
			for _, r := range p.addrs.Routes {
				if !strings.Contains(dump, "route "+r.Dst.String()+" via ") {
					t.Errorf("no route to %s in\n%s", r.Dst, dump)
				}
			}
			if v4 := len(p.addrs.Addrs) > 0; v4 && regexp.MustCompile(`pod-a/net1 sysctl (accept_ra|autoconf) 1`).MatchString(dump) {
				t.Errorf("router advertisements are still heard:\n%s", dump)
			}
		})
	}
}

// link is what the pod must have.
func link(sc *scene) attach.Link {
	c := sc.conf
	want := attach.Link{
		Place: attach.Place{NS: attach.Pod, Name: "net1"}, Type: "ether", Kind: "device", MAC: c.MAC, MTU: 1500, Up: true,
		Addrs: sc.addrs.Prefixes(),
	}
	switch m := sc.before.Master; {
	case m == nil && want.MAC == "":
		want.MAC = sc.before.Link.MAC
	case m == nil:
	case c.Kind == netconf.KindIPVlan, c.Macvlan.Mode == netconf.MacvlanPassthru:
		want.Kind, want.MAC, want.MTU = string(c.Kind), m.MAC, m.MTU
	default:
		want.Kind, want.MTU = string(c.Kind), m.MTU
		if want.MAC == "" {
			want.MAC = ownMAC
		}
	}
	switch {
	case c.MTU.FromPF:
		want.MTU = 9000
	case c.MTU.Bytes != 0:
		want.MTU = c.MTU.Bytes
	}
	return want
}

func samePrefixes(a, b attach.Link) bool {
	slices.SortFunc(a.Addrs, func(x, y netip.Prefix) int { return x.Compare(y) })
	a.AltNames, b.AltNames = nil, nil
	return a.Place == b.Place && a.Index == b.Index && a.Type == b.Type && a.Kind == b.Kind && a.MAC == b.MAC && a.MTU == b.MTU && a.Up == b.Up &&
		slices.Equal(a.Addrs, b.Addrs) && len(a.InUse) == len(b.InUse)
}

// review.md 1: taking a device that is not the claimed function's takes RDMA from the host or from another pod.
func TestNoPlanMovesAForeignRDMADevice(t *testing.T) {
	t.Parallel()
	for _, p := range slices.Concat(plans(), chains()) {
		for _, mode := range []attach.Mode{attach.Exclusive, attach.Shared, attach.NoRDMA} {
			for _, rdma := range []netconf.RDMAMode{netconf.RDMAAuto, netconf.RDMAMove, netconf.RDMAShare, netconf.RDMAOff} {
				for _, soft := range []bool{false, true} {
					sc := play(t, p)
					c, f := p.conf, sc.before
					c.RDMA.Mode, c.RDMA.SoftRoCE, f.Mode = rdma, soft, mode
					for _, s := range attach.Plan(c, f, p.addrs, "pf0123456789") {
						m, ok := s.(attach.MoveRDMA)
						own := ok && f.RDMA != nil && m.Soft == "" && m.Index == f.RDMA.Index && m.GUID == f.RDMA.NodeGUID
						made := ok && soft && m.Soft == "pf0123456789"
						if ok && !own && !made {
							t.Errorf("%s, %s, %s, soft %t: plan holds %q", p.name, mode, rdma, soft, s)
						}
						if own && (mode != attach.Exclusive || rdma == netconf.RDMAShare || rdma == netconf.RDMAOff) {
							t.Errorf("%s, %s, %s, soft %t: plan moves the device", p.name, mode, rdma, soft)
						}
					}
				}
			}
		}
	}
}

func TestPlanOfAFunctionWithoutNetdevIsEmpty(t *testing.T) {
	t.Parallel()
	if steps := attach.Plan(conf(), attach.Facts{}, attach.Addresses{}, ""); len(steps) != 0 {
		t.Errorf("steps %v", steps)
	}
}

// An orphan of the same name may sit on another netdev.
func TestPlanReplacesAnOrphanedSoftDevice(t *testing.T) {
	t.Parallel()
	p := plans()[slices.IndexFunc(plans(), func(p planned) bool { return p.name == "soft-roce" })]
	sc := play(t, p)
	if err := sc.s.Apply(t.Context(), attach.AddSoftRoCE{Name: p.soft, Link: attach.Place{NS: attach.Host, Name: "ens1f0v1"}}); err != nil {
		t.Fatal(err)
	}
	f := observe(t, sc.s, plainVF(), p.soft)
	if err := attach.Run(t.Context(), sc.s, attach.Plan(p.conf, f, p.addrs, p.soft)); err != nil {
		t.Fatal(err)
	}
	if want := "rdma " + podPath + "/" + p.soft; strings.Count(sc.k.Dump(), p.soft+" index") != 1 || !strings.Contains(sc.k.Dump(), want) {
		t.Errorf("want one device, %s, in\n%s", want, sc.k.Dump())
	}
}

func TestSoftName(t *testing.T) {
	t.Parallel()
	const want = "pfca3ed83f20" // echo -n c1/net1 | sha256sum
	if got := attach.SoftName(attach.Owner{ContainerID: "c1", IfName: "net1"}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAddressesHas(t *testing.T) {
	t.Parallel()
	a := attach.Addresses{Addrs: []netconf.Address{address("10.1.0.5/24"), address("fd00::5/64")}}
	for addr, want := range map[string]bool{
		"10.1.0.5": true, "::ffff:10.1.0.5": true, "fd00::5": true, "10.1.0.6": false, "fe80::5": false,
	} {
		if got := a.Has(netip.MustParseAddr(addr)); got != want {
			t.Errorf("Has(%s) = %t", addr, got)
		}
	}
	if attach.MovesRDMA(nil) || (attach.Addresses{}).Prefixes() != nil {
		t.Error("nothing has something")
	}
}
