// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"

	types100 "github.com/containernetworking/cni/pkg/types/100"

	"github.com/podfabric/podfabric/ipam"
	"github.com/podfabric/podfabric/ipam/lease"
	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
	"github.com/podfabric/podfabric/plugin/delegate"
)

// strike is what happens at one call that the plugin makes of its parts.
type strike string

const (
	refused  strike = "refused"  // nothing is done, and an error says so
	halfDone strike = "half"     // of a step, what the kernel leaves of it when it fails; of all else, everything
	forGood  strike = "for good" // refused, and everything after it too
	killed   strike = "killed"   // the process dies before it
	killHalf strike = "killed half way"
)

// trap counts the calls that the plugin makes of its parts, and strikes at one of them. It is for one goroutine.
type trap struct {
	kernel *attachtest.Kernel
	calls  int
	at     int // the call to strike at; -1: none
	how    strike
	hit    string            // what it struck, empty: nothing yet
	step   string            // the kind of step that it struck, empty: none
	onCall func(what string) // what is done before each call; nil: nothing
	// skip are steps that are taken for made and are not; nil: none.
	skip func(attach.Step) bool
}

// death is what a killed process panics with.
type death struct{}

func (tr *trap) set(at int, how strike) {
	tr.calls, tr.at, tr.how, tr.hit, tr.step = 0, at, how, "", ""
}

func (tr *trap) clear() { tr.set(-1, "") }

// struck counts a call and tells whether it is the one.
func (tr *trap) struck(what string) bool {
	if tr.onCall != nil {
		tr.onCall(what)
	}
	if tr.at < 0 {
		return false
	}
	n := tr.calls
	tr.calls++
	if n != tr.at && (tr.how != forGood || n < tr.at) {
		return false
	}
	if tr.hit == "" {
		tr.hit = what
	}
	return true
}

// call does it or strikes. What do has opened, and nobody was given, release closes: the plugin, or the kernel when it dies.
func (tr *trap) call(what string, do func() error, release ...func()) error {
	if !tr.struck(what) {
		return do()
	}
	if tr.how == halfDone || tr.how == killHalf {
		defer func() {
			for _, r := range release {
				r()
			}
		}()
	}
	switch tr.how {
	case killed:
		panic(death{})
	case killHalf:
		_ = do()
		panic(death{})
	case halfDone:
		_ = do()
	case refused, forGood:
	}
	return fmt.Errorf("%s: %w", what, attachtest.ErrInjected)
}

// through is call for what gives something; drop closes what nobody was given.
func through[T any](tr *trap, what string, do func() (T, error), drop ...func(T)) (T, error) {
	var v T
	given := false
	release := make([]func(), 0, len(drop))
	for _, d := range drop {
		release = append(release, func() {
			if given {
				d(v)
			}
		})
	}
	err := tr.call(what, func() error {
		got, err := do()
		v, given = got, err == nil
		return err
	}, release...)
	return v, err
}

// dies runs fn and tells whether its process was killed in it.
func dies(fn func()) (struck bool) { //nolint:nonamedreturns // a deferred function sets it
	defer func() {
		switch r := recover(); r.(type) {
		case nil:
		case death:
			struck = true
		default:
			panic(r)
		}
	}()
	return attachtest.Killed(fn)
}

// session has every look and every step go past the trap.
type session struct {
	*attachtest.Session
	trap *trap
}

func (s *session) Observe(ctx context.Context, q attach.Query) (attach.Facts, error) {
	return through(s.trap, "observe", func() (attach.Facts, error) { return s.Session.Observe(ctx, q) })
}

func (s *session) Ports(ctx context.Context, ns attach.NS, device string) ([]attach.Port, error) {
	return through(s.trap, "ports", func() ([]attach.Port, error) { return s.Session.Ports(ctx, ns, device) })
}

func (s *session) Apply(ctx context.Context, step attach.Step) error {
	if s.trap.skip != nil && s.trap.skip(step) {
		return nil
	}
	if s.trap.struck("step " + step.String()) {
		if s.trap.hit == "step "+step.String() {
			s.trap.step = kindOf(step)
		}
		switch s.trap.how {
		case refused, forGood:
			s.trap.kernel.FailWith(0, attachtest.Nothing, attachtest.ErrInjected)
		case halfDone:
			s.trap.kernel.FailWith(0, attachtest.Half, attachtest.ErrInjected)
		case killed:
			s.trap.kernel.KillAt(0, attachtest.Nothing)
		case killHalf:
			s.trap.kernel.KillAt(0, attachtest.Half)
		}
	}
	return s.Session.Apply(ctx, step)
}

// kindOf is the name of a step's type.
func kindOf(step attach.Step) string { return strings.TrimPrefix(fmt.Sprintf("%T", step), "attach.") }

type trappedLeases struct {
	plugin.Leases
	trap *trap
}

func (l *trappedLeases) Allocate(ctx context.Context, sets [][]ipam.Range, owner string, want []netip.Addr) (lease.Grant, error) {
	return through(l.trap, "lease", func() (lease.Grant, error) { return l.Leases.Allocate(ctx, sets, owner, want) })
}

func (l *trappedLeases) Release(ctx context.Context, owner string) error {
	return l.trap.call("release of leases", func() error { return l.Leases.Release(ctx, owner) })
}

type trappedIPAM struct {
	*otherIPAM
	trap *trap
}

func (i *trappedIPAM) Add(ctx context.Context, c delegate.Call) (*types100.Result, error) {
	return through(i.trap, "ADD of the delegate", func() (*types100.Result, error) { return i.otherIPAM.Add(ctx, c) })
}

func (i *trappedIPAM) Check(ctx context.Context, c delegate.Call) error {
	return i.trap.call("CHECK of the delegate", func() error { return i.verb(ctx, "CHECK", c) })
}

func (i *trappedIPAM) GC(ctx context.Context, c delegate.Call) error {
	return i.trap.call("GC of the delegate", func() error { return i.verb(ctx, "GC", c) })
}

func (i *trappedIPAM) Status(ctx context.Context, c delegate.Call) error {
	return i.trap.call("STATUS of the delegate", func() error { return i.verb(ctx, "STATUS", c) })
}

func (i *trappedIPAM) Del(ctx context.Context, c delegate.Call) error {
	return i.trap.call("DEL of the delegate", func() error { return i.otherIPAM.Del(ctx, c) })
}

// otherIPAM is another CNI IPAM plugin: it remembers who has what over reboots, as host-local does.
type otherIPAM struct {
	mu    sync.Mutex
	held  map[string]string // owner to address
	calls []delegate.Call
	last  byte
	// missing is that the plugin is not installed.
	missing error
	// What it does instead of its work, if set.
	onAdd func(context.Context) (*types100.Result, error)
	onDel func(context.Context) error
	// asked are the other verbs that it was called with, with their configurations; answers what it says to them.
	asked   []string
	answers map[string]error
}

// verb is one that changes nothing.
func (i *otherIPAM) verb(_ context.Context, name string, c delegate.Call) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked = append(i.asked, name+" "+string(c.Config))
	return i.answers[name]
}

func (i *otherIPAM) Add(ctx context.Context, c delegate.Call) (*types100.Result, error) {
	i.mu.Lock()
	instead := i.onAdd
	i.calls = append(i.calls, c)
	i.mu.Unlock()
	if instead != nil {
		if r, err := instead(ctx); r != nil || err != nil {
			return r, err
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.last++
	address := fmt.Sprintf("10.9.0.%d/24", i.last)
	i.held[c.ContainerID+"/"+c.IfName] = address
	ip, ipNet, _ := net.ParseCIDR(address)
	ipNet.IP = ip
	return &types100.Result{CNIVersion: "1.0.0", IPs: []*types100.IPConfig{{Address: *ipNet, Gateway: net.IPv4(10, 9, 0, 254)}}}, nil
}

func (i *otherIPAM) Find(delegate.Call) error { return i.missing }

func (i *otherIPAM) Del(ctx context.Context, c delegate.Call) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.calls = append(i.calls, c)
	if i.onDel != nil {
		if err := i.onDel(ctx); err != nil {
			return err
		}
	}
	delete(i.held, c.ContainerID+"/"+c.IfName)
	return nil
}

func (i *otherIPAM) holds() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var out []string
	for owner, address := range i.held {
		out = append(out, "the other IPAM plugin holds "+address+" for "+owner)
	}
	slices.Sort(out)
	return out
}

// set changes what it does.
func (i *otherIPAM) set(onAdd func(context.Context) (*types100.Result, error), onDel func(context.Context) error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.onAdd, i.onDel = onAdd, onDel
}

// calledWith tells whether some call had these words in its configuration.
func (i *otherIPAM) calledWith(words string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.ContainsFunc(i.calls, func(c delegate.Call) bool { return strings.Contains(string(c.Config), words) })
}
