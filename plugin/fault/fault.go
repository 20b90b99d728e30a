// SPDX-License-Identifier: Apache-2.0

//go:build faults

// Package fault kills and refuses the plugin where a test wants it. It stands between the verbs and the machine, so that its points
// are the calls of a run itself: every step of every plan, one that is written tomorrow included, and the looks between them,
// which have the records, leases, delegates and hints on either side. It is compiled with the tag faults only.
package fault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
)

// Open is what the verbs know of a machine.
type Open func(ctx context.Context, netns string) (plugin.Session, error)

// ErrInjected is in every refusal that a test asked for, beside the errno.
var ErrInjected = errors.New("injected fault")

// Wrap gives open with the faults of a spec, whose words are separated by spaces:
//
//	list=FILE     append a line for each point as it is reached: number from 1, kind, text, separated by tabs
//	before=N      die before point N, by SIGKILL; before=KIND:N before the Nth of that kind
//	after=N       die after point N: it was done, and nobody heard of it; after=KIND:N as well
//	deny=N:E      point N is not done and fails with errno E
//	spoil=N:E     point N is done and fails with errno E
//	omit=KIND     steps of that kind are left out on the way home, and said to be done. A move counts when it leads home, other kinds
//	              always, so that this is for a process that only takes back
//	late          what is recorded in dir is as if it were written after the changes: out of the way, as FOLDER.late, from before each
//	              step to the next look
//
// One count runs over all sessions of a process. A spec that cannot be read is the error of the first call of open.
func Wrap(spec, dir string, open Open) Open {
	f := &faults{dir: dir, count: map[string]int{}}
	bad := f.read(spec)
	return func(ctx context.Context, netns string) (plugin.Session, error) {
		if bad != nil {
			return nil, bad
		}
		s, err := at(f, "Open", netns, func() (plugin.Session, error) { return open(ctx, netns) })
		if err != nil {
			if s != nil {
				err = errors.Join(err, s.Close())
			}
			return nil, err
		}
		return &session{Session: s, faults: f}, nil
	}
}

// faults are the spec of one process and how far it has come.
type faults struct {
	dir                        string // state folder of the plugin
	list, omit                 string
	before, after, deny, spoil place
	errno                      syscall.Errno
	late                       bool

	mu    sync.Mutex
	count map[string]int // of all points under "", of a kind under its name
	aside bool           // the records are out of the way
}

// place is where something is to happen.
type place struct {
	kind string // "": any
	n    int    // 0: nowhere
}

// reached is a point, by its number among all and among those of its kind.
type reached struct {
	kind   string
	n, nth int
}

func (r reached) is(p place) bool {
	return p.kind == "" && r.n == p.n || p.kind == r.kind && r.nth == p.n
}

func readPlace(text string) (place, error) {
	kind, n, found := strings.Cut(text, ":")
	if !found {
		kind, n = "", text
	}
	number, err := strconv.Atoi(n)
	if err != nil {
		return place{}, fmt.Errorf("read a number: %w", err)
	}
	return place{kind, number}, nil
}

func (f *faults) read(spec string) error {
	for word := range strings.FieldsSeq(spec) {
		key, value, _ := strings.Cut(word, "=")
		var err error
		switch key {
		case "list":
			f.list = value
		case "omit":
			f.omit = value
		case "late":
			f.late = true
		case "before":
			f.before, err = readPlace(value)
		case "after":
			f.after, err = readPlace(value)
		case "deny":
			_, err = fmt.Sscanf(value, "%d:%d", &f.deny.n, &f.errno)
		case "spoil":
			_, err = fmt.Sscanf(value, "%d:%d", &f.spoil.n, &f.errno)
		default:
			err = errors.ErrUnsupported
		}
		if err != nil {
			return fmt.Errorf("read fault %q: %w", word, err)
		}
	}
	return nil
}

// point counts a point and tells its numbers.
func (f *faults) point(kind, text string) (reached, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count[""]++
	f.count[kind]++
	r := reached{kind: kind, n: f.count[""], nth: f.count[kind]}
	if f.list == "" {
		return r, nil
	}
	file, err := os.OpenFile(f.list, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return r, fmt.Errorf("list the points: %w", err)
	}
	_, err = fmt.Fprintf(file, "%d\t%s\t%s\n", r.n, kind, text)
	if err = errors.Join(err, file.Close()); err != nil {
		return r, fmt.Errorf("list the points: %w", err)
	}
	return r, nil
}

// at does one call as a point.
func at[T any](f *faults, kind, text string, do func() (T, error)) (T, error) {
	var none T
	r, err := f.point(kind, text)
	switch {
	case err != nil:
		return none, err
	case r.is(f.before):
		die()
	case r.is(f.deny):
		return none, fmt.Errorf("%s: %w: %w", kind, ErrInjected, f.errno)
	}
	v, err := do()
	switch {
	case r.is(f.after):
		die()
	case r.is(f.spoil):
		return v, errors.Join(fmt.Errorf("%s: %w: %w", kind, ErrInjected, f.errno), err)
	}
	return v, err
}

// die ends the process as the kernel's OOM killer would. No deferred call runs.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // until the signal is here
}

// kindOf names a step: "MoveLink".
func kindOf(s attach.Step) string { return strings.TrimPrefix(fmt.Sprintf("%T", s), "attach.") }

// leadsHome tells whether a step is one of the way back, as far as itself tells.
func leadsHome(s attach.Step) bool {
	switch s := s.(type) {
	case attach.MoveLink:
		return s.To.NS == attach.Host
	case attach.MoveRDMA:
		return s.To == attach.Host
	}
	return true
}
