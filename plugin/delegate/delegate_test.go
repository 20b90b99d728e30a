// SPDX-License-Identifier: Apache-2.0

package delegate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/delegate"
)

// behaviour steers the test binary as an IPAM plugin, as containernetworking's noop does: it is a file whose path stands in
// the delegate's environment.
type behaviour struct {
	Stdout, Stderr string
	Exit           int
	Hang           bool   // with a child that holds the output open
	Fork           bool   // leaves such a child behind and ends well
	Log            string // file that gets a line for each call
}

// logged is such a line.
type logged struct {
	Env   map[string]string
	Stdin string
}

const (
	behaviourVar = "DELEGATE_BEHAVIOUR"
	callerVar    = "DELEGATE_CALLER" // makes the test binary call a delegate
)

func TestMain(m *testing.M) {
	if file := os.Getenv(behaviourVar); file != "" && os.Getenv("CNI_COMMAND") != "" {
		os.Exit(act(file))
	}
	if text := os.Getenv(callerVar); text != "" {
		var call delegate.Call
		if json.Unmarshal([]byte(text), &call) == nil {
			_, _ = delegate.Caller{}.Add(context.Background(), call)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func act(file string) int {
	text, err := os.ReadFile(file)
	if err != nil {
		return 99
	}
	var b behaviour
	if err := json.Unmarshal(text, &b); err != nil {
		return 98
	}
	stdin, _ := io.ReadAll(os.Stdin)
	call := logged{Env: map[string]string{}, Stdin: string(stdin)}
	for _, v := range os.Environ() {
		if name, value, _ := strings.Cut(v, "="); strings.HasPrefix(name, "CNI_") || name == "KUBECONFIG" || name == delegate.Mark {
			call.Env[name] = value
		}
	}
	line, _ := json.Marshal(call)
	if f, err := os.OpenFile(b.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		_, _ = f.Write(append(line, '\n'))
		_ = f.Close()
	}
	_ = os.WriteFile(b.Log+".self", []byte(strconv.Itoa(os.Getpid())), 0o600)
	_, _ = os.Stdout.WriteString(b.Stdout)
	_, _ = os.Stderr.WriteString(b.Stderr)
	if b.Hang || b.Fork {
		child := exec.Command("sleep", "1000")
		child.Stdout = os.Stdout
		if child.Start() == nil {
			_ = os.WriteFile(b.Log+".child", []byte(strconv.Itoa(child.Process.Pid)), 0o600)
		}
		if b.Hang {
			_ = child.Wait()
		}
	}
	return b.Exit
}

// double is a folder with a plugin of that behaviour in it, a call to it, and what it was called with.
type double struct {
	caller delegate.Caller
	call   delegate.Call
	log    string
}

const conf = `{"cniVersion":"1.0.0","name":"rail0","type":"podfabric","deviceID":"0000:3b:00.2","ipam":{"type":"theirs","poolName":"p"}}`

func newDouble(t *testing.T, b behaviour) double {
	t.Helper()
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err = os.Symlink(exe, filepath.Join(dir, "theirs")); err != nil {
		t.Fatal(err)
	}
	b.Log = filepath.Join(dir, "calls")
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "behaviour")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return double{
		caller: delegate.Caller{Environ: append(os.Environ(), behaviourVar+"="+file, "KUBECONFIG=/k", "CNI_IFNAME=stale")},
		call: delegate.Call{
			Plugin: "theirs", Config: []byte(conf), ContainerID: "4c8e", NetNS: "/run/netns/x", IfName: "net1",
			Args: "K8S_POD_NAME=pod-0", Path: "/nowhere:" + dir,
		},
		log: b.Log,
	}
}

func (d double) calls(t *testing.T) []logged {
	t.Helper()
	text, err := os.ReadFile(d.log)
	if err != nil {
		t.Fatal(err)
	}
	var calls []logged
	for line := range strings.Lines(string(text)) {
		var c logged
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		calls = append(calls, c)
	}
	return calls
}

const answer10 = `{"cniVersion":"1.0.0","ips":[{"address":"10.1.0.5/24","gateway":"10.1.0.1"},{"address":"fd00::5/64"}],` +
	`"routes":[{"dst":"10.0.0.0/8","gw":"10.1.0.1"},{"dst":"fd00::/48"}],"dns":{"nameservers":["10.1.0.53"]}}`

// TestEnvironment: what CNI's "Parameters" and "Delegated plugins" ask for, nothing left of our own parameters, and the mark.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	d := newDouble(t, behaviour{Stdout: answer10})
	if _, err := d.caller.Add(t.Context(), d.call); err != nil {
		t.Fatal(err)
	}
	if err := d.caller.Check(t.Context(), d.call); err != nil {
		t.Fatal(err)
	}
	if err := d.caller.Del(t.Context(), d.call); err != nil {
		t.Fatal(err)
	}
	var want []logged
	for _, verb := range []string{"ADD", "CHECK", "DEL"} {
		want = append(want, logged{Stdin: conf, Env: map[string]string{
			"CNI_COMMAND": verb, "CNI_CONTAINERID": "4c8e", "CNI_NETNS": "/run/netns/x", "CNI_IFNAME": "net1",
			"CNI_ARGS": "K8S_POD_NAME=pod-0", "CNI_PATH": d.call.Path, "KUBECONFIG": "/k", "PODFABRIC_DELEGATE": "1",
		}})
	}
	if diff := cmp.Diff(want, d.calls(t)); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestResults: the same addresses in every version of the specification.
func TestResults(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ conf, out string }{
		"1.1.0":                        {conf, strings.Replace(answer10, "1.0.0", "1.1.0", 1)},
		"1.0.0":                        {conf, answer10},
		"0.4.0":                        {conf, `{"cniVersion":"0.4.0","ips":[{"version":"4","address":"10.1.0.5/24","gateway":"10.1.0.1"},{"version":"6","address":"fd00::5/64"}],"routes":[{"dst":"10.0.0.0/8","gw":"10.1.0.1"},{"dst":"fd00::/48"}]}`},
		"0.3.1":                        {conf, `{"cniVersion":"0.3.1","ips":[{"version":"4","address":"10.1.0.5/24","gateway":"10.1.0.1"},{"version":"6","address":"fd00::5/64"}],"routes":[{"dst":"10.0.0.0/8","gw":"10.1.0.1"},{"dst":"fd00::/48"}]}`},
		"0.2.0":                        {conf, `{"cniVersion":"0.2.0","ip4":{"ip":"10.1.0.5/24","gateway":"10.1.0.1","routes":[{"dst":"10.0.0.0/8","gw":"10.1.0.1"}]},"ip6":{"ip":"fd00::5/64","routes":[{"dst":"fd00::/48"}]}}`},
		"none, so the configuration's": {conf, strings.Replace(answer10, `"cniVersion":"1.0.0",`, "", 1)},
		"empty, so the configuration's": {
			strings.Replace(conf, "1.0.0", "0.3.1", 1),
			`{"cniVersion":"","ips":[{"version":"4","address":"10.1.0.5/24","gateway":"10.1.0.1"},{"version":"6","address":"fd00::5/64"}],"routes":[{"dst":"10.0.0.0/8","gw":"10.1.0.1"},{"dst":"fd00::/48"}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDouble(t, behaviour{Stdout: tc.out, Stderr: "a line for the log\n"})
			d.call.Config = []byte(tc.conf)
			var stderr bytes.Buffer
			d.caller.Stderr = &stderr
			result, err := d.caller.Add(t.Context(), d.call)
			if err != nil {
				t.Fatal(err)
			}
			if result.CNIVersion != "1.1.0" || stderr.String() != "a line for the log\n" {
				t.Errorf("version %s, standard error %q", result.CNIVersion, &stderr)
			}
			addrs, routes, err := delegate.Addresses(result)
			if err != nil {
				t.Fatal(err)
			}
			wantAddrs := []netconf.Address{
				{Prefix: netip.MustParsePrefix("10.1.0.5/24"), Gateway: netip.MustParseAddr("10.1.0.1")},
				{Prefix: netip.MustParsePrefix("fd00::5/64")},
			}
			wantRoutes := []netconf.Route{
				{Dst: netip.MustParsePrefix("10.0.0.0/8"), Via: netip.MustParseAddr("10.1.0.1")},
				{Dst: netip.MustParsePrefix("fd00::/48")},
			}
			same := cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})
			if diff := cmp.Diff(wantAddrs, addrs, same) + cmp.Diff(wantRoutes, routes, same); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBadAnswers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		b    behaviour
		is   error
		says string
	}{
		"nothing":                   {behaviour{}, delegate.ErrOutput, `read result ""`},
		"null":                      {behaviour{Stdout: "null"}, delegate.ErrOutput, "null"},
		"a list":                    {behaviour{Stdout: "[]"}, delegate.ErrOutput, "[]"},
		"garbage":                   {behaviour{Stdout: "Segmentation fault"}, delegate.ErrOutput, "Segmentation fault"},
		"two answers":               {behaviour{Stdout: answer10 + answer10}, delegate.ErrOutput, "ips"},
		"unknown version":           {behaviour{Stdout: `{"cniVersion":"7.0.0"}`}, delegate.ErrOutput, "7.0.0"},
		"a wrong address":           {behaviour{Stdout: `{"cniVersion":"1.0.0","ips":[{"address":"x"}]}`}, delegate.ErrOutput, "x"},
		"no address":                {behaviour{Stdout: `{"cniVersion":"1.0.0","ips":[]}`}, delegate.ErrNoIPs, "theirs"},
		"without end":               {behaviour{Stdout: strings.Repeat("x", 1<<20+1)}, delegate.ErrOutput, "1048576"},
		"failed without a word":     {behaviour{Exit: 3}, delegate.ErrOutput, "exit status 3"},
		"failed with words":         {behaviour{Exit: 3, Stderr: "cannot\nconnect"}, delegate.ErrOutput, "cannot connect"},
		"failed with garbage":       {behaviour{Exit: 3, Stdout: "oops", Stderr: "cannot"}, delegate.ErrOutput, "oops"},
		"failed with a result":      {behaviour{Exit: 1, Stdout: answer10}, delegate.ErrOutput, "exit status 1"},
		"a Multus word from stderr": {behaviour{Exit: 1, Stderr: "open /x: no such file or directory"}, delegate.ErrOutput, "file not found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDouble(t, tc.b)
			_, err := d.caller.Add(t.Context(), d.call)
			if !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "theirs ADD") {
				t.Errorf("got %v", err)
			}
			if strings.Contains(err.Error(), "no such file") || len(err.Error()) > 4096 || strings.Contains(err.Error(), "\n") {
				t.Errorf("text %q", err)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]behaviour{
		"failed":               {Exit: 1, Stdout: `{"cniVersion":"1.0.0","code":11,"msg":"try later","details":"open /x: no such file or directory"}`},
		"failed and exit is 0": {Exit: 0, Stdout: ` {"cniVersion":"1.0.0","code":11,"msg":"try later","details":"open /x: No such file or directory"}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDouble(t, b)
			_, addErr := d.caller.Add(t.Context(), d.call)
			for verb, err := range map[string]error{
				"ADD": addErr, "DEL": d.caller.Del(t.Context(), d.call), "CHECK": d.caller.Check(t.Context(), d.call),
			} {
				var e *delegate.Error
				want := delegate.Error{Plugin: "theirs", Verb: verb, Code: types.ErrTryAgainLater, Msg: "try later", Details: "open /x: file not found"}
				if !errors.As(err, &e) || *e != want {
					t.Errorf("%s: got %v", verb, err)
				} else if got := e.Error(); got != "call IPAM plugin theirs "+verb+": try later; open /x: file not found (its code 11)" {
					t.Errorf("text %q", got)
				}
			}
		})
	}
}

// TestNoCheck has the answers of whereabouts 0.9 and of the CNI library's skel to CHECK in configurations below 0.4.0.
func TestNoCheck(t *testing.T) {
	t.Parallel()
	for _, out := range []string{
		`{"cniVersion":"0.4.0","code":999,"msg":"CNI CHECK method is not implemented"}`,
		`{"code":1,"msg":"config version does not allow CHECK"}`,
	} {
		d := newDouble(t, behaviour{Exit: 1, Stdout: out})
		if err := d.caller.Check(t.Context(), d.call); !errors.Is(err, delegate.ErrNoCheck) {
			t.Errorf("%s: got %v", out, err)
		}
		if err := d.caller.Del(t.Context(), d.call); errors.Is(err, delegate.ErrNoCheck) || err == nil {
			t.Errorf("%s: DEL got %v", out, err)
		}
	}
}

// What plugins answer to a verb that they do not have: the CNI library before 1.2 (skel.go, "unknown CNI_COMMAND"), newer ones
// where the configuration is older than 1.1.0, and those that say so in words.
func TestVerbsThatADelegateNeedNotHave(t *testing.T) {
	t.Parallel()
	verbs := map[string]func(delegate.Caller, context.Context, delegate.Call) error{"GC": delegate.Caller.GC, "STATUS": delegate.Caller.Status}
	for verb, call := range verbs {
		for out, lacking := range map[string]bool{
			`{"cniVersion":"0.4.0","code":4,"msg":"unknown CNI_COMMAND: ` + verb + `"}`: true,
			`{"code":1,"msg":"config version does not allow ` + verb + `"}`:             true,
			`{"code":999,"msg":"` + verb + ` is not implemented"}`:                      true,
			`{"code":50,"msg":"the pool daemon does not answer"}`:                       false,
			`{"code":4,"msg":"required env variables [CNI_PATH] missing"}`:              false,
		} {
			d := newDouble(t, behaviour{Exit: 1, Stdout: out})
			err := call(d.caller, t.Context(), d.call)
			var e *delegate.Error
			if lacking && err != nil || !lacking && (!errors.As(err, &e) || e.Verb != verb) {
				t.Errorf("%s answered %s: error %v", verb, out, err)
			}
		}
		d := newDouble(t, behaviour{})
		if err := call(d.caller, t.Context(), d.call); err != nil {
			t.Errorf("%s that succeeds: %v", verb, err)
		}
		if got := d.calls(t); len(got) != 1 || got[0].Env["CNI_COMMAND"] != verb || got[0].Stdin != string(d.call.Config) {
			t.Errorf("%s was called with %+v", verb, got)
		}
	}
}

// TestDeadline: a delegate that hangs is killed with its child, soon.
func TestDeadline(t *testing.T) {
	t.Parallel()
	d := newDouble(t, behaviour{Hang: true, Stderr: "waiting for the API server"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	begin := time.Now()
	_, err := d.caller.Add(ctx, d.call)
	if !errors.Is(err, delegate.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "API server") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	waitGone(t, d.log+".child")
}

// waitGone waits for the process whose number is in the file to end.
func waitGone(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("the delegate did not come as far as its child: %v", err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
	}
	t.Errorf("child %d lives", pid)
}

// TestDiesWithCaller: the DEL that follows a killed ADD must not meet that ADD's delegate still at work.
func TestDiesWithCaller(t *testing.T) {
	t.Parallel()
	d := newDouble(t, behaviour{Hang: true})
	text, err := json.Marshal(d.call)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	caller := exec.Command(exe)
	caller.Env = slices.Concat(d.caller.Environ, []string{callerVar + "=" + string(text)})
	if err := caller.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if _, err := os.Stat(d.log + ".child"); err == nil {
			break
		}
	}
	_ = caller.Process.Kill()
	_ = caller.Wait()
	waitGone(t, d.log+".self")
	if text, err := os.ReadFile(d.log + ".child"); err == nil {
		if pid, err := strconv.Atoi(string(text)); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// TestChildLeftBehind: a delegate that ends well is not waited for because a child of its holds the output open.
func TestChildLeftBehind(t *testing.T) {
	t.Parallel()
	d := newDouble(t, behaviour{Fork: true, Stdout: answer10})
	if _, err := d.caller.Add(t.Context(), d.call); err != nil {
		t.Errorf("got %v", err)
	}
	text, err := os.ReadFile(d.log + ".child")
	if err != nil {
		t.Fatal(err)
	}
	if pid, err := strconv.Atoi(string(text)); err == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	d := newDouble(t, behaviour{Stdout: answer10})
	dir := filepath.Dir(d.log)
	for name, mode := range map[string]os.FileMode{"plain": 0o600, "script": 0o700} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/no/interpreter\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ plugin, path, says string }{
		{"absent", "/opt/a:/opt/b", "/opt/a, /opt/b"},
		{"theirs", "", "names no folder"},
		{"", dir, "not the name"},
		{"../theirs", dir, "not the name"},
		{"..", dir, "not the name"},
		{"plain", dir, "not an executable"},
		{"folder", dir, "not an executable"},
		{"script", dir, "interpreter is missing"},
	} {
		d.call.Plugin, d.call.Path = tc.plugin, tc.path
		err := d.caller.Del(t.Context(), d.call)
		if !errors.Is(err, delegate.ErrNotFound) || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), "no such file") {
			t.Errorf("%q in %q: %v", tc.plugin, tc.path, err)
		}
	}
	d.call.Plugin, d.call.Path = "theirs", "::"+dir
	if err := d.caller.Del(t.Context(), d.call); err != nil {
		t.Errorf("behind empty folders: %v", err)
	}
}

// TestBusy: a plugin that is being written (ETXTBSY) is tried again until the deadline.
func TestBusy(t *testing.T) {
	t.Parallel()
	d := newDouble(t, behaviour{Stdout: answer10})
	path := filepath.Join(filepath.Dir(d.log), "busy")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o700)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("#!/bin/sh\nexit 0\n"); err != nil {
		t.Fatal(err)
	}
	d.call.Plugin = "busy"
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := d.caller.Del(ctx, d.call); !errors.Is(err, delegate.ErrTimeout) {
		t.Errorf("while it is written: %v", err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.caller.Del(t.Context(), d.call); err != nil {
		t.Errorf("once it is written: %v", err)
	}
}

func TestAddressesRefuses(t *testing.T) {
	t.Parallel()
	good := net.IPNet{IP: net.IPv4(10, 0, 0, 1), Mask: net.CIDRMask(24, 32)}
	for name, r := range map[string]types100.Result{
		"null address":     {IPs: []*types100.IPConfig{nil}},
		"no address":       {IPs: []*types100.IPConfig{{}}},
		"no mask":          {IPs: []*types100.IPConfig{{Address: net.IPNet{IP: good.IP}}}},
		"mask of IPv6":     {IPs: []*types100.IPConfig{{Address: net.IPNet{IP: good.IP, Mask: net.CIDRMask(24, 128)}}}},
		"unspecified":      {IPs: []*types100.IPConfig{{Address: net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}}}},
		"broadcast":        {IPs: []*types100.IPConfig{{Address: net.IPNet{IP: net.IPv4bcast, Mask: net.CIDRMask(24, 32)}}}},
		"multicast":        {IPs: []*types100.IPConfig{{Address: net.IPNet{IP: net.ParseIP("ff02::1"), Mask: net.CIDRMask(64, 128)}}}},
		"loopback":         {IPs: []*types100.IPConfig{{Address: net.IPNet{IP: net.IPv6loopback, Mask: net.CIDRMask(128, 128)}}}},
		"given twice":      {IPs: []*types100.IPConfig{{Address: good}, {Address: net.IPNet{IP: good.IP, Mask: net.CIDRMask(16, 32)}}}},
		"null route":       {Routes: []*types.Route{nil}},
		"route to nowhere": {Routes: []*types.Route{{}}},
		"addresses":        {IPs: make([]*types100.IPConfig, 33)},
		"routes":           {Routes: make([]*types.Route, 1001)},
	} {
		if _, _, err := delegate.Addresses(&r); !errors.Is(err, delegate.ErrOutput) {
			t.Errorf("%s: %v", name, err)
		}
	}
	addrs, _, err := delegate.Addresses(&types100.Result{IPs: []*types100.IPConfig{{Address: good}}})
	if err != nil || addrs[0].Prefix != netip.MustParsePrefix("10.0.0.1/24") {
		t.Errorf("16-byte form of IPv4: %v, %v", addrs, err)
	}
}
