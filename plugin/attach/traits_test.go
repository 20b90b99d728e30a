// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
)

// podTraits are all that a pod can change, changed.
func podTraits() attach.Traits {
	return attach.Traits{
		Flags: "allmulti debug noarp promisc", Alias: "a\nb", Group: 42, TxQueue: 7, LinkMode: "dormant", Broadcast: "01:02:03:04:05:06",
		GSO: 4096, GSOSegs: 3, GRO: 4097, GSOIPv4: 4098, GROIPv4: 4099, XDP: "generic",
	}
}

// traits are any.
func (d dice) traits() attach.Traits {
	return attach.Traits{
		Flags: pick(d, "multicast", "multicast promisc", "allmulti", ""), Alias: pick(d, "", "rail 0"), Group: uint32(d.IntN(2)),
		TxQueue: pick[uint32](d, 0, 1000), LinkMode: pick(d, "default", "dormant"), Broadcast: pick(d, "ff:ff:ff:ff:ff:ff", "01:02:03:04:05:06"),
		GSO: 65536, GSOSegs: 65535, GRO: pick[uint32](d, 1000, 65536), GSOIPv4: 65536, GROIPv4: 65536,
	}
}

// What a pod did to its link is put right at home, whether the link was brought there or came by itself; what the node's owner had
// done to it before stays.
func TestRestoreTraits(t *testing.T) {
	t.Parallel()
	home := "link 0000:3b:10.0 pod/net1 -> host/ens1f0v0, mtu 1500 -> 1500"
	for name, tt := range map[string]struct {
		before, pod func(*attach.Traits)
		want        []string // after the move
	}{
		"nothing": {},
		"promiscuous": {
			pod:  func(x *attach.Traits) { x.Flags = "multicast promisc" },
			want: []string{"set traits of host/ens1f0v0: flags multicast promisc -> multicast"},
		},
		"promiscuous before": {
			before: func(x *attach.Traits) { x.Flags, x.Alias = "multicast promisc", "monitor" },
			pod:    func(x *attach.Traits) { x.Flags, x.Alias = "", "" },
			want:   []string{`set traits of host/ens1f0v0: flags none -> multicast promisc, alias "" -> "monitor"`},
		},
		"without ARP": {
			pod: func(x *attach.Traits) { x.Flags = "multicast noarp" },
			want: []string{
				"set sysctl in host net/ipv6/conf/ens1f0v0/accept_dad = 1",
				"set traits of host/ens1f0v0: flags multicast noarp -> multicast",
			},
		},
		"everything": {
			pod: func(x *attach.Traits) { *x = podTraits() },
			want: []string{
				"set sysctl in host net/ipv6/conf/ens1f0v0/accept_dad = 1",
				`set traits of host/ens1f0v0: flags allmulti debug noarp promisc -> multicast, alias "a\nb" -> "", group 42 -> 0, ` +
					"transmit queue 7 -> 1000, link mode dormant -> default, broadcast 01:02:03:04:05:06 -> ff:ff:ff:ff:ff:ff, " +
					"GSO 4096 -> 65536, GSO segments 3 -> 65535, GRO 4097 -> 65536, GSO of IPv4 4098 -> 65536, GRO of IPv4 4099 -> 65536, " +
					"XDP generic -> none",
			},
		},
		"a program of the node's owner, replaced": {
			before: func(x *attach.Traits) { x.XDP = "native" },
			pod:    func(x *attach.Traits) { x.XDP = "generic" },
		},
	} {
		for _, dies := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", dies"}[dies], func(t *testing.T) {
				t.Parallel()
				p := plan(t, "exclusive-off")
				change := func(k *attachtest.Kernel, f func(*attach.Traits)) {
					if x := k.Traits(vf()); f != nil {
						f(&x)
						k.SetTraits(vf(), x)
					}
				}
				p.setup = func(k *attachtest.Kernel) { change(k, tt.before) }
				sc := play(t, p)
				if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
					t.Fatal(err)
				}
				change(sc.k, tt.pod)
				s, want := sc.s, append([]string{"move " + home}, tt.want...)
				if dies {
					sc.k.KillNetNS(podPath)
					s = open(t, sc.k, "")
					want[0] = strings.Replace(want[0], "pod/", "host/", 1)
				}
				got := lines(attach.Restore(recorded(t, sc.before), sc.observe(t, s)))
				if diff := cmp.Diff(strings.Join(want, "\n")+"\n", got); diff != "" {
					t.Errorf("steps (-want +got):\n%s", diff)
				}
				if err := sc.home(t, s); err != nil {
					t.Error(err)
				}
				settled(t, sc, s)
				if tt.before == nil {
					same(t, "state after Restore", without(sc.start, podPath), without(sc.k.Dump(), podPath))
				}
			})
		}
	}
}

// A record of a program that knew of no traits tells nothing of them, and an older kernel does not tell all.
func TestTraitsThatAreNotKnownStay(t *testing.T) {
	t.Parallel()
	sc := play(t, plan(t, "exclusive-off"))
	before := recorded(t, sc.before)
	now := recorded(t, sc.before)
	now.Link.Traits = new(podTraits())
	now.Link.Traits.XDP = ""
	known := new(attach.Traits{Flags: now.Link.Traits.Flags, Alias: "a\nb", Group: 42, TxQueue: 7})
	for name, was := range map[string]*attach.Traits{"none": nil, "those of an old kernel": known} {
		before.Link.Traits = was
		if steps := attach.Restore(before, now); len(steps) > 0 {
			t.Errorf("%s: %s", name, lines(steps))
		}
	}
	before.Link.Traits, now.Link.Traits = now.Link.Traits, known
	if steps := attach.Restore(before, now); len(steps) > 0 {
		t.Errorf("seen by an old kernel: %s", lines(steps))
	}
}

// A link with an MTU too small for IPv6 has no IPv6 settings to put right.
func TestTraitsOfALinkWithoutIPv6(t *testing.T) {
	t.Parallel()
	sc := play(t, plan(t, "exclusive-off"))
	before, now := recorded(t, sc.before), recorded(t, sc.before)
	before.Link.MTU, now.Link.MTU, now.Link.Traits.Flags = 1279, 1279, "multicast noarp"
	want := "set traits of host/ens1f0v0: flags multicast noarp -> multicast\n"
	if diff := cmp.Diff(want, lines(attach.Restore(before, now))); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}

// A program that a BPF link holds cannot be taken away; all else is put right all the same, and the program when it is let go.
func TestTraitsWithAProgramThatIsHeld(t *testing.T) {
	t.Parallel()
	sc := play(t, plan(t, "exclusive"))
	if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
		t.Fatal(err)
	}
	sc.k.SetTraits(vf(), podTraits())
	sc.k.HoldXDP(vf(), syscall.EBUSY)
	if err := sc.home(t, sc.s); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("error %v", err)
	}
	want := "set traits of host/ens1f0v0: XDP generic -> none\n"
	if diff := cmp.Diff(want, lines(attach.Restore(sc.before, sc.observe(t, sc.s)))); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	sc.k.HoldXDP(vf(), nil)
	if err := sc.home(t, sc.s); err != nil {
		t.Error(err)
	}
	same(t, "state after Restore", sc.start, sc.k.Dump())
	settled(t, sc, sc.s)
}

// A macvlan that a pod made on its VF would be on the next pod's, for as long as the first one's namespace lives; with that it dies.
func TestRestoreOfAStackedLink(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*scene)
		want   string
	}{
		"in the pod": {
			change: func(sc *scene) {
				sc.k.Stack(podPath, "net1", "vlan", "net1.5")
				sc.k.Stack(podPath, "net1.5", "macvlan", "up")
				sc.k.Stack(podPath, "net1", "macvlan", "mv0")
			},
			want: "del vlan pod/net1.5\ndel macvlan pod/mv0\nmove link 0000:3b:10.0 pod/net1 -> host/ens1f0v0, mtu 1500 -> 1500\n",
		},
		"on what is home": {
			change: func(sc *scene) {
				sc.k.Stack(podPath, "net1", "macvlan", "mv0")
				sc.k.Give(vf(), "", "ens1f0v0")
			},
			want: "del macvlan pod/mv0\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := play(t, plan(t, "exclusive-off"))
			if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
				t.Fatal(err)
			}
			tt.change(sc)
			if diff := cmp.Diff(tt.want, lines(attach.Restore(recorded(t, sc.before), sc.observe(t, sc.s)))); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			if err := sc.home(t, sc.s); err != nil {
				t.Error(err)
			}
			same(t, "state after Restore", sc.start, sc.k.Dump())
			settled(t, sc, sc.s)
		})
	}
}

// What was on the netdev at home already is another attachment's: a pod's macvlan on a VF that this one wanted to have whole.
func TestRestoreLeavesWhatWasOnTheLink(t *testing.T) {
	t.Parallel()
	p := plan(t, "exclusive-off")
	p.setup = func(k *attachtest.Kernel) { k.MakeMacvlan(podPath, "net7", "ens1f0v0") }
	sc := play(t, p)
	if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
		t.Fatal(err)
	}
	if err := sc.home(t, sc.s); err != nil {
		t.Error(err)
	}
	same(t, "state after Restore", sc.start, sc.k.Dump())
}
