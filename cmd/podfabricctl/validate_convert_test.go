// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/netconf"
)

// convertText converts one file and gives what is printed and what is said.
func convertText(t testing.TB, name, text string) (string, string, bool) {
	t.Helper()
	node, err := netconf.ParseNode(nil)
	if err != nil {
		t.Fatal(err)
	}
	var c conversions
	var out, said bytes.Buffer
	c.file(judging{file: name, node: node}, []byte(text), &said)
	if err := c.print(&out); err != nil {
		t.Fatal(err)
	}
	return out.String(), said.String(), c.findings()
}

// TestConverted shows all conversions of testdata/networks and testdata/convert, and that podfabric takes each.
func TestConverted(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/convert/*.[jy]*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var all strings.Builder
	made := 0
	for _, file := range append(files, networkFiles(t)...) {
		name := filepath.Base(file)
		out, said, failed := convertText(t, name, string(readFile(t, file)))
		if strings.HasPrefix(name, "reject") {
			if !failed || out != "" || !strings.Contains(said, "correct it first") {
				t.Errorf("%s: converted although it is rejected: %s%s", name, out, said)
			}
			continue
		}
		all.WriteString("== " + name + "\n" + said + out)
		if out == "" {
			continue
		}
		made++
		for _, v := range judgeFile(t, name, out) {
			if v.Verdict == reject || v.Link == nil {
				t.Errorf("%s: what comes out is not taken: %s", name, short(v))
			}
		}
	}
	golden(t, "testdata/convert.golden", []byte(all.String()))
	if made < 20 {
		t.Errorf("%d files converted", made)
	}
}

// TestCasesConverted does the same with the corpus.
func TestCasesConverted(t *testing.T) {
	t.Parallel()
	made := map[string]string{}
	for _, file := range caseFiles(t) {
		out, said, failed := convertText(t, file, string(readFile(t, file)))
		if failed == (out != "") {
			t.Errorf("%s: failed %t, printed %q, said %q", file, failed, out, said)
		}
		if out == "" {
			continue
		}
		for _, v := range judgeFile(t, file, out) {
			if v.Verdict == reject || v.Link == nil {
				t.Errorf("%s: what comes out is not taken: %s", file, short(v))
				continue
			}
			made[filepath.Base(file)[:3]] = *v.Link
		}
	}
	want := map[string]string{"001": "vf", "002": "vf", "004": "vf", "008": "device", "011": "vf", "015": "macvlan", "016": "ipvlan"}
	for number, link := range want {
		if len(made) > 0 && made[number] != link {
			t.Errorf("case %s became %q, want %s", number, made[number], link)
		}
	}
	if len(made) > len(want) {
		t.Errorf("converted: %v", made)
	}
}

// What cannot be said in podfabric is refused by its name.
func TestNotConverted(t *testing.T) {
	t.Parallel()
	const head = `{"cniVersion":"1.0.0","name":"n",`
	for _, tc := range []struct{ name, text, want string }{
		{"no master", head + `"type":"macvlan"}`, `"master" is missing`},
		{"ipvlan l3", head + `"type":"ipvlan","master":"ens1","mode":"l3"}`, `"mode" "l3" of ipvlan`},
		{"a master in the pod", head + `"type":"macvlan","master":"net1","linkInContainer":true}`, `"linkInContainer"`},
		{"the host's addresses", head + `"type":"host-device","device":"ens1","useInterfaceNetwork":true}`, `"useInterfaceNetwork"`},
		{"dhcp", head + `"type":"macvlan","master":"ens1","ipam":{"type":"dhcp"}}`, `"ipam" of type dhcp`},
		{"another plugin", head + `"type":"bridge"}`, `plugin "bridge": podfabric does not replace it`},
		{"ours", head + `"type":"podfabric","deviceID":"0000:3b:00.2"}`, "of type podfabric already"},
		{"no name", `{"cniVersion":"1.0.0","type":"macvlan","master":"ens1"}`, `add a "name"`},
		{"what podfabric refuses", head + `"type":"macvlan","master":"ens1","mtu":68000}`, "correct it first"},
		{"no configuration", "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata: {name: a}\n", "it has no spec.config"},
		{"a passed-over vlan", head + `"plugins":[{"type":"macvlan","master":"ens1"},{"type":"macvlan","master":"ens1"}]}`, "correct it first"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			out, said, failed := convertText(t, "-", tc.text)
			if out != "" || !failed || !strings.Contains(said, tc.want) {
				t.Errorf("printed %q, failed %t, said %q, want %q", out, failed, said, tc.want)
			}
		})
	}
}

// What is ours already, or no network of those that podfabric replaces, keeps nothing else from being converted.
func TestLeftAsItIs(t *testing.T) {
	t.Parallel()
	const head = `{"cniVersion":"1.0.0","name":"n",`
	list := func(items ...string) string { return `{"kind":"List","items":[` + strings.Join(items, ",") + "]}" }
	ours := definition(t, "a", "x/y", head+`"type":"podfabric"}`)
	bridge := definition(t, "b", "", head+`"type":"bridge"}`)
	good := definition(t, "c", "x/y", head+`"type":"sriov"}`)
	bad := definition(t, "d", "x/y", head+`"type":"macvlan"}`)
	for _, tc := range []struct {
		name, text     string
		failed, prints bool
	}{
		{"others beside", list(ours, bridge, good), false, true},
		{"one that cannot", list(ours, good, bad), true, true},
		{"nothing to convert", list(ours, bridge), true, false},
	} {
		out, said, failed := convertText(t, "f.json", tc.text)
		if failed != tc.failed || (out != "") != tc.prints || !strings.Contains(said, "left as it is: it is of type podfabric already") {
			t.Errorf("%s: failed %t, printed %q, said %q", tc.name, failed, out, said)
		}
	}
}
