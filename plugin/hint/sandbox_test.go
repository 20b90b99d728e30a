// SPDX-License-Identifier: Apache-2.0

package hint_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/hint"
)

// alive has the sandboxes of a store live that are listed.
func (n node) alive(containers ...string) {
	n.store.Lives = func(_ context.Context, o attach.Owner) bool { return slices.Contains(containers, o.ContainerID) }
}

// of gives a part to another sandbox.
func of(container string, f hint.Fragment) hint.Fragment {
	f.Owner.ContainerID = container
	return f
}

// parts lists the fragments below the pod's folder.
func (n node) parts(t *testing.T) []string {
	t.Helper()
	out := []string{}
	for _, line := range n.tree(t) {
		mode, name, _ := strings.Cut(line, " ")
		if rest, is := strings.CutPrefix(name, "fragments/"+uid+"/"); is {
			out = append(out, mode+" "+rest)
		}
	}
	return out
}

// The order of Put is the order of sandboxes, while the first lives.
func TestSandboxThatWaits(t *testing.T) {
	t.Parallel()
	n := newNode(t, "podfabric")
	n.alive("c1", "c2", "c3")
	one := attachment(1, "10.1.0.5/24")
	n.put(t, one)
	before := n.pod(t, "fabric.json")
	two, three := of("c2", attachment(2, "10.2.0.5/24")), of("c2", attachment(3, "10.3.0.5/24"))
	for _, f := range []hint.Fragment{two, three, of("c3", attachment(4, "10.4.0.5/24"))} {
		if w := n.put(t, f); len(w) != 1 || !strings.Contains(w[0], "container c1,") {
			t.Errorf("warnings %q", w)
		}
	}
	want := []string{
		"drwx------ .waiting", "drwx------ .waiting/c2", "-rw------- .waiting/c2/net2.json", "-rw------- .waiting/c2/net3.json",
		"drwx------ .waiting/c3", "-rw------- .waiting/c3/net4.json", "drwx------ c1", "-rw------- c1/net1.json",
	}
	if diff := cmp.Diff(want, n.parts(t)); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	n.drop(t, of("c3", attachment(4)))
	n.drop(t, two)
	if diff := cmp.Diff(before, n.pod(t, "fabric.json")); diff != "" {
		t.Errorf("the hint of the first (-before +after):\n%s", diff)
	}
	n.put(t, two)
	n.drop(t, one)
	want = []string{"drwx------ c2", "-rw------- c2/net2.json", "-rw------- c2/net3.json"}
	if diff := cmp.Diff(want, n.parts(t)); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	alone := newNode(t, "podfabric")
	alone.put(t, two)
	alone.put(t, three)
	for _, name := range []string{"fabric.json", "nccl.conf"} {
		if diff := cmp.Diff(alone.pod(t, name), n.pod(t, name)); diff != "" {
			t.Errorf("%s (-of the second alone +ours):\n%s", name, diff)
		}
	}
	n.drop(t, two)
	n.drop(t, three)
	if diff := cmp.Diff([]string{"drwx------ fragments", "drwxr-xr-x pods"}, n.tree(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A sandbox that waits goes on where the first has died, with the parts that it has.
func TestSandboxThatWaitedGoesOn(t *testing.T) {
	t.Parallel()
	n := newNode(t, "podfabric")
	n.alive("c1", "c2")
	n.put(t, attachment(1, "10.1.0.5/24"))
	n.put(t, of("c2", attachment(2, "10.2.0.5/24")))
	n.alive("c2")
	n.put(t, of("c2", attachment(3, "10.3.0.5/24")))
	if diff := cmp.Diff([]string{"drwx------ c2", "-rw------- c2/net2.json", "-rw------- c2/net3.json"}, n.parts(t)); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	if text := n.pod(t, "fabric.json"); strings.Contains(text, `"net1"`) || !strings.Contains(text, `"net2"`) || !strings.Contains(text, `"net3"`) {
		t.Errorf("the hint is\n%s", text)
	}
}

// What a network requires, and what two networks of a pod say differently, holds for one that waits too.
func TestSandboxThatWaitsIsRefused(t *testing.T) {
	t.Parallel()
	n := newNode(t, "podfabric")
	n.alive("c1", "c2")
	n.put(t, attachment(1, "10.1.0.5/24"))
	before := n.pod(t, "fabric.json")
	must := of("c2", attachment(1, "10.2.0.5/24"))
	must.Settings.Require = true
	_, err := n.store.Put(t.Context(), uid, must)
	if problem := (*netconf.Problem)(nil); !errors.As(err, &problem) || problem.Code != netconf.CodeHint || !errors.Is(err, hint.ErrUndelivered) {
		t.Errorf("got %v", err)
	}
	other := of("c2", attachment(2, "10.3.0.5/24"))
	if _, err = n.store.Put(t.Context(), uid, other); !errors.Is(err, hint.ErrConflict) {
		t.Errorf("got %v", err)
	}
	n.drop(t, must)
	n.drop(t, other)
	if diff := cmp.Diff([]string{"drwx------ c1", "-rw------- c1/net1.json"}, n.parts(t)); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, n.pod(t, "fabric.json")); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// What the second asks to be put into another volume is there, and nothing of the first in its own.
func TestSandboxesWithVolumesOfTheirOwn(t *testing.T) {
	t.Parallel()
	n := newNode(t, "podfabric", "second")
	n.alive("c1", "c2")
	one, two := attachment(1, "10.1.0.5/24"), of("c2", attachment(2, "10.2.0.5/24"))
	two.Settings.Volume = "second"
	n.put(t, one)
	n.put(t, two)
	if left, err := os.ReadDir(n.volume); err != nil || len(left) > 0 {
		t.Errorf("%v, %v in the volume of one that waits", left, err)
	}
	n.drop(t, one)
	if text := n.pod(t, "fabric.json"); !strings.Contains(text, `"net2"`) {
		t.Errorf("the hint is\n%s", text)
	}
	if left, err := os.ReadDir(filepath.Join(filepath.Dir(n.volume), "podfabric")); err != nil || len(left) > 0 {
		t.Errorf("%v, %v in the volume of the first", left, err)
	}
}

// A kill between any two writes leaves nothing that the DELs of both do not remove, in whatever order; nor does Prune.
func TestSandboxesAfterAKill(t *testing.T) {
	t.Parallel()
	one, two := attachment(1, "10.1.0.5/24"), of("c2", attachment(2, "10.2.0.5/24"))
	for name, kill := range map[string]func(t *testing.T, dir string){
		"nowhere":                         func(*testing.T, string) {},
		"before the part of the second":   func(t *testing.T, dir string) { t.Helper(); removed(t, dir, ".waiting/c2/net2.json") },
		"before its folder":               func(t *testing.T, dir string) { t.Helper(); removed(t, dir, ".waiting/c2") },
		"with the part of the first gone": func(t *testing.T, dir string) { t.Helper(); removed(t, dir, "c1/net1.json") },
		"before the second is current":    func(t *testing.T, dir string) { t.Helper(); removed(t, dir, "c1") },
		"before nothing waits": func(t *testing.T, dir string) {
			t.Helper()
			removed(t, dir, "c1")
			if err := os.Rename(filepath.Join(dir, ".waiting/c2"), filepath.Join(dir, "c2")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for way, end := range map[string]func(t *testing.T, n node){
			"first, second": func(t *testing.T, n node) { t.Helper(); n.drop(t, one); n.alive(); n.drop(t, two) },
			"second, first": func(t *testing.T, n node) { t.Helper(); n.drop(t, two); n.alive(); n.drop(t, one) },
			"Prune": func(t *testing.T, n node) {
				t.Helper()
				if err := n.store.Prune(t.Context(), func(attach.Owner) bool { return false }); err != nil {
					t.Error(err)
				}
			},
			"again": func(t *testing.T, n node) {
				t.Helper()
				n.alive("c2")
				n.put(t, two)
				if text := n.pod(t, "fabric.json"); !strings.Contains(text, `"net2"`) {
					t.Errorf("the hint is\n%s", text)
				}
				n.drop(t, one)
				n.drop(t, two)
			},
		} {
			t.Run(name+"/"+way, func(t *testing.T) {
				t.Parallel()
				n := newNode(t, "podfabric")
				n.alive("c1", "c2")
				n.put(t, one)
				n.put(t, two)
				kill(t, filepath.Join(n.store.Root, "fragments", uid))
				end(t, n)
				if diff := cmp.Diff([]string{"drwx------ fragments", "drwxr-xr-x pods"}, n.tree(t)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

func removed(t *testing.T, dir, name string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s is not there", file)
	}
	if err := os.RemoveAll(file); err != nil {
		t.Fatal(err)
	}
}
