// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// names gives devices at home the names back that they had before their first attachment of this boot.
func (r *repairing) names(ctx context.Context) error {
	devs, err := r.Records.Homes()
	if err != nil {
		return fmt.Errorf("list home names: %w", err)
	}
	var failed []error
	for _, dev := range devs {
		m, err := r.misnamed(ctx, dev)
		switch {
		case err != nil:
			failed = append(failed, err)
		case m.why == "":
		case m.obstacle != "":
			r.leave(Finding{Kind: FindName, Object: "device " + dev.String(), Why: m.why}, m.obstacle)
		default:
			r.settle(ctx, Finding{
				Kind: FindName, Object: "device " + dev.String(), Why: m.why, Action: "give it its own name back",
			}, func(ctx context.Context) (string, error) { return r.rename(ctx, dev) })
		}
	}
	return errors.Join(failed...)
}

// misnaming is what is wrong with the names of a device, and what can be done.
type misnaming struct {
	why      string // empty: nothing is wrong
	obstacle string
	steps    []attach.Step
}

// misnamed compares a device that nobody owns with what was kept of it. Only names count: MTU, MAC, state and traits may be
// the node's owner's doing.
func (r *repairing) misnamed(ctx context.Context, dev bus.ID) (misnaming, error) {
	if _, err := r.Records.Claimant(dev); !errors.Is(err, record.ErrNotFound) {
		return misnaming{}, nil // owned, or not known to be free
	}
	if _, is, err := r.taken(dev); is || err != nil {
		return misnaming{}, err // more is owed to it than names
	}
	home, err := r.Records.LoadHome(dev)
	if errors.Is(err, record.ErrNotFound) || errors.Is(err, record.ErrUnreadable) {
		return misnaming{}, nil
	}
	if err != nil {
		return misnaming{}, fmt.Errorf("read the home names of %s: %w", dev, err)
	}
	now, err := r.host.Observe(ctx, attach.Query{Device: dev})
	if err != nil {
		return misnaming{}, fmt.Errorf("observe %s: %w", dev, err)
	}
	return judgeNames(home, now), nil
}

// judgeNames looks for names that the kernel or a pod gave (attach.Homed). Others are somebody's choice.
func judgeNames(home, now attach.Facts) misnaming {
	if home.Link == nil || now.Link == nil || now.Link.NS != attach.Host {
		return misnaming{}
	}
	want := attach.Homed(now, home)
	var why []string
	if is, was := now.Link.Name, want.Link.Name; is != was {
		why = append(why, fmt.Sprintf("its netdev is called %s, not %s", is, was))
		link := *want.Link
		link.AltNames = slices.DeleteFunc(slices.Clone(link.AltNames), func(n string) bool { return n == was })
		want.Link = &link
	}
	if now.RDMA != nil && now.RDMA.Name != want.RDMA.Name {
		why = append(why, fmt.Sprintf("its RDMA device is called %s, not %s", now.RDMA.Name, want.RDMA.Name))
	}
	if len(why) == 0 {
		return misnaming{}
	}
	m := misnaming{why: strings.Join(why, ", "), steps: attach.Restore(want, now)}
	switch {
	case now.Link.Name != want.Link.Name && len(now.Link.InUse) > 0:
		m.obstacle = "the node uses it: " + strings.Join(now.Link.InUse, ", ")
	case len(m.steps) == 0:
		m.obstacle = strings.Join(attach.Notes(want, now), "; ")
	}
	return m
}

func (r *repairing) rename(ctx context.Context, dev bus.ID) (string, error) {
	unlock, err := r.lockDevice(ctx, dev, repairVerb)
	if err != nil {
		return "", err
	}
	defer unlock()
	m, err := r.misnamed(ctx, dev)
	if err != nil || m.obstacle != "" {
		return m.obstacle, err
	}
	if m.why == "" {
		return "", errSettled
	}
	if err := attach.RunAll(ctx, r.host, m.steps); err != nil {
		return "", fmt.Errorf("rename device %s: %w", dev, err)
	}
	return "", nil
}

// numbered is an RDMA device at home with its verbs device, and why it cannot be moved for a moment; empty: it can.
type numbered struct {
	dev    bus.ID
	name   string
	uverbs int
	busy   string
}

// bounce moves a device away and back, which gives it the lowest free number.
type bounce struct {
	numbered
	to int
}

// uverbs closes holes in the numbers of verbs devices: an ADD refuses to move a device above one (attach.Steady).
func (r *repairing) uverbs(ctx context.Context) error {
	moves, stuck, err := r.holes(ctx)
	if err != nil || len(moves)+len(stuck) == 0 {
		return err
	}
	// A device on its way between two namespaces has no number for a moment: a hole is one that is there while nobody moves.
	looking, cancel := context.WithTimeout(ctx, r.node.Deadline)
	defer cancel()
	unlock, err := r.lock(looking, moveLock, repairVerb)
	if err != nil {
		return err
	}
	moves, stuck, err = r.holes(ctx)
	unlock()
	if err != nil {
		return err
	}
	for _, b := range moves {
		r.settle(ctx, Finding{
			Kind: FindUverbs, Object: fmt.Sprintf("uverbs%d", b.to),
			Why:    fmt.Sprintf("free, while %s has uverbs%d: a pod that gets a device with a number above the hole is refused", b.name, b.uverbs),
			Action: fmt.Sprintf("move RDMA device %s of %s to an empty namespace and back", b.name, b.dev),
		}, func(ctx context.Context) (string, error) { return r.bounce(ctx, b) })
	}
	for _, b := range stuck {
		r.leave(Finding{
			Kind: FindUverbs, Object: fmt.Sprintf("uverbs%d", b.to),
			Why: fmt.Sprintf("free, while %s of %s has uverbs%d: a pod that gets this device is refused", b.name, b.dev, b.uverbs),
		}, b.busy)
	}
	return nil
}

// holes looks at all numbers and says what would close the holes among them; see closeHoles.
func (r *repairing) holes(ctx context.Context) (moves, stuck []bounce, err error) { //nolint:nonamedreturns // tells the lists apart
	now, err := r.host.Observe(ctx, attach.Query{})
	if err != nil {
		return nil, nil, fmt.Errorf("look at uverbs numbers: %w", err)
	}
	if now.Mode != attach.Exclusive {
		return nil, nil, nil // nothing is moved, so nothing shifts
	}
	devs, err := r.machine.Functions(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("list RDMA functions: %w", err)
	}
	var home []numbered
	for _, dev := range devs {
		d, ok, err := r.number(ctx, r.host, dev)
		if err != nil {
			return nil, nil, err
		}
		if ok {
			home = append(home, d)
		}
	}
	moves, stuck = closeHoles(now.Uverbs, home)
	return moves, stuck, nil
}

// closeHoles plans the fewest moves after which no idle device has a free number below its own, and names the busy ones that
// still have. The idle device with the highest number fills the lowest hole, so that no new one opens below another.
func closeHoles(inUse []int, home []numbered) (moves, stuck []bounce) { //nolint:nonamedreturns // tells the lists apart
	inUse = slices.Clone(inUse)
	var idle, busy []numbered
	for _, d := range home {
		if d.busy == "" {
			idle = append(idle, d)
		} else {
			busy = append(busy, d)
		}
	}
	slices.SortFunc(idle, func(a, b numbered) int { return cmp.Compare(b.uverbs, a.uverbs) })
	for _, d := range idle {
		to := attach.NextUverbs(inUse, d.uverbs)
		if to == d.uverbs {
			break // those after it have lower numbers
		}
		moves = append(moves, bounce{d, to})
		inUse = append(slices.DeleteFunc(inUse, func(n int) bool { return n == d.uverbs }), to)
	}
	for _, d := range busy {
		if to := attach.NextUverbs(inUse, d.uverbs); to != d.uverbs {
			stuck = append(stuck, bounce{d, to})
		}
	}
	return moves, stuck
}

// number looks at one device; ok is false when it is not at home, belongs to an attachment or is no VF, and so no business of
// repair's.
func (r *repairing) number(ctx context.Context, s Session, dev bus.ID) (numbered, bool, error) {
	if _, err := r.Records.Claimant(dev); !errors.Is(err, record.ErrNotFound) {
		return numbered{}, false, nil // owned, or not known to be free
	}
	now, err := s.Observe(ctx, attach.Query{Device: dev})
	if err != nil {
		return numbered{}, false, fmt.Errorf("observe %s: %w", dev, err)
	}
	rdma := now.RDMA
	if !now.Function.VF || rdma == nil || rdma.NS != attach.Host || rdma.Uverbs < 0 {
		return numbered{}, false, nil
	}
	d := numbered{dev: dev, name: rdma.Name, uverbs: rdma.Uverbs}
	promised, err := r.machine.Promised(ctx, dev)
	switch {
	case err != nil:
		return numbered{}, false, fmt.Errorf("ask whether %s is promised to a pod: %w", dev, err)
	case promised:
		d.busy = "kubelet has set it aside for a pod, whose device node has the present number; delete that pod first"
	case len(rdma.Users) > 0:
		d.busy = "it is open in " + strings.Join(rdma.Users, ", ")
	case now.Link != nil && now.Link.NS != attach.Host:
		d.busy = "its netdev is not at home"
	case now.Link != nil && len(now.Link.InUse) > 0:
		d.busy = "the node uses it: " + strings.Join(now.Link.InUse, ", ")
	}
	return d, true, nil
}

// bounce makes one move of the plan, if it is still right.
func (r *repairing) bounce(ctx context.Context, b bounce) (string, error) {
	path, end, err := r.machine.Scratch(ctx)
	if err != nil {
		return "", fmt.Errorf("make a namespace to move %s through: %w", b.name, err)
	}
	defer end()
	s, err := r.Open(ctx, path)
	if err != nil {
		return "", fmt.Errorf("open a namespace to move %s through: %w", b.name, err)
	}
	detail, err := r.bounceThrough(ctx, s, b)
	return detail, errors.Join(err, s.Close())
}

func (r *repairing) bounceThrough(ctx context.Context, s Session, b bounce) (string, error) {
	unlock, err := r.lockDevice(ctx, b.dev, repairVerb)
	if err != nil {
		return "", err
	}
	defer unlock()
	unlockMove, err := r.lock(ctx, moveLock, repairVerb+" of "+b.dev.String())
	if err != nil {
		return "", err
	}
	defer unlockMove()
	d, ok, err := r.number(ctx, s, b.dev)
	if err != nil || !ok {
		return "it is not idle at home any more", err
	}
	if d.busy != "" {
		return d.busy, nil
	}
	now, err := s.Observe(ctx, attach.Query{Device: b.dev})
	if err != nil {
		return "", fmt.Errorf("observe %s: %w", b.dev, err)
	}
	if attach.NextUverbs(now.Uverbs, d.uverbs) == d.uverbs {
		return "", errSettled
	}
	away := attach.MoveRDMA{Index: now.RDMA.Index, GUID: now.RDMA.NodeGUID, Name: d.name, From: attach.Host, To: attach.Pod}
	if err := attach.Run(ctx, s, []attach.Step{away, away.Reverse()}); err != nil {
		return "", fmt.Errorf("move RDMA device %s away and back: %w", d.name, err)
	}
	return "", nil
}
