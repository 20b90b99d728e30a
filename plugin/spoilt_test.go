// SPDX-License-Identifier: Apache-2.0

//test:norace

package plugin_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
)

// call is a verb as the tables of spoilt files make it. What it says is its error, its findings and its log.
type call struct {
	name string
	do   func(ctx context.Context, m *machine, k kind) (string, error)
}

func calls() []call {
	return []call{
		{"CHECK", func(ctx context.Context, m *machine, k kind) (string, error) { return "", m.plugin.Check(ctx, k.raw()) }},
		{"GC", func(ctx context.Context, m *machine, _ kind) (string, error) { return "", m.plugin.GC(ctx, gcOf()) }},
		{"repair", func(ctx context.Context, m *machine, _ kind) (string, error) {
			found, err := m.plugin.Repair(ctx, m, false)
			return fmt.Sprintf("%+v", found), err
		}},
		{"ADD of another pod", func(ctx context.Context, m *machine, k kind) (string, error) {
			_, err := m.plugin.Add(ctx, k.of("pod2").raw())
			return "", err
		}},
		{"ADD again", func(ctx context.Context, m *machine, k kind) (string, error) {
			_, err := m.plugin.Add(ctx, k.raw())
			return "", err
		}},
	}
}

// ends runs a call that must come to an end, and gives all that it says. A panic ends the test anyway.
func (c call) ends(t *testing.T, m *machine, k kind) (string, error) {
	t.Helper()
	m.log.reset()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var said string
	var err error
	over := make(chan struct{})
	go func() {
		defer close(over)
		said, err = c.do(ctx, m, k)
	}()
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Fatalf("%s hangs", c.name)
	}
	if err != nil {
		readable(t, err)
		said += plugin.Answer(err).Error()
	}
	return said + m.log.text.String(), err
}

// TestSpoiltRecord: whatever stands in a record's place, every verb comes to an end, changes nothing that it cannot know to be its own,
// keeps what it cannot read and names it. A DEL ends it, with the pod alive or dead.
func TestSpoiltRecord(t *testing.T) {
	t.Parallel()
	for _, k := range some("moved, delegate", "macvlan", "VF with settings") {
		text := recordText(t, k)
		for _, s := range append(spoilings(text), readables()...) {
			for _, dead := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/dead %t", k.name, s.name, dead), func(t *testing.T) {
					t.Parallel()
					m := newMachine(t, k.mode)
					m.pod("pod1")
					m.pod("pod2")
					before := m.state(t)
					m.mustAdd(t, k.request)
					file := m.recordOf(k.request)
					s.do(t, file, text)
					if dead {
						m.KillNetNS(netnsOf(k.pod))
					}
					m.spoilt(t, k, s, file, dead)
					m.mustDel(t, k.of("pod2"))
					if s.held {
						if err := m.del(t, k.request); err != nil {
							answered(t, err, 5, file, "remove what stands there")
						}
						must(t, os.RemoveAll(file))
					}
					m.mustDel(t, k.request)
					if !dead && strings.Contains(k.keys, "macvlan") {
						m.KillNetNS(netnsOf(k.pod)) // a link that cannot be told from another's goes with it
					}
					m.same(t, "DEL", before)
				})
			}
		}
	}
}

// recordText is what podfabric writes of an attachment.
func recordText(t *testing.T, k kind) []byte {
	t.Helper()
	m := newMachine(t, k.mode)
	m.pod("pod1")
	m.mustAdd(t, k.request)
	text, err := os.ReadFile(m.recordOf(k.request))
	must(t, err)
	return bytes.TrimSpace(text)
}

// spoilt makes every call in turn.
func (m *machine) spoilt(t *testing.T, k kind, s spoiling, file string, dead bool) {
	t.Helper()
	for _, c := range calls() {
		before, there := m.state(t), exists(file)
		said, err := c.ends(t, m, k)
		switch {
		case s.good && dead, c.name == "ADD of another pod" && err == nil && (dead || strings.Contains(k.keys, "master")):
			// It is read, so that GC, repair or the other pod's ADD ends it; or the device was free.
			m.mustDel(t, k.of("pod2"))
			continue
		case c.name == "ADD again":
			return // it may be made anew, or refused; what stands there is never taken for the pod's own attachment
		}
		if !s.good && there && !strings.Contains(said, filepath.Base(filepath.Dir(file))) {
			t.Errorf("%s does not say what it could not read: %q", c.name, said)
		}
		if !m.same(t, c.name, before) {
			return
		}
	}
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// TestSpoiltElsewhere: the same of claims, home names, what is kept of a device that is out, leases and folders. DEL and ADD may refuse,
// but end, and once the thing is gone DEL leaves all as it was.
func TestSpoiltElsewhere(t *testing.T) {
	t.Parallel()
	places := map[string]func(m *machine) string{
		"claim":             func(m *machine) string { return filepath.Join(m.dir, "run/claims", vfAddr(3).String()) },
		"home names":        func(m *machine) string { return filepath.Join(m.dir, "run/names", vfAddr(3).String()) },
		"uverbs number":     func(m *machine) string { return filepath.Join(m.dir, "run/names", vfAddr(3).String()+".uverbs") },
		"lease":             func(m *machine) string { return filepath.Join(m.dir, "run/leases/10.1.0.0_24/10.1.0.2") },
		"container's":       func(m *machine) string { return filepath.Join(m.dir, "run/attachments/cid-pod1") },
		"all claims":        func(m *machine) string { return filepath.Join(m.dir, "run/claims") },
		"all home names":    func(m *machine) string { return filepath.Join(m.dir, "run/names") },
		"the pool's folder": func(m *machine) string { return filepath.Join(m.dir, "run/leases/10.1.0.0_24") },
		"fragments":         func(m *machine) string { return filepath.Join(m.dir, "run/fragments", uidOf("pod1")) },
		"hint":              func(m *machine) string { return filepath.Join(m.dir, "run/pods", uidOf("pod1"), "fabric.json") },
	}
	if out, err := filepath.Glob(filepath.Join(newMachine(t, attach.Exclusive).dir, "run/out/*")); err == nil && len(out) > 0 {
		places["device that is out"] = func(m *machine) string { return filepath.Join(m.dir, "run/out", vfAddr(3).String()+".json") }
	}
	things := append(otherThings(), holding("nothing", ""), holding("half", `{"version":1,"facts":{"func`), holding("a list", "[]"),
		holding("another version", `{"version":99,"compatible":99,"device":"0000:3b:00.3","facts":{}}`))
	for place, where := range places {
		for _, s := range things {
			for _, dead := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/dead %t", place, s.name, dead), func(t *testing.T) {
					t.Parallel()
					spoiltElsewhere(t, where, s, dead)
				})
			}
		}
	}
}

func spoiltElsewhere(t *testing.T, where func(m *machine) string, s spoiling, dead bool) {
	t.Helper()
	k := named("VF with settings")
	m := newMachine(t, k.mode)
	m.pod("pod1")
	m.pod("pod2")
	before := m.state(t)
	m.mustAdd(t, k.request)
	file := where(m)
	if !exists(file) {
		t.Fatalf("there is no %s", file)
	}
	must(t, os.RemoveAll(file))
	s.do(t, file, nil)
	if dead {
		m.KillNetNS(netnsOf(k.pod))
	}
	for _, c := range calls() {
		_, _ = c.ends(t, m, k)
	}
	del := call{"DEL", func(ctx context.Context, m *machine, k kind) (string, error) { return "", m.plugin.Del(ctx, k.raw()) }}
	_, _ = call{"DEL of another pod", func(ctx context.Context, m *machine, k kind) (string, error) {
		return "", m.plugin.Del(ctx, k.of("pod2").raw())
	}}.ends(t, m, k)
	said, err := del.ends(t, m, k)
	if err != nil && !strings.Contains(said, m.dir) && !strings.Contains(said, filepath.Base(file)) {
		t.Errorf("DEL does not name what is in its way: %q", said)
	}
	// Somebody takes it away, as the message said.
	must(t, os.RemoveAll(file))
	m.mustDel(t, k.of("pod2"))
	m.mustDel(t, k.request)
	must(t, m.gc(t))
	m.repair(t)
	var left []string
	for _, line := range m.state(t) {
		if !strings.HasPrefix(line, "run/") || strings.Contains(line, "cid-pod") || strings.Contains(line, uidOf("pod1")) {
			left = append(left, line)
		}
	}
	for _, line := range before {
		if !strings.HasPrefix(line, "run/") && !slices.Contains(left, line) {
			t.Errorf("gone: %s", line)
		}
	}
	for _, line := range left {
		if !slices.Contains(before, line) {
			t.Errorf("left: %s", line)
		}
	}
}
