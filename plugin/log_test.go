// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/plugin/attach"
)

// TestLog: a line for each step at debug and one for each verb at info, each with what an operator looks for; into the node's own
// file as well; args.cni.debug for one attachment only.
func TestLog(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, level, more string
		steps             bool
	}{
		{"info", "info", "", false},
		{"debug by the node", "debug", "", true},
		{"debug by the pod", "info", `,"args":{"cni":{"debug":true}}`, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			m.pod("pod1")
			file := filepath.Join(m.dir, "podfabric.log")
			p := m.process(`"log":{"level":"` + test.level + `","format":"json","file":"` + file + `"}`)
			r := request{pod: "pod1", dev: 3, more: test.more}
			if _, err := p.Add(t.Context(), r.raw()); err != nil {
				t.Fatal(err)
			}
			if err := p.Del(t.Context(), r.raw()); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(file)
			must(t, err)
			steps, released := 0, 0
			for line := range strings.Lines(string(text)) {
				var entry map[string]any
				if err := json.Unmarshal([]byte(line), &entry); err != nil {
					t.Fatalf("line %q: %v", line, err)
				}
				for _, key := range []string{"containerID", "pod", "network", "ifname", "pci"} {
					if entry[key] == nil || entry[key] == "" {
						t.Errorf("no %s in %s", key, line)
					}
				}
				switch entry["msg"] {
				case "step":
					steps++
				case "released":
					released++
				}
			}
			if (steps > 0) != test.steps || released != 1 {
				t.Errorf("%d steps, wanted some: %v; %d lines of DEL, wanted 1:\n%s", steps, test.steps, released, text)
			}
		})
	}
}

// TestLogFileThatCannotBe: a log file is no reason to keep a pod from starting, and nobody is left to wonder where it is.
func TestLogFileThatCannotBe(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	file := filepath.Join(m.dir, "missing", "podfabric.log")
	p := m.process(`"log":{"file":"` + file + `"}`)
	if _, err := p.Add(t.Context(), request{pod: "pod1", dev: 3}.raw()); err != nil {
		t.Fatal(err)
	}
	if !m.log.has("WARN", file) {
		t.Error("standard error says nothing of the log file")
	}
}
