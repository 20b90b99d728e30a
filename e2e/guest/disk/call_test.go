// SPDX-License-Identifier: Apache-2.0

//go:build lab

package disk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/strace"
)

// answer is what a call came to.
type answer struct {
	code   int
	text   string // of the CNI error
	cni    uint   // its code
	stderr string
	trace  string
	beside bool // a call of another thread failed, too
}

// traced calls a verb under strace. With fails, that system call of it fails.
func (p *pod) traced(t *testing.T, verb string, fails *strace.Call, errno string) answer {
	t.Helper()
	out := filepath.Join(t.TempDir(), "trace")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	plugin := p.Command(verb)
	cmd := strace.Command(ctx, out, fails, errno, plugin.Path)
	cmd.Env, cmd.Stdin = plugin.Env, plugin.Stdin
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if _, exit := errors.AsType[*exec.ExitError](cmd.Run()); cmd.ProcessState == nil {
		t.Fatalf("strace did not start (%t)", exit)
	}
	text, beside, err := strace.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{code: cmd.ProcessState.ExitCode(), stderr: stderr.String(), trace: text, beside: beside}
	if a.code == 1 {
		var f cni.Failure
		if err := json.Unmarshal([]byte(stdout.String()), &f); err != nil {
			t.Errorf("%s failed and printed no CNI error: %q", verb, stdout.String())
		}
		a.cni, a.text = f.Code, f.Text()
	}
	return a
}

// trial is a verb of which system calls on files are made to fail, one in each round.
type trial struct {
	name, verb string
	pod        *pod
	prepare    func(t *testing.T) // what the verb finds; nil: nothing
	finish     func(t *testing.T) // what comes after the verb; nil: its DEL
	refused    bool               // it fails on a healthy disk, and never succeeds
	code       uint               // with this code
	after      func(t *testing.T) // wants more after each round; nil: that nothing is left
}

func (tr trial) begin(t *testing.T) {
	t.Helper()
	if tr.prepare != nil {
		tr.prepare(t)
	}
}

func (tr trial) end(t *testing.T) {
	t.Helper()
	if tr.finish == nil {
		tr.pod.Del(t)
		return
	}
	tr.finish(t)
}

// random is the part of a temporary file's name that is another each time.
var random = regexp.MustCompile(`(\.json)\d+$`)

// turns is in how many rounds on one boot each call had its turn: there is no time for all in each. It has no factor in common with
// the numbers of errnos, so that a call's next turn comes with another.
const turns = 11

// sweep is one round of all trials, which run two at a time.
type sweep struct {
	round         int // from 0, since the boot
	tried, missed atomic.Int32
}

// nextRound begins a round. How many there were since the boot is kept in a file.
func nextRound(t *testing.T) *sweep {
	t.Helper()
	const file = "/run/disk-round"
	text, _ := os.ReadFile(file)
	n, _ := strconv.Atoi(string(text))
	if err := os.WriteFile(file, []byte(strconv.Itoa(n+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return &sweep{round: n}
}

// run lets the last call of each kind on each file fail, as far as which wants it: by then most is done. It tries those whose turn
// it is; FULL=1 lets all calls fail.
func (s *sweep) run(t *testing.T, tr trial, which func(strace.Call) bool, errnos ...string) {
	t.Helper()
	tr.begin(t)
	if _, failure := tr.pod.Run(t, tr.verb); (failure != nil) != tr.refused { // makes what stays
		t.Fatalf("%s: %+v", tr.verb, failure)
	}
	tr.end(t)
	tr.begin(t)
	a := tr.pod.traced(t, tr.verb, nil, "")
	if (a.code != 0) != tr.refused {
		t.Fatalf("%s: code %d: %s", tr.verb, a.cni, a.text)
	}
	tr.end(t)
	calls := slices.DeleteFunc(strace.Parse(a.trace), func(c strace.Call) bool { return !which(c) })
	full := os.Getenv("FULL") != ""
	if !full {
		calls = lastOfEach(calls)
	}
	tried := 0
	for i, c := range calls {
		if !full && i%turns != s.round%turns {
			continue
		}
		errno := errnos[(s.round+tried)%len(errnos)]
		tried++
		s.tried.Add(1)
		t.Run(fmt.Sprintf("%s/%s", c, errno), func(t *testing.T) {
			if !tr.try(t, c, errno) {
				s.missed.Add(1)
			}
		})
	}
	t.Logf("%s: of %d system calls %d were made to fail", tr.name, len(calls), tried)
}

// lastOfEach leaves of the calls of one kind on one file the last.
func lastOfEach(calls []strace.Call) []strace.Call {
	kind := func(c strace.Call) string { return c.Name + random.ReplaceAllString(c.Path, "$1") }
	last := map[string]int{}
	for i, c := range calls {
		last[kind(c)] = i
	}
	var out []strace.Call
	for i, c := range calls {
		if last[kind(c)] == i {
			out = append(out, c)
		}
	}
	return out
}

// judge wants most of the calls to have failed: a write's number is another where the runtime's threads wake each other by writes.
func (s *sweep) judge(t *testing.T) {
	t.Helper()
	tried, missed := s.tried.Load(), s.missed.Load()
	t.Logf("round %d: %d system calls, %d of them missed", s.round, tried, missed)
	if tried == 0 || missed > tried/4 {
		t.Errorf("%d of %d system calls were missed", missed, tried)
	}
}

// tries bounds how often a call is missed, as another had its number, before it is left.
const tries = 8

// hit lets call c fail and gives the call that failed, which may have another random name; the flag is false if it was missed.
func (tr trial) hit(t *testing.T, c strace.Call, errno string) (answer, strace.Call, bool) {
	t.Helper()
	for range tries {
		tr.begin(t)
		a := tr.pod.traced(t, tr.verb, &c, errno)
		if failed, ok := strace.Failed(a.trace); ok && ours(failed) {
			return a, failed, true
		}
		tr.end(t)
	}
	return answer{}, c, false
}

func (tr trial) try(t *testing.T, c strace.Call, errno string) bool {
	t.Helper()
	a, failed, ok := tr.hit(t, c, errno)
	switch {
	case !ok:
		t.Logf("%s was missed", c)
		return false
	case a.code != 0 && a.code != 1 || strings.Contains(a.stderr, "goroutine "):
		t.Errorf("%s: it ended with %d: %s", failed, a.code, a.stderr)
	case a.code == 0 && tr.refused:
		t.Errorf("%s: %s succeeded", failed, tr.verb)
	case a.code == 1 && a.cni != tr.code && !a.beside:
		t.Logf("code %d: %s", a.cni, a.text)
		if a.cni != 5 || !strings.Contains(a.text, filepath.Dir(failed.Path)) || strings.Contains(a.text, "no such file or directory") {
			t.Errorf("%s: code %d: %s", failed, a.cni, a.text)
		}
	}
	tr.end(t)
	if tr.after != nil {
		tr.after(t)
		return true
	}
	tr.pod.gone(t, fmt.Sprintf("%s failed with %s", failed, errno))
	return true
}
