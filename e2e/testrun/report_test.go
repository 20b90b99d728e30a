// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// feed is a report that has read these events; TestLive is a netns test.
func feed(t *testing.T, events ...string) (*report, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	r := newReport(&out, false)
	env := func(_, test string) string {
		if strings.HasPrefix(test, "TestLive") {
			return envNetns
		}
		return envHost
	}
	noTests := func(pkg string) { r.fault("%s has no tests", pkg) }
	if err := r.read(strings.NewReader(strings.Join(events, "\n")), env, noTests); err != nil {
		t.Fatal(err)
	}
	return r, &out
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

func TestReport(t *testing.T) {
	t.Parallel()
	const pass = `{"Action":"pass","Package":"p","Test":"TestA"}`
	for _, tc := range []struct {
		name   string
		events []string
		ok     bool
		last   string
		prints string
	}{
		{
			name:   "all pass",
			events: []string{pass, `{"Action":"pass","Package":"p","Test":"TestLiveB/sub"}`, `{"Action":"pass","Package":"p"}`},
			ok:     true, last: "2 passed, 0 failed, 0 skipped", prints: "netns 1 passed",
		},
		{
			name: "a failure brings its output",
			events: []string{
				`{"Action":"output","Package":"p","Test":"TestB","Output":"a_test.go:1: no\n"}`,
				`{"Action":"fail","Package":"p","Test":"TestB"}`, pass, `{"Action":"fail","Package":"p"}`,
			},
			last: "1 passed, 1 failed, 0 skipped", prints: "a_test.go:1: no",
		},
		{
			name:   "a skip is a failure",
			events: []string{pass, `{"Action":"skip","Package":"p","Test":"TestB"}`, `{"Action":"pass","Package":"p"}`},
			last:   "1 passed, 0 failed, 1 skipped", prints: "SKIP p TestB",
		},
		{
			name:   "a package without tests is a failure",
			events: []string{pass, `{"Action":"skip","Package":"q"}`},
			last:   "1 passed, 1 failed, 0 skipped", prints: "q has no tests",
		},
		{
			name: "a package that dies in a test",
			events: []string{
				`{"Action":"output","Package":"p","Test":"TestB","Output":"panic: no\n"}`, `{"Action":"fail","Package":"p"}`,
			},
			last: "0 passed, 1 failed, 0 skipped", prints: "panic: no",
		},
		{
			name: "a package that does not build",
			events: []string{
				`{"Action":"build-output","ImportPath":"p","Output":"a.go:1: undefined\n"}`, `{"Action":"build-fail","ImportPath":"p"}`,
			},
			last: "0 passed, 1 failed, 0 skipped", prints: "a.go:1: undefined",
		},
		{
			name:   "a marked line is shown though the test passes",
			events: []string{`{"Action":"output","Package":"p","Test":"TestA","Output":"| 7 of 7\n"}`, pass},
			ok:     true, last: "1 passed, 0 failed, 0 skipped", prints: "7 of 7\nhost",
		},
		{name: "nothing ran", last: "0 passed, 1 failed, 0 skipped", prints: "no test ran"},
		{name: "no event", events: []string{"go: no module", pass}, ok: true, last: "1 passed, 0 failed, 0 skipped", prints: "go: no module"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r, out := feed(t, tc.events...)
			if ok := r.summary(); ok != tc.ok {
				t.Errorf("summary = %v, want %v", ok, tc.ok)
			}
			if got := lastLine(out.String()); got != tc.last {
				t.Errorf("last line: got %q, want %q", got, tc.last)
			}
			if !strings.Contains(out.String(), tc.prints) {
				t.Errorf("output has no %q:\n%s", tc.prints, out)
			}
		})
	}
}

func TestMinimum(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "minimum.json")
	if err := os.WriteFile(file, []byte(`{"host": 1, "netns": 1, "guest": 0}`), 0o644); err != nil {
		t.Fatal(err)
	}
	r, out := feed(t, `{"Action":"pass","Package":"p","Test":"TestA"}`)
	if err := r.requireMinimum(file); err != nil {
		t.Fatal(err)
	}
	if r.summary() || !strings.Contains(out.String(), "only 0 tests ran in netns") {
		t.Errorf("too few netns tests were not noted:\n%s", out)
	}
}

func TestConsole(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		ok         bool
	}{
		{"quiet", "[ 1.0] igb: link up\n", true},
		{"warning", "[ 1.0] WARNING: CPU: 0 PID: 1 at drivers/infiniband/core/device.c:1\n", false},
		{"leaked netdev", "[ 9.0] unregister_netdevice: waiting for eth2 to become free. Usage count = 2\n", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "console")
			if err := os.WriteFile(file, []byte(tc.text), 0o644); err != nil {
				t.Fatal(err)
			}
			r, _ := feed(t)
			if err := r.checkConsole("p", file); err != nil {
				t.Fatal(err)
			}
			if r.clean() != tc.ok {
				t.Errorf("clean = %v, want %v", r.clean(), tc.ok)
			}
		})
	}
}

func TestParseProfile(t *testing.T) {
	t.Parallel()
	standard := profile{pfs: 2, vfs: 4, memory: 2048, cpus: 2, seconds: 300, mode: "exclusive", rdmasim: "all"}
	changed := standard
	changed.pfs, changed.mode, changed.rdmasim, changed.bin = 8, "shared", "0000:01:00.0,0000:01:10.0", []string{"./e2e/guest/ipam"}
	changed.variants = []string{"faults", "faults+recordnext"}
	for _, tc := range []struct {
		name, source string
		want         profile
		found, bad   bool
	}{
		{name: "none", source: "package x\n", want: standard},
		{name: "bare", source: "package x\n\n//lab:boot\n", want: standard, found: true},
		{
			name:   "all",
			source: "//lab:boot pfs=8 mode=shared rdmasim=0000:01:00.0,0000:01:10.0 bin=./e2e/guest/ipam variants=faults,faults+recordnext\n",
			want:   changed, found: true,
		},
		{name: "unknown key", source: "//lab:boot pf=8\n", bad: true},
		{name: "unknown mode", source: "//lab:boot mode=both\n", bad: true},
		{name: "no number", source: "//lab:boot pfs=two\n", bad: true},
		{name: "two", source: "//lab:boot\n//lab:boot\n", bad: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, found, err := parseProfile(tc.source)
			if (err != nil) != tc.bad || found != tc.found {
				t.Fatalf("found %v, error %v; want found %v, bad %v", found, err, tc.found, tc.bad)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(profile{})); !tc.bad && diff != "" {
				t.Errorf("profile (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGuestScript(t *testing.T) {
	t.Parallel()
	p := profile{seconds: 300, mode: "shared", vfs: 3, rdmasim: "all"}
	for _, tc := range []struct {
		name string
		o    options
		want string // the last line
	}{
		{"all", options{}, "cd test && exec ./test -test.v=test2json -test.timeout 255s"},
		{"some", options{run: "It's"}, `cd test && exec ./test -test.v=test2json -test.timeout 255s -test.run 'It'\''s'`},
		{"rounds", options{count: 20}, "cd test && exec ./test -test.v=test2json -test.timeout 255s -test.count 20"},
		{"everything", options{full: true, count: 1}, "cd test && FULL=1 exec ./test -test.v=test2json -test.timeout 255s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := lastLine(guestScript(p, tc.o)); got != tc.want {
				t.Errorf("got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestHostArgs(t *testing.T) {
	t.Parallel()
	names := tests{live: []string{"TestLiveA", "TestLiveB"}, other: []string{"TestC", "TestLong"}, norace: []string{"TestLong"}}
	both := []string{envHost, envNetns}
	for _, tc := range []struct {
		name  string
		o     options
		want  []string // after the flags that are always there; nil: nothing to run
		plain []string // of a second run, without the race detector; nil: there is none
	}{
		{"both", options{envs: both}, []string{}, nil},
		{"both, one test", options{envs: both, run: "X/y"}, []string{"-run", "X/y"}, nil},
		{"both, race", options{envs: both, race: true}, []string{"-race", "-skip", "^(TestLong)$"}, []string{"-run", "^(TestLong)$"}},
		{
			"both, race, one test",
			options{envs: both, race: true, run: "Long/y"},
			[]string{"-race", "-skip", "^(TestLong)$", "-run", "Long/y"},
			[]string{"-run", "^(TestLong)$/y"},
		},
		{"both, race, another test", options{envs: both, race: true, run: "C"}, []string{"-race", "-skip", "^(TestLong)$", "-run", "C"}, nil},
		{"host", options{envs: []string{envHost}}, []string{"-skip", "^(TestLiveA|TestLiveB)$"}, nil},
		{
			"host, race",
			options{envs: []string{envHost}, race: true},
			[]string{"-race", "-skip", "^(TestLong|TestLiveA|TestLiveB)$"},
			[]string{"-run", "^(TestLong)$"},
		},
		{"netns", options{envs: []string{envNetns}}, []string{"-run", "^(TestLiveA|TestLiveB)$"}, nil},
		{"netns, race", options{envs: []string{envNetns}, race: true}, []string{"-race", "-run", "^(TestLiveA|TestLiveB)$"}, nil},
		{"netns, one test", options{envs: []string{envNetns}, run: "LiveB/y"}, []string{"-run", "^(TestLiveB)$/y"}, nil},
		{"netns, no such test", options{envs: []string{envNetns}, run: "X"}, nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := hostArgs(tc.o, names)
			plain, plainErr := plainArgs(tc.o, names.norace)
			if err = errors.Join(err, plainErr); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([][]string{tc.want, tc.plain}, [][]string{own(got), own(plain)}); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
		})
	}
}

// own are the arguments after those of every run.
func own(args []string) []string {
	if args == nil {
		return nil
	}
	return args[len(goTestArgs()):]
}
