// SPDX-License-Identifier: Apache-2.0

package delegate_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/delegate"
)

func TestAgain(t *testing.T) {
	t.Parallel()
	const added = `{"cniVersion":"0.4.0","name":"rail0","ipam":{"type":"theirs","of":1},"runtimeConfig":{"ips":["10.0.0.1/8"]}}`
	for name, tc := range map[string]struct{ recorded, called, want string }{
		"nothing recorded":      {``, added, added},
		"null recorded":         {`null`, added, added},
		"garbage recorded":      {`[1`, added, added},
		"nothing called with":   {added, ``, added},
		"the same":              {added, added, added},
		"the same, in a folder": {"{\n \"name\": \"n\",\n \"ipam\": {\n  \"a\": [ 1 ]\n }\n}", `{"ipam":{"a":[1]},"name":"n"}`, `{"ipam":{"a":[1]},"name":"n"}`},
		"a result, all else the same": {
			`{"cniVersion":"1.0.0","ipam":{"a":1}}`, `{"prevResult":{"ips":[]},"cniVersion":"1.0.0","ipam":{"a":1}}`,
			`{"prevResult":{"ips":[]},"cniVersion":"1.0.0","ipam":{"a":1}}`,
		},
		"another section":                   {added, `{"cniVersion":"0.4.0","name":"rail0","ipam":{"type":"theirs","of":2},"runtimeConfig":{"ips":["10.0.0.1/8"]}}`, added},
		"another section, no runtimeConfig": {added, `{"cniVersion":"0.4.0","name":"rail0","ipam":{}}`, added},
		"another section, version, result and runtimeConfig": {
			added, `{"cniVersion":"1.0.0","name":"rail1","ipam":{},"new":1,"runtimeConfig":{"mac":"x"},"prevResult":{"ips":[1.0]}}`,
			`{"cniVersion":"1.0.0","ipam":{"type":"theirs","of":1},"name":"rail0","prevResult":{"ips":[1.0]},"runtimeConfig":{"mac":"x"}}`,
		},
		"another version without a result": {added, `{"cniVersion":"1.0.0","name":"rail0","ipam":{"type":"theirs","of":1}}`, added},
		"a result before ADD":              {`{"name":"n","prevResult":{"old":1}}`, `{"name":"m"}`, `{"name":"n"}`},
		"large numbers":                    {`{"ipam":{"of":12345678901234567890}}`, `{"ipam":{}}`, `{"ipam":{"of":12345678901234567890}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := delegate.Again([]byte(tc.recorded), []byte(tc.called))
			if tc.want == tc.called && string(got) != tc.called {
				t.Errorf("not as it came: %s", got)
			}
			if diff := cmp.Diff(members(t, tc.want), members(t, string(got))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// members are those of an object with their text.
func members(t *testing.T, text string) map[string]string {
	t.Helper()
	var raw map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	out := map[string]string{}
	for k, v := range raw {
		out[k] = string(v)
	}
	return out
}
