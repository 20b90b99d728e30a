// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin"
)

// state is everything that an attachment may leave: the machine but for the pods' namespaces, the state folder but for what
// is kept on purpose, the volumes, and what the other IPAM plugin holds.
func (m *machine) state(t *testing.T) []string {
	t.Helper()
	var out []string
	for line := range strings.Lines(m.Dump()) {
		if !strings.HasPrefix(line, "namespace ") && !strings.Contains(line, "/lo ") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	out = append(out, m.files(t, "run")...)
	out = append(out, m.files(t, "kubelet")...)
	out = append(out, m.ipam.holds()...)
	if n := m.Sessions(); n != 0 {
		out = append(out, fmt.Sprintf("%d sessions are open", n))
	}
	return out
}

func (m *machine) files(t *testing.T, below string) []string {
	t.Helper()
	var out []string
	must(t, filepath.WalkDir(filepath.Join(m.dir, below), func(path string, e os.DirEntry, err error) error {
		name, _ := filepath.Rel(m.dir, path)
		kept := strings.HasPrefix(name, "run/names") || strings.Contains(name, "/freed") || strings.Contains(name, "/cursor")
		switch {
		case err != nil:
			return err
		case kept || e.IsDir() && strings.HasPrefix(name, "run/leases"):
		case e.Type() == os.ModeSymlink:
			target, err := os.Readlink(path)
			out = append(out, name+" -> "+target)
			return err
		case e.IsDir():
			out = append(out, name+"/")
		default:
			text, err := os.ReadFile(path)
			out = append(out, name+": "+string(text))
			return err
		}
		return nil
	}))
	return out
}

// same fails the test when the machine is not in that state again.
func (m *machine) same(t *testing.T, what string, before []string) bool {
	t.Helper()
	diff := cmp.Diff(before, m.state(t))
	if diff != "" {
		t.Errorf("%s (-before +after):\n%s", what, diff)
	}
	return diff == ""
}

// answered fails the test unless err becomes an answer of that code, whose text holds the words.
func answered(t *testing.T, err error, code uint, words ...string) {
	t.Helper()
	if err == nil {
		t.Error("no error")
		return
	}
	a := plugin.Answer(err)
	if a.Code != code {
		t.Errorf("code is %d, want %d: %v", a.Code, code, a)
	}
	readable(t, err)
	for _, word := range words {
		if !strings.Contains(a.Error(), word) {
			t.Errorf("answer is %q, want %q in it", a.Error(), word)
		}
	}
}

// readable fails the test unless an answer begins with what to do, is one line, and cannot be taken for success by Multus.
func readable(t *testing.T, err error) {
	t.Helper()
	a := plugin.Answer(err)
	text := a.Error()
	if a.Msg == "" || strings.Contains(text, "\n") || strings.Contains(strings.ToLower(text), "no such file or directory") {
		t.Errorf("answer is %q", text)
	}
	for _, start := range []string{"open ", "read ", "lease ", "step ", "lock ", "failed "} {
		if strings.HasPrefix(a.Msg, start) {
			t.Errorf("the answer does not begin with a remedy: %q", text)
		}
	}
}

// output collects what the plugin logs.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) has(level, words string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(strings.Split(o.text.String(), "\n"), func(line string) bool {
		return strings.Contains(line, "level="+level) && strings.Contains(line, words)
	})
}
