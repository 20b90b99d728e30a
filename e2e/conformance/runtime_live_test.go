// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// object is a JSON object.
type object = map[string]any

// with gives a copy with other keys; a nil takes one away.
func with(o object, more object) object {
	out := maps.Clone(o)
	for k, v := range more {
		if out[k] = v; v == nil {
			delete(out, k)
		}
	}
	return out
}

// encode is json.Marshal, whose failure is the test's.
func encode(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pod is a network namespace with the path that a runtime gives.
type pod struct{ name, path string }

func newPod(t *testing.T, name string) pod {
	t.Helper()
	p := pod{name, "/run/netns/" + name}
	shell(t, "ip", "netns", "add", name)
	shell(t, "ip", "-n", name, "link", "set", "lo", "up")
	t.Cleanup(func() { p.kill(t) })
	return p
}

func (p pod) kill(t *testing.T) {
	t.Helper()
	if p.alive() {
		shell(t, "ip", "netns", "del", p.name)
	}
}

func (p pod) alive() bool {
	_, err := os.Stat(p.path)
	return err == nil
}

// ip runs ip(8) in the pod.
func (p pod) ip(t *testing.T, args ...string) string {
	t.Helper()
	return shell(t, "ip", append([]string{"-n", p.name}, args...)...)
}

// shell runs a command, whose failure is the test's.
func shell(t *testing.T, name string, args ...string) string {
	t.Helper()
	// Cleaning up is done when the test's context is over.
	out, err := exec.CommandContext(context.WithoutCancel(t.Context()), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// call is one attachment as a runtime names it.
type call struct {
	network object // a list of plugins, or of one plugin its configuration
	id      string
	ifname  string // empty: net1
	netns   string
	args    [][2]string
	caps    object
	cache   string // of libcni; empty: one for all
	valid   []object
	noList  bool
}

func (c call) name() string {
	if c.ifname == "" {
		return "net1"
	}
	return c.ifname
}

// in, by and from give the call with another namespace, network, cache of libcni.
func (c call) in(netns string) call   { c.netns = netns; return c }
func (c call) by(o object) call       { c.network = o; return c }
func (c call) from(cache string) call { c.cache = cache; return c }

// failure is a CNI error.
type failure struct {
	CNIVersion string `json:"cniVersion"`
	Code       uint   `json:"code"`
	Msg        string `json:"msg"`
	Details    string `json:"details"`
}

func (f failure) text() string { return f.Msg + "; " + f.Details }

// libcni calls a verb for a list of plugins and gives the result.
func (c call) libcni(t *testing.T, verb string) (any, *failure) {
	t.Helper()
	bin := programs(t)
	list := c.network
	if list["plugins"] == nil {
		list = object{
			"cniVersion": list["cniVersion"], "name": list["name"],
			"plugins": []object{with(list, object{"cniVersion": nil, "name": nil})},
		}
	}
	cache := c.cache
	if cache == "" {
		cache = "/run/cache"
	}
	request := object{
		"verb": verb, "list": list, "plugins": []string{bin}, "cache": cache, "containerID": c.id, "netns": c.netns, "ifname": c.name(),
		"args": c.args, "capabilities": c.caps, "valid": c.valid, "noList": c.noList,
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "libcni"))
	cmd.Stdin = strings.NewReader(encode(t, request))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	t.Logf("%s %s/%s: %s%s", verb, c.id, c.name(), stdout.Bytes(), stderr.Bytes())
	if err != nil {
		t.Fatalf("libcni: %v", err)
	}
	var answer struct {
		Result any      `json:"result"`
		Error  *failure `json:"error"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Result, answer.Error
}

// ok calls a verb by libcni and wants it to succeed.
func (c call) ok(t *testing.T, verb string) any {
	t.Helper()
	result, failed := c.libcni(t, verb)
	if failed != nil {
		t.Fatalf("%s of %s: code %d: %s", verb, c.id, failed.Code, failed.text())
	}
	return result
}

// refused calls a verb by libcni and wants code and texts in its error.
func (c call) refused(t *testing.T, verb string, code uint, texts ...string) {
	t.Helper()
	_, failed := c.libcni(t, verb)
	judge(t, verb, failed, code, texts)
}

func judge(t *testing.T, verb string, failed *failure, code uint, texts []string) {
	t.Helper()
	if failed == nil {
		t.Fatalf("%s succeeded; wanted code %d", verb, code)
	}
	if failed.Code != code {
		t.Errorf("%s: code %d: %s; wanted code %d", verb, failed.Code, failed.text(), code)
	}
	for _, text := range texts {
		if !strings.Contains(failed.text(), text) {
			t.Errorf("%s: %s\nwanted %q in it", verb, failed.text(), text)
		}
	}
	if strings.Contains(failed.text(), "no such file or directory") {
		t.Errorf("Multus would take this failure as done: %s", failed.text())
	}
}

// printed is what a bare call of podfabric came to.
type printed struct {
	stdout, stderr string
	code           int
}

// bare calls podfabric with nothing but environment and standard input. more are variables as KEY=VALUE; KEY alone takes one away.
func (c call) bare(t *testing.T, verb string, more ...string) printed {
	t.Helper()
	bin := programs(t)
	var args []string
	for _, kv := range c.args {
		args = append(args, kv[0]+"="+kv[1])
	}
	env := map[string]string{
		"CNI_COMMAND": verb, "CNI_CONTAINERID": c.id, "CNI_IFNAME": c.name(), "CNI_NETNS": c.netns, "CNI_PATH": bin,
		"CNI_ARGS": strings.Join(args, ";"),
	}
	for _, m := range more {
		key, value, given := strings.Cut(m, "=")
		if env[key] = value; !given {
			delete(env, key)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "podfabric"))
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.Stdin = strings.NewReader(encode(t, c.network))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("bare %s %s/%s: %v %s\n%s", verb, c.id, c.name(), err, stdout.Bytes(), stderr.Bytes())
	return printed{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// failure reads what a call that failed printed: one object, exit code 1.
func (p printed) failure(t *testing.T) *failure {
	t.Helper()
	if p.code == 0 {
		return nil
	}
	var f failure
	dec := json.NewDecoder(strings.NewReader(p.stdout))
	if err := dec.Decode(&f); err != nil || dec.More() || p.code != 1 {
		t.Errorf("exit code %d, more %t, %v: %q", p.code, dec.More(), err, p.stdout)
	}
	return &f
}
