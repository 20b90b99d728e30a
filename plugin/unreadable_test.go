// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
)

// unreadables are the ways in which a record cannot be read, and what is to be done about its attachment.
func unreadables() map[string]struct {
	spoil  func([]byte) []byte
	remedy string
} {
	return map[string]struct {
		spoil  func([]byte) []byte
		remedy string
	}{
		"newer": {func(text []byte) []byte {
			return bytes.Replace(text, []byte(`"version": 2,
  "compatible": 1,`), []byte(`"version": 3, "compatible": 3,`), 1)
		}, "install the newer podfabric that wrote the record again, or delete "},
		"torn": {func(text []byte) []byte { return text[:len(text)/2] }, "delete "},
	}
}

// TestUnreadableRecord: whoever meets a record that cannot be read learns which pod to delete, from the file at the device where nothing
// of the record tells, and is not told to remove what podfabric wrote.
func TestUnreadableRecord(t *testing.T) {
	t.Parallel()
	for name, tc := range unreadables() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			m.pod("pod1")
			m.pod("pod2")
			r := request{pod: "pod1", dev: 3}
			m.mustAdd(t, r)
			text, err := os.ReadFile(m.recordOf(r))
			must(t, err)
			must(t, os.WriteFile(m.recordOf(r), tc.spoil(text), 0o600))

			check := m.plugin.Check(t.Context(), r.raw())
			answered(t, check, 5, "net1.json", "team-a/pod1")
			add := m.add(t, request{pod: "pod2", dev: 3})
			answered(t, add, 11, "pod team-a/pod1 (container cid-pod1, interface net1), whose record cannot be read")
			for verb, err := range map[string]error{"CHECK": check, "ADD": add} {
				a := plugin.Answer(err)
				if !strings.HasPrefix(a.Msg, tc.remedy) || strings.Contains(a.Msg, "remove it") {
					t.Errorf("%s says %q, want %q first", verb, a.Msg, tc.remedy)
				}
			}
		})
	}
}
