// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/kernel"
	"github.com/podfabric/podfabric/plugin/link"
)

// atNet2 is what most tests here make.
func atNet2() attach.Place { return attach.Place{NS: attach.Pod, Name: "net2"} }

// Each mode, as ip(8) shows it.
func TestAddLinkOnAMaster(t *testing.T) {
	const mac = "02:11:22:33:44:55"
	on := master(t, "pfmake0")
	home(t, "link set pfmake0 mtu 1450 up", "")
	tests := map[string]struct {
		step attach.AddLink
		mtu  int
		mode string
		bc   int
	}{
		"bridge":   {step: attach.AddLink{Kind: "macvlan", Master: on, Mode: "bridge", MAC: mac}, mtu: 1450, mode: "bridge", bc: 1000},
		"private":  {step: attach.AddLink{Kind: "macvlan", Master: on, Mode: "private", MAC: mac, MTU: 1300}, mtu: 1300, mode: "private", bc: 1000},
		"vepa":     {step: attach.AddLink{Kind: "macvlan", Master: on, Mode: "vepa", MAC: mac, BCQueueLen: 2000}, mtu: 1450, mode: "vepa", bc: 2000},
		"passthru": {step: attach.AddLink{Kind: "macvlan", Master: on, Mode: "passthru"}, mtu: 1450, mode: "passthru", bc: 1000},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPod(t)
			s := p.open(t)
			tt.step.Link = atNet2()
			before, atHome := p.lines(t), homeLines(t)
			for range 2 {
				must(t, s.Apply(t.Context(), tt.step))
			}
			got := shown(t, &p)["net2"]
			wantMAC := tt.step.MAC
			if wantMAC == "" {
				wantMAC = shown(t, nil)[tt.step.Master.Name].MAC
			}
			if got.Detail.Kind != tt.step.Kind || got.Detail.Data.Mode != tt.mode || got.MTU != tt.mtu || got.MAC != wantMAC ||
				got.LowerIndex != tt.step.Master.Index || got.Detail.Data.BCQueueLen != tt.bc {
				t.Errorf("ip shows %+v, want MAC %s, %+v", got, wantMAC, tt)
			}
			if diff := cmp.Diff(atHome, homeLines(t)); diff != "" && tt.mode != "passthru" {
				t.Errorf("home changed (-before +after):\n%s", diff)
			}
			gone := tt.step.Reverse()
			for range 2 {
				must(t, s.Apply(t.Context(), gone))
			}
			if diff := cmp.Diff(before, p.lines(t)); diff != "" {
				t.Errorf("left behind (-before +after):\n%s", diff)
			}
		})
	}
}

func TestAddLinkRefused(t *testing.T) {
	on, used, shared, ported := master(t, "pfref0"), master(t, "pfref1"), master(t, "pfref2"), master(t, "pfref3")
	home(t, "link add link pfref1 name pfmv1 type macvlan mode passthru", "")
	home(t, "link add link pfref2 name pfmv2 type macvlan mode bridge", "")
	home(t, "link add pfbr3 type bridge", "link del pfbr3")
	home(t, "link set pfref3 master pfbr3", "")
	tests := map[string]struct {
		step attach.AddLink
		want error
		text string
	}{
		"name taken": {
			step: attach.AddLink{Kind: "macvlan", Master: on, Mode: "bridge", Link: attach.Place{NS: attach.Pod, Name: "net1"}},
			want: link.ErrNameTaken, text: "add macvlan net1 on link",
		},
		"MTU above the master's": {
			step: attach.AddLink{Kind: "macvlan", Master: on, Mode: "bridge", MTU: 9000}, want: link.ErrRefused,
			text: "MTU 9000 is above the 1500 of pfref0",
		},
		"passthru where others are": {
			step: attach.AddLink{Kind: "macvlan", Master: shared, Mode: "passthru"}, want: link.ErrBusy,
			text: "mode passthru wants pfref2 for itself",
		},
		"on a master in mode passthru": {
			step: attach.AddLink{Kind: "macvlan", Master: used, Mode: "bridge"}, want: link.ErrRefused,
			text: "another macvlan may have pfref1 for itself (mode passthru)",
		},
		"on a port of a bridge": {
			step: attach.AddLink{Kind: "macvlan", Master: ported, Mode: "bridge"}, want: link.ErrBusy, text: "port of a bridge",
		},
		"master gone": {
			step: attach.AddLink{Kind: "macvlan", Master: attach.Lower{Name: "eth9", Index: 4711}, Mode: "bridge"}, want: attach.ErrConflict,
			text: "master eth9 (link 4711) is not at home",
		},
		"no such mode": {
			step: attach.AddLink{Kind: "ipvlan", Master: on, Mode: "l3"}, want: link.ErrRefused, text: `mode "l3"`,
		},
		"no MAC": {step: attach.AddLink{Kind: "macvlan", Master: on, Mode: "bridge", MAC: "02:00"}, text: "invalid MAC address"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPod(t)
			s := p.open(t)
			if tt.step.Link.Name == "" {
				tt.step.Link = atNet2()
			}
			before, atHome := p.lines(t), homeLines(t)
			err := s.Apply(t.Context(), tt.step)
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) ||
				strings.Contains(err.Error(), "no such file or directory") {
				t.Errorf("error %v, want %v with %q", err, tt.want, tt.text)
			}
			if diff := cmp.Diff(before+atHome, p.lines(t)+homeLines(t)); diff != "" {
				t.Errorf("something changed (-before +after):\n%s", diff)
			}
		})
	}
}

// A link at home may be called as the pod's is to be: VFs come home under their pods' names.
func TestAddLinkWithTheNameTakenAtHome(t *testing.T) {
	on := master(t, "pfname0")
	master(t, "net2")
	p := newPod(t)
	s := p.open(t)
	must(t, s.Apply(t.Context(), attach.AddLink{Kind: "macvlan", Master: on, Mode: "bridge", Link: atNet2(), MAC: "02:00:00:00:00:07"}))
	if got := shown(t, &p)["net2"]; got.MAC != "02:00:00:00:00:07" || got.LowerIndex != on.Index {
		t.Errorf("in the pod %+v", got)
	}
	if got := shown(t, nil)["net2"]; got.Detail.Kind != "veth" {
		t.Errorf("at home %+v", got)
	}
}

func TestDelLink(t *testing.T) {
	on := master(t, "pfdel0")
	const mac = "02:00:00:00:0a:01"
	add := attach.AddLink{Kind: "macvlan", Master: on, Mode: "bridge", Link: atNet2(), MAC: mac}
	tests := map[string]struct {
		meanwhile []string // what the pod does, as arguments of ip
		want      []string // links of the pod that stay
	}{
		"renamed": {meanwhile: []string{"link set net2 name lan"}},
		"renamed, and another has the name": {
			meanwhile: []string{"link set net2 name lan", "link add link net1 name net2 type macvlan"}, want: []string{"net2"},
		},
		// Not known to be the one that was made: DEL finds it by its name, and asks for the MAC that it has.
		"another MAC": {meanwhile: []string{"link set net2 address 02:00:00:00:0a:02"}, want: []string{"net2"}},
		"removed":     {meanwhile: []string{"link del net2"}},
		"another kind under its name": {
			meanwhile: []string{"link del net2", "link add net2 type bridge"}, want: []string{"net2"},
		},
		"one more with its MAC": {
			meanwhile: []string{"link add link net1 name twin address " + mac + " type macvlan"}, want: []string{"twin"},
		},
		"one more with its MAC, renamed": {
			meanwhile: []string{"link set net2 name lan", "link add link net1 name twin address " + mac + " type macvlan"},
			want:      []string{"twin"}, // which is on another link
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newPod(t)
			s := p.open(t)
			must(t, s.Apply(t.Context(), add))
			for _, args := range tt.meanwhile {
				p.ip(t, strings.Fields(args)...)
			}
			must(t, s.Apply(t.Context(), add.Reverse()))
			var got []string
			for _, n := range []string{"lan", "net2", "twin"} {
				if _, found := shown(t, &p)[n]; found {
					got = append(got, n)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("links of the pod (-want +got):\n%s", diff)
			}
		})
	}
}

// A link of an attachment dies with its pod's namespace: the master is free again for one that wants it for itself.
func TestLinkDiesWithItsNamespace(t *testing.T) {
	on := master(t, "pfdie0")
	add := attach.AddLink{Kind: "macvlan", Master: on, Mode: "passthru", Link: atNet2()}
	t.Run("first", func(t *testing.T) {
		must(t, newPod(t).open(t).Apply(t.Context(), add))
	})
	p := newPod(t)
	s := p.open(t)
	wait(t, "the first one's link to go", func() bool {
		err := s.Apply(t.Context(), add)
		if err != nil && !errors.Is(err, link.ErrBusy) {
			t.Fatal(err)
		}
		return err == nil
	})
}

func TestStepsOfVFsOnWhatIsNotThere(t *testing.T) {
	t.Parallel()
	s, err := kernel.New().Open(t.Context(), "")
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	none := nowhere()
	for step, want := range map[attach.Step]error{
		attach.SetVF{PF: none.PCI, What: attach.VFTrust}: attach.ErrConflict,
		attach.ResetFunction{Device: none}:               attach.ErrConflict,
		attach.ResetFunction{Device: sf("9")}:            errors.ErrUnsupported,
		attach.DelLink{Kind: "macvlan", Link: atNet2()}:  attach.ErrConflict, // a session without a pod
	} {
		err := s.Apply(t.Context(), step)
		if !errors.Is(err, want) || strings.Contains(err.Error(), "no such file or directory") {
			t.Errorf("%s: %v, want %v", step, err, want)
		}
	}
}
