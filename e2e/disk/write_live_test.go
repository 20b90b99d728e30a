// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/strace"
)

// trial is a verb of which every system call on a file is made to fail once.
type trial struct {
	verb    string
	request *request
	// prepare makes what the verb finds, on a healthy disk; nil: nothing.
	prepare func(t *testing.T)
	// finish puts the machine right after the verb, on a healthy disk; nil: nothing is to be done.
	finish func(t *testing.T)
	// whole: a success, too, leaves nothing to finish.
	whole bool
	// refused: it fails with nothing wrong on the disk, and must not succeed.
	refused bool
	code    uint // of that failure
	// undone: a failure leaves nothing to finish, unless it says so.
	undone bool
}

// errnos are tried in turn; FULL=1 tries each at each call.
func errnos() []string { return []string{"ENOSPC", "EROFS", "EIO", "EMFILE"} }

// can tells whether a call may end with an errno at all.
func can(c strace.Call, errno string) bool {
	opens := c.Name == "openat"
	switch errno {
	case "EMFILE":
		return opens
	case "ENOSPC", "EROFS":
		return c.Write && c.Name != "flock" && (errno == "ENOSPC" || c.Name != "write" && c.Name != "fsync")
	}
	return true
}

// run lets one call after the other fail. which chooses among them.
func (tr trial) run(t *testing.T, which func(strace.Call) bool) {
	t.Helper()
	start := look(t)
	calls := tr.calls(t)
	var n count
	calls = slices.DeleteFunc(calls, func(c strace.Call) bool { return !which(c) })
	seen := map[string]bool{}
	for i, c := range calls {
		again := seen[c.Name+c.Path]
		seen[c.Name+c.Path] = true
		if os.Getenv("FULL") == "" && !c.Write && again && i%4 != 0 {
			continue
		}
		for j, errno := range errnos() {
			if !can(c, errno) || os.Getenv("FULL") == "" && j != chosen(c, i) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s", c, errno), func(t *testing.T) { tr.try(t, c, errno, start, &n) })
		}
	}
	t.Logf("%s: of %d system calls, %d failed in turn, %d were missed: the verb went on over %d, left something to finish after %d",
		tr.verb, len(calls), n.tried-n.missed, n.missed, n.ended, n.left)
	if n.tried == 0 || n.missed > n.tried/10 {
		t.Errorf("%d of %d system calls were missed", n.missed, n.tried)
	}
}

// chosen is the errno, by number, with which call i fails if only one is tried.
func chosen(c strace.Call, i int) int {
	n := len(errnos())
	for j := range n {
		if k := (i + j) % n; can(c, errnos()[k]) {
			return k
		}
	}
	return -1
}

// calls runs the verb once with nothing failing.
func (tr trial) calls(t *testing.T) []strace.Call {
	t.Helper()
	tr.begin(t)
	a := tr.request.run(t, tr.verb, nil, "")
	if a.ok() == tr.refused {
		t.Fatalf("%s: code %d: %s", tr.verb, a.failure.Code, a.text())
	}
	tr.end(t)
	return strace.Parse(a.trace)
}

func (tr trial) begin(t *testing.T) {
	t.Helper()
	if tr.prepare != nil {
		tr.prepare(t)
	}
}

func (tr trial) end(t *testing.T) {
	t.Helper()
	if tr.finish != nil {
		tr.finish(t)
	}
}

// tries bounds how often a trial begins again because another call than the one that was meant had its number: the first thread
// also writes to wake others, now and then.
const tries = 8

// hit lets call c fail and gives the call that failed, which may have another random name; the flag is false if it was missed.
func (tr trial) hit(t *testing.T, c strace.Call, errno string) (answer, strace.Call, bool) {
	t.Helper()
	for range tries {
		tr.begin(t)
		a := tr.request.run(t, tr.verb, &c, errno)
		failed, ok := strace.Failed(a.trace)
		if ok && failed.Name == c.Name && ours(failed) {
			return a, failed, true
		}
		t.Logf("instead of %s this failed: %s", c, failed)
		tr.end(t)
	}
	return answer{}, c, false
}

// count is of trials.
type count struct{ tried, ended, left, missed int }

// try lets one call fail and counts what came of it.
func (tr trial) try(t *testing.T, c strace.Call, errno string, start state, n *count) {
	t.Helper()
	n.tried++
	a, failed, ok := tr.hit(t, c, errno)
	if !ok {
		n.missed++
		return
	}
	if a.ok() && tr.refused {
		t.Errorf("%s succeeded", tr.verb)
	}
	if a.code == 0 || a.failure.Code != tr.code {
		judge(t, a, failed)
	}
	diff := start.differs(t)
	switch {
	case a.ok() && tr.whole && diff != "":
		t.Errorf("%s succeeded and left:\n%s", tr.verb, diff)
	case !a.ok() && tr.undone && diff != "" && !strings.Contains(a.text(), "podfabricctl repair finishes it"):
		t.Errorf("%s failed (%s) and left, without a word of it:\n%s", tr.verb, a.text(), diff)
	}
	tr.end(t)
	if rest := start.differs(t); rest != "" {
		t.Errorf("%s: %s\nin the end the machine is not as before:\n%s", tr.verb, a.text(), rest)
	}
	if a.ok() {
		n.ended++
	}
	if diff != "" {
		n.left++
	}
}

// judge wants a result, or a CNI error that says what to do and where.
func judge(t *testing.T, a answer, c strace.Call) {
	t.Helper()
	if a.code != 0 && a.code != 1 || strings.Contains(a.err, "goroutine ") {
		t.Errorf("it ended with %d: %s", a.code, a.err)
	}
	if a.ok() {
		return
	}
	t.Logf("code %d: %s", a.failure.Code, a.text())
	if strings.Contains(a.text(), "no such file or directory") {
		t.Errorf("Multus would take this failure as done: %s", a.text())
	}
	if a.beside {
		return // it may be why
	}
	want := uint(5)
	if c.Path == nodeFile {
		want = 7
	}
	if a.failure.Code != want {
		t.Errorf("code %d, wanted %d: %s", a.failure.Code, want, a.text())
	}
	if !strings.Contains(a.text(), c.Path) && !strings.Contains(a.text(), path.Dir(c.Path)) {
		t.Errorf("the error does not name %s: %s", c.Path, a.text())
	}
}
