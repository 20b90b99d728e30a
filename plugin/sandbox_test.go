// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
)

// sandboxOf is an attachment of another sandbox of pod1, in the namespace of that name.
func sandboxOf(netns, cid string, dev int, ifname, more string) netconf.Raw {
	rail := map[string]string{"net1": "rail0", "net2": "rail1"}[ifname]
	raw := request{pod: netns, dev: dev, ifname: ifname, network: rail, more: `,"rail":` + rail[len("rail"):] + more}.raw()
	raw.ContainerID, raw.Args = cid, request{pod: "pod1"}.raw().Args
	return raw
}

// shown is what the pod reads in its volume, and what stands on the node.
func (m *machine) shown(t *testing.T, volume string) [2]string {
	t.Helper()
	var out [2]string
	for i, dir := range []string{volume, filepath.Join(m.dir, "run/pods", uidOf("pod1"))} {
		text, err := os.ReadFile(filepath.Join(dir, "fabric.json"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		out[i] = string(text)
	}
	return out
}

// sandboxStep is what a runtime does, and what follows of it.
type sandboxStep struct {
	do   func(t *testing.T, m *machine) error
	want string // the device in the hint afterwards; empty: there is no hint
	code uint
}

const inFirst, inSecond = `"mlx5_3"`, `"mlx5_4"`

func twoSandboxes() map[string][]sandboxStep {
	first := sandboxOf("pod1", "first", 3, "net1", "")
	second := func(more string) netconf.Raw { return sandboxOf("pod2", "second", 4, "net2", more) }
	add := func(raw netconf.Raw) func(*testing.T, *machine) error {
		return func(t *testing.T, m *machine) error { t.Helper(); _, err := m.plugin.Add(t.Context(), raw); return err }
	}
	del := func(raw netconf.Raw) func(*testing.T, *machine) error {
		return func(t *testing.T, m *machine) error { t.Helper(); return m.plugin.Del(t.Context(), raw) }
	}
	die := func(netns string) func(*testing.T, *machine) error {
		return func(_ *testing.T, m *machine) error { m.KillNetNS(netnsOf(netns)); return nil }
	}
	return map[string][]sandboxStep{
		"late ADD and DEL of the other": {{add(first), inFirst, 0}, {add(second("")), inFirst, 0}, {del(second("")), inFirst, 0}, {del(first), "", 0}},
		"late DEL of the first":         {{add(first), inFirst, 0}, {add(second("")), inFirst, 0}, {del(first), inSecond, 0}, {del(second("")), "", 0}},
		"the first has died": {
			{add(first), inFirst, 0}, {die("pod1"), inFirst, 0}, {add(second("")), inSecond, 0}, {del(first), inSecond, 0}, {del(second("")), "", 0},
		},
		"the other waits when the first dies": {
			{add(first), inFirst, 0}, {add(second("")), inFirst, 0}, {die("pod1"), inFirst, 0}, {del(first), inSecond, 0}, {del(second("")), "", 0},
		},
		"the other waits and dies": {
			{add(first), inFirst, 0}, {add(second("")), inFirst, 0}, {die("pod2"), inFirst, 0}, {del(first), "", 0}, {del(second("")), "", 0},
		},
		"the first comes again": {
			{add(first), inFirst, 0},
			{add(second("")), inFirst, 0},
			{del(first), inSecond, 0},
			{add(first), inSecond, 0},
			{del(second("")), inFirst, 0},
			{del(first), "", 0},
		},
		"the other must have its hint": {
			{add(first), inFirst, 0}, {add(second(`,"hint":{"require":true}`)), inFirst, 108}, {del(second("")), inFirst, 0}, {del(first), "", 0},
		},
	}
}

// TestHintOfTwoSandboxes: a runtime may still make things for a sandbox that it has replaced, or has not yet deleted one that it
// replaces. Each takes nothing out of the hint of the one that runs, and the last that is left has its own.
func TestHintOfTwoSandboxes(t *testing.T) {
	t.Parallel()
	for name, steps := range twoSandboxes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			m.pod("pod1")
			m.pod("pod2")
			volume := m.volume(t, "pod1")
			for i, s := range steps {
				err := s.do(t, m)
				if s.code != 0 {
					answered(t, err, s.code, "first")
				} else {
					must(t, err)
				}
				for _, text := range m.shown(t, volume) {
					other := map[string]string{inFirst: inSecond, inSecond: inFirst, "": "{"}[s.want]
					if !strings.Contains(text, s.want) || strings.Contains(text, other) {
						t.Errorf("step %d: the hint is %q; wanted %s in it", i, text, s.want)
					}
				}
			}
			if left, err := os.ReadDir(filepath.Join(m.dir, "run/fragments")); err != nil || len(left) > 1 { // the bystander's
				t.Errorf("left are %v, %v", left, err)
			}
		})
	}
}

// TestHintOfTwoSandboxesWithoutADel: what waits is removed with the pod, and not before it.
func TestHintOfTwoSandboxesWithoutADel(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	for _, p := range []string{"pod1", "pod2"} {
		m.pod(p)
	}
	first, second := sandboxOf("pod1", "first", 3, "net1", ""), sandboxOf("pod2", "second", 4, "net2", "")
	for _, raw := range []netconf.Raw{first, second} {
		if _, err := m.plugin.Add(t.Context(), raw); err != nil {
			t.Fatal(err)
		}
	}
	folder := filepath.Join(m.dir, "run/fragments", uidOf("pod1"))
	must(t, os.RemoveAll(filepath.Join(m.dir, "run/attachments/first")))
	m.repair(t)
	if _, err := os.Stat(folder); err != nil {
		t.Errorf("the sandbox that waits is recorded, and has lost its part: %v", err)
	}
	must(t, os.RemoveAll(filepath.Join(m.dir, "run/attachments/second")))
	m.repair(t)
	if _, err := os.Stat(folder); err != nil {
		t.Errorf("the pod lives, and has lost its hint with its records: %v", err)
	}
	for _, p := range []string{"pod1", "pod2"} {
		m.KillNetNS(netnsOf(p))
	}
	m.repair(t)
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing is recorded of the pod, and its parts are there: %v", err)
	}
}
