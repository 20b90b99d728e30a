// SPDX-License-Identifier: Apache-2.0

package netconf_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
)

// A key of a section that stands at the top has no effect there; the warning says where it belongs.
func TestKeyOnTheWrongLevel(t *testing.T) {
	t.Parallel()
	for key, where := range map[string]string{
		`"softRoCE":true`: `"rdma"`, `"wait":"2s"`: `"rdma"`, `"require":"gid"`: `"rdma" or "hint"`, `"role":"other"`: `"hint"`, `"volume":"x"`: `"hint"`,
		`"baseline":"reset"`: `"vf"`, `"flr":true`: `"vf"`, `"subnet":"10.1.0.0/24"`: `"ipam"`, `"ranges":[]`: `"ipam"`, `"perNode":26`: `"ipam"`,
		`"addresses":[]`: `"ipam"`, `"nameservers":[]`: `"dns"`, `"soft_roce":true`: `"rdma"`, `"pfNames":[]`: `"master"`,
	} {
		c, err := netconf.Parse(raw(vf(","+key)), node(t, `{}`))
		name := strings.Split(key, `"`)[1]
		want := []string{name + " is not a key of podfabric and has no effect; it belongs into the section " + where}
		if diff := cmp.Diff(want, c.Warnings); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", key, err, diff)
		}
	}
}

// The errors of a file that lies elsewhere name it, not the usual one.
func TestParseNodeFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(os.TempDir(), "other.json")
	for _, text := range []string{"{", "{\n}}", `{"rials":{}}`, `{"index":1,"index":2}`, `{"version":7}`, `{"log":{"level":"loud"}}`} {
		_, err := netconf.ParseNodeFile(file, []byte(text))
		p := problem(t, err)
		if !strings.HasPrefix(p.Field, file) || strings.Contains(p.Error(), netconf.NodePath) {
			t.Errorf("%s: field %q, %q", text, p.Field, p.Error())
		}
	}
}
