// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
)

// TestConcurrency lets sixteen runtimes work on four devices, each as a process of its own: ADD and DEL of pods that live, whose
// namespace dies with or without a DEL, and whose DEL comes during ADD. An ADD succeeds or answers with code 11, two pods
// never have one device or one address, and in the end nothing is left.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	for _, mode := range []attach.Mode{attach.Exclusive, attach.Shared} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, mode)
			before := m.state(t)
			owners := &ownership{of: map[string]string{}}
			var all sync.WaitGroup
			var mu sync.Mutex
			added := 0
			for worker := range 16 {
				random := rand.New(rand.NewPCG(uint64(worker), 7))
				p := m.process()
				all.Go(func() {
					for round := range 6 {
						dev := int(vfs()[random.IntN(4)].PCI.Function)
						r := request{pod: fmt.Sprintf("w%d-%d", worker, round), dev: dev, ipam: []string{v4Range, delegated, dualRange}[random.IntN(3)]}
						if live(t, m, p, r, owners, random.IntN(5)) {
							mu.Lock()
							added++
							mu.Unlock()
						}
					}
				})
			}
			all.Wait()
			if added < 10 {
				t.Errorf("only %d ADDs succeeded, the test proves little", added)
			}
			must(t, m.gc(t))
			m.same(t, "after all", before)
			t.Logf("%d of 96 ADDs succeeded", added)
		})
	}
}

// live is one pod's life. It tells whether its ADD succeeded.
func live(t *testing.T, m *machine, p *plugin.Plugin, r request, owners *ownership, way int) bool {
	t.Helper()
	m.pod(r.pod)
	if way == 0 {
		var early sync.WaitGroup
		early.Go(func() { _ = p.Del(t.Context(), r.raw()) })
		defer early.Wait()
	}
	result, err := p.Add(t.Context(), r.raw())
	if err != nil {
		if code := plugin.Answer(err).Code; code != netconf.CodeTryLater {
			t.Errorf("ADD of %s: %v", r.pod, plugin.Answer(err))
		}
		m.KillNetNS(netnsOf(r.pod))
		if err := p.Del(t.Context(), r.raw()); err != nil {
			t.Errorf("DEL of %s: %v", r.pod, err)
		}
		return false
	}
	var keys []string
	if way != 0 { // one whose DEL came early may have lost all by now
		keys = append(keys, fmt.Sprint("device ", r.dev))
		for _, ip := range result.IPs {
			keys = append(keys, ip.Address.String())
		}
		owners.take(t, r.pod, keys)
	}
	switch way {
	case 1: // a runtime that ends the namespace first
		owners.give(keys)
		m.KillNetNS(netnsOf(r.pod))
	case 2: // a lost DEL; GC comes in the end
		owners.give(keys)
		m.KillNetNS(netnsOf(r.pod))
		return true
	default:
		owners.give(keys)
	}
	if err := p.Del(t.Context(), r.raw()); err != nil {
		t.Errorf("DEL of %s: %v", r.pod, err)
	}
	m.KillNetNS(netnsOf(r.pod))
	return true
}

// ownership tells when two have the same.
type ownership struct {
	mu sync.Mutex
	of map[string]string
}

func (o *ownership) take(t *testing.T, pod string, keys []string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, key := range keys {
		if holder, held := o.of[key]; held {
			t.Errorf("%s was given to %s while %s has it", key, pod, holder)
		}
		o.of[key] = pod
	}
}

func (o *ownership) give(keys []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key := range o.of {
		if slices.Contains(keys, key) {
			delete(o.of, key)
		}
	}
}

// TestTwoInterfaces adds and deletes two interfaces of one pod at the same time: they share the pod's folder and its hint, and
// neither may notice the other.
func TestTwoInterfaces(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	before := m.state(t)
	var both sync.WaitGroup
	for ifname, dev := range map[string]int{"net1": 3, "net2": 6} {
		p, r := m.process(), request{pod: "pod1", dev: dev, ifname: ifname, network: "of-" + ifname}
		both.Go(func() {
			for range 40 {
				if _, err := p.Add(t.Context(), r.raw()); err != nil {
					t.Errorf("ADD of %s: %v", ifname, err)
				}
				if err := p.Del(t.Context(), r.raw()); err != nil {
					t.Errorf("DEL of %s: %v", ifname, err)
				}
			}
		})
	}
	both.Wait()
	m.same(t, "after all", before)
}

// gate stops a process before its first step.
type gate struct {
	once    sync.Once
	reached chan struct{}
	open    chan struct{}
}

func newGate() *gate { return &gate{reached: make(chan struct{}), open: make(chan struct{})} }

type gatedSession struct {
	plugin.Session
	gate *gate
}

func (s *gatedSession) Apply(ctx context.Context, step attach.Step) error {
	s.gate.once.Do(func() {
		close(s.gate.reached)
		<-s.gate.open
	})
	return s.Session.Apply(ctx, step)
}

// gated is a process that stops at the gate, between the last of its looks and the first of its changes.
func (m *machine) gated(g *gate) *plugin.Plugin {
	p := m.process()
	open := p.Open
	p.Open = func(ctx context.Context, netns string) (plugin.Session, error) {
		s, err := open(ctx, netns)
		return &gatedSession{s, g}, err
	}
	return p
}

// TestMasterAndWhole has a macvlan on a card and the card itself asked for at the same moment, with either of them between its look
// at the other and its own change. Only one gets it: a macvlan made in that moment would go into the other pod with the card.
func TestMasterAndWhole(t *testing.T) {
	t.Parallel()
	whole := request{pod: "whole", of: otherPF(), keys: `"device":"ens2f0"`}
	shares := request{pod: "shares", keys: `"master":"ens2f0"`, more: rdmaOff}
	for _, tt := range []struct {
		name          string
		first, second request
		code          uint
		words         []string
	}{
		{"macvlan while the card moves", whole, shares, 11, nil},
		{"card while a macvlan is made", shares, whole, 103, []string{"net1 of pod team-a/shares"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			m.pod("whole")
			m.pod("shares")
			before := m.state(t)
			g := newGate()
			p := m.gated(g)
			var both sync.WaitGroup
			both.Go(func() {
				if _, err := p.Add(t.Context(), tt.first.raw()); err != nil {
					t.Errorf("ADD of %s, which came first: %v", tt.first.owner(), err)
				}
			})
			<-g.reached
			short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := m.process().Add(short, tt.second.raw())
			answered(t, err, 11, "0000:3c:00.0", "ADD "+tt.first.owner().String())
			both.Go(func() {
				_, err := m.process().Add(t.Context(), tt.second.raw())
				answered(t, err, tt.code, tt.words...)
			})
			close(g.open)
			both.Wait()
			m.mustDel(t, tt.second)
			m.mustDel(t, tt.first)
			m.same(t, "after both", before)
		})
	}
}

// movingSession does not see the verbs device of another RDMA device while that one moves.
type movingSession struct {
	plugin.Session
	moving *atomic.Bool
	seen   func()
}

func (s *movingSession) Observe(ctx context.Context, q attach.Query) (attach.Facts, error) {
	facts, err := s.Session.Observe(ctx, q)
	if s.moving.Load() {
		facts.Uverbs = slices.DeleteFunc(facts.Uverbs, func(n int) bool { return n == 0 })
		s.seen()
	}
	return facts, err
}

// TestNumberOfADeviceOnItsWay: the uverbs number of a device that moves is free for a moment. That is no hole, and no reason to refuse
// a pod whose device has a higher number.
func TestNumberOfADeviceOnItsWay(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	before := m.state(t)
	r, p := request{pod: "pod1", dev: 3}, m.process()
	var moving atomic.Bool
	looked := make(chan struct{})
	open, seen := p.Open, sync.OnceFunc(func() { close(looked) })
	p.Open = func(ctx context.Context, netns string) (plugin.Session, error) {
		s, err := open(ctx, netns)
		return &movingSession{s, &moving, seen}, err
	}
	moved, err := p.Locks.Acquire(t.Context(), "rdma-move", "DEL of another pod")
	must(t, err)
	moving.Store(true)
	var add sync.WaitGroup
	add.Go(func() { _, err = p.Add(t.Context(), r.raw()) })
	<-looked
	moving.Store(false)
	moved()
	add.Wait()
	must(t, err)
	m.mustDel(t, r)

	// A real hole stays one.
	moving.Store(true)
	_, err = p.Add(t.Context(), r.raw())
	answered(t, err, 104, "podfabricctl repair")
	moving.Store(false)
	m.same(t, "after all", before)
}

// passingSession does not see the verbs device of another RDMA device at some looks: from the first one on, or from the first after
// the netdev was moved.
type passingSession struct {
	plugin.Session
	late  bool
	moved *atomic.Bool
	left  *atomic.Int32 // looks that do not see it
}

func (s *passingSession) Observe(ctx context.Context, q attach.Query) (attach.Facts, error) {
	facts, err := s.Session.Observe(ctx, q)
	if (!s.late || s.moved.Load()) && s.left.Add(-1) >= 0 {
		facts.Uverbs = slices.DeleteFunc(facts.Uverbs, func(n int) bool { return n == 0 })
	}
	return facts, err
}

func (s *passingSession) Apply(ctx context.Context, step attach.Step) error {
	if _, link := step.(attach.MoveLink); link {
		s.moved.Store(true)
	}
	return s.Session.Apply(ctx, step)
}

// TestNumberOfADeviceThatTheKernelSendsHome: it takes no lock of podfabric's, and its number is free for some looks.
func TestNumberOfADeviceThatTheKernelSendsHome(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		m := newMachine(t, attach.Exclusive)
		m.pod("pod1")
		before := m.state(t)
		r, p := request{pod: "pod1", dev: 3}, m.process()
		var moved atomic.Bool
		var left atomic.Int32
		left.Store(7)
		open := p.Open
		p.Open = func(ctx context.Context, netns string) (plugin.Session, error) {
			s, err := open(ctx, netns)
			return &passingSession{s, late, &moved, &left}, err
		}
		_, err := p.Add(t.Context(), r.raw())
		must(t, err)
		if n := left.Load(); n >= 0 {
			t.Errorf("late %t: ADD did not look again, %d looks are left", late, n)
		}
		m.mustDel(t, r)
		m.same(t, "after all", before)
	}
}

// TestRepairWaitsForADeviceOnItsWay: for repair, too, the number of a device that moves is no hole, neither to be told nor to be closed.
func TestRepairWaitsForADeviceOnItsWay(t *testing.T) {
	t.Parallel()
	for _, dry := range []bool{true, false} {
		m := newMachine(t, attach.Exclusive)
		before := m.state(t)
		p := m.process()
		var moving atomic.Bool
		looked := make(chan struct{})
		open, seen := p.Open, sync.OnceFunc(func() { close(looked) })
		p.Open = func(ctx context.Context, netns string) (plugin.Session, error) {
			s, err := open(ctx, netns)
			return &movingSession{s, &moving, seen}, err
		}
		moved, err := p.Locks.Acquire(t.Context(), "rdma-move", "DEL of another pod")
		must(t, err)
		moving.Store(true)
		var found []plugin.Finding
		var repair sync.WaitGroup
		repair.Go(func() { found, err = p.Repair(t.Context(), m, dry) })
		<-looked
		for deadline := time.Now().Add(200 * time.Millisecond); time.Now().Before(deadline); runtime.Gosched() {
			// Long enough for a repair that does not wait to say what it sees.
		}
		moving.Store(false)
		moved()
		repair.Wait()
		must(t, err)
		if len(found) > 0 {
			t.Errorf("dry %t: found %+v", dry, found)
		}
		m.same(t, "repair", before)
	}
}

// stealingSession lets something happen right before an RDMA device moves into a pod.
type stealingSession struct {
	plugin.Session
	happen func()
}

func (s *stealingSession) Apply(ctx context.Context, step attach.Step) error {
	if move, ok := step.(attach.MoveRDMA); ok && move.To == attach.Pod {
		s.happen()
	}
	return s.Session.Apply(ctx, step)
}

// TestNumberTakenInTheLastMoment: between the look at the numbers and the move the driver of another device is unbound, which is nothing
// that a lock of podfabric's could keep from. The pod does not start with the number that became free.
func TestNumberTakenInTheLastMoment(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	r, p, home := request{pod: "pod1", dev: 3}, m.process(), m.where(3)
	open := p.Open
	p.Open = func(ctx context.Context, netns string) (plugin.Session, error) {
		s, err := open(ctx, netns)
		return &stealingSession{s, func() { m.RemoveRDMA("mlx5_0") }}, err
	}
	_, err := p.Add(t.Context(), r.raw())
	answered(t, err, 104, "uverbs0", "given /dev/infiniband/uverbs2")
	if now := m.where(3); now != home {
		t.Errorf("the device is at %v, want %v", now, home)
	}
	m.mustDel(t, r)
	m.KillNetNS(netnsOf("pod1"))

	// It keeps that number at home. kubelet has the runtime try again, with another sandbox and the device nodes of the first.
	m.pod("pod1")
	raw := r.raw()
	raw.ContainerID = "cid-again"
	before := m.state(t)
	_, err = m.plugin.Add(t.Context(), raw)
	answered(t, err, 104, "delete the pod", "uverbs0", "given /dev/infiniband/uverbs2")
	m.same(t, "the refusal", before)
	m.pod("pod2")
	next := request{pod: "pod2", dev: 3} // its container is given uverbs0
	m.mustAdd(t, next)
	m.mustDel(t, next)
}
