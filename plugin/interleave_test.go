// SPDX-License-Identifier: Apache-2.0

//test:norace

package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/podfabric/podfabric/plugin"
)

// act is one verb of one pod, made by a process of its own.
type act struct {
	verb string // "ADD", "DEL", "GC" that lists nothing, "repair"
	pod  string
}

func (a act) String() string { return strings.TrimSpace(a.verb + " " + a.pod) }

func (a act) do(ctx context.Context, m *machine, k kind, p *plugin.Plugin) error {
	switch a.verb {
	case "ADD":
		_, err := p.Add(ctx, k.of(a.pod).raw())
		return err
	case "DEL":
		return p.Del(ctx, k.of(a.pod).raw())
	case "GC":
		return p.GC(ctx, gcOf())
	}
	found, err := p.Repair(ctx, m, false)
	for _, f := range found {
		if f.Outcome == plugin.Failed {
			err = errors.Join(err, fmt.Errorf("%s: %s", f.Object, f.Detail))
		}
	}
	return err
}

// meeting is two of them: one is paused before each of its calls in turn, and the other runs meanwhile.
type meeting struct {
	paused, whole act
	added         bool // pod1 has its attachment before
	dead          bool // and its namespace died
}

// meetings have one device, or one attachment, in common. Between two ADDs of different pods pod1's netns lives.
func meetings() []meeting {
	var out []meeting
	for _, dead := range []bool{false, true} {
		out = append(out, meeting{act{"DEL", "pod1"}, act{"ADD", "pod2"}, true, dead}, meeting{act{"ADD", "pod2"}, act{"DEL", "pod1"}, true, dead})
	}
	for _, sweep := range []string{"GC", "repair"} {
		out = append(out,
			meeting{act{"ADD", "pod1"}, act{sweep, ""}, false, false},
			meeting{act{sweep, ""}, act{"ADD", "pod1"}, false, false},
			meeting{act{"ADD", "pod2"}, act{sweep, ""}, true, true},
			meeting{act{sweep, ""}, act{"ADD", "pod2"}, true, true},
			meeting{act{"DEL", "pod1"}, act{sweep, ""}, true, true},
			meeting{act{sweep, ""}, act{"DEL", "pod1"}, true, true},
		)
	}
	return append(out,
		meeting{act{"ADD", "pod1"}, act{"DEL", "pod1"}, false, false},
		meeting{act{"DEL", "pod1"}, act{"ADD", "pod1"}, true, false},
		meeting{act{"DEL", "pod1"}, act{"DEL", "pod1"}, true, false},
		meeting{act{"ADD", "pod1"}, act{"ADD", "pod2"}, false, false},
		meeting{act{"ADD", "pod1"}, act{"ADD", "pod1"}, false, false},
		meeting{act{"GC", ""}, act{"repair", ""}, true, true},
		meeting{act{"repair", ""}, act{"GC", ""}, true, true},
	)
}

func (m meeting) String() string {
	text := fmt.Sprintf("%s paused while %s", m.paused, m.whole)
	if m.dead {
		text += ", pod1 dead"
	}
	return text
}

// pace is how long a process may take, and after what time the paused one goes on. Locks are waited for with the clock of the bubble
// for 100 ms only, and in the kernel from then on.
type pace struct{ limit, pause time.Duration }

// paces are one in which a process waits for the other as long as it takes, and one in which it gives up before.
func paces() [2]pace {
	return [2]pace{{20 * time.Second, 50 * time.Millisecond}, {60 * time.Millisecond, 80 * time.Millisecond}}
}

// TestInterleaved: whatever a process has come to, another one may do its whole work, or wait for it in vain. What pod2 was given
// stays pod2's; an ADD succeeds or answers that it may be tried again, and in the end all is clean.
func TestInterleaved(t *testing.T) {
	t.Parallel()
	for i, k := range some("moved, delegate", "shared", "soft", "macvlan", "device by name", "VF with settings", "chained behind host-device") {
		for _, meet := range meetings() {
			if k.before != nil && (meet.paused.pod == "pod2" || meet.whole.pod == "pod2") {
				continue // the plugin before gives a device to one pod only
			}
			t.Run(fmt.Sprintf("%s/%s", k.name, meet), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					const never = 1 << 20
					n := meet.run(t, k, never, paces()[0])
					if n < 1 {
						t.Fatal("no call was seen, the test proves nothing")
					}
					for at := range n {
						if meet.run(t, k, at, paces()[(i+at)%2]); t.Failed() {
							return
						}
					}
				})
			})
		}
	}
}

// run has the paused one stop before its call at. It gives the number of its calls.
func (m meeting) run(t *testing.T, k kind, at int, pace pace) int {
	t.Helper()
	node := newMachine(t, k.mode)
	node.pod("pod1")
	node.pod("pod2")
	k.prepare(node)
	before := node.state(t)
	if m.added {
		node.mustAdd(t, k.request)
	}
	swept := (m.paused.pod == "" || m.whole.pod == "") && !m.added
	if swept { // there is something to sweep
		old := request{pod: "pod0", dev: 6}
		node.pod("pod0")
		node.mustAdd(t, old)
		node.KillNetNS(netnsOf("pod0"))
		defer func() {
			node.mustDel(t, old)
			node.same(t, "in the end", before)
		}()
	}
	if m.dead {
		if k.before != nil { // what the plugin before brought comes home as the kernel has it
			p := &product{kind: k}
			p.ends(t)
			before = p.gone
		}
		node.KillNetNS(netnsOf("pod1"))
	}

	calls, what := 0, "nothing"
	resume := make(chan struct{})
	first, second := &trap{at: -1, kernel: node.Kernel}, &trap{at: -1, kernel: node.Kernel}
	first.onCall = func(call string) {
		calls++
		if calls == at+1 {
			what = call
			<-resume
		}
	}
	a := node.begin(t, m.paused, k, first, paces()[0].limit)
	synctest.Wait()
	b := node.begin(t, m.whole, k, second, pace.limit)
	select {
	case <-b.done:
	case <-time.After(pace.pause):
	}
	atPause := node.at(k)
	close(resume)
	<-a.done
	<-b.done

	whole := fmt.Sprintf("%s of %s paused before its call %d, %s, while %s", m.paused, k.name, at, what, m.whole)
	a.answers(t, whole)
	b.answers(t, whole)
	m.holds(t, node, k, whole, a, b, atPause)
	for _, pod := range []string{"pod1", "pod2"} {
		node.mustDel(t, k.of(pod))
	}
	if !swept {
		node.same(t, whole+", and then both DELs", before)
	}
	return calls
}

// deed is an act under way.
type deed struct {
	act
	done chan struct{}
	err  error
}

func (m *machine) begin(t *testing.T, a act, k kind, tr *trap, limit time.Duration) *deed {
	t.Helper()
	d := &deed{act: a, done: make(chan struct{})}
	p := m.trapped(tr)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	go func() {
		defer close(d.done)
		defer cancel()
		d.err = a.do(ctx, m, k, p)
	}()
	return d
}

// answers fails the test unless the act succeeded or says that it may be tried again. A second ADD of one attachment may also be told
// that it is there.
func (d *deed) answers(t *testing.T, whole string) {
	t.Helper()
	if d.err == nil {
		return
	}
	readable(t, d.err)
	if code := plugin.Answer(d.err).Code; code != 11 && (code != 7 || d.verb != "ADD") {
		t.Errorf("%s: %s: %v", whole, d.act, plugin.Answer(d.err))
	}
}

// holds fails the test unless each pod whose ADD succeeded, and of which no DEL was made, has what it was given.
func (m meeting) holds(t *testing.T, node *machine, k kind, whole string, a, b *deed, before []string) {
	t.Helper()
	for _, d := range []*deed{a, b} {
		deleted := slices.ContainsFunc([]act{m.paused, m.whole}, func(x act) bool { return x == act{"DEL", d.pod} })
		if d.verb != "ADD" || d.err != nil || deleted {
			continue
		}
		if err := node.plugin.Check(t.Context(), k.of(d.pod).raw()); err != nil {
			t.Errorf("%s: CHECK of %s: %v\nit had %q", whole, d.pod, plugin.Answer(err), before)
		}
	}
	if m.paused.verb == "ADD" && m.whole.verb == "ADD" && a.err == nil && b.err == nil && !node.shares(k) {
		t.Errorf("%s: both succeeded", whole)
	}
}

// shares tells whether two pods may have what a kind is made of.
func (m *machine) shares(k kind) bool { return strings.Contains(k.keys, "master") }
