// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// machine is what can be seen of namespaces and state at one moment.
type machine map[string]any

// look takes down links, addresses, routes and rules of the host and of pods, and the plugin's files.
func look(t *testing.T, pods ...pod) machine {
	t.Helper()
	m := machine{"files": files(t)}
	for _, p := range append(pods, pod{}) {
		if p.name != "" && !p.alive() {
			continue
		}
		for family, objects := range map[string]string{"-4": "link\naddr\nroute show table all\nrule\n", "-6": "addr\nroute show table all\nrule\n"} {
			args := []string{"-d", "-j", family, "-batch", "-"}
			if p.name != "" {
				args = append([]string{"-n", p.name}, args...)
			}
			text := asked(t, objects, args)
			for end := time.Now().Add(10 * time.Second); strings.Contains(text, `"tentative":true`) && time.Now().Before(end); {
				time.Sleep(20 * time.Millisecond) // the kernel looks for another with a link-local address in its own time
				text = asked(t, objects, args)
			}
			m[p.name+" "+family] = settled(t, text)
		}
	}
	return m
}

// asked runs ip(8) with a list of commands.
func asked(t *testing.T, commands string, args []string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "ip", args...)
	cmd.Stdin = strings.NewReader(commands)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("ip %v: %v", args, err)
	}
	return string(out)
}

// settled reads what ip(8) printed for each command, and takes away what the kernel writes in its own time: the state of a link
// that is up.
func settled(t *testing.T, text string) any {
	t.Helper()
	var all []any
	for dec := json.NewDecoder(strings.NewReader(text)); ; {
		var list []object
		if err := dec.Decode(&list); err == io.EOF {
			return all
		} else if err != nil {
			t.Fatalf("read what ip printed: %v", err)
		}
		for _, o := range list {
			delete(o, "operstate")
		}
		all = append(all, list)
	}
}

// unchanged fails the test for everything that is not as it was; a pod that died since counts for nothing. The kernel ends a
// namespace, and what is in it, in its own time.
func (m machine) unchanged(t *testing.T, pods ...pod) {
	t.Helper()
	before := maps.Clone(m)
	for _, p := range pods {
		if !p.alive() {
			maps.DeleteFunc(before, func(k string, _ any) bool { return strings.HasPrefix(k, p.name+" ") })
		}
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		diff := cmp.Diff(before, look(t, pods...))
		if diff == "" {
			return
		}
		if time.Now().After(end) {
			t.Errorf("the machine changed (-before +now):\n%s", diff)
			return
		}
	}
}

// files lists what the plugin keeps of attachments. Locks stay for the boot; which address comes next outlives an attachment.
func files(t *testing.T) []string {
	t.Helper()
	const dir = "/run/podfabric"
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if d.IsDir() && rel == "locks" {
			return fs.SkipDir
		}
		if of := filepath.Base(filepath.Dir(rel)); !d.IsDir() && of != "cursor" && of != "freed" {
			out = append(out, rel)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}
