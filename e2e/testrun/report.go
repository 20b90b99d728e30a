// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// event is one line of go test -json; see `go doc test2json`.
type event struct {
	Action     string
	Package    string
	ImportPath string // of a failed build
	Test       string
	Elapsed    float64 // seconds
	Output     string
}

// tableMark begins a line of output that a reader is to see though the test passes.
const tableMark = "| "

// counts are the results of one environment. Subtests count like tests.
type counts struct {
	passed, failed, skipped int
}

// report collects the events of all runs, prints what a reader wants to see, and keeps the counts.
type report struct {
	out     io.Writer
	verbose bool
	counts  map[string]*counts  // by environment
	output  map[string][]string // of each test that has not ended, by package and test
	perPkg  map[string]counts   // of each package that has not ended
	faults  []string            // what is wrong with the run as a whole
}

func newReport(out io.Writer, verbose bool) *report {
	return &report{
		out: out, verbose: verbose,
		counts: map[string]*counts{envHost: {}, envNetns: {}, envGuest: {}},
		output: map[string][]string{},
		perPkg: map[string]counts{},
	}
}

// fault notes a failure that is not a test's.
func (r *report) fault(format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	r.faults = append(r.faults, msg)
	fmt.Fprintln(r.out, "FAIL", msg)
}

// read takes the events of one go test -json. envOf tells the environment of a package's test; noTests is called for a package
// that says it has none.
func (r *report) read(in io.Reader, envOf func(pkg, test string) string, noTests func(pkg string)) error {
	lines := bufio.NewReader(in) // not a Scanner: a line of output has no limit
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil {
				fmt.Fprint(r.out, line) // go's own message, before any test
			} else {
				r.take(e, envOf, noTests)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read test events: %w", err)
		}
	}
}

func (r *report) take(e event, envOf func(pkg, test string) string, noTests func(pkg string)) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		if r.verbose && !strings.HasPrefix(e.Output, "=== ") {
			fmt.Fprint(r.out, e.Output)
		} else if line, ok := strings.CutPrefix(e.Output, tableMark); ok {
			fmt.Fprint(r.out, line)
		}
		r.output[key] = append(r.output[key], e.Output)
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "build-fail":
		r.fault("%s does not build", e.ImportPath)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.endPackage(e, key, noTests)
		} else {
			r.endTest(e, key, envOf(e.Package, e.Test))
		}
		delete(r.output, key)
	}
}

func (r *report) endTest(e event, key, env string) {
	n := r.perPkg[e.Package]
	switch e.Action {
	case "pass":
		n.passed++
		r.counts[env].passed++
	case "fail":
		n.failed++
		r.counts[env].failed++
	case "skip":
		n.skipped++
		r.counts[env].skipped++
	}
	r.perPkg[e.Package] = n
	if e.Action != "pass" {
		r.replay(key)
		fmt.Fprintf(r.out, "%s %s %s (%.2f s)\n", strings.ToUpper(e.Action), e.Package, e.Test, e.Elapsed)
	}
}

func (r *report) endPackage(e event, key string, noTests func(pkg string)) {
	n := r.perPkg[e.Package]
	delete(r.perPkg, e.Package)
	switch {
	case e.Action == "skip":
		noTests(e.Package)
	case e.Action == "fail":
		if n.failed == 0 { // it did not build, panicked outside a test, or a race was found at the end
			r.fault("%s failed outside its tests", e.Package)
			r.replay(key)
			r.replayUnfinished(e.Package)
		}
		fmt.Fprintf(r.out, "FAIL %-60s %6.1f s  %d passed, %d failed\n", e.Package, e.Elapsed, n.passed, n.failed)
	case n.passed > 0:
		fmt.Fprintf(r.out, "ok   %-60s %6.1f s  %d passed\n", e.Package, e.Elapsed, n.passed)
	}
}

// replay prints a test's output, unless it was printed as it came.
func (r *report) replay(key string) {
	if !r.verbose {
		fmt.Fprint(r.out, strings.Join(r.output[key], ""))
	}
}

// replayUnfinished prints the output of the tests that were running when the package died.
func (r *report) replayUnfinished(pkg string) {
	for key := range r.output {
		if strings.HasPrefix(key, pkg+" ") && key != pkg+" " {
			r.replay(key)
			delete(r.output, key)
		}
	}
}

// requireMinimum notes a fault for each environment that ran fewer tests than the file says.
func (r *report) requireMinimum(file string) error {
	var minimum map[string]int
	if err := readJSON(file, &minimum); err != nil {
		return err
	}
	for _, env := range []string{envHost, envNetns, envGuest} {
		if ran := r.counts[env].passed + r.counts[env].failed; ran < minimum[env] {
			r.fault("only %d tests ran in %s; e2e/minimum.json asks for %d", ran, env, minimum[env])
		}
	}
	return nil
}

// summary prints the counts, the promised line last, and tells whether all is well. A fault counts as a failed test.
func (r *report) summary() bool {
	var sum counts
	for _, env := range []string{envHost, envNetns, envGuest} {
		n := r.counts[env]
		fmt.Fprintf(r.out, "%-5s %d passed, %d failed, %d skipped\n", env, n.passed, n.failed, n.skipped)
		sum.passed += n.passed
		sum.failed += n.failed
		sum.skipped += n.skipped
	}
	sum.failed += len(r.faults)
	if sum.passed+sum.failed+sum.skipped == 0 {
		fmt.Fprintln(r.out, "FAIL no test ran")
		sum.failed++
	}
	for _, f := range r.faults {
		fmt.Fprintln(r.out, "FAIL", f)
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", sum.passed, sum.failed, sum.skipped)
	return sum.failed == 0 && sum.skipped == 0
}

func readJSON(file string, into any) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read a table of the tests: %w", err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
