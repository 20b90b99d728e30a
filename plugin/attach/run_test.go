// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
)

func extents() map[string]attachtest.Extent {
	return map[string]attachtest.Extent{"nothing": attachtest.Nothing, "half": attachtest.Half, "whole": attachtest.Whole}
}

// points runs fn for every plan, every step of it, and every extent to which it may be done.
func points(t *testing.T, fn func(t *testing.T, sc *scene, n int, e attachtest.Extent)) {
	t.Helper()
	for _, p := range plans() {
		for n := range play(t, p).steps {
			for name, e := range extents() {
				t.Run(fmt.Sprintf("%s/%d-%s", p.name, n, name), func(t *testing.T) {
					t.Parallel()
					fn(t, play(t, p), n, e)
				})
			}
		}
	}
}

func same(t *testing.T, what, want, got string) {
	t.Helper()
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestRunUndoesWhateverStepFails(t *testing.T) {
	t.Parallel()
	points(t, func(t *testing.T, sc *scene, n int, e attachtest.Extent) {
		t.Helper()
		sc.k.FailWith(n, e, attachtest.ErrInjected)
		err := attach.Run(t.Context(), sc.s, sc.steps)
		if !errors.Is(err, attachtest.ErrInjected) {
			t.Fatalf("error %v", err)
		}
		step := (*attach.StepError)(nil)
		if !errors.As(err, &step) || step.Step != sc.steps[n] {
			t.Errorf("error %v does not tell step %s", err, sc.steps[n])
		}
		same(t, "state after a failed Run", sc.start, sc.k.Dump())
	})
}

// The kernel's own failures leave a link in the pod under its old name (style.md M4).
func TestRunUndoesWhatTheKernelRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		plan  string
		setup func(*attachtest.Kernel)
		want  error
	}{
		{"the name was taken in the pod meanwhile", "exclusive", func(k *attachtest.Kernel) { k.AddLink(podPath, "net1") }, syscall.EEXIST},
		{"the driver takes no such MTU", "exclusive-mtu-number", func(k *attachtest.Kernel) { k.SetMaxMTU(vf(), 1500) }, syscall.EINVAL},
		{"the mode was changed meanwhile", "exclusive", func(k *attachtest.Kernel) { k.SetMode(attach.Shared) }, syscall.EOPNOTSUPP},
		{
			"the kernel cannot move soft devices", "soft-roce",
			func(k *attachtest.Kernel) { k.RefuseSoftMoves(syscall.EOPNOTSUPP) }, syscall.EOPNOTSUPP,
		},
		{"the function is gone", "exclusive", func(k *attachtest.Kernel) { k.RemoveFunction(vf()) }, attach.ErrConflict},
		{"the pod is gone", "exclusive", func(k *attachtest.Kernel) { k.KillNetNS(podPath) }, attach.ErrNoNetNS},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sc := play(t, plan(t, tt.plan))
			tt.setup(sc.k)
			start := sc.k.Dump()
			if err := attach.Run(t.Context(), sc.s, sc.steps); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			same(t, "state after a failed Run", start, sc.k.Dump())
		})
	}
}

func plan(t *testing.T, name string) planned {
	t.Helper()
	for _, p := range slices.Concat(plans(), chains()) {
		if p.name == name {
			return p
		}
	}
	t.Fatalf("no plan %s", name)
	return planned{}
}

func TestReversesInReverseOrderLeadToTheStart(t *testing.T) {
	t.Parallel()
	for _, p := range plans() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			sc := play(t, p)
			if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
				t.Fatal(err)
			}
			if err := attach.Undo(t.Context(), sc.s, sc.steps); err != nil {
				t.Fatal(err)
			}
			same(t, "state after Undo", sc.start, sc.k.Dump())
		})
	}
}

// A step is one system call, and none when its state holds: so a kill can only come before or after it.
func TestEachStepMakesOneChangeAndNoneTheSecondTime(t *testing.T) {
	t.Parallel()
	for _, p := range plans() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			sc := play(t, p)
			if p.name == "exclusive-dual-routes" {
				sc.k.DisableIPv6(podPath) // otherwise disable_ipv6 is 0 already
			}
			for _, s := range sc.steps {
				want := 1
				if ctl, ok := s.(attach.SetSysctl); ok && strings.HasSuffix(ctl.Key, "disable_ipv6") && !strings.Contains(sc.k.Dump(), "disable_ipv6 1") {
					want = 0
				}
				once(t, sc, s, want)
			}
			now := sc.observe(t, sc.s)
			for _, s := range attach.Restore(recorded(t, sc.before), now) {
				once(t, sc, s, 1)
			}
			same(t, "state after Restore", sc.start, sc.k.Dump())
		})
	}
}

func once(t *testing.T, sc *scene, s attach.Step, want int) {
	t.Helper()
	before := sc.k.Changes()
	if err := sc.s.Apply(t.Context(), s); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	if got := sc.k.Changes() - before; got != want {
		t.Errorf("%s made %d changes, want %d", s, got, want)
	}
	dump, before := sc.k.Dump(), sc.k.Changes()
	if err := sc.s.Apply(t.Context(), s); err != nil {
		t.Fatalf("%s, again: %v", s, err)
	}
	if got := sc.k.Changes() - before; got != 0 {
		t.Errorf("%s made %d changes the second time", s, got)
	}
	same(t, s.String()+", again", dump, sc.k.Dump())
}

// The caller's deadline may be why a step failed, so undoing must not hear of it.
func TestRunUndoesAfterItsTimeIsOver(t *testing.T) {
	t.Parallel()
	sc := play(t, plan(t, "exclusive-dual-routes"))
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("time is over")
	k := kernelFunc(func(ctx context.Context, s attach.Step) error {
		if _, last := s.(attach.SetUp); last {
			cancel(reason)
		}
		return sc.s.Apply(ctx, s)
	})
	if err := attach.Run(ctx, k, sc.steps); !errors.Is(err, reason) {
		t.Errorf("error %v, want %v", err, reason)
	}
	same(t, "state after a late Run", sc.start, sc.k.Dump())
}

type kernelFunc func(context.Context, attach.Step) error

func (f kernelFunc) Apply(ctx context.Context, s attach.Step) error { return f(ctx, s) }

func TestRunJoinsWhatGoesWrongWhileUndoing(t *testing.T) {
	t.Parallel()
	sc := play(t, plan(t, "exclusive"))
	stuck := errors.New("stuck")
	sc.k.FailWith(2, attachtest.Nothing, attachtest.ErrInjected) // a sysctl, whose reverse is none
	sc.k.FailWith(3, attachtest.Nothing, stuck)                  // the RDMA device's way back
	err := attach.Run(t.Context(), sc.s, sc.steps)
	if !errors.Is(err, attachtest.ErrInjected) || !errors.Is(err, stuck) {
		t.Errorf("error %v, want both", err)
	}
	const text = "set sysctl in pod net/ipv6/conf/net1/accept_ra = 0: injected failure\n" +
		"undo: move rdma mlx5_1 (index 1) pod -> host: stuck"
	if err.Error() != text {
		t.Errorf("text %q, want %q", err, text)
	}
	if got := sc.k.Where(vf()); got != [2]string{"host/ens1f0v0", podPath + "/mlx5_1"} {
		t.Errorf("the link was not tried: %v", got)
	}
	if err := sc.home(t, sc.s); err != nil {
		t.Fatal(err)
	}
	same(t, "state after Restore", sc.start, sc.k.Dump())
}

func TestRunAllTriesEverything(t *testing.T) {
	t.Parallel()
	sc := play(t, plan(t, "exclusive"))
	if err := attach.Run(t.Context(), sc.s, sc.steps); err != nil {
		t.Fatal(err)
	}
	sc.k.FailAt(0, false)
	if err := sc.home(t, sc.s); !errors.Is(err, attachtest.ErrInjected) {
		t.Errorf("error %v", err)
	}
	if got := sc.k.Where(vf()); got != [2]string{"host/ens1f0v0", podPath + "/mlx5_1"} {
		t.Errorf("where: %v", got)
	}
	if err := attach.RunAll(t.Context(), sc.s, nil); err != nil {
		t.Errorf("no steps: %v", err)
	}
}

func TestReverseOfAReverseIsTheStep(t *testing.T) {
	t.Parallel()
	at := attach.Place{NS: attach.Pod, Name: "net1"}
	for _, s := range []attach.Step{
		attach.MoveLink{Device: vf(), From: attach.Place{NS: attach.Host, Name: "eth0"}, To: at, MTU: [2]int{1500, 9000}},
		attach.MoveRDMA{Index: 3, GUID: "g", Name: "mlx5_1", From: attach.Host, To: attach.Pod},
		attach.MoveRDMA{Soft: "pf0123456789", From: attach.Host, To: attach.Pod},
		attach.RenameRDMA{Index: 3, NS: attach.Host, From: "ibdev3", To: "mlx5_1"},
		attach.SetSysctl{NS: attach.Pod, Key: "net/ipv6/conf/net1/accept_ra", From: "1", To: "0"},
		attach.SetMAC{Link: at, From: "02:00:00:00:00:01", To: "02:00:00:00:00:02"},
		attach.SetAltName{Link: at, Name: "rail0", To: true},
		attach.SetTraits{Link: at, From: podTraits(), To: attach.Traits{Flags: "multicast"}},
		attach.SetUp{Link: at, To: true},
		attach.AddAddr{Link: at, Addr: address("10.0.0.1/24").Prefix},
		attach.AddRoute{Link: at, Dst: address("10.2.0.0/16").Prefix},
	} {
		if got := s.Reverse().Reverse(); got != s {
			t.Errorf("%s became %s", s, got)
		}
		if got := s.Reverse().String(); got == s.String() {
			t.Errorf("%s and its reverse read alike", s)
		}
	}
	for _, s := range []attach.Step{attach.DelSoftRoCE{Name: "pf0123456789"}, attach.SetSysctl{Key: "k", To: "0"}} {
		if got := s.Reverse(); got != nil {
			t.Errorf("reverse of %s is %s", s, got)
		}
	}
}
