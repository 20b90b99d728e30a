// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/nad"
	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// judgeFile judges a text for a node of which nothing is known.
func judgeFile(t testing.TB, name, text string) []verdict {
	t.Helper()
	node, err := netconf.ParseNode(nil)
	if err != nil {
		t.Fatal(err)
	}
	return judge(judging{file: name, node: node}, []byte(text))
}

func judgeText(t testing.TB, text string) []verdict {
	t.Helper()
	return judgeFile(t, "f.json", text)
}

// definition wraps a configuration into a definition, as kubectl prints it.
func definition(t testing.TB, name, resource, config string) string {
	t.Helper()
	meta := map[string]any{"name": name}
	if resource != "" {
		meta["annotations"] = map[string]string{nad.ResourceName: resource}
	}
	text, err := json.MarshalIndent(map[string]any{
		"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": meta, "spec": map[string]string{"config": config},
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// short is what a table compares of a verdict: name, verdict, link, field, line, begin of reason or first warning.
func short(v verdict) string {
	line := "-"
	if v.Line != nil {
		line = strconv.Itoa(*v.Line)
	}
	or := func(s *string) string {
		if s == nil {
			return "-"
		}
		return *s
	}
	text := or(v.Reason)
	if v.Reason == nil && len(v.Warnings) > 0 {
		text = v.Warnings[0]
	}
	return strings.Join([]string{or(v.Name), v.Verdict, or(v.Link), or(v.Field), line, text}, "|")
}

func TestJudge(t *testing.T) {
	t.Parallel()
	const (
		head = `"cniVersion":"1.0.0","name":"rail0",`
		ours = `"type":"podfabric"`
		from = `,"ipam":{"type":"nv-ipam","poolName":"p"}`
		dev  = `,"deviceID":"0000:3b:00.2"`
	)
	good := "{" + head + ours + dev + from + "}"
	tests := []struct {
		name, text string
		want       []string // begins of short
	}{
		{"good", good, []string{"rail0|accept|vf|-|-|deviceID"}},
		{"an unknown key", "{" + head + ours + dev + `,"speed":1}`, []string{"rail0|warn|vf|-|-|speed is not a key"}},
		{"a key on the wrong level", "{" + head + ours + dev + from + `,"softRoCE":true}`, []string{`rail0|warn|vf|-|-|softRoCE is not a key of podfabric and has no effect; it belongs into the section "rdma"`}},
		{"a switch as truth", "{" + head + ours + dev + ",\n\"spoofchk\":true}", []string{`rail0|reject|-|spoofchk|2|write "on" or "off", in quotes: spoofchk, found true`}},
		{"a misspelling", "{\n" + head + ours + dev + ",\n\"MTU\":9000}", []string{`rail0|reject|-|MTU|3|write "mtu" instead`}},
		{"deep", "{" + head + ours + dev + ",\n\"ipam\":{\"type\":\"range\",\n\"ranges\":[[\n{\"subnet\":\"10.1.0.0/33\",\"scope\":\"node\"}]]}}", []string{"rail0|reject|-|ipam.ranges[0][0].subnet|4|"}},
		{"no device", "{" + head + ours + "}", []string{"rail0|reject|-|deviceID|1|add the annotation"}},
		{"no type", "{" + head + `"mtu":1}`, []string{`rail0|reject|-|type|1|add "type"`}},
		{"type of a wrong shape", "{" + head + `"type":1}`, []string{`rail0|reject|-|type|1|write "type"`}},
		{"type in other letters", "{" + head + `"Type":"podfabric"}`, []string{`rail0|reject|-|type|1|write "type" with exactly`}},
		{"not JSON", "{\n\n", []string{"-|reject|-|-|1|complete the JSON"}},
		{"empty", "", []string{"-|reject|-|-|1|write a configuration: the text is empty"}},
		{"a list of values", "[1]", []string{"-|reject|-|-|1|give a JSON object"}},
		{"another kind of object", `{"kind":"Pod"}`, []string{"-|reject|-|kind|1|give a NetworkAttachmentDefinition or a CNI configuration: this is a Pod"}},
		{"a key twice", "{" + head + ours + dev + ",\n\"mtu\":1500,\n\"mtu\":9000}", []string{"rail0|reject|-|mtu|3|write the key \"mtu\" once"}},

		{"a list", `{` + head + `"plugins":[{` + ours + dev + from + "},{\"type\":\"tuning\"}]}", []string{"rail0|accept|vf|-|-|plugins[0].deviceID"}},
		{"a list, wrong entry", "{" + head + "\"plugins\":[\n{" + ours + dev + ",\n\"mtu\":\"x\"}]}", []string{"rail0|reject|-|plugins[0].mtu|3|set mtu"}},
		{"a list, behind another plugin", "{" + head + "\"plugins\":[\n{\"type\":\"ptp\"},\n{" + ours + dev + ",\"link\":\"vf\"}]}", []string{"rail0|reject|-|plugins[1].prevResult|3|put podfabric first"}},
		{"a list, chained", "{" + head + `"plugins":[{"type":"macvlan","master":"ens1"},{` + ours + "}]}", []string{"rail0|warn|chained|-|-|no resourceName"}},
		{"a list, the entry has a name of its own", `{` + head + `"plugins":[{"name":"other",` + ours + dev + from + "}]}", []string{"rail0|accept|vf|-|-|plugins[0].deviceID"}},
		{"a list, a key twice", "{" + head + "\"plugins\":[\n{" + ours + dev + ",\"mtu\":1,\"mtu\":2}]}", []string{"rail0|reject|-|plugins[0].mtu|2|write the key \"mtu\" once"}},
		{"a list without us", `{` + head + `"plugins":[{"type":"tuning"}]}`, []string{"rail0|reject|-|plugins[0].type|1|put the plugin that makes the interface before it"}},
		{"a list of nothing", `{` + head + `"plugins":[]}`, []string{"rail0|reject|-|plugins|1|write at least one plugin"}},
		{"a list with an entry that is none", `{` + head + `"plugins":[{` + ours + dev + `},7]}`, []string{"rail0|reject|vf|plugins[1]|1|write plugins[1] as an object"}},
		{"podfabric twice", `{` + head + `"plugins":[{` + ours + dev + `},{` + ours + `}]}`, []string{"rail0|reject|chained|plugins[1].type|1|drop the second podfabric"}},
		{"rdma behind us, and we leave RDMA alone", `{` + head + `"plugins":[{` + ours + dev + `,"rdma":{"mode":"off"}` + from + `},{"type":"rdma"}]}`, []string{"rail0|accept|vf|-|-|"}},

		{"settings of a node", "{" + head + ours + `,"master":{"rail":3},"rail":3,"ipam":{"type":"range","from":"rail"}}`, []string{"rail0|warn|macvlan|-|-|it needs settings of the node"}},
		{"settings of a node, and wrong besides", "{" + head + ours + ",\"master\":{\"rail\":3},\"rail\":3,\n\"mode\":\"l9\"}", []string{"rail0|reject|-|mode|2|"}},
		{"an InfiniBand master", "{" + head + ours + `,"master":"ibs3"}`, []string{"rail0|reject|macvlan|master|1|use the ipoib plugin"}},
		{"a definition with a fixed device", definition(t, "a", "", good), []string{"rail0|warn|vf|-|-|deviceID \"0000:3b:00.2\": one node's"}},
		{"a definition, the device comes from Multus", definition(t, "a", "x/y", "{"+head+ours+from+"}"), []string{"rail0|accept|vf|-|-|no MTU"}},
		{"the same in a list", definition(t, "a", "x/y", "{"+head+`"plugins":[{`+ours+from+"}]}"), []string{"rail0|accept|vf|-|-|no MTU"}},
		{"a definition without resource", definition(t, "a", "", "{"+head+ours+"}"), []string{"rail0|reject|-|deviceID|8|add the annotation"}},
		{"a definition, Multus puts its name in", definition(t, "a", "x/y", `{"cniVersion":"1.0.0",`+ours+from+`,"mtu":"pf"}`), []string{`a|accept|vf|-|-|-`}},
		{"a definition without configuration", definition(t, "a", "", ""), []string{"a|warn|-|-|-|no spec.config"}},
		{"a definition, wrong inside", definition(t, "a", "x/y", "{\n"), []string{"a|reject|-|spec.config|11|complete the JSON"}},
		{
			"a list of definitions", `{"kind":"List","items":[` + definition(t, "a", "", good) + "," + definition(t, "b", "", "{"+head+ours+dev+`,"mtu":"x"}`) + "]}",
			[]string{"rail0|warn|vf|-|-|deviceID", "rail0|reject|-|mtu|"},
		},
		{"an empty list of definitions", `{"kind":"NetworkAttachmentDefinitionList","items":[]}`, nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			list := judgeText(t, tc.text)
			if len(list) != len(tc.want) {
				t.Fatalf("%d verdicts, want %d: %+v", len(list), len(tc.want), list)
			}
			for i, v := range list {
				if got := short(v); !strings.HasPrefix(got, tc.want[i]) {
					t.Errorf("verdict %d:\n got %s\nwant %s", i, got, tc.want[i])
				}
			}
		})
	}
}

func TestIgnored(t *testing.T) {
	t.Parallel()
	list := judgeText(t, `{"cniVersion":"1.0.0","name":"a","type":"podfabric","deviceID":"0000:3b:00.2","logLevel":"debug","speed":1,"rdma":{"deep":1}}`)
	slices.Sort(list[0].Ignored)
	if diff := cmp.Diff([]string{"logLevel", "rdma.deep", "speed"}, list[0].Ignored); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
}

// FuzzJudge: no input makes it fail, every verdict is complete, and a line is one of the file's. What it judges, it converts or
// refuses to.
func FuzzJudge(f *testing.F) {
	f.Add("f.json", `{"cniVersion":"1.0.0","name":"a","type":"podfabric"}`)
	f.Add("-", `{"plugins":[{"type":"podfabric","mtu":"x"},3],"cniVersion":1}`)
	f.Add("f.json", definition(f, "a", "x/y", `{"plugins":[{"type":"podfabric"}]}`))
	f.Add("-", `{"kind":"List","items":[{"kind":"List","items":[3]}]}`)
	for _, name := range networkFiles(f) {
		f.Add(filepath.Base(name), string(readFile(f, name)))
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		for _, v := range judgeFile(t, name, text) {
			if v.Warnings == nil || v.Ignored == nil || (v.Verdict == reject) != (v.Reason != nil) || v.Verdict == warn && len(v.Warnings) == 0 {
				t.Errorf("%q: %+v", text, v)
			}
			if v.Line != nil && (*v.Line < 1 || *v.Line > strings.Count(text, "\n")+1) {
				t.Errorf("%q: line %d", text, *v.Line)
			}
		}
		var c conversions
		var said bytes.Buffer
		c.file(judging{file: name}, []byte(text), &said)
		if c.failed && said.Len() == 0 {
			t.Errorf("%q: not converted, and nothing said", text)
		}
	})
}

// networkFiles are the configurations of testdata.
func networkFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/networks/*.[jy]*")
	if err != nil || len(files) < 40 {
		t.Fatalf("testdata/networks: %d files, %v", len(files), err)
	}
	return files
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestPromised(t *testing.T) {
	t.Parallel()
	m := &machine{root: t.TempDir()}
	ask := func(want bool) {
		t.Helper()
		if got, err := m.Promised(t.Context(), bus.PCI(fn(2))); err != nil || got != want {
			t.Errorf("promised: %t, %v, want %t", got, err, want)
		}
	}
	ask(false) // no kubelet here
	dir := filepath.Join(m.root, "var/lib/kubelet/device-plugins")
	must(t, os.MkdirAll(dir, 0o755))
	for text, want := range map[string]bool{
		// As kubelet writes it (pkg/kubelet/cm/devicemanager/checkpoint/checkpoint.go).
		`{"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"x/y","DeviceIDs":{"0":["0000:3b:00.2"]},"AllocResp":""}],"RegisteredDevices":{"x/y":["0000:3b:00.3"]}},"Checksum":1}`: true,
		`{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{"x/y":["0000:3b:00.2"]}},"Checksum":1}`:                                                                                                        false,
		"": false,
	} {
		must(t, os.WriteFile(filepath.Join(dir, "kubelet_internal_checkpoint"), []byte(text), 0o600))
		ask(want)
	}
}
