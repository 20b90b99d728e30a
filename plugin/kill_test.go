// SPDX-License-Identifier: Apache-2.0

//test:norace

package plugin_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/podfabric/podfabric/plugin/attach"
)

// verb is one that is killed: what a kind's pod must have behind it before, the call, and what is to be done at last.
type verb struct {
	name  string
	ready func(t testing.TB, m *machine, k kind)
	do    func(t testing.TB, m *machine, k kind) error
	end   func(t testing.TB, m *machine, k kind) // nil: nothing is
	dead  bool                                   // the pod's namespace died before it
	all   bool                                   // of whole kinds each state is put before all aftermaths, not only each point before one
}

// verbs are ADD and DEL, and the others that bring devices home.
func verbs() []verb {
	add := func(t testing.TB, m *machine, k kind) error { t.Helper(); return m.add(t, k.request) }
	del := func(t testing.TB, m *machine, k kind) error { t.Helper(); return m.del(t, k.request) }
	added := func(t testing.TB, m *machine, k kind) {
		t.Helper()
		k.prepare(m)
		m.mustAdd(t, k.request)
	}
	died := func(t testing.TB, m *machine, k kind) {
		t.Helper()
		added(t, m, k)
		m.KillNetNS(netnsOf(k.pod))
	}
	return []verb{
		{name: "ADD", ready: func(_ testing.TB, m *machine, k kind) { k.prepare(m) }, do: add, all: true},
		{name: "DEL", ready: added, do: del, all: true},
		{name: "DEL of a changed device", ready: func(t testing.TB, m *machine, k kind) {
			t.Helper()
			added(t, m, k)
			m.changed(k)
		}, do: del},
		{name: "GC", ready: died, do: func(t testing.TB, m *machine, _ kind) error { t.Helper(); return m.gc(t) }, dead: true},
		{name: "repair", ready: died, do: func(t testing.TB, m *machine, _ kind) error {
			t.Helper()
			_, err := m.plugin.Repair(t.Context(), m, false)
			return err
		}, dead: true},
		{name: "ADD after a dead pod", ready: func(t testing.TB, m *machine, k kind) {
			t.Helper()
			m.pod("pod0")
			k.prepareFor(m, "pod0")
			m.mustAdd(t, k.of("pod0"))
			m.KillNetNS(netnsOf("pod0"))
			k.prepare(m)
		}, do: add, end: func(t testing.TB, m *machine, k kind) { t.Helper(); m.mustDel(t, k.of("pod0")) }},
	}
}

// changed is what a pod with all capabilities does to its interface. What another plugin made stays as that one has it.
func (m *machine) changed(k kind) {
	dev := k.device()
	switch {
	case k.before != nil, k.link == "none":
	case inside(k.pod, m.Where(dev)[0]):
		m.RenameLink(dev, "mine")
		m.SetAltNames(dev, "my-own")
		m.SetLink(dev, "02:de:ad:be:ef:00", 1400, false)
		traits := m.Traits(dev)
		traits.Flags, traits.Alias, traits.TxQueue = traits.Flags+" noarp promisc", "my pet", 7
		m.SetTraits(dev, traits)
	case strings.Contains(k.keys, "macvlan"):
		m.RenamePodLink(netnsOf(k.pod), "net1", "mine")
	}
	if inside(k.pod, m.Where(dev)[1]) {
		m.RenameRDMA(dev, "mine_0")
	}
}

// wholes are the kinds that differ in what is done to the machine or in who hands out addresses.
func wholes() []kind {
	return some("moved", "moved, dual, rail, MTU, up at home", "moved, no address", "moved, delegate", "shared", "soft, delegate",
		"macvlan, delegate", "macvlan, passthru", "ipvlan on a VLAN", "device by name", "sub-function", "VF with settings", "VF of a program",
		"chained behind host-device", "chained behind macvlan")
}

// after are the aftermaths that can follow: nobody adds or holds what is dead.
func (v verb) after() []aftermath {
	if !v.dead {
		return aftermaths()
	}
	return slices.DeleteFunc(aftermaths(), func(a aftermath) bool { return !a.dead })
}

// TestKilledAnywhere kills each verb on each kind of attachment before each of its calls and half way through each, and lets all
// its parts fail from there on. What it leaves is put before every aftermath, and in the end the node is as it was. The points
// come from counting the calls of a run that nothing disturbs, so that a new step is covered the day it is written.
//
// Points that leave the machine in one state share its aftermaths: the process that could tell them apart is dead. Each point is
// followed by one aftermath, in turn, and each state that ADD and DEL of a kind of wholes leave by all.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	sum := &tally{}
	t.Run("all", func(t *testing.T) {
		for _, k := range kinds() {
			for _, v := range verbs() {
				t.Run(k.name+"/"+v.name, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						p := &product{kind: k, verb: v, all: v.all && slices.ContainsFunc(wholes(), func(w kind) bool { return w.name == k.name })}
						p.run(t)
						for _, text := range p.dirt {
							t.Error(text)
						}
						sum.add(p)
					})
				})
			}
		}
	})
	sum.log(t)
}

// product is all points of one verb on one kind before all aftermaths.
type product struct {
	kind   kind
	verb   verb
	all    bool                   // each state before all aftermaths
	hows   []strike               // nil: a kill before a call, half way through it, and the loss of all parts
	onCall func(what string)      // of the trap while the verb runs
	then   func(m *machine)       // what else happens after the strike; nil: nothing
	skip   func(attach.Step) bool // steps that are not made after the strike; nil: all are
	after  []aftermath            // nil: all that can follow

	m           *machine
	dir         string   // of the machine; empty: one of the test's
	alive, gone []string // the states that the aftermaths must end in
	states      map[string]*state
	points      int
	runs        int
	steps       map[string]bool // kinds of steps that a point was before or in
	dirt        []string
}

// point is where and how a verb was struck.
type point struct {
	at  int
	how strike
}

// state is one in which kills leave the machine.
type state struct {
	point point // one of those that lead to it
	n     int   // how many do
	todo  []aftermath
	next  int
}

// dirtMax is how many dirty combinations are told of one kind and verb.
const dirtMax = 3

func (p *product) run(t testing.TB) {
	t.Helper()
	p.states, p.steps = map[string]*state{}, map[string]bool{}
	if p.after == nil {
		p.after = p.verb.after()
	}
	if p.hows == nil {
		p.hows = []strike{killed, killHalf, forGood}
	}
	p.ends(t)
	p.machine(t)
	p.verb.ready(t, p.m, p.kind)
	n := p.m.callsOf(t, func() error { return p.verb.do(t, p.m, p.kind) })
	p.m = nil
	for at := range n {
		for _, how := range p.hows {
			p.points++
			key, what := p.kill(t, point{at, how})
			s := p.states[key]
			if s == nil {
				s = &state{point: point{at, how}, todo: p.after}
				p.states[key] = s
			}
			s.n++
			p.next(t, what, s)
		}
	}
	for key, s := range p.states {
		for p.all && s.next < len(s.todo) && len(p.dirt) < dirtMax {
			again, what := p.kill(t, s.point)
			if again != key {
				t.Fatalf("%s left another state than before:\n%s\nwas\n%s", what, again, key)
			}
			p.next(t, what, s)
		}
	}
}

// ends finds the states that aftermaths must end in: podfabric has never been there.
func (p *product) ends(t testing.TB) {
	t.Helper()
	p.machine(t)
	p.kind.prepare(p.m)
	p.alive = p.m.state(t)
	p.m.KillNetNS(netnsOf(p.kind.pod))
	p.gone = p.m.state(t)
	p.m = nil
}

// machine makes the one that there is ready for the next run, or a new one where another plugin has left something.
func (p *product) machine(t testing.TB) {
	t.Helper()
	if p.m == nil || p.kind.before != nil {
		dir := p.dir
		if dir == "" {
			dir = memory(t)
		}
		p.m = newMachineIn(t, dir, p.kind.mode)
		p.m.pod("pod1")
		p.m.pod("pod2")
	}
	p.m.renew(t)
}

// kill strikes the verb at a point. It gives the state that is left, and what was done, in words.
func (p *product) kill(t testing.TB, at point) (string, string) {
	t.Helper()
	p.machine(t)
	p.verb.ready(t, p.m, p.kind)
	p.m.trap.set(at.at, at.how)
	p.m.trap.onCall = p.onCall
	var err error
	died := dies(func() { err = p.verb.do(t, p.m, p.kind) })
	hit, step := p.m.trap.hit, p.m.trap.step
	what := fmt.Sprintf("%s of %s, whose call %d, %s, was %s", p.verb.name, p.kind.name, at.at, hit, at.how)
	p.m.trap.onCall = nil
	p.m.trap.clear()
	p.m.reap(t)
	if p.then != nil {
		p.then(p.m)
	}
	if hit == "" || died == (at.how == forGood) {
		t.Fatalf("%s: died %t, error %v", what, died, err)
	}
	if step != "" {
		p.steps[step] = true
	}
	return p.m.key(t), what
}

// reap does what the kernel does when a process dies: it closes what it had open, and lifts its locks. The file of a lock stays
// behind, which nobody minds.
func (m *machine) reap(t testing.TB) {
	t.Helper()
	m.Reap()
	must(t, os.RemoveAll(filepath.Join(m.dir, "run/locks")))
	must(t, os.Mkdir(filepath.Join(m.dir, "run/locks"), 0o700))
}

// next has the next aftermath of a state follow.
func (p *product) next(t testing.TB, what string, s *state) {
	t.Helper()
	p.follow(t, what, s.todo[s.next%len(s.todo)])
	s.next++
}

// follow has an aftermath come after what was done, and looks whether the machine is as it was.
func (p *product) follow(t testing.TB, what string, a aftermath) {
	t.Helper()
	p.runs++
	v := &verdict{TB: t}
	p.m.trap.skip = p.skip
	v.of(func() {
		a.do(v, p.m, p.kind)
		if p.verb.end != nil {
			p.verb.end(v, p.m, p.kind)
		}
		want := p.alive
		if a.dead || p.verb.dead {
			want = p.gone
		}
		p.m.same(v, "in the end", want)
	})
	p.m.trap.skip = nil
	if len(v.said) > 0 {
		p.dirt = append(p.dirt, what+", then "+a.name+":\n"+strings.Join(v.said, "\n"))
		p.m = nil
	}
}
