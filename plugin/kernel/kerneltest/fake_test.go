// SPDX-License-Identifier: Apache-2.0

package kerneltest_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
	"github.com/podfabric/podfabric/plugin/kernel/kerneltest"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

const podPath = "/run/netns/pod"

// fake is the machine of attachtest.
type fake struct {
	*attachtest.Session
	k *attachtest.Kernel
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{k: attachtest.New(attach.Exclusive)}
	f.k.AddPF(attachtest.PF{PCI: f.PF().PCI, Link: "ens1f0", MTU: 1500, RDMA: "mlx5_0"})
	for i, id := range f.VFs() {
		v := attachtest.VF{ID: id, PF: f.PF().PCI, Number: i, Driver: "igbvf", Link: fmt.Sprintf("ens1f0v%d", i)}
		if i < 2 {
			v.RDMA = fmt.Sprintf("mlx5_%d", i+1)
		}
		f.k.AddVF(v)
	}
	f.k.LikeIGB(f.PF())
	f.k.AddNetNS(podPath)
	s, err := f.k.Open(t.Context(), podPath)
	if err != nil {
		t.Fatal(err)
	}
	f.Session = s
	return f
}

func (f *fake) PF() bus.ID { return bus.PCI(pci.Addr{Bus: 1}) }

func (f *fake) VFs() [3]bus.ID {
	var out [3]bus.ID
	for i := range out {
		out[i] = bus.PCI(pci.Addr{Bus: 1, Device: 0x10, Function: uint8(2 * i)})
	}
	return out
}

func (f *fake) Dummy(at attach.Place) error {
	path := ""
	if at.NS == attach.Pod {
		path = podPath
	}
	f.k.AddLink(path, at.Name)
	return nil
}

// TestSituationsOnTheFake: what comes of each step, with one state-changing call for it, and none when it is made once more.
func TestSituationsOnTheFake(t *testing.T) {
	t.Parallel()
	for _, x := range kerneltest.All() {
		t.Run(x.Name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			seen, err := kerneltest.Look(t.Context(), f)
			if err == nil {
				err = x.Make(t.Context(), f, seen)
			}
			if err != nil {
				t.Fatal(err)
			}
			query := attach.Query{Device: f.VFs()[0], VF: true}
			was, err := f.Observe(t.Context(), query)
			if err != nil {
				t.Fatal(err)
			}
			step, calls := x.Step(seen), f.k.Changes()
			if err = f.Apply(t.Context(), step); !errors.Is(err, x.Errno) {
				t.Fatalf("%s: %v, want %v", step, err, x.Errno)
			}
			if n := f.k.Changes() - calls; n != 1 {
				t.Errorf("%s made %d calls", step, n)
			}
			now, lookErr := f.Observe(t.Context(), query)
			switch {
			case lookErr != nil:
				t.Fatal(lookErr)
			case err != nil:
				if err := x.Left(was, now); err != nil {
					t.Error(err)
				}
			default:
				calls = f.k.Changes()
				if err := f.Apply(t.Context(), step); err != nil {
					t.Errorf("%s once more: %v", step, err)
				}
				if n := f.k.Changes() - calls; n != 0 && !again(step) {
					t.Errorf("%s, made once more, made %d calls", step, n)
				}
			}
		})
	}
}

// again tells whether a step has no state after it that could be seen, so that it is made each time.
func again(step attach.Step) bool {
	_, reset := step.(attach.ResetFunction)
	return reset
}

// unseen are errnos of the fake that no machine of the lab's can show, with the reason.
func unseen() map[string]string {
	return map[string]string{
		"moveRDMA EOPNOTSUPP":   "of shared mode: e2e/guest/kernelshared",
		"refuseLink EOPNOTSUPP": "of a kind that the program does not ask for",
		"resetFunction ENOTTY":  "every function of the lab's NIC can be reset",
	}
}

// TestTableIsWhole: every errno that the fake says is in the table once at least, and every kind of step succeeds in it.
func TestTableIsWhole(t *testing.T) {
	t.Parallel()
	have, steps := unseen(), map[string]bool{}
	f := newFake(t)
	seen, err := kerneltest.Look(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range kerneltest.All() {
		if errno, ok := errors.AsType[syscall.Errno](x.Errno); ok {
			have[x.Of+" "+strings.Replace(unix.ErrnoName(errno), "ENOTSUP", "EOPNOTSUPP", 1)] = "" // they are one number
		} else {
			steps[strings.TrimPrefix(fmt.Sprintf("%T", x.Step(seen)), "attach.")] = true
		}
	}
	if diff := cmp.Diff(spoken(t), slices.Sorted(maps.Keys(have))); diff != "" {
		t.Errorf("errnos (-attachtest +table):\n%s", diff)
	}
	if diff := cmp.Diff(receivers(t, "isStep"), slices.Sorted(maps.Keys(steps))); diff != "" {
		t.Errorf("kinds of steps (-attach +table):\n%s", diff)
	}
}

// spoken are the errnos in the source of attachtest, each with the function that says it.
func spoken(t *testing.T) []string {
	t.Helper()
	var out []string
	each(t, "../../attach/attachtest/*.go", func(f *ast.FuncDecl) {
		ast.Inspect(f, func(n ast.Node) bool {
			if x, ok := n.(*ast.SelectorExpr); ok {
				if pkg, ok := x.X.(*ast.Ident); ok && pkg.Name == "syscall" && strings.HasPrefix(x.Sel.Name, "E") {
					out = append(out, f.Name.Name+" "+x.Sel.Name)
				}
			}
			return true
		})
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// receivers are the types of attach that have a method of that name.
func receivers(t *testing.T, method string) []string {
	t.Helper()
	var out []string
	each(t, "../../attach/*.go", func(f *ast.FuncDecl) {
		if f.Name.Name != method || f.Recv == nil {
			return
		}
		if id, ok := f.Recv.List[0].Type.(*ast.Ident); ok {
			out = append(out, id.Name)
		}
	})
	slices.Sort(out)
	return out
}

func each(t *testing.T, pattern string, do func(*ast.FuncDecl)) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				do(f)
			}
		}
	}
}
