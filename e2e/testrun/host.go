// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// listed is what `go list -json` says of a package, as far as testrun reads it.
type listed struct {
	ImportPath   string
	Dir          string
	Name         string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
}

func (p listed) testFiles() []string { return slices.Concat(p.TestGoFiles, p.XTestGoFiles) }

// command is a program of this run: its messages go to ours, and it dies with ctx.
func command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Stderr = os.Stderr
	return cmd
}

func moduleRoot(ctx context.Context) (string, error) {
	out, err := command(ctx, "", "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// goList lists packages under the module's root.
func goList(ctx context.Context, root string, args ...string) ([]listed, error) {
	out, err := command(ctx, root, "go", append([]string{"list", "-e", "-json"}, args...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	var pkgs []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		switch err := dec.Decode(&p); {
		case err == io.EOF:
			return pkgs, nil
		case err != nil:
			return nil, fmt.Errorf("list packages: %w", err)
		}
		pkgs = append(pkgs, p)
	}
}

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)

// norace is a line of a test file whose tests, one thread from beginning to end and long, gain nothing from the race detector.
var norace = regexp.MustCompile(`(?m)^//test:norace$`)

// tests are names of top-level tests.
type tests struct {
	live   []string // in *_live_test.go files
	other  []string
	norace []string // among the others
}

// testNames are the tests of a package.
func testNames(p listed) (tests, error) {
	var names tests
	for _, f := range p.testFiles() {
		b, err := os.ReadFile(filepath.Join(p.Dir, f))
		if err != nil {
			return tests{}, fmt.Errorf("look for live tests: %w", err)
		}
		into := &names.other
		if strings.HasSuffix(f, "_live_test.go") {
			into = &names.live
		}
		for _, m := range testFunc.FindAllStringSubmatch(string(b), -1) {
			if m[1] != "TestMain" {
				*into = append(*into, m[1])
				if norace.Match(b) {
					names.norace = append(names.norace, m[1])
				}
			}
		}
	}
	return names, nil
}

// runHost runs go test for the packages of this machine: those of host and of netns, together or apart.
func runHost(ctx context.Context, o options, root string, r *report) error {
	all, err := goList(ctx, root, "-tags", "faults", "./...")
	if err != nil {
		return err
	}
	live := map[string][]string{}
	var paths, plain []string
	var names tests
	for _, p := range all {
		inPkg, namesErr := testNames(p)
		if namesErr != nil {
			return namesErr
		}
		names.live, names.other = append(names.live, inPkg.live...), append(names.other, inPkg.other...)
		if !o.wantsPackage(p.ImportPath) {
			continue
		}
		if len(inPkg.live) > 0 {
			live[p.ImportPath] = inPkg.live
		}
		if len(inPkg.live) > 0 || o.wants(envHost) {
			paths = append(paths, p.ImportPath)
		}
		if names.norace = append(names.norace, inPkg.norace...); len(inPkg.norace) > 0 {
			plain = append(plain, p.ImportPath)
		}
	}
	for _, n := range names.live {
		if slices.Contains(names.other, n) {
			return fmt.Errorf("rename one of the tests %s: one is in a *_live_test.go file and one is not, and go test selects by name alone", n)
		}
	}
	args, err := hostArgs(o, names)
	if err != nil {
		return err
	}
	if len(paths) > 0 && args != nil {
		if err = goTest(ctx, o, root, append(args, paths...), live, r); err != nil {
			return err
		}
	}
	args, err = plainArgs(o, names.norace)
	if err != nil || len(plain) == 0 || args == nil {
		return err
	}
	return r.run(ctx, root, append(args, plain...), live, func(string) {})
}

// hostArgs are go test's flags; nil if nothing is to run. Only a run of one of the two environments, or with the race detector, has to
// select by name.
func hostArgs(o options, names tests) ([]string, error) {
	args := goTestArgs()
	var skip []string
	if o.race {
		args, skip = append(args, "-race"), names.norace
	}
	if !o.wants(envHost) {
		return only(args, o.run, names.live)
	}
	if !o.wants(envNetns) {
		skip = slices.Concat(skip, names.live)
	}
	if len(skip) > 0 {
		args = append(args, "-skip", exactly(skip))
	}
	if o.run != "" {
		args = append(args, "-run", o.run)
	}
	return args, nil
}

// plainArgs are go test's flags for what a run with the race detector has left out; nil if that is nothing.
func plainArgs(o options, names []string) ([]string, error) {
	if !o.race || !o.wants(envHost) {
		return nil, nil
	}
	return only(goTestArgs(), o.run, names)
}

// goTestArgs are those of every run. -count=1: a cached result of a test that looks at the kernel, or at being root, says nothing.
// -tags faults: the fault injector has tests too; nothing else is built otherwise with it but what it is injected into.
func goTestArgs() []string {
	return []string{"test", "-json", "-count=1", "-timeout=20m", "-tags=faults"}
}

// only adds what selects those tests of a list that -run selects too; nil if that leaves none.
func only(args []string, run string, names []string) ([]string, error) {
	top, _, _ := strings.Cut(run, "/")
	re, err := regexp.Compile(top)
	if err != nil {
		return nil, fmt.Errorf("-run: %w", err)
	}
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !re.MatchString(n) })
	if len(names) == 0 {
		return nil, nil
	}
	return append(args, "-run", exactly(names)+strings.TrimPrefix(run, top)), nil
}

func exactly(names []string) string { return "^(" + strings.Join(names, "|") + ")$" }

// goTest runs go test and hands its events to the report.
func goTest(ctx context.Context, o options, root string, args []string, live map[string][]string, r *report) error {
	untested := map[string]string{}
	if err := readJSON(filepath.Join(root, "e2e", "untested.json"), &untested); err != nil {
		return err
	}
	noTests := func(pkg string) {
		rel := relative(pkg)
		if untested[rel] == "" && o.wants(envHost) {
			r.fault("%s has no tests, and e2e/untested.json does not say why", rel)
		}
		delete(untested, rel)
	}
	if err := r.run(ctx, root, args, live, noTests); err != nil {
		return err
	}
	if o.wants(envHost) && o.pkg == "" {
		for rel := range untested {
			r.fault("e2e/untested.json excuses %s, which has tests or is not there", rel)
		}
	}
	return nil
}

// run runs go test and reads its events; live are the packages' tests of the netns environment.
func (r *report) run(ctx context.Context, root string, args []string, live map[string][]string, noTests func(pkg string)) error {
	envOf := func(pkg, test string) string {
		top, _, _ := strings.Cut(test, "/")
		if slices.Contains(live[pkg], top) {
			return envNetns
		}
		return envHost
	}
	cmd := command(ctx, root, "go", args...)
	events, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("run go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run go test: %w", err)
	}
	if err := r.read(events, envOf, noTests); err != nil {
		return err
	}
	return r.ended("go test", cmd.Wait())
}

// relative is an import path without the module's.
func relative(pkg string) string {
	return strings.TrimPrefix(strings.TrimPrefix(pkg, "github.com/podfabric/podfabric"), "/")
}

// ended checks that a test program's failure, if it failed, has been seen in its events.
func (r *report) ended(what string, err error) error {
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return nil
	case !ended:
		return fmt.Errorf("run %s: %w", what, err)
	case r.clean():
		r.fault("%s: %v, though no test failed", what, exit)
	}
	return nil
}

// clean tells whether nothing has failed so far.
func (r *report) clean() bool {
	failed := len(r.faults)
	for _, n := range r.counts {
		failed += n.failed
	}
	return failed == 0
}
