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
func (m *machine) state(t testing.TB) []string {
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

func (m *machine) files(t testing.TB, below string) []string {
	t.Helper()
	var out []string
	must(t, filepath.WalkDir(filepath.Join(m.dir, below), func(path string, e os.DirEntry, err error) error {
		name, _ := filepath.Rel(m.dir, path)
		switch {
		case err != nil:
			return err
		case kept(name) || e.IsDir() && strings.HasPrefix(name, "run/leases"):
		case e.Type() == os.ModeSymlink:
			target, err := os.Readlink(path)
			out = append(out, name+" -> "+target)
			return err
		case e.IsDir():
			out = append(out, name+"/")
		case !e.Type().IsRegular():
			out = append(out, name+": "+e.Type().String())
		default:
			text, err := os.ReadFile(path)
			out = append(out, name+": "+string(text))
			return err
		}
		return nil
	}))
	return out
}

// key is the state without what is of no account: times, and the numbers that are given once and never again.
func (m *machine) key(t testing.TB) string {
	t.Helper()
	var out strings.Builder
	for _, line := range m.state(t) {
		for {
			at, end := -1, 0
			for _, label := range []string{`"created": `, `"ino": `, `"cookie": `, `"index": `, ` index `} {
				if i := strings.Index(line, label); i >= 0 && (at < 0 || i < at) {
					at, end = i, i+len(label)
				}
			}
			if at < 0 {
				break
			}
			out.WriteString(line[:end])
			line = strings.TrimLeft(line[end:], `"0123456789-:.TZ`)
		}
		out.WriteString(line + "\n")
	}
	return out.String()
}

// renew gives the pods new namespaces, as the next sandbox has, and forgets who had which address.
func (m *machine) renew(t testing.TB) {
	t.Helper()
	for _, pod := range []string{"pod1", "pod2"} {
		m.KillNetNS(netnsOf(pod))
		m.pod(pod)
	}
	m.ipam.last = 0
	m.log.reset()
	must(t, filepath.WalkDir(filepath.Join(m.dir, "run/leases"), func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() && kept(path) {
			return os.Remove(path)
		}
		return err
	}))
}

// kept tells whether a file is one that stays on purpose.
func kept(path string) bool {
	return strings.Contains(path, "run/names") || strings.Contains(path, "/freed") || strings.Contains(path, "/cursor")
}

// same fails the test when the machine is not in that state again.
func (m *machine) same(t testing.TB, what string, before []string) bool {
	t.Helper()
	after := m.state(t)
	if slices.Equal(before, after) {
		return true
	}
	t.Errorf("%s (-before +after):\n%s", what, cmp.Diff(before, after))
	return false
}

// answered fails the test unless err becomes an answer of that code, whose text holds the words.
func answered(t testing.TB, err error, code uint, words ...string) {
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
func readable(t testing.TB, err error) {
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
