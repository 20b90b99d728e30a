// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
)

// oddities are things that may stand where a file is looked for; each but the link is refused.
func oddities() map[string]func(t *testing.T, path string) {
	return map[string]func(t *testing.T, path string){
		"fifo":   func(t *testing.T, path string) { t.Helper(); must(t, syscall.Mkfifo(path, 0o600)) },
		"folder": func(t *testing.T, path string) { t.Helper(); must(t, os.Mkdir(path, 0o700)) },
		"socket": func(t *testing.T, path string) {
			t.Helper()
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
			must(t, err)
			t.Cleanup(func() { _ = l.Close() })
		},
		"link to a device without an end": func(t *testing.T, path string) { t.Helper(); must(t, os.Symlink("/dev/zero", path)) },
		"link to a fifo": func(t *testing.T, path string) {
			t.Helper()
			must(t, syscall.Mkfifo(path+".to", 0o600))
			must(t, os.Symlink(path+".to", path))
		},
		"link to itself": func(t *testing.T, path string) { t.Helper(); must(t, os.Symlink(path, path)) },
	}
}

// soon fails when f does not end by itself.
func soon(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it hangs")
	}
}

// TestReadNodeOfOddities: no verb hangs on what stands in place of node.json, and the refusal says what to do.
func TestReadNodeOfOddities(t *testing.T) {
	t.Parallel()
	odd := oddities()
	odd["huge file"] = func(t *testing.T, path string) {
		t.Helper()
		must(t, os.WriteFile(path, []byte("{}"), 0o600))
		must(t, os.Truncate(path, 1<<40))
	}
	for name, plant := range odd {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "node.json")
			plant(t, path)
			soon(t, func() {
				_, err := plugin.ReadNode(path)
				var p *netconf.Problem
				if !errors.As(err, &p) || p.Code != netconf.CodeInvalid || !strings.Contains(p.Remedy, path) || strings.Contains(err.Error(), "no such file") {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// TestReadNodeThroughLink: a node's owner may keep the file elsewhere.
func TestReadNodeThroughLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "other"), []byte(`{"index":7}`), 0o600))
	must(t, os.Symlink("other", filepath.Join(dir, "node.json")))
	n, err := plugin.ReadNode(filepath.Join(dir, "node.json"))
	if err != nil || n.Index == nil || *n.Index != 7 {
		t.Errorf("got %+v, %v", n, err)
	}
	if n, err = plugin.ReadNode(filepath.Join(dir, "none")); err != nil || n.KubeletRoot != netconf.DefaultKubeletRoot {
		t.Errorf("of no file: %+v, %v", n, err)
	}
}

// TestLogFileOfOddities: no verb hangs on what stands in the log file's place, writes into it, or fails for it.
func TestLogFileOfOddities(t *testing.T) {
	t.Parallel()
	for name, plant := range oddities() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			m.pod("pod1")
			file := filepath.Join(t.TempDir(), "log")
			plant(t, file)
			soon(t, func() {
				p := m.process(`"log":{"file":"` + file + `"}`)
				if _, err := p.Add(t.Context(), request{pod: "pod1", dev: 3}.raw()); err != nil {
					t.Error(err)
				}
			})
			if !m.log.has("WARN", "cannot be opened") {
				t.Error("standard error says nothing of the log file")
			}
		})
	}
}

// TestLogFifoWithReader: somebody reads from the fifo; what is written there would be lost with them, and block when they stop.
func TestLogFifoWithReader(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	file := filepath.Join(m.dir, "fifo")
	must(t, syscall.Mkfifo(file, 0o600))
	reader, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	must(t, err)
	defer reader.Close()
	soon(t, func() {
		p := m.process(`"log":{"file":"` + file + `"}`)
		if _, err := p.Add(t.Context(), request{pod: "pod1", dev: 3}.raw()); err != nil {
			t.Error(err)
		}
	})
	if !m.log.has("WARN", "cannot be opened") {
		t.Error("standard error says nothing of the log file")
	}
}
