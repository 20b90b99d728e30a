// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// runGuest builds the guest packages and boots a machine for each.
func runGuest(ctx context.Context, o options, root string, r *report) error {
	pkgs, err := goList(ctx, root, "-tags", "lab", "./e2e/guest/...")
	if err != nil {
		return err
	}
	pkgs = slices.DeleteFunc(pkgs, func(p listed) bool { return len(p.testFiles()) == 0 || !o.wantsPackage(p.ImportPath) })
	if len(pkgs) == 0 {
		return nil
	}
	// Before the first boot, so that its time is not a test's.
	if err = command(ctx, root, filepath.Join(root, "e2e", "lab", "mkroot")).Run(); err != nil {
		return fmt.Errorf("build the lab: %w", err)
	}
	work, err := os.MkdirTemp("", "podfabric-testrun.")
	if err != nil {
		return fmt.Errorf("make a work folder: %w", err)
	}
	defer os.RemoveAll(work)

	bin := filepath.Join(work, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		return fmt.Errorf("make a work folder: %w", err)
	}
	if err := buildCommands(ctx, root, bin, "./cmd/..."); err != nil {
		r.fault("./cmd does not build: %v", err) // go has said why; a package that needs no command can still say something
	}
	for _, p := range pkgs {
		if err := runMachine(ctx, o, root, work, p, r); err != nil {
			return fmt.Errorf("%s: %w", relative(p.ImportPath), err)
		}
	}
	return nil
}

// buildStatic is what the guest needs: it has Debian's libc, but no promise that it is this machine's.
func buildStatic(ctx context.Context, root string, args ...string) error {
	cmd := command(ctx, root, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stdout = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s: %w", strings.Join(args[:1], " "), err)
	}
	return nil
}

// buildCommands builds the main packages of a pattern into a folder. None is fine: the pattern may be ahead of the code.
func buildCommands(ctx context.Context, root, into, pattern string) error {
	pkgs, err := goList(ctx, root, "-tags", "lab", pattern)
	if err != nil {
		return err
	}
	for _, p := range pkgs {
		if p.Name != "main" {
			continue
		}
		out := filepath.Join(into, path.Base(p.ImportPath))
		if err := buildStatic(ctx, root, "build", "-tags", "lab", "-trimpath", "-o", out, p.ImportPath); err != nil {
			return err
		}
	}
	return nil
}

// buildPeer builds a tool of a nested module, "plugins/macvlan", or the module's own program, "libcni", into a folder.
func buildPeer(ctx context.Context, root, into, peer string) error {
	module, tool, isTool := strings.Cut(peer, "/")
	dir, target := filepath.Join(root, "e2e", "peers", module), "."
	if isTool {
		cmd := command(ctx, dir, "go", "list", "tool")
		list, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("list the tools of e2e/peers/%s: %w", module, err)
		}
		tools := strings.Fields(string(list))
		i := slices.IndexFunc(tools, func(t string) bool { return path.Base(t) == tool })
		if i < 0 {
			return fmt.Errorf("%w: peers=%s: e2e/peers/%s has no such tool", errProfile, peer, module)
		}
		target = tools[i]
	}
	return buildStatic(ctx, dir, "build", "-trimpath", "-o", filepath.Join(into, path.Base(peer)), target)
}

// runMachine boots one package's machine, runs its tests in it, and reads their events.
func runMachine(ctx context.Context, o options, root, work string, pkg listed, r *report) error {
	prof, err := profileOf(pkg)
	if err != nil {
		return err
	}
	prof.seconds *= max(o.count, 1)
	if o.full {
		prof.seconds *= fullFactor
	}
	dir, err := os.MkdirTemp(work, path.Base(pkg.ImportPath)+".")
	if err != nil {
		return fmt.Errorf("make a work folder: %w", err)
	}
	exe := filepath.Join(dir, "test")
	if err := buildStatic(ctx, root, "test", "-c", "-tags", "lab", "-o", exe, pkg.ImportPath); err != nil {
		r.fault("%s does not build: %v", relative(pkg.ImportPath), err) // go has said why
		return ctx.Err()
	}
	extra := filepath.Join(dir, "bin")
	if err := os.CopyFS(extra, os.DirFS(filepath.Join(work, "bin"))); err != nil {
		return fmt.Errorf("copy the binaries: %w", err)
	}
	for _, pattern := range prof.bin {
		if err := buildCommands(ctx, root, extra, pattern); err != nil {
			return err
		}
	}
	for _, peer := range prof.peers {
		if err := buildPeer(ctx, root, extra, peer); err != nil {
			return err
		}
	}
	for _, tags := range prof.variants {
		out := filepath.Join(extra, "podfabric-"+tags)
		tags = "lab," + strings.ReplaceAll(tags, "+", ",")
		if err := buildStatic(ctx, root, "build", "-tags", tags, "-trimpath", "-o", out, "./cmd/podfabric"); err != nil {
			return err
		}
	}
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte(guestScript(prof, o)), 0o755); err != nil {
		return fmt.Errorf("write the guest's script: %w", err)
	}
	console := filepath.Join(dir, "console")
	boot := prof.bootCommand(ctx, root, script, exe, extra, filepath.Join(pkg.Dir, "testdata"), console)
	if err := readMachine(ctx, root, boot, pkg, o.run != "", r); err != nil {
		return err
	}
	return r.checkConsole(relative(pkg.ImportPath), console)
}

// fullFactor is how much longer than its profile says a package may take that is told to leave nothing out.
const fullFactor = 20

// guestScript makes the node and becomes the tests. The limit is a little below the machine's own, so that a hung test ends
// with Go's list of goroutines.
func guestScript(p profile, o options) string {
	run := ""
	if o.run != "" {
		run = " -test.run '" + strings.ReplaceAll(o.run, "'", `'\''`) + "'"
	}
	full := ""
	if o.full {
		full = "FULL=1 "
	}
	if o.count > 1 {
		run += " -test.count " + strconv.Itoa(o.count)
	}
	return fmt.Sprintf(`#!/bin/bash
./prepare --mode %s --vfs %d --rdmasim %s || exit 1
cd test && %sexec ./test -test.v=test2json -test.timeout %ds%s
`, p.mode, p.vfs, p.rdmasim, full, max(p.seconds-45, 10), run)
}

func (p profile) bootCommand(ctx context.Context, root, script, exe, bin, testdata, console string) *exec.Cmd {
	args := []string{
		"--pfs", strconv.Itoa(p.pfs), "--memory", strconv.Itoa(p.memory), "--cpus", strconv.Itoa(p.cpus),
		"--seconds", strconv.Itoa(p.seconds), "--file", exe + "=test/test", "--file", bin + "=bin", "--console", console,
	}
	if _, err := os.Stat(testdata); err == nil {
		args = append(args, "--file", testdata+"=test/testdata")
	}
	return command(ctx, root, filepath.Join(root, "e2e", "lab", "boot"), append(args, "--script", script)...)
}

// readMachine runs a boot and turns its output, a test binary's, into go test's events. If the tests are not narrowed to some, there
// must be one.
func readMachine(ctx context.Context, root string, boot *exec.Cmd, pkg listed, narrowed bool, r *report) error {
	raw, err := boot.StdoutPipe()
	if err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	convert := command(ctx, root, "go", "tool", "test2json", "-t", "-p", pkg.ImportPath)
	convert.Stdin = raw
	events, err := convert.StdoutPipe()
	if err != nil {
		return fmt.Errorf("run test2json: %w", err)
	}
	if err := boot.Start(); err != nil {
		return fmt.Errorf("boot: %w", err)
	}
	if err := convert.Start(); err != nil {
		return fmt.Errorf("run test2json: %w", err)
	}
	before, faults := *r.counts[envGuest], len(r.faults)
	env := func(string, string) string { return envGuest }
	if err := r.read(events, env, func(string) {}); err != nil {
		return err
	}
	if err := convert.Wait(); err != nil {
		return fmt.Errorf("run test2json: %w", err)
	}
	// The machine's status is the test binary's. test2json, which sees only output, may take a machine that died for a success.
	if err := boot.Wait(); err != nil && r.counts[envGuest].failed == before.failed {
		r.replayUnfinished(pkg.ImportPath)
		r.fault("%s: the guest ended with %v, though no test failed", relative(pkg.ImportPath), err)
	}
	if !narrowed && *r.counts[envGuest] == before && len(r.faults) == faults {
		r.fault("%s: no test ran", relative(pkg.ImportPath))
	}
	return nil
}

// kernelTrouble is what a kernel prints that has found a fault in itself, or in rdmasim.
var kernelTrouble = regexp.MustCompile(`WARNING: |BUG: |Oops|Call Trace|blocked for more than|waiting for .* to become free`)

// checkConsole notes a fault if the guest's kernel complained: a test that passed on a kernel in trouble has shown nothing.
func (r *report) checkConsole(pkg, console string) error {
	b, err := os.ReadFile(console)
	if errors.Is(err, os.ErrNotExist) { // the machine did not even start, which is said already
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the guest's console: %w", err)
	}
	at := kernelTrouble.FindIndex(b)
	if at == nil {
		return nil
	}
	r.fault("%s: the guest's kernel is in trouble", pkg)
	fmt.Fprintf(r.out, "%s\n", b[at[0]:min(len(b), at[0]+4000)])
	return nil
}
