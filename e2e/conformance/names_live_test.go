// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// hostileNames are what a name must not be where it becomes part of a path, a line or a terminal's input.
func hostileNames() map[string]string {
	return map[string]string{
		"upwards": "..", "path upwards": "../../../../etc/podfabric-tests", "absolute": "/etc/podfabric-tests", "slash": "a/b", "newline": "a\nb", "carriage return": "a\rb",
		"CSI": "a\x1b[2Jb", "OSC": "\x1b]0;x\a", "8-bit CSI": "a\u009b31mb", "raw 8-bit CSI": "a\x9b31mb", "right to left": "a\u202eb", "zero width": "a\u200bb",
		"no UTF-8": "a\xff\xfeb", "long": strings.Repeat("a", 5000), "blank": "a b", "quotes": `a"b'c`, "shell": "$(id)`id`;&|", "option": "--help", "equals": "NCCL_NET_PLUGIN=/x.so",
		"hash": "# a", "delete": "a\x7fb", "backspace": "a\bb", "dot": ".hidden", "template": "%s%n%d",
	}
}

// harmless fails for bytes that a terminal would obey, of a text that is for people.
func harmless(t *testing.T, what, text string) {
	t.Helper()
	bad := func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }
	if i := strings.IndexFunc(text, bad); i >= 0 || !utf8.ValidString(text) {
		t.Errorf("%s has a character at %d that does not print: %.120q", what, i, text[max(0, i-40):])
	}
}

// harmlessJSON looks into the strings of documents too: whoever shows them decodes them.
func harmlessJSON(t *testing.T, what, text string) {
	t.Helper()
	harmless(t, what, text)
	for dec := json.NewDecoder(strings.NewReader(text)); ; {
		var v any
		if dec.Decode(&v) != nil {
			return
		}
		if f, isObject := v.(map[string]any); isObject && f["msg"] != nil {
			harmless(t, what+", its message", fmt.Sprint(f["msg"], f["details"]))
		}
	}
}

// TestHostileNamesFromTheRuntime gives every name of a call every form, by every verb, and reads all that comes out: both streams, log lines of both
// formats, files and their names. ADD refuses what would be a path, DEL ends well or is refused, and nothing is made outside.
func TestHostileNamesFromTheRuntime(t *testing.T) {
	p := newPod(t, "names")
	base := func() call {
		return call{
			network: leased(object{"hint": object{"volume": "podfabric"}}), id: "names", netns: p.path,
			args: [][2]string{{"K8S_POD_UID", podUID}, {"K8S_POD_NAMESPACE", "team-a"}, {"K8S_POD_NAME", "pod-0"}},
		}
	}
	arg := func(i int) func(c *call, s string) { return func(c *call, s string) { c.args[i][1] = s } }
	key := func(section, name string) func(c *call, s string) {
		return func(c *call, s string) {
			if section == "" {
				c.network = with(c.network, object{name: s})
				return
			}
			c.network = with(c.network, object{section: object{name: s}})
		}
	}
	places := map[string]func(c *call, s string){
		"container": func(c *call, s string) { c.id = s }, "interface": func(c *call, s string) { c.ifname = s }, "netns": func(c *call, s string) { c.netns = s },
		"UID": arg(0), "pod's namespace": arg(1), "pod": arg(2), "key of CNI_ARGS": func(c *call, s string) { c.args = append(c.args, [2]string{s, "x"}) },
		"network": key("", "name"), "version": key("", "cniVersion"), "link": key("", "link"), "master": key("", "master"), "mode": key("", "mode"), "MAC": key("", "mac"),
		"volume": key("hint", "volume"), "nccl": key("hint", "nccl"), "role": key("hint", "role"), "ipam": key("ipam", "type"), "log file": key("", "logFile"),
		"unknown key": func(c *call, s string) { c.network = with(c.network, object{s: 1}) }, "value of an unknown key": key("", "strange"),
		"key of cni-args": func(c *call, s string) { c.network = with(c.network, object{"args": object{"cni": object{s: 1}}}) },
		"runtimeConfig":   key("runtimeConfig", "mac"), "device-info": key("runtimeConfig", "CNIDeviceInfoFile"), "device": key("", "deviceID"), "path": nil,
	}
	for place, set := range places {
		t.Run(place, func(t *testing.T) {
			tried := 0
			for name, text := range hostileNames() {
				c := base()
				var more []string
				if set == nil {
					more = []string{"CNI_PATH=" + text}
				} else {
					set(&c, text)
				}
				c.tried(t, place+" "+name, []string{"text", "json"}[tried%2], more)
				tried++
			}
		})
	}
}

// tried calls every verb and looks at what comes out.
func (c call) tried(t *testing.T, what, format string, more []string) {
	t.Helper()
	must(t, os.MkdirAll("/etc/podfabric", 0o755))
	must(t, os.WriteFile("/etc/podfabric/node.json", []byte(`{"log":{"level":"debug","file":"/run/names.log","format":"`+format+`"}}`), 0o644))
	defer func() {
		must(t, os.RemoveAll("/etc/podfabric"))
		if err := os.Remove("/run/names.log"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}()
	for _, verb := range []string{"ADD", "CHECK", "GC", "STATUS", "DEL"} {
		got, ran := c.quiet(t, verb, more)
		if !ran {
			return // no environment can hold it
		}
		harmlessJSON(t, what+": "+verb+" prints", got.stdout)
		harmless(t, what+": "+verb+" logs", got.stderr)
		if strings.Contains(got.stdout, "no such file or directory") {
			t.Errorf("%s: Multus would take %s for done: %s", what, verb, got.stdout)
		}
	}
	if text, err := os.ReadFile("/run/names.log"); err == nil {
		harmless(t, what+": the log file", string(text))
	}
	for _, dir := range []string{"/run/podfabric", "/var/run/k8s.cni.cncf.io"} {
		must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			must(t, err)
			harmless(t, what+": a file's name", path)
			if text, readErr := os.ReadFile(path); readErr == nil && d.Type().IsRegular() {
				harmless(t, what+": "+path, string(text))
			}
			return nil
		}))
	}
	for _, path := range []string{"/etc/podfabric-tests", "/run/podfabric-tests", "/podfabric-tests", "/tmp/podfabric-tests"} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s: %s was made", what, path)
		}
	}
}

// quiet is bare without a word in the test's log. ran is false where the kernel takes no such variable.
func (c call) quiet(t *testing.T, verb string, more []string) (out printed, ran bool) { //nolint:nonamedreturns // tells what the bool is
	t.Helper()
	args := make([]string, 0, len(c.args))
	for _, kv := range c.args {
		args = append(args, kv[0]+"="+kv[1])
	}
	bin := programs(t)
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "podfabric"))
	cmd.Env = append([]string{
		"CNI_COMMAND=" + verb, "CNI_CONTAINERID=" + c.id, "CNI_IFNAME=" + c.name(), "CNI_NETNS=" + c.netns, "CNI_PATH=" + bin, "CNI_ARGS=" + strings.Join(args, ";"),
	}, more...)
	cmd.Stdin = strings.NewReader(encode(t, c.network))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return printed{}, false
	}
	return printed{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}, true
}

// TestHostileNamesOfPods: what a pod with root in its own namespaces can call its interfaces and processes comes out of no tool as it
// is: the operator's terminal is not the pod's.
func TestHostileNamesOfPods(t *testing.T) {
	build(t, "../..", "./cmd/podfabricctl", programs(t))
	t.Cleanup(func() { must(t, os.RemoveAll("/run/podfabric")) }) // a record is lost here on purpose, and its lease with it
	p := newPod(t, "names")
	c := call{network: leased(nil), id: "names", netns: p.path}
	c.ok(t, "ADD")
	const evil = "\x1b[2J\u202e\x9b1m"
	p.ip(t, "link", "set", "net1", "down")
	p.ip(t, "link", "set", "net1", "name", evil)
	// A process of that name holds the namespace, also when its mount is gone.
	holder := exec.CommandContext(t.Context(), "ip", "netns", "exec", p.name, "sh", "-c", `printf '\033[2J\302\233x' > /proc/self/comm; exec 3<&0; read -r line`)
	stdin, err := holder.StdinPipe()
	must(t, err)
	must(t, holder.Start())
	defer func() {
		_ = stdin.Close()
		_ = holder.Wait()
	}()
	for _, verb := range []string{"CHECK", "STATUS", "ADD"} {
		got, _ := c.quiet(t, verb, nil)
		harmlessJSON(t, verb, got.stdout)
		harmless(t, verb+" logs", got.stderr)
	}
	records, err := filepath.Glob("/run/podfabric/attachments/names/*.json")
	if err != nil || len(records) != 1 {
		t.Fatalf("records %v, %v", records, err)
	}
	whole, err := os.ReadFile(records[0])
	must(t, err)
	// A record says what a plugin before, a runtime or another version wrote into it.
	var doc object
	must(t, json.Unmarshal(whole, &doc))
	doc["pod"] = object{"namespace": evil, "name": "a\nb", "uid": "\u202e"}
	doc["network"], doc["warnings"], doc["args"] = evil, []string{evil + "\nfine"}, evil
	must(t, os.WriteFile(records[0], []byte(encode(t, doc)), 0o600))
	ctl := func() {
		for _, args := range []string{
			"show", "show --json", "check --all", "check --all --json", "repair --dry-run", "repair --dry-run --json", "mode", "mode --json", "mode set exclusive --dry-run", "record",
			"check \x1b[2J", "validate /\x1b[2J", "repair \x1b[2J",
		} {
			cmd := exec.CommandContext(t.Context(), filepath.Join(programs(t), "podfabricctl"), strings.Split(args, " ")...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			_ = cmd.Run()
			harmless(t, "podfabricctl "+args, stdout.String())
			harmless(t, "podfabricctl "+args+" on standard error", stderr.String())
			if strings.HasSuffix(args, "--json") && !json.Valid(stdout.Bytes()) {
				t.Errorf("podfabricctl %s prints %q", args, stdout.String())
			}
		}
	}
	ctl()
	must(t, os.WriteFile(records[0], []byte("\x1b[2J{"), 0o600))
	must(t, os.WriteFile(filepath.Join(filepath.Dir(records[0]), "\x1b[2J\n\u202e.json"), whole, 0o600))
	must(t, os.MkdirAll("/run/podfabric/pods/\x1b[2J", 0o755))
	must(t, os.MkdirAll("/run/podfabric/claims", 0o700))
	must(t, os.Symlink("\x1b[2J", "/run/podfabric/claims/0000:3b:00.2"))
	ctl()
	must(t, os.RemoveAll(filepath.Dir(records[0])))
	must(t, os.RemoveAll("/run/podfabric/pods/\x1b[2J"))
	must(t, os.Remove("/run/podfabric/claims/0000:3b:00.2"))
	c.ok(t, "DEL") // the record is lost, the address and the hint are not
	p.kill(t)
	ctl()
}
