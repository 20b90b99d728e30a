// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/record"
)

// aftermath is what comes after a process was killed or lost all its parts in the middle of a verb.
type aftermath struct {
	name string
	// dead: in the end the namespace of the pod is no more.
	dead bool
	do   func(t testing.TB, m *machine, k kind)
}

// aftermaths are all of them. Each must leave the node as it was, whatever was killed where.
func aftermaths() []aftermath {
	out := living()
	out = append(out, dying()...)
	out = append(out, otherPods()...)
	return append(out, otherVersions()...)
}

// living are those in which the pod's namespace lives on.
func living() []aftermath {
	return []aftermath{
		{"DEL", false, func(t testing.TB, m *machine, k kind) { t.Helper(); m.mustDel(t, k.request) }},
		{"ADD again, DEL", false, func(t testing.TB, m *machine, k kind) {
			t.Helper()
			// A DEL that was killed before it wrote anything leaves a whole attachment, and ADD is not idempotent.
			if err := m.add(t, k.request); err != nil {
				answered(t, err, 7, "DEL the attachment")
			}
			m.mustDel(t, k.request)
		}},
		{"two DELs at once", false, func(t testing.TB, m *machine, k kind) {
			t.Helper()
			var both sync.WaitGroup
			for range 2 {
				p := m.process()
				both.Go(func() {
					if err := p.Del(t.Context(), k.raw()); err != nil {
						t.Errorf("DEL: %v", err)
					}
				})
			}
			both.Wait()
		}},
		{"GC, DEL", false, func(t testing.TB, m *machine, k kind) {
			t.Helper()
			must(t, m.gc(t))
			m.mustDel(t, k.request)
		}},
		{"GC that lists it, DEL", false, func(t testing.TB, m *machine, k kind) {
			t.Helper()
			before := m.state(t)
			must(t, m.gc(t, k.request, k.of("pod0")))
			m.same(t, "GC of what is listed", before)
			m.mustDel(t, k.request)
		}},
		{"repair, DEL", false, func(t testing.TB, m *machine, k kind) {
			t.Helper()
			m.repair(t)
			m.mustDel(t, k.request)
		}},
		{"repair an hour later, DEL", false, func(t testing.TB, m *machine, k kind) {
			t.Helper()
			m.ticks.Add(int64(time.Hour / tick))
			m.repair(t)
			m.mustDel(t, k.request)
		}},
	}
}

// dying are those in which it does not.
func dying() []aftermath {
	dead := func(m *machine, k kind) { m.KillNetNS(netnsOf(k.pod)) }
	return []aftermath{
		{"netns died, DEL", true, func(t testing.TB, m *machine, k kind) { t.Helper(); dead(m, k); m.mustDel(t, k.request) }},
		{"netns died, DEL without a path", true, func(t testing.TB, m *machine, k kind) {
			t.Helper()
			dead(m, k)
			raw := k.raw()
			raw.NetNS = ""
			must(t, m.plugin.Del(t.Context(), raw))
		}},
		{"netns dies slowly, DEL", true, func(t testing.TB, m *machine, k kind) {
			t.Helper()
			m.HoldNetNS(netnsOf(k.pod), 4)
			m.mustDel(t, k.request)
			dead(m, k) // the DEL of one with nothing inside does not wait for it
		}},
		{"netns died and its path is another's, DEL", true, func(t testing.TB, m *machine, k kind) {
			t.Helper()
			dead(m, k)
			m.pod(k.pod)
			m.mustDel(t, k.request)
		}},
		{"netns died, GC", true, func(t testing.TB, m *machine, k kind) { t.Helper(); dead(m, k); must(t, m.gc(t)) }},
		{"netns died, repair", true, func(t testing.TB, m *machine, k kind) { t.Helper(); dead(m, k); m.repair(t) }},
		{"netns dies slowly, repair, DEL", true, func(t testing.TB, m *machine, k kind) {
			t.Helper()
			m.HoldNetNS(netnsOf(k.pod), 4)
			m.repair(t)
			dead(m, k)
			m.mustDel(t, k.request)
		}},
	}
}

// otherPods are those in which another pod is handed the same device, or sits on the same master.
func otherPods() []aftermath {
	return []aftermath{
		{"netns died, ADD of another pod, its DEL, GC", true, func(t testing.TB, m *machine, k kind) {
			t.Helper()
			m.KillNetNS(netnsOf(k.pod))
			other := m.given(t, k)
			m.mustDel(t, other)
			m.takenBack(k)
			must(t, m.gc(t))
		}},
		{"netns died, ADD of another pod, the old one's DEL, its DEL", true, func(t testing.TB, m *machine, k kind) {
			t.Helper()
			m.KillNetNS(netnsOf(k.pod))
			other := m.given(t, k)
			before := m.at(k)
			m.mustDel(t, k.request)
			if diff := cmp.Diff(before, m.at(k)); diff != "" {
				t.Errorf("the old one's DEL touched the new one's device (-before +after):\n%s", diff)
			}
			if err := m.plugin.Check(t.Context(), other.raw()); err != nil {
				t.Errorf("CHECK of the other pod after the old one's DEL: %v", err)
			}
			m.mustDel(t, other)
			m.takenBack(k)
		}},
		{"DEL by another pod's ADD while the netns lives", false, func(t testing.TB, m *machine, k kind) {
			t.Helper()
			other := k.of("pod2")
			away := !inside(k.pod, m.Where(k.device())[0])
			if away { // else the plugin before has nothing to give
				k.prepareFor(m, other.pod)
			}
			switch err := m.add(t, other); {
			case err == nil: // nothing was left in its way
			case k.before != nil || strings.Contains(k.keys, "master"): // no device to ask for, but perhaps the same address or MAC
				readable(t, err)
			default:
				answered(t, err, 11, "team-a/"+k.pod, "cid-"+k.pod, "net1", "rail0")
			}
			m.mustDel(t, k.request)
			m.mustDel(t, other)
			if away {
				m.takenBack(k)
			}
		}},
	}
}

// of is the same attachment for another pod.
func (k kind) of(pod string) request {
	r := k.request
	r.keys = strings.ReplaceAll(r.keys, netnsOf(r.pod), netnsOf(pod))
	r.pod = pod
	return r
}

// given hands another pod what the first one had.
func (m *machine) given(t testing.TB, k kind) request {
	t.Helper()
	other := k.of("pod2")
	k.prepareFor(m, other.pod)
	m.mustAdd(t, other)
	if k.link != "none" && !strings.Contains(m.Dump(), "link /run/netns/pod2/net1 ") {
		t.Errorf("pod2 has no interface:\n%s", m.Dump())
	}
	return other
}

// at is where the devices of an attachment are, and what is in the other pod.
func (m *machine) at(k kind) []string {
	where := m.Where(k.device())
	out := where[:]
	for line := range strings.Lines(m.Dump()) {
		if strings.Contains(line, netnsOf("pod2")+"/") {
			out = append(out, line)
		}
	}
	return out
}

// takenBack does what the DEL of the plugin before does for the other pod.
func (m *machine) takenBack(k kind) {
	if k.after != nil {
		k.after(m, "pod2")
	}
}

// otherVersions are those in which another version of the program has written the record, or comes to read it.
func otherVersions() []aftermath {
	return []aftermath{
		{"upgrade, DEL", false, func(t testing.TB, m *machine, k kind) {
			t.Helper()
			m.rewrite(t, k.request, older)
			m.mustDel(t, k.request)
		}},
		{"netns died, upgrade, repair", true, func(t testing.TB, m *machine, k kind) {
			t.Helper()
			m.rewrite(t, k.request, older)
			m.KillNetNS(netnsOf(k.pod))
			m.repair(t)
		}},
		{"downgrade to one that can read the record, DEL", false, func(t testing.TB, m *machine, k kind) {
			t.Helper()
			m.rewrite(t, k.request, newer(record.Version))
			m.mustDel(t, k.request)
		}},
		{"downgrade to one that can read the record, netns died, GC", true, func(t testing.TB, m *machine, k kind) {
			t.Helper()
			m.rewrite(t, k.request, newer(record.Version))
			m.KillNetNS(netnsOf(k.pod))
			must(t, m.gc(t))
		}},
		// What is made without a device and cannot be told from another's goes with the namespace.
		{"downgrade to one that cannot read the record, DEL, netns dies", true, func(t testing.TB, m *machine, k kind) {
			t.Helper()
			m.rewrite(t, k.request, newer(record.Version+1))
			m.mustDel(t, k.request)
			m.KillNetNS(netnsOf(k.pod))
		}},
	}
}

// newer makes a record one of a version to come, which versions from compatible on may read.
func newer(compatible int) func(map[string]any) {
	return func(rec map[string]any) {
		rec["version"], rec["compatible"], rec["new"] = 99, compatible, map[string]any{"in": "this version"}
	}
}

// older makes a record one of the first version.
func older(rec map[string]any) {
	rec["version"] = 1
	delete(rec, "compatible")
}

// rewrite changes the file of a record, if there is one, as another version of the program would have written it.
func (m *machine) rewrite(t testing.TB, r request, change func(map[string]any)) {
	t.Helper()
	file := filepath.Join(m.dir, "run/attachments", r.owner().ContainerID, r.owner().IfName+".json")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	must(t, err)
	var rec map[string]any
	must(t, json.Unmarshal(text, &rec))
	change(rec)
	text, err = json.MarshalIndent(rec, "", "  ")
	must(t, err)
	must(t, os.WriteFile(file, text, 0o600))
}
