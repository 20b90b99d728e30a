// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/strace"
)

// trial is a verb of which every system call on a file is made to fail once.
type trial struct {
	verb    string
	request request
	// prepare makes what the verb finds, on a healthy disk; nil: nothing.
	prepare func(t *testing.T)
	// finish puts the machine right after the verb, on a healthy disk.
	finish func(t *testing.T)
	// whole: a success, too, leaves nothing to finish.
	whole bool
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
	var tried, ended, left int
	for i, c := range calls {
		if !which(c) {
			continue
		}
		for j, errno := range errnos() {
			if !can(c, errno) || os.Getenv("FULL") == "" && tried > 0 && j != chosen(c, i) {
				continue
			}
			tried++
			t.Run(fmt.Sprintf("%s/%s", c, errno), func(t *testing.T) {
				ok, clean := tr.try(t, c, errno, start)
				if ok {
					ended++
				}
				if !clean {
					left++
				}
			})
		}
	}
	t.Logf("%s: %d system calls on files, %d failed in turn: the verb went on over %d, left something to finish after %d",
		tr.verb, len(calls), tried, ended, left)
	if tried == 0 {
		t.Error("no system call was made to fail")
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
	if !a.ok() {
		t.Fatalf("%s: code %d: %s", tr.verb, a.failure.Code, a.text())
	}
	tr.finish(t)
	return strace.Parse(a.trace)
}

func (tr trial) begin(t *testing.T) {
	t.Helper()
	if tr.prepare != nil {
		tr.prepare(t)
	}
}

// try lets one call fail; it tells whether the verb succeeded all the same, and whether nothing was left to finish.
func (tr trial) try(t *testing.T, c strace.Call, errno string, start state) (bool, bool) {
	t.Helper()
	tr.begin(t)
	a := tr.request.run(t, tr.verb, &c, errno)
	if !strace.Failed(a.trace) {
		t.Error("the system call did not come")
	}
	judge(t, a, c)
	diff := start.differs(t)
	switch {
	case a.ok() && tr.whole && diff != "":
		t.Errorf("%s succeeded and left:\n%s", tr.verb, diff)
	case !a.ok() && tr.undone && diff != "" && !strings.Contains(a.text(), "podfabricctl repair finishes it"):
		t.Errorf("%s failed (%s) and left, without a word of it:\n%s", tr.verb, a.text(), diff)
	}
	tr.finish(t)
	if rest := start.differs(t); rest != "" {
		t.Errorf("%s: %s\nin the end the machine is not as before:\n%s", tr.verb, a.text(), rest)
	}
	return a.ok(), diff == ""
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
	if a.failure.Code != 5 {
		t.Errorf("code %d, wanted 5: %s", a.failure.Code, a.text())
	}
	if !strings.Contains(a.text(), c.Path) && !strings.Contains(a.text(), path.Dir(c.Path)) {
		t.Errorf("the error does not name %s: %s", c.Path, a.text())
	}
	if strings.Contains(a.text(), "no such file or directory") {
		t.Errorf("Multus would take this failure as done: %s", a.text())
	}
}

// boot empties what does not outlive a boot.
func boot(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(stateDir); err != nil {
		t.Fatal(err)
	}
}

func changes(c strace.Call) bool {
	return c.Write && (c.Below(stateDir) || c.Below("/var/lib/kubelet") || c.Below("/etc/podfabric"))
}

func TestWriteFailsInAdd(t *testing.T) { //nolint:paralleltest // alone makes it parallel
	if !alone(t) {
		return
	}
	r := request{id: "pod1", netns: netns(t, "pod1")}
	if err := os.MkdirAll(fmt.Sprintf(volume, r.uid()), 0o777); err != nil {
		t.Fatal(err)
	}
	trial{verb: "ADD", request: r, undone: true, prepare: boot, finish: func(t *testing.T) { t.Helper(); r.plain(t, "DEL") }}.run(t, changes)
}
