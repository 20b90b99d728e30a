// SPDX-License-Identifier: Apache-2.0

//go:build lab

package kernel_test

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/node"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/kernel"
	"github.com/podfabric/podfabric/plugin/kernel/kerneltest"
	"github.com/podfabric/podfabric/plugin/link"
	"github.com/podfabric/podfabric/rdmans"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// guest is the guest, as the table of situations wants a machine.
type guest struct {
	*kernel.Session
	pf    bus.ID
	vfs   [3]bus.ID
	dummy func(at attach.Place) error
}

func (r *guest) PF() bus.ID                  { return r.pf }
func (r *guest) VFs() [3]bus.ID              { return r.vfs }
func (r *guest) Dummy(at attach.Place) error { return r.dummy(at) }

// meet makes the situation and its step, and the step once more when the kernel did it.
func (r *guest) meet(t *testing.T, x kerneltest.Situation) {
	t.Helper()
	ctx := t.Context()
	seen, err := kerneltest.Look(ctx, r)
	must(t, err)
	defer func() { must(t, r.home(context.WithoutCancel(ctx), seen)) }()
	must(t, x.Make(ctx, r, seen))
	query := attach.Query{Device: r.vfs[0], VF: true}
	was, err := r.Observe(ctx, query)
	must(t, err)
	step := x.Step(seen)
	err = r.Apply(ctx, step)
	now, lookErr := r.Observe(ctx, query)
	must(t, lookErr)
	t.Logf("%s: %v", step, err)
	if !means(err, x.Errno) {
		t.Errorf("%s: %v, want %v", step, err, x.Errno)
	}
	if err == nil {
		must(t, r.Apply(ctx, step))
		return
	}
	if left := x.Left(was, now); left != nil {
		t.Errorf("%s: %v", step, left)
	}
}

// home brings the VFs back to what they were.
func (r *guest) home(ctx context.Context, seen kerneltest.Seen) error {
	var errs []error
	for i, was := range seen.VFs {
		now, err := r.Observe(ctx, attach.Query{Device: r.vfs[i], VF: true, Soft: "pf0123456789"})
		errs = append(errs, err, attach.RunAll(ctx, r, attach.Restore(was, now)))
	}
	return errors.Join(errs...)
}

// means tells whether an error is an errno, or what the packages make of it.
func means(err, errno error) bool {
	if err == nil || errno == nil {
		return err == nil && errno == nil
	}
	sentinels := map[error][]error{
		syscall.EEXIST:          {link.ErrNameTaken, link.ErrExists, rdmans.ErrNameTaken},
		syscall.EINVAL:          {link.ErrRefused, link.ErrBusy}, // a second passthru macvlan
		syscall.EBUSY:           {link.ErrBusy},
		syscall.EACCES:          {link.ErrPermission},
		syscall.EOPNOTSUPP:      {link.ErrUnsupported, rdmans.ErrUnsupported},
		syscall.EPROTONOSUPPORT: {link.ErrUnsupported},
		syscall.EADDRNOTAVAIL:   {link.ErrNotFound, link.ErrRefused},
	}
	return errors.Is(err, errno) || slices.ContainsFunc(sentinels[errno], func(s error) bool { return errors.Is(err, s) })
}

// TestSituations holds the real kernel to the table that the fake machine is held to: what comes of each step, errno and half-done
// state, and of the step once more.
func TestSituations(t *testing.T) {
	machine := snapshot(t)
	for _, x := range kerneltest.All() {
		t.Run(x.Name, func(t *testing.T) {
			ns := node.NewNS(t)
			r := &guest{Session: open(t, ns), pf: bus.PCI(addr(t, node.PF(t, 1)))}
			for i, n := range []int{0, 1, 4} {
				r.vfs[i] = bus.PCI(addr(t, node.VF(t, 1, n)))
			}
			r.dummy = func(at attach.Place) error {
				ns.Run(t, "ip", "link", "add", at.Name, "type", "dummy")
				return nil
			}
			r.meet(t, x)
		})
	}
	node.Wait(t, "the node to be as it was", func() bool { return len(kernel.Diff(machine, snapshot(t))) == 0 })
}
