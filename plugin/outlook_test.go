// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
	"github.com/podfabric/podfabric/plugin/record"
)

// TestUnrecorded: a device whose record was lost is known by what is kept at the device, and what is to be done is said.
func TestUnrecorded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spoil func(*testing.T, *machine, request)
		words []string // none: nothing is said
	}{
		"recorded":      {func(*testing.T, *machine, request) {}, nil},
		"the pod lives": {func(t *testing.T, m *machine, r request) { t.Helper(); m.forget(t, r) }, []string{"its pod has the device: delete the pod"}},
		"the pod lives and the claim stays": {func(t *testing.T, m *machine, r request) {
			t.Helper()
			must(t, os.RemoveAll(filepath.Dir(m.recordOf(r))))
		}, []string{"its pod has the device: delete the pod"}},
		"another has claimed it": {func(t *testing.T, m *machine, r request) {
			t.Helper()
			m.KillNetNS(netnsOf(r.pod))
			m.forget(t, r)
			m.pod("pod2")
			m.mustAdd(t, request{pod: "pod2", dev: 3})
		}, nil},
		"a record that cannot be read": {func(t *testing.T, m *machine, r request) {
			t.Helper()
			must(t, os.WriteFile(m.recordOf(r), []byte("{"), 0o600))
		}, nil},
		"everything was lost": {func(t *testing.T, m *machine, r request) { t.Helper(); m.lose(t, r) }, nil},
		"the pod is gone": {func(t *testing.T, m *machine, r request) {
			t.Helper()
			m.forget(t, r)
			m.KillNetNS(netnsOf(r.pod))
		}, []string{"its pod is gone: run podfabricctl repair"}},
		"a process holds the device": {func(t *testing.T, m *machine, r request) {
			t.Helper()
			m.forget(t, r)
			m.HoldNetNSBy(netnsOf(r.pod), -1, "sleep (pid 71)")
		}, []string{"ens1f0v1", "end sleep (pid 71), then run podfabricctl repair"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			m.pod("pod1")
			r := request{pod: "pod1", dev: 3}
			m.mustAdd(t, r)
			tc.spoil(t, m, r)
			before := m.state(t)
			list, err := m.plugin.Unrecorded(t.Context())
			must(t, err)
			m.same(t, "a look", before)
			if len(tc.words) == 0 {
				if len(list) > 0 {
					t.Errorf("found %+v", list)
				}
				return
			}
			if len(list) != 1 || list[0].Out.Device != vfAddr(3) || list[0].Out.Pod.Name != "pod1" {
				t.Fatalf("found %+v", list)
			}
			for _, word := range tc.words {
				if !strings.Contains(list[0].Text, word) {
					t.Errorf("%q lacks %q", list[0].Text, word)
				}
			}
		})
	}
}

// TestGone: what an attachment hangs on is told to be gone where it is, and by nothing else.
func TestGone(t *testing.T) {
	t.Parallel()
	vf := request{pod: "pod1", dev: 3}
	macvlan := request{pod: "pod1", of: otherPF(), keys: `"link":"macvlan","master":"ens2f0"`}
	for name, tc := range map[string]struct {
		mode  attach.Mode
		r     request
		spoil func(*machine)
		want  string
	}{
		"nothing":                   {attach.Exclusive, vf, func(*machine) {}, ""},
		"nothing, a macvlan":        {attach.Shared, macvlan, func(*machine) {}, ""},
		"the namespace":             {attach.Exclusive, vf, func(m *machine) { m.KillNetNS(netnsOf("pod1")) }, plugin.PodGone},
		"the namespace's path":      {attach.Exclusive, vf, func(m *machine) { m.HoldNetNSBy(netnsOf("pod1"), -1, "sleep (pid 71)") }, plugin.PodGone},
		"the namespace, macvlan":    {attach.Shared, macvlan, func(m *machine) { m.KillNetNS(netnsOf("pod1")) }, plugin.PodGone},
		"its path is another's now": {attach.Exclusive, vf, func(m *machine) { m.KillNetNS(netnsOf("pod1")); m.pod("pod1") }, plugin.PodGone},
		"the function":              {attach.Exclusive, vf, func(m *machine) { m.RemoveFunction(vfAddr(3)) }, plugin.FunctionGone},
		"the function, another at its address": {attach.Exclusive, vf, func(m *machine) {
			m.RemoveFunction(vfAddr(3))
			m.AddVF(attachtest.VF{ID: vfAddr(3), PF: vfAddr(0).PCI, Number: 1, Link: "eth9", MAC: "02:77:00:00:00:01"})
		}, plugin.FunctionGone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, tc.mode)
			m.pod("pod1")
			m.mustAdd(t, tc.r)
			rec, err := record.New(m.dir + "/run").Load(tc.r.owner())
			must(t, err)
			tc.spoil(m)
			got, err := m.plugin.Gone(t.Context(), rec)
			must(t, err)
			if got != tc.want {
				t.Errorf("gone is %q, want %q", got, tc.want)
			}
		})
	}
}
