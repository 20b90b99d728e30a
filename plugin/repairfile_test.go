// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
)

// TestRepairClears has what a killed process may leave in the state folder: it goes once it is a minute old, and not before, since
// somebody may be at work on it; and never while its lock is held.
func TestRepairClears(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		file string // empty folder if it ends in /
		kept bool
	}{
		{"a record that was not finished", "attachments/pod9/.net1.json123456", false},
		{"a folder without a record", "attachments/pod9/", false},
		{"a home that was not finished", "names/.0000:3b:00.34711", false},
		{"a device's file that was not finished", "out/.0000:3b:00.3.json4711", false},
		{"a probe", ".probe", false},
		{"a probe that was not finished", "..probe99", false},
		{"a claim on its way", "claims/.new", false},
		{"a lock", "locks/device%200000:3b:00.3", false},
		{"a file of somebody else's", "attachments/pod9/notes.txt", true},
		{"a folder of somebody else's", "mine/", true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := newDamaged(t)
			path := filepath.Join(d.dir, "run", tc.file)
			if strings.HasSuffix(tc.file, "/") {
				must(t, os.MkdirAll(path, 0o700))
			} else {
				must(t, os.MkdirAll(filepath.Dir(path), 0o700))
				must(t, os.WriteFile(path, nil, 0o600))
			}
			if found := files(d.repair(t, false)); len(found) > 0 {
				t.Errorf("of what may be at work: %v", found)
			}
			old := time.Now().Add(-time.Hour)
			must(t, os.Chtimes(path, old, old))
			want := []string{}
			if !tc.kept {
				want = append(want, fmt.Sprintf("file %s: ", strings.TrimSuffix(path, "/")))
			}
			for _, outcome := range []plugin.Outcome{plugin.Planned, plugin.Repaired} {
				expect := []string{}
				for _, w := range want {
					expect = append(expect, w+string(outcome))
				}
				if diff := cmp.Diff(expect, files(d.repair(t, outcome == plugin.Planned))); diff != "" {
					t.Errorf("findings (-want +got):\n%s", diff)
				}
				if _, err := os.Lstat(path); (err == nil) != (tc.kept || outcome == plugin.Planned) {
					t.Errorf("after %s: %v", outcome, err)
				}
			}
		})
	}
}

func files(found []plugin.Finding) []string {
	out := []string{}
	for _, f := range brief(found) {
		if strings.HasPrefix(f, "file ") {
			out = append(out, f)
		}
	}
	return out
}

// TestRepairLeavesHeldLocks: a lock that is held is in use, however old its file is.
func TestRepairLeavesHeldLocks(t *testing.T) {
	t.Parallel()
	d := newDamaged(t)
	release, err := d.plugin.Locks.Acquire(t.Context(), "device 0000:3b:00.7", "ADD")
	must(t, err)
	locks := filepath.Join(d.dir, "run/locks")
	entries, err := os.ReadDir(locks)
	must(t, err)
	for _, e := range entries {
		old := time.Now().Add(-time.Hour)
		must(t, os.Chtimes(filepath.Join(locks, e.Name()), old, old))
	}
	if found := files(d.repair(t, false)); len(found) > 0 {
		t.Errorf("findings: %v", found)
	}
	release()
}

// TestRepairBesideManyPods repairs a healthy node again and again while pods of every kind come and go on it: it finds nothing,
// and disturbs nobody.
func TestRepairBesideManyPods(t *testing.T) {
	t.Parallel()
	for _, mode := range []attach.Mode{attach.Exclusive, attach.Shared} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, mode)
			before := m.state(t)
			done := make(chan struct{})
			var pods sync.WaitGroup
			for n, dev := range []int{3, 4, 6, 7} {
				p, r := m.process(), request{pod: fmt.Sprint("pod", n), dev: dev, ipam: []string{v4Range, delegated}[n%2]}
				if n == 3 {
					r.more = `,"vlan":100,"trust":"on"`
				}
				p.Now = time.Now // by the machine's clock an ADD would seem to take minutes
				m.pod(r.pod)
				pods.Go(func() {
					for range 12 {
						if _, err := p.Add(t.Context(), r.raw()); err != nil {
							t.Errorf("ADD of %s: %v", r.pod, err)
						}
						if err := p.Del(t.Context(), r.raw()); err != nil {
							t.Errorf("DEL of %s: %v", r.pod, err)
						}
					}
				})
			}
			go func() {
				pods.Wait()
				close(done)
			}()
			rounds := 0
			for running := true; running; rounds++ {
				for _, dry := range []bool{true, false} {
					p := m.process()
					p.Now = time.Now
					found, err := p.Repair(t.Context(), m, dry)
					if err != nil || len(found) > 0 {
						t.Errorf("repair: %+v, %v", found, err)
					}
				}
				select {
				case <-done:
					running = false
				default:
				}
			}
			t.Logf("%d rounds of repair", rounds)
			m.same(t, "after all", before)
		})
	}
}
