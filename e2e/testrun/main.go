// SPDX-License-Identifier: Apache-2.0

// Testrun runs the project's tests where each belongs, and counts them.
//
//	go run ./e2e/testrun [-env host,netns,guest] [-pkg NAME] [-run REGEXP] [-count N] [-full] [-v]
//
// There are three environments:
//
//   - host: what needs nothing but Go;
//   - netns: tests in *_live_test.go files, which need root and make network namespaces of this machine's kernel;
//   - guest: the packages below e2e/guest, built with the tag lab, each of which runs as root in a virtual machine of its own.
//
// A skipped test is a failure, and so is a package without tests that e2e/untested.json does not excuse: what is not run must be
// seen not to run. The last line is "N passed, N failed, 0 skipped"; with -minimum, a run with fewer tests in an environment
// than e2e/minimum.json says fails as well.
//
// A line that a test prints and that begins with "| " is shown even when the test passes, without the mark.
//
// A guest package says in a comment of one of its files how its machine is to be booted; see [profile].
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The environments, in the order in which they run.
const (
	envHost  = "host"
	envNetns = "netns"
	envGuest = "guest"
)

// errFailed says that the run went to its end and was not clean.
var errFailed = errors.New("tests failed")

// options are the command line.
type options struct {
	envs    []string
	pkg     string
	run     string
	race    bool
	count   int  // rounds of a guest package on one boot
	full    bool // guest packages leave nothing out
	minimum bool
	verbose bool
}

func main() {
	if err := mainErr(); err != nil {
		if !errors.Is(err, errFailed) {
			fmt.Fprintln(os.Stderr, "testrun:", err)
		}
		os.Exit(1)
	}
}

func mainErr() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	var envs string
	flag.StringVar(&envs, "env", "host,netns,guest", "environments to run tests in, separated by commas")
	flag.StringVar(&o.pkg, "pkg", "", "only packages whose import path ends in `NAME`")
	flag.StringVar(&o.run, "run", "", "only tests that match `REGEXP`, as go test's -run")
	flag.BoolVar(&o.race, "race", false, "run host and netns tests with the race detector")
	flag.IntVar(&o.count, "count", 1, "run guest tests `N` times on one boot, whose time limit is N times its package's")
	flag.BoolVar(&o.full, "full", false, "set FULL=1 for guest tests, which then leave nothing out, and let a boot take as long as that needs")
	flag.BoolVar(&o.minimum, "minimum", false, "fail if fewer tests ran than e2e/minimum.json says")
	flag.BoolVar(&o.verbose, "v", false, "print the output of passing tests too")
	flag.Parse()
	o.envs = strings.Split(envs, ",")
	for _, env := range o.envs {
		if !slices.Contains([]string{envHost, envNetns, envGuest}, env) {
			return fmt.Errorf("environment %q is none of host, netns, guest", env)
		}
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	return runAll(ctx, o, root)
}

// runAll runs what the options ask for and prints the counts.
func runAll(ctx context.Context, o options, root string) error {
	r := newReport(os.Stdout, o.verbose)
	if o.wants(envHost) || o.wants(envNetns) {
		if err := timed("host and netns tests", func() error { return runHost(ctx, o, root, r) }); err != nil {
			return err
		}
	}
	if o.wants(envGuest) {
		if err := timed("guest tests", func() error { return runGuest(ctx, o, root, r) }); err != nil {
			return err
		}
	}
	if o.minimum {
		if err := r.requireMinimum(filepath.Join(root, "e2e", "minimum.json")); err != nil {
			return err
		}
	}
	if !r.summary() {
		return errFailed
	}
	return nil
}

func (o options) wants(env string) bool { return slices.Contains(o.envs, env) }

// wantsPackage tells whether -pkg lets this import path through.
func (o options) wantsPackage(path string) bool {
	return o.pkg == "" || path == o.pkg || strings.HasSuffix(path, "/"+strings.Trim(o.pkg, "./"))
}

// timed runs f and prints how long it took.
func timed(what string, f func() error) error {
	start := time.Now()
	err := f()
	fmt.Printf("--- %s: %.1f s\n", what, time.Since(start).Seconds())
	return err
}
