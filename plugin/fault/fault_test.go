// SPDX-License-Identifier: Apache-2.0

//go:build faults

package fault_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
	"github.com/podfabric/podfabric/plugin/fault"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// A test that wants a process to die is this program once more, with the spec in its environment and its state in the folder.
const (
	specEnv = "FAULT_TEST_SPEC"
	dirEnv  = "FAULT_TEST_DIR"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(specEnv); spec != "" {
		if err := verb(spec, os.Getenv(dirEnv)); err != nil {
			_, _ = os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const ns = "/run/netns/pod"

func vf() bus.ID { return bus.PCI(pci.Addr{Bus: 0x3b, Function: 2}) }

func there() attach.Place { return attach.Place{NS: attach.Pod, Name: "net1"} }

func home() attach.Place { return attach.Place{NS: attach.Host, Name: "ens1f0v0"} }

func machine() *attachtest.Kernel {
	k := attachtest.New(attach.Exclusive)
	k.AddPF(attachtest.PF{PCI: pci.Addr{Bus: 0x3b}, Link: "ens1f0", MTU: 9000})
	k.AddVF(attachtest.VF{ID: vf(), PF: pci.Addr{Bus: 0x3b}, Link: "ens1f0v0"})
	k.AddNetNS(ns)
	return k
}

func opened(k *attachtest.Kernel) fault.Open {
	return func(ctx context.Context, netns string) (plugin.Session, error) {
		s, err := k.Open(ctx, netns)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
}

func out() attach.Step { return attach.MoveLink{Device: vf(), From: home(), To: there()} }

// verb is a run of five points. It leaves a file for each of its two steps once that is done.
func verb(spec, dir string) error {
	ctx := context.Background()
	s, err := fault.Wrap(spec, dir, opened(machine()))(ctx, ns)
	if err != nil {
		return err
	}
	if _, err = s.Observe(ctx, attach.Query{Device: vf()}); err != nil {
		return err
	}
	for i, step := range []attach.Step{out(), attach.SetUp{Link: there(), To: true}} {
		if err = s.Apply(ctx, step); err != nil {
			return errors.Join(err, s.Close())
		}
		if err = os.WriteFile(filepath.Join(dir, []string{"moved", "up"}[i]), nil, 0o600); err != nil {
			return err
		}
	}
	return s.Close()
}

func TestPoints(t *testing.T) {
	t.Parallel()
	const all = "1\tOpen\t/run/netns/pod\n2\tObserve\t0000:3b:00.2\n3\tMoveLink\tmove link 0000:3b:00.2 host/ens1f0v0 -> pod/net1\n" +
		"4\tSetUp\tset pod/net1 up\n5\tClose\t\n"
	upTo := func(n int) string { return strings.Join(strings.SplitAfter(all, "\n")[:n], "") }
	for spec, want := range map[string]struct {
		points string
		killed bool
		says   string   // on stderr
		files  []string // that the run left
	}{
		"":                 {points: all, files: []string{"moved", "up"}},
		"before=1":         {points: upTo(1), killed: true},
		"after=2":          {points: upTo(2), killed: true},
		"before=4":         {points: upTo(4), killed: true, files: []string{"moved"}},
		"after=5":          {points: all, killed: true, files: []string{"moved", "up"}},
		"after=MoveLink:1": {points: upTo(3), killed: true},
		"before=SetUp:1":   {points: upTo(4), killed: true, files: []string{"moved"}},
		"before=SetUp:2":   {points: all, files: []string{"moved", "up"}},
		"before=6":         {points: all, files: []string{"moved", "up"}},
		"deny=1:28":        {points: upTo(1), says: "injected fault: no space left on device"},
		"deny=4:5":         {points: all, says: "injected fault: input/output error", files: []string{"moved"}},
		"spoil=3:16":       {points: upTo(3) + "4\tClose\t\n", says: "injected fault: device or resource busy"},
		"befor=1":          {says: `read fault "befor=1"`},
		"before=x":         {says: `read fault "before=x"`},
	} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			list := filepath.Join(dir, "points")
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), specEnv+"=list="+list+" "+spec, dirEnv+"="+dir)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			err := cmd.Run()
			if killed := signal(err) == syscall.SIGKILL; killed != want.killed || (err == nil) == (want.killed || want.says != "") {
				t.Errorf("the run ended with %v: %s", err, stderr.String())
			}
			if !strings.Contains(stderr.String(), want.says) {
				t.Errorf("the run says %q, wanted %q", stderr.String(), want.says)
			}
			points, _ := os.ReadFile(list)
			if diff := cmp.Diff(want.points, string(points)); diff != "" {
				t.Errorf("points (-want +got):\n%s", diff)
			}
			for _, name := range []string{"moved", "up"} {
				_, err := os.Stat(filepath.Join(dir, name))
				if there, wanted := err == nil, strings.Contains(strings.Join(want.files, " "), name); there != wanted {
					t.Errorf("file %s: %t, wanted %t", name, there, wanted)
				}
			}
		})
	}
}

func signal(err error) syscall.Signal {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return 0
	}
	status, _ := exit.Sys().(syscall.WaitStatus)
	return status.Signal()
}

// A point that is spoiled was done, one that is denied was not.
func TestDoneOrNot(t *testing.T) {
	t.Parallel()
	for spec, done := range map[string]bool{"deny=2:5": false, "spoil=2:5": true} {
		k := machine()
		s, err := fault.Wrap(spec, t.TempDir(), opened(k))(t.Context(), ns)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Apply(t.Context(), out()); !errors.Is(err, syscall.EIO) || !errors.Is(err, fault.ErrInjected) {
			t.Errorf("%s: the step ended with %v", spec, err)
		}
		if moved := strings.HasPrefix(k.Where(vf())[0], ns); moved != done {
			t.Errorf("%s: the step was done: %t, wanted %t", spec, moved, done)
		}
	}
}

func TestOmit(t *testing.T) {
	t.Parallel()
	back := out().Reverse()
	for spec, stays := range map[string]bool{"omit=MoveLink": true, "omit=SetUp": false, "": false} {
		k := machine()
		s, err := fault.Wrap(spec, t.TempDir(), opened(k))(t.Context(), ns)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []attach.Step{out(), back} {
			if err := s.Apply(t.Context(), step); err != nil {
				t.Fatal(err)
			}
		}
		if there := strings.HasPrefix(k.Where(vf())[0], ns); there != stays {
			t.Errorf("%q: the netdev is in the pod: %t, wanted %t", spec, there, stays)
		}
	}
}

// What is recorded cannot be found from a step to the next look, and is there again then.
func TestLate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "attachments/id/net1.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	found := func(want bool, when string) {
		t.Helper()
		if _, err := os.Stat(file); (err == nil) != want {
			t.Errorf("%s the record is there: %t, wanted %t", when, err == nil, want)
		}
	}
	s, err := fault.Wrap("late", dir, opened(machine()))(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	found(true, "before the steps")
	for _, step := range []attach.Step{out(), attach.SetUp{Link: there(), To: true}} {
		if err := s.Apply(t.Context(), step); err != nil {
			t.Fatal(err)
		}
		found(false, "after a step")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	found(true, "in the end")
}
