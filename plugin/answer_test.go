// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/ipam"
	"github.com/podfabric/podfabric/ipam/lease"
	"github.com/podfabric/podfabric/nccl"
	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/delegate"
	"github.com/podfabric/podfabric/plugin/devinfo"
	"github.com/podfabric/podfabric/plugin/hint"
	"github.com/podfabric/podfabric/plugin/kernel"
	"github.com/podfabric/podfabric/plugin/link"
	"github.com/podfabric/podfabric/plugin/lock"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/plugin/statedir"
	"github.com/podfabric/podfabric/rdmans"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
	"github.com/podfabric/podfabric/rdmans/sysfs"
)

// sentinels are all that packages below a verb export, by folder and name, and the code that each is answered with when
// nothing says more.
func sentinels() map[string]struct {
	err  error
	code uint
} {
	type s = struct {
		err  error
		code uint
	}
	return map[string]s{
		"ipam.ErrRange":                 {ipam.ErrRange, 199},
		"ipam.ErrExhausted":             {ipam.ErrExhausted, 199},
		"ipam.ErrOutside":               {ipam.ErrOutside, 199},
		"ipam.ErrTaken":                 {ipam.ErrTaken, 199},
		"ipam/lease.ErrUnwritable":      {lease.ErrUnwritable, 5},
		"ipam/lease.ErrForeign":         {lease.ErrForeign, 199},
		"ipam/lease.ErrOwner":           {lease.ErrOwner, 199},
		"nccl.ErrVersion":               {nccl.ErrVersion, 199},
		"nccl.ErrUnwritable":            {nccl.ErrUnwritable, 199},
		"plugin/attach.ErrConflict":     {attach.ErrConflict, 11},
		"plugin/attach.ErrNoNetNS":      {attach.ErrNoNetNS, 8},
		"plugin/attach.ErrOwnNetNS":     {attach.ErrOwnNetNS, 8},
		"plugin/delegate.ErrNotFound":   {delegate.ErrNotFound, 109},
		"plugin/delegate.ErrTimeout":    {delegate.ErrTimeout, 11},
		"plugin/delegate.ErrOutput":     {delegate.ErrOutput, 109},
		"plugin/delegate.ErrNoIPs":      {delegate.ErrNoIPs, 109},
		"plugin/delegate.ErrNoCheck":    {delegate.ErrNoCheck, 199},
		"plugin/devinfo.ErrForeign":     {devinfo.ErrForeign, 199},
		"plugin/hint.ErrFragment":       {hint.ErrFragment, 199},
		"plugin/hint.ErrConflict":       {hint.ErrConflict, 199},
		"plugin/hint.ErrNoRight":        {hint.ErrNoRight, 199},
		"plugin/hint.ErrUndelivered":    {hint.ErrUndelivered, 199},
		"plugin/hint.ErrName":           {hint.ErrName, 199},
		"plugin/link.ErrNotFound":       {link.ErrNotFound, 199},
		"plugin/link.ErrNameTaken":      {link.ErrNameTaken, 107},
		"plugin/link.ErrExists":         {link.ErrExists, 199},
		"plugin/link.ErrRefused":        {link.ErrRefused, 7},
		"plugin/link.ErrBusy":           {link.ErrBusy, 103},
		"plugin/link.ErrUnsupported":    {link.ErrUnsupported, 102},
		"plugin/kernel.ErrNotTaken":     {kernel.ErrNotTaken, 102},
		"plugin/link.ErrPermission":     {link.ErrPermission, 199},
		"plugin/lock.ErrHeld":           {lock.ErrHeld, 11},
		"plugin/lock.ErrUnwritable":     {lock.ErrUnwritable, 5},
		"plugin/record.ErrNotFound":     {record.ErrNotFound, 199},
		"plugin/record.ErrUnreadable":   {record.ErrUnreadable, 5},
		"plugin/record.ErrClaimed":      {record.ErrClaimed, 11},
		"plugin/record.ErrStale":        {record.ErrStale, 199},
		"plugin/record.ErrOwner":        {record.ErrOwner, 199},
		"plugin/record.ErrUnwritable":   {record.ErrUnwritable, 5},
		"plugin/statedir.ErrKind":       {statedir.ErrKind, 199},
		"plugin/statedir.ErrUnwritable": {statedir.ErrUnwritable, 5},
		"rdmans.ErrNoRDMA":              {rdmans.ErrNoRDMA, 100},
		"rdmans.ErrNotFound":            {rdmans.ErrNotFound, 199},
		"rdmans.ErrShared":              {rdmans.ErrShared, 101},
		"rdmans.ErrBusy":                {rdmans.ErrBusy, 199},
		"rdmans.ErrUnsupported":         {rdmans.ErrUnsupported, 102},
		"rdmans.ErrNameTaken":           {rdmans.ErrNameTaken, 199},
		"rdmans.ErrPermission":          {rdmans.ErrPermission, 199},
		"rdmans.ErrNoNamespace":         {rdmans.ErrNoNamespace, 199},
		"rdmans/pci.ErrSyntax":          {pci.ErrSyntax, 199},
		"rdmans/bus.ErrSyntax":          {bus.ErrSyntax, 199},
		"rdmans/sysfs.ErrNotExist":      {sysfs.ErrNotExist, 199},
		"rdmans/sysfs.ErrSyntax":        {sysfs.ErrSyntax, 199},
	}
}

// TestAnswers takes every sentinel error, alone and in the company of the kernel's own words for ENOENT, through the CNI
// boundary: a known code, the remedy first, and never the words that Multus takes for a DEL that is done.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, s := range sentinels() {
		missing := &fs.PathError{Op: "openat", Path: "/run/podfabric", Err: syscall.ENOENT}
		for _, err := range []error{
			fmt.Errorf("bring it home: %w", s.err),
			fmt.Errorf("bring it home: %w: %w", s.err, missing),
			errors.Join(missing, s.err, os.NewSyscallError("unlinkat", syscall.ENOENT)),
			&attach.StepError{Step: attach.DelSoftRoCE{Name: "pf1"}, Err: fmt.Errorf("%w: %w", s.err, syscall.ENOENT)},
		} {
			a := plugin.Answer(err)
			if a.Code != s.code {
				t.Errorf("%s: code is %d, want %d", name, a.Code, s.code)
			}
			readable(t, err)
			if len(a.Details) == 0 {
				t.Errorf("%s: no details", name)
			}
		}
	}
}

// TestAnswersAreComplete finds the sentinels by their declarations, so that a new one cannot be forgotten above.
func TestAnswersAreComplete(t *testing.T) {
	t.Parallel()
	var found []string
	for _, folder := range []string{
		"ipam", "ipam/lease", "nccl", "netconf", "plugin", "plugin/attach", "plugin/delegate", "plugin/devinfo", "plugin/hint", "plugin/kernel", "plugin/link",
		"plugin/lock", "plugin/record", "plugin/statedir", "rdmans", "rdmans/bus", "rdmans/pci", "rdmans/sysfs",
	} {
		entries, err := os.ReadDir("../" + folder)
		must(t, err)
		for _, e := range entries {
			if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), "../"+folder+"/"+e.Name(), nil, parser.SkipObjectResolution)
			must(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				decl, ok := n.(*ast.GenDecl)
				for _, spec := range specs(decl, ok) {
					for _, name := range spec.Names {
						if strings.HasPrefix(name.Name, "Err") {
							found = append(found, folder+"."+name.Name)
						}
					}
				}
				return true
			})
		}
	}
	slices.Sort(found)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(sentinels())), found); diff != "" {
		t.Errorf("sentinels (-table +declared):\n%s", diff)
	}
}

// specs are the variables of a declaration.
func specs(d *ast.GenDecl, ok bool) []*ast.ValueSpec {
	var out []*ast.ValueSpec
	if ok && d.Tok == token.VAR {
		for _, s := range d.Specs {
			if v, ok := s.(*ast.ValueSpec); ok {
				out = append(out, v)
			}
		}
	}
	return out
}

// TestAnswer has errors whose answer is not that of a sentinel alone.
func TestAnswer(t *testing.T) {
	t.Parallel()
	problem := &netconf.Problem{Code: 7, Remedy: "do this", Field: "mtu", Found: "7", Err: syscall.ENOENT}
	tests := []struct {
		name  string
		err   error
		code  uint
		msg   string
		words []string
	}{
		{"problem", problem, 7, "do this", []string{"mtu, found 7"}},
		{"problem in a step", &attach.StepError{Step: attach.DelSoftRoCE{Name: "pf1"}, Err: problem}, 7, "do this", []string{"pf1", "mtu"}},
		{"problem and a failed undo", errors.Join(problem, errors.New("undo: it stuck")), 7, "do this", []string{"mtu", "undo: it stuck"}},
		{"claimed", &record.ClaimedError{Device: vfAddr(3), Holder: attach.Owner{ContainerID: "c", IfName: "net1"}}, 11, "delete the pod", []string{"container c"}},
		{"delegate", &delegate.Error{Plugin: "other", Verb: "DEL", Msg: "stat x: no such file or directory"}, 109, "look at the address", []string{"other"}},
		{"delegate, capital", &delegate.Error{Plugin: "other", Verb: "DEL", Msg: "x: No such file or directory"}, 109, "look at the address", []string{"other"}},
		{"delegate with a code", &delegate.Error{Plugin: "other", Code: 11, Msg: "later"}, 11, "look at the address", []string{"later"}},
		{"full disk", &fs.PathError{Op: "write", Path: "/run/x", Err: syscall.ENOSPC}, 5, "free space", []string{"/run/x"}},
		{"read-only", &fs.PathError{Op: "open", Path: "/run/x", Err: syscall.EROFS}, 5, "mount", []string{"/run/x"}},
		{"deadline", fmt.Errorf("observe: %w", context.DeadlineExceeded), 11, "let the runtime", []string{"observe"}},
		{"exec", &exec.Error{Name: "x", Err: syscall.ENOENT}, 199, "look at the details", []string{"x"}},
		{"taken", &ipam.TakenError{Addr: netip.MustParseAddr("10.1.0.7"), Owner: "c/net1"}, 199, "look at the details", []string{"10.1.0.7"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			answered(t, tc.err, tc.code, tc.words...)
			if a := plugin.Answer(tc.err); !strings.HasPrefix(a.Msg, tc.msg) {
				t.Errorf("message is %q, want %q first", a.Msg, tc.msg)
			}
		})
	}
	if plugin.Answer(nil) != nil {
		t.Error("no error has an answer")
	}
}
