// SPDX-License-Identifier: Apache-2.0

package attachtest_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/attach"
)

// As seen on 7.3.4 (docs/decisions/0013): traits and what is stacked on a link stay over a move and over the end of a namespace, the
// latter with what is stacked; IPv6 settings are made anew, without duplicate address detection for a link without ARP.
func TestTraitsStayAndStackedLinksToo(t *testing.T) {
	t.Parallel()
	for _, dies := range []bool{false, true} {
		k, s := machine(t, attach.Exclusive)
		k.Give(fn(0), podA, "net1")
		fresh := observe(t, s, 0).Link
		if len(fresh.Uppers) > 0 || fresh.Traits.Flags != "multicast" {
			t.Fatalf("fresh: %+v", fresh)
		}
		traits := *fresh.Traits
		traits.Flags, traits.Group, traits.XDP = "noarp promisc", 42, "generic"
		k.SetTraits(fn(0), traits)
		k.Stack(podA, "net1", "macvlan", "mv0")
		k.Stack(podA, "net1", "vlan", "net1.5")
		var uppers []attach.Upper
		for _, u := range observe(t, s, 0).Link.Uppers {
			uppers = append(uppers, attach.Upper{Kind: u.Kind, Name: u.Name})
		}
		if diff := cmp.Diff([]attach.Upper{{Kind: "macvlan", Name: "mv0"}, {Kind: "vlan", Name: "net1.5"}}, uppers); diff != "" {
			t.Errorf("stacked (-want +got):\n%s", diff)
		}
		want := 2
		if dies {
			k.KillNetNS(podA)
			want = 0
		} else {
			k.Give(fn(0), "", "vf0")
		}
		got := observe(t, s, 0).Link
		if diff := cmp.Diff(&traits, got.Traits); diff != "" || len(got.Uppers) != want {
			t.Errorf("dies %t: stacked %v, traits (-want +got):\n%s", dies, got.Uppers, diff)
		}
		if dump := k.Dump(); !strings.Contains(dump, "/"+got.Name+" sysctl accept_dad -1\n") {
			t.Errorf("dies %t:\n%s", dies, dump)
		}
	}
}

func TestSetTraits(t *testing.T) {
	t.Parallel()
	k, s := machine(t, attach.Exclusive)
	start := k.Dump()
	fresh := k.Traits(fn(0))
	spoiled := fresh
	spoiled.Flags, spoiled.Alias, spoiled.XDP = "noarp", "mine", "native"
	step := attach.SetTraits{Link: at(attach.Host, "vf0"), From: spoiled, To: fresh}
	must(t, s, step)
	if k.Changes() != 0 || k.Dump() != start {
		t.Errorf("%d calls for nothing", k.Changes())
	}
	must(t, s, step.Reverse()) // which cannot give the program
	want := spoiled
	want.XDP = ""
	if got := k.Traits(fn(0)); got != want {
		t.Errorf("traits: %s", want.Changes(got))
	}
	k.SetTraits(fn(0), spoiled)
	k.HoldXDP(fn(0), syscall.EBUSY)
	if err := s.Apply(t.Context(), step); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("a program that is held: %v", err)
	}
	if got := fresh.Changes(k.Traits(fn(0))); got != "XDP none -> native" {
		t.Errorf("left: %s", got)
	}
	k.HoldXDP(fn(0), nil)
	must(t, s, step)
	if diff := cmp.Diff(start, k.Dump()); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
	step.Link.Name = "none"
	if err := s.Apply(t.Context(), step); !errors.Is(err, attach.ErrConflict) {
		t.Errorf("no such link: %v", err)
	}
}
