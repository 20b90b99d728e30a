// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// attached is a node with two pods, of which one has two rails.
type attached struct {
	lost, warnings map[string][]string // by interface
	unreadable     []error
	err            error
	user           bool
	unrecorded     []plugin.Unrecorded
	astray         []attach.Astray
	ends           string // the interface whose attachment ends after the first look at records; empty: none does
	looks          int
}

func (a *attached) Unrecorded(context.Context) ([]plugin.Unrecorded, error) { return a.unrecorded, nil }
func (a *attached) Elsewhere(context.Context) ([]attach.Astray, error)      { return a.astray, nil }

func (a *attached) Privileged() bool { return !a.user }

func (a *attached) Records() ([]record.Record, []error) {
	rec := func(pod, container, ifname string, f uint8) record.Record {
		r := record.Record{
			Owner: attach.Owner{ContainerID: container, IfName: ifname}, Network: "rail0", Kind: netconf.KindVF, Device: bus.PCI(fn(f)),
			Pod: netconf.Pod{Namespace: "team-a", Name: pod, UID: "uid-" + pod},
		}
		if pod == "" {
			r.Pod = netconf.Pod{}
		}
		return r
	}
	shared := rec("trainer-1", "cafe0002", "net3", 0)
	shared.Kind, shared.Device = netconf.KindMacvlan, bus.ID{}
	shared.Master, shared.Own = attach.Lower{Name: "ens1f0", Index: 4}, attach.OwnLink{Kind: "macvlan", Name: "net3"}
	all := []record.Record{
		rec("trainer-0", "cafe000100001111", "net1", 2), rec("trainer-0", "cafe000100001111", "net2", 3), shared, rec("", "feed0003", "net4", 4),
	}
	if a.looks++; a.looks > 1 {
		all = slices.DeleteFunc(all, func(r record.Record) bool { return r.Owner.IfName == a.ends })
	}
	return all, a.unreadable
}

func (a *attached) Inspect(_ context.Context, rec record.Record) (lost, warnings []string, err error) { //nolint:nonamedreturns // as declared
	return a.lost[rec.Owner.IfName], a.warnings[rec.Owner.IfName], a.err
}

func TestCheck(t *testing.T) {
	t.Parallel()
	gone := map[string][]string{"net2": {"address 10.1.0.7/24 is gone from net2"}}
	drift := map[string][]string{"net1": {"GID of 10.1.0.6 on port 1 of mlx5_2 is at index 5 now, it was at 3"}}
	tests := []struct {
		name string
		node attached
		args []string
		code int
		out  string
	}{
		{"all is well", attached{}, []string{"--all"}, 0, `team-a/trainer-0 net1 (rail0, vf of 0000:3b:00.2): ok
team-a/trainer-0 net2 (rail0, vf of 0000:3b:00.3): ok
team-a/trainer-1 net3 (rail0, macvlan of ens1f0): ok
container feed0003 net4 (rail0, vf of 0000:3b:00.4): ok
`},
		{"one pod", attached{lost: gone, warnings: drift}, []string{"team-a/trainer-0"}, 1, `team-a/trainer-0 net1 (rail0, vf of 0000:3b:00.2): ok, with warnings
    warning: GID of 10.1.0.6 on port 1 of mlx5_2 is at index 5 now, it was at 3
team-a/trainer-0 net2 (rail0, vf of 0000:3b:00.3): lost
    lost: address 10.1.0.7/24 is gone from net2
`},
		{"another's loss is not this pod's", attached{lost: gone}, []string{"trainer-1"}, 0, "team-a/trainer-1 net3 (rail0, macvlan of ens1f0): ok\n"},
		{"by UID, as JSON", attached{lost: gone}, []string{"--json", "uid-trainer-1"}, 0, `[
  {
    "pod": "team-a/trainer-1",
    "containerID": "cafe0002",
    "ifname": "net3",
    "network": "rail0",
    "link": "macvlan",
    "device": "ens1f0",
    "lost": [],
    "warnings": [],
    "noted": []
  }
]
`},
		{"by container", attached{}, []string{"feed0003"}, 0, "container feed0003 net4 (rail0, vf of 0000:3b:00.4): ok\n"},
		{"by the first digits of a container", attached{}, []string{"cafe00010000"}, 0, `team-a/trainer-0 net1 (rail0, vf of 0000:3b:00.2): ok
team-a/trainer-0 net2 (rail0, vf of 0000:3b:00.3): ok
`},
		{
			"a record that cannot be read",
			attached{unreadable: []error{errors.New("read record x: torn")}},
			[]string{"feed0003"},
			0,
			"container feed0003 net4 (rail0, vf of 0000:3b:00.4): ok\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out, errOut bytes.Buffer
			code := finish(t.Context(), newCheck(&tt.node, streams{nil, &out, &errOut}), tt.args, streams{nil, &out, &errOut})
			if diff := cmp.Diff(tt.out, out.String()); diff != "" || code != tt.code {
				t.Errorf("exit %d, want %d; %s\noutput (-want +got):\n%s", code, tt.code, errOut.String(), diff)
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		node attached
		args []string
		code int
		says string
	}{
		{"nobody named", attached{}, nil, 2, "name pods, or give --all"},
		{"both", attached{}, []string{"--all", "trainer-0"}, 2, "name pods, or give --all"},
		{"unknown pod", attached{}, []string{"trainer-0", "trainer-9"}, 2, `no attachment of pod "trainer-9"`},
		{"too few digits", attached{}, []string{"cafe"}, 2, `no attachment of pod "cafe"`},
		{"no root", attached{user: true}, []string{"--all"}, 2, "run it as root"},
		{"a node that cannot be looked at", attached{err: errors.New("observe: broken")}, []string{"--all"}, 2, "check attachment cafe000100001111/net1: observe: broken"},
		{"an unreadable record counts", attached{unreadable: []error{errors.New("read record x: torn")}}, []string{"--all"}, 1, "read record x: torn"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out, errOut bytes.Buffer
			s := streams{nil, &out, &errOut}
			if code := finish(t.Context(), newCheck(&tt.node, s), tt.args, s); code != tt.code || !strings.Contains(errOut.String(), tt.says) {
				t.Errorf("exit %d, want %d; said %q, want %q", code, tt.code, errOut.String(), tt.says)
			}
		})
	}
}
