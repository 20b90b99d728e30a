// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/attach"
)

// TestEditedNetwork: somebody edits the network while the pod runs. The other IPAM plugin is called again with the configuration of ADD,
// by which it finds its lease, and with what is the call's own.
func TestEditedNetwork(t *testing.T) {
	t.Parallel()
	const (
		at  = `{"type":"other-ipam","dataDir":"/one"}`
		own = `,"prevResult":{"cniVersion":"1.1.0","ips":[{"address":"10.9.0.1/24"}]},"capabilities":{"mac":true},"runtimeConfig":{"mac":"02:00:00:00:00:02"}`
	)
	for name, tc := range map[string]struct {
		section string
		lose    func(t *testing.T, m *machine, r request)
		want    string // what its DEL finds as its section
		check   bool
	}{
		"as it was":             {section: at, want: at, check: true},
		"another section":       {section: `{"type":"other-ipam","dataDir":"/two"}`, want: at, check: true},
		"another plugin":        {section: `{"type":"whereabouts"}`, want: at},
		"our own range":         {section: v4Range, want: at},
		"no section":            {section: noIPAM, want: at},
		"record lost":           {section: `{"type":"other-ipam","dataDir":"/two"}`, lose: loseRecord, want: `{"type":"other-ipam","dataDir":"/two"}`},
		"record not to be read": {section: `{"type":"other-ipam","dataDir":"/two"}`, lose: spoilRecord, want: `{"type":"other-ipam","dataDir":"/two"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			m.pod("pod1")
			r := request{pod: "pod1", dev: 3, ipam: at}
			m.mustAdd(t, r)
			if tc.lose != nil {
				tc.lose(t, m, r)
			}
			later := r
			later.ipam, later.more = tc.section, own
			if tc.check {
				must(t, m.plugin.Check(t.Context(), later.raw()))
				asked := m.ipam.asked[len(m.ipam.asked)-1]
				isCalledWith(t, strings.TrimPrefix(asked, "CHECK "), at, `{"mac":"02:00:00:00:00:02"}`, `{"cniVersion":"1.1.0","ips":[{"address":"10.9.0.1/24"}]}`)
			}
			m.mustDel(t, later)
			if held := m.ipam.holds(); len(held) > 0 {
				t.Errorf("%v", held)
			}
			last := string(m.ipam.calls[len(m.ipam.calls)-1].Config)
			if tc.section == v4Range || tc.section == noIPAM {
				isCalledWith(t, last, tc.want, "", "") // ParseTeardown gives the text to delegates only
				return
			}
			isCalledWith(t, last, tc.want, `{"mac":"02:00:00:00:00:02"}`, `{"cniVersion":"1.1.0","ips":[{"address":"10.9.0.1/24"}]}`)
		})
	}
}

func isCalledWith(t *testing.T, text, section, runtimeConfig, prevResult string) {
	t.Helper()
	var got map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("called with %s: %v", text, err)
	}
	want := []string{section, runtimeConfig, prevResult}
	if diff := cmp.Diff(want, []string{compact(got["ipam"]), compact(got["runtimeConfig"]), compact(got["prevResult"])}); diff != "" {
		t.Errorf("called with %s (-want +got):\n%s", text, diff)
	}
}

func compact(text []byte) string { return strings.Join(strings.Fields(string(text)), "") }

func recordOf(m *machine, r request) string {
	return filepath.Join(m.dir, "run/attachments", r.owner().ContainerID, r.owner().IfName+".json")
}

func loseRecord(t *testing.T, m *machine, r request) {
	t.Helper()
	must(t, os.Remove(recordOf(m, r)))
}

func spoilRecord(t *testing.T, m *machine, r request) {
	t.Helper()
	must(t, os.WriteFile(recordOf(m, r), []byte(`{"version":2,"state":`), 0o600))
}
