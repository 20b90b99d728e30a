// SPDX-License-Identifier: Apache-2.0

package strace_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/e2e/strace"
)

// The lines are strace 6.1's own, of an ADD.
func TestParse(t *testing.T) {
	t.Parallel()
	const trace = `openat(AT_FDCWD</root>, "/run/podfabric", O_RDONLY|O_CLOEXEC) = 12</run/podfabric>
fstat(12</run/podfabric>, {st_mode=S_IFDIR|0755, st_size=40, ...}) = 0
mkdirat(12</run/podfabric>, "locks", 0700) = -1 EEXIST (File exists)
write(2<pipe:[5]>, "time", 4)           = 4
openat(12</run/podfabric>, "claims", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 13</run/podfabric/claims>
write(15</run/podfabric/locks/attachment%20c1%2Fnet1>(deleted), "ADD c1/net1\" ", 13) = 13
symlinkat("../attachments/a/b", 12</run/podfabric>, "claims/x") = -1 ENOSPC (No space left on device) (INJECTED)
renameat(13</run/podfabric/a>, ".b1", 13</run/podfabric/a>, "b") = 0
newfstatat(AT_FDCWD</root>, "/etc/podfabric/node.json", {st_mode=S_IFREG|0600}, 0) = 0
newfstatat(9</run/podfabric/a>, "", {st_mode=S_IFREG|0600}, AT_EMPTY_PATH) = 0
fchmod(9</run/podfabric/a/.b1>, 0600)   = 0
+++ exited with 0 +++
`
	const run, a, file = "/run/podfabric", "/run/podfabric/a", "/run/podfabric/a/.b1"
	want := []strace.Call{
		{Name: "openat", Nth: 1, Path: run, By: run, Among: 1},
		{Name: "fstat", Nth: 1, Path: run, By: run, Among: 1},
		{Name: "mkdirat", Nth: 1, Path: run + "/locks", Write: true, By: run, Among: 1},
		{Name: "openat", Nth: 2, Path: run + "/claims", Write: true, By: run, Among: 2},
		{Name: "write", Nth: 2, Path: run + "/locks/attachment%20c1%2Fnet1", Write: true, By: run + "/locks/attachment%20c1%2Fnet1", Among: 1},
		{Name: "symlinkat", Nth: 1, Path: run + "/claims/x", Write: true, By: run, Among: 1},
		{Name: "renameat", Nth: 1, Path: a + "/b", Write: true, By: a, Among: 1},
		{Name: "newfstatat", Nth: 1, Path: "/etc/podfabric/node.json", By: "/etc/podfabric/node.json", Among: 1},
		{Name: "newfstatat", Nth: 2, Path: a, By: a, Among: 1},
		{Name: "fchmod", Nth: 1, Path: file, Write: true, By: file, Among: 1},
	}
	if diff := cmp.Diff(want, strace.Parse(trace)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got, ok := strace.Failed(trace); !ok || got != want[5] {
		t.Errorf("failed is %v, %t; want %v", got, ok, want[5])
	}
	if got, ok := strace.Failed("write(1<pipe:[5]>, ...) = 4\n"); ok {
		t.Errorf("failed is %v", got)
	}
	below := strace.Call{Path: "/run/podfabric/a"}
	if !below.Below("/run/podfabric") || below.Below("/run/pod") || !below.Below("/run/podfabric/a") {
		t.Error("below is wrong")
	}
}
