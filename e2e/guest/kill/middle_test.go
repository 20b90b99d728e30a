// SPDX-License-Identifier: Apache-2.0

//go:build lab

package kill_test

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// middle kills the program that is shipped, after each of its system calls that change something and before it has read the answer.
func (h *harness) middle(t *testing.T, kinds []*kind, before []string, names ...string) {
	t.Helper()
	for _, k := range kinds {
		if !slices.Contains(names, k.name) && (!h.full || k.take != nil || k.meanwhile != nil) {
			continue
		}
		t.Run("in the middle of "+k.name, func(t *testing.T) {
			for _, c := range h.calls(t, k, before) {
				for _, after := range h.choose(c) {
					c.aftermath = after
					h.try(t, c, before)
				}
			}
		})
	}
}

// calls lists the system calls of ADD and DEL that change something, from a run that nothing happens to.
func (h *harness) calls(t *testing.T, k *kind, before []string) []combination {
	t.Helper()
	r := h.round(t, k)
	var all []combination
	for _, verb := range []string{"ADD", "DEL"} {
		calls, status := r.traced(t, verb, "", 0)
		if !status.Exited() || status.ExitStatus() != 0 {
			t.Fatalf("%s, traced, ended with %v", verb, status)
		}
		for i, call := range calls {
			t.Logf("%s call %d: %s", verb, i+1, call)
			if h.full || !slices.Contains([]string{"create", "write", "mkdir"}, call) {
				all = append(all, combination{
					kind: k, verb: verb, at: i + 1, nth: count(calls[:i+1], call), point: point{kind: call}, after: true, inside: true,
				})
			}
		}
	}
	if diff := h.differences(t, before, patience); diff != nil {
		t.Fatalf("the node changed though nobody was killed: %q", diff)
	}
	return all
}

func count(calls []string, call string) int {
	n := 0
	for _, c := range calls {
		if c == call {
			n++
		}
	}
	return n
}

// traced runs a verb of the program that is shipped under the tracer. It dies after the nth of a sort of calls.
func (r *round) traced(t *testing.T, verb, call string, nth int) ([]string, syscall.WaitStatus) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := r.call(r.a).Command(verb)
	cmd.Stdout, cmd.Stderr = out, out
	calls, status := trace(t, cmd, call, nth)
	text, _ := os.ReadFile(out.Name())
	t.Logf("%s, traced, ended with %#x after %v\n%s", verb, uint32(status), calls, text)
	return calls, status
}

// killInside runs a verb that dies in the middle of a system call, and wants it to be seen dying there.
func (r *round) killInside(t *testing.T, verb string, nth int, call string) {
	t.Helper()
	calls, status := r.traced(t, verb, call, nth)
	if !status.Signaled() || status.Signal() != syscall.SIGKILL || count(calls, call) < nth {
		t.Fatalf("%s ended with %#x after %v; wanted it killed in %s number %d", verb, uint32(status), calls, call, nth)
	}
}
