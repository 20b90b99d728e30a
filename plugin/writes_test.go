// SPDX-License-Identifier: Apache-2.0

//test:norace

package plugin_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/podfabric/podfabric/plugin/statedir/proctest"
)

func TestMain(m *testing.M) {
	os.Exit(proctest.Main(m, map[string]func([]string) error{"verb": runVerb}))
}

// alone stands for a test in a process of its own. Whatever fails ends it.
type alone struct{ testing.TB }

func (alone) Helper()                  {}
func (alone) Cleanup(func())           {}
func (alone) Context() context.Context { return context.Background() }

func (alone) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (alone) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (alone) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }

// runVerb runs a verb on a kind in a folder, and tells of each call of the plugin's parts.
func runVerb(args []string) error {
	k, v := named(args[1]), verbNamed(args[2])
	p := &product{kind: k, verb: v, dir: args[0]}
	p.machine(alone{})
	v.ready(alone{}, p.m, k)
	p.m.trap.onCall = func(string) { proctest.Step() }
	return v.do(alone{}, p.m, k)
}

func verbNamed(name string) verb {
	return verbs()[slices.IndexFunc(verbs(), func(v verb) bool { return v.name == name })]
}

// TestKilledBetweenWrites kills ADD and DEL before every system call with which they would change a file. They run in a process of
// their own, of which a tracer sees each such call; none has to be listed here. What is on disk then is put together with a machine
// on which the same calls of the kernel and of the other IPAM plugin were made, and an aftermath follows, another one each time.
func TestKilledBetweenWrites(t *testing.T) {
	t.Parallel()
	sum := &tally{}
	t.Run("all", func(t *testing.T) {
		for i, k := range kinds() {
			for _, v := range verbs()[:2] {
				t.Run(k.name+"/"+v.name, func(t *testing.T) {
					t.Parallel()
					moments := watched(t, k, v)
					p := &product{kind: k, verb: v, states: map[string]*state{}, steps: map[string]bool{}}
					synctest.Test(t, func(t *testing.T) {
						p.writes(t, i, moments)
						for _, text := range p.dirt {
							t.Error(text)
						}
						sum.add(p)
					})
				})
			}
		}
	})
	sum.log(t)
}

// moment is the files of a machine before a change of them.
type moment struct {
	call  string // the system call that was not made
	steps int    // calls of the plugin's parts that were
	files []file
}

// file is one of a folder, a folder or a link.
type file struct {
	name string
	mode fs.FileMode
	text string // or where the link leads
}

// watched runs a verb and gives every different moment of the files.
func watched(t *testing.T, k kind, v verb) []moment {
	t.Helper()
	dir := memory(t)
	var out []moment
	proctest.Watch(t, func(call string, steps int) {
		if steps == 0 {
			return // it makes the machine
		}
		m := moment{call, steps, read(t, dir)}
		if len(out) == 0 || !slices.Equal(out[len(out)-1].files, m.files) || out[len(out)-1].steps != steps {
			out = append(out, m)
		}
	}, "verb", dir, k.name, v.name)
	if len(out) < 10 {
		t.Fatalf("only %d changes of files were seen, the test proves nothing", len(out))
	}
	return out
}

func read(t testing.TB, dir string) []file {
	t.Helper()
	var out []file
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		f := file{mode: info.Mode()}
		f.name, _ = filepath.Rel(dir, path)
		if f.mode.Type() == fs.ModeSymlink {
			f.text, err = os.Readlink(path)
		}
		if f.mode.IsRegular() {
			var text []byte
			text, err = os.ReadFile(path)
			f.text = string(text)
		}
		out = append(out, f)
		return err
	}))
	return out
}

// put makes a folder's files these and no others.
func put(t testing.TB, dir string, files []file) {
	t.Helper()
	old, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range old {
		must(t, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		switch {
		case f.mode.Type() == fs.ModeSymlink:
			must(t, os.Symlink(f.text, path))
		case f.mode.IsDir():
			must(t, os.Mkdir(path, f.mode.Perm()))
		default:
			must(t, os.WriteFile(path, []byte(f.text), f.mode.Perm()))
		}
	}
}

// writes puts each moment before an aftermath. turn says which is the first.
func (p *product) writes(t *testing.T, turn int, moments []moment) {
	t.Helper()
	p.after = []aftermath{} // one each
	p.ends(t)
	for i, at := range moments {
		p.m = nil // a new machine has the numbers that the traced one had
		p.machine(t)
		p.verb.ready(t, p.m, p.kind)
		p.m.trap.set(at.steps, killed)
		dies(func() { _ = p.verb.do(t, p.m, p.kind) })
		p.m.trap.clear()
		p.m.Reap()
		put(t, p.m.dir, at.files)
		what := fmt.Sprintf("%s of %s, killed before its change %d of files, a %s, after %d calls", p.verb.name, p.kind.name, i, at.call, at.steps)
		p.points++
		p.states[fmt.Sprint(i)] = nil
		all := p.verb.after()
		a := all[(turn+i)%len(all)]
		p.follow(t, what, aftermath{a.name, a.dead, func(t testing.TB, m *machine, k kind) {
			t.Helper()
			a.do(t, m, k)
			m.mustDel(t, k.request) // GC and repair know records only, so that a folder without one is left to DEL
			m.reap(t)               // nobody minds the file of a lock
		}})
	}
}
