// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// judgeText judges a text for a node of which nothing is known.
func judgeText(t testing.TB, text string) []verdict {
	t.Helper()
	node, err := netconf.ParseNode(nil)
	if err != nil {
		t.Fatal(err)
	}
	list, err := judge(judging{file: "f.json", node: node}, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// nad wraps a configuration into a definition, as kubectl prints it.
func nad(t testing.TB, name, resource, config string) string {
	t.Helper()
	meta := map[string]any{"name": name}
	if resource != "" {
		meta["annotations"] = map[string]string{resourceName: resource}
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
		dev  = `,"deviceID":"0000:3b:00.2"`
	)
	good := "{" + head + ours + dev + "}"
	tests := []struct {
		name, text string
		want       []string // begins of short
	}{
		{"good", good, []string{"rail0|accept|vf|-|-|-"}},
		{"an unknown key", "{" + head + ours + dev + `,"speed":1}`, []string{"rail0|warn|vf|-|-|speed is not a key"}},
		{"a misspelling", "{\n" + head + ours + dev + ",\n\"MTU\":9000}", []string{`rail0|reject|-|MTU|3|write "mtu" instead`}},
		{"deep", "{" + head + ours + dev + ",\n\"ipam\":{\"type\":\"range\",\n\"ranges\":[[\n{\"subnet\":\"10.1.0.0/33\",\"scope\":\"node\"}]]}}", []string{"rail0|reject|-|ipam.ranges[0][0].subnet|4|"}},
		{"no device", "{" + head + ours + "}", []string{"rail0|reject|-|deviceID|1|add the annotation"}},
		{"no type", "{" + head + `"mtu":1}`, []string{`rail0|reject|-|type|1|add "type"`}},
		{"type of a wrong shape", "{" + head + `"type":1}`, []string{`rail0|reject|-|type|1|add "type"`}},
		{"another plugin's", "{" + head + `"type":"sriov"}`, []string{"rail0|warn|vf|-|-|it is of type \"sriov\""}},
		{"another plugin's, not ours to replace", "{" + head + `"type":"bridge"}`, []string{"rail0|warn|-|-|-|it is of type"}},
		{"not JSON", "{\n\n", []string{"-|reject|-|network configuration, line 3, column 1|3|complete the JSON"}},
		{"empty", "", []string{"-|reject|-|network configuration, line 1, column 1|1|give a JSON object"}},
		{"a list of values", "[1]", []string{"-|reject|-|network configuration, line 1, column 1|1|give a JSON object"}},
		{"another kind of object", `{"kind":"Pod"}`, []string{"-|reject|-|kind|1|give a NetworkAttachmentDefinition"}},
		{"a key twice", "{" + head + ours + dev + ",\n\"mtu\":1500,\n\"mtu\":9000}", []string{"rail0|reject|-|network configuration, line 3, column 1|3|write the key \"mtu\" once"}},

		{"a list", `{` + head + `"plugins":[{` + ours + dev + "},{\"type\":\"tuning\"}]}", []string{"rail0|accept|vf|-|-|-"}},
		{"a list, wrong entry", "{" + head + "\"plugins\":[\n{" + ours + dev + ",\n\"mtu\":\"x\"}]}", []string{"rail0|reject|-|mtu|3|set mtu"}},
		{"a list, behind another plugin", "{" + head + "\"plugins\":[\n{\"type\":\"ptp\"},\n{" + ours + dev + ",\"link\":\"vf\"}]}", []string{"rail0|reject|-|prevResult|3|put podfabric first"}},
		{"a list, the entry has a name of its own", `{` + head + `"plugins":[{"name":"other",` + ours + dev + "}]}", []string{"rail0|accept|vf|-|-|-"}},
		{"a list, a key twice", "{" + head + "\"plugins\":[\n{" + ours + dev + ",\"mtu\":1,\"mtu\":2}]}", []string{"rail0|reject|-|-|2|write the key \"mtu\" once: plugins[0], found"}},
		{"a list without us", `{` + head + `"plugins":[{"type":"tuning"}]}`, []string{"rail0|warn|-|-|-|no entry of plugins"}},
		{"a list of nothing", `{` + head + `"plugins":[]}`, []string{"rail0|warn|-|-|-|no entry of plugins"}},
		{"a list with an entry that is none", `{` + head + `"plugins":[{` + ours + dev + `},7]}`, []string{"rail0|accept|vf|-|-|-"}},

		{"a definition", nad(t, "a", "", good), []string{"rail0|accept|vf|-|-|-"}},
		{"a definition, the device comes from Multus", nad(t, "a", "x/y", "{"+head+ours+"}"), []string{"rail0|accept|vf|-|-|-"}},
		{"the same in a list", nad(t, "a", "x/y", "{"+head+`"plugins":[{`+ours+"}]}"), []string{"rail0|accept|vf|-|-|-"}},
		{"a definition without resource", nad(t, "a", "", "{"+head+ours+"}"), []string{"rail0|reject|-|deviceID|8|add the annotation"}},
		{"a definition, its configuration has no name", nad(t, "a", "x/y", `{"cniVersion":"1.0.0",`+ours+"}"), []string{`a|reject|-|name|11|add a "name"`}},
		{"a definition without configuration", nad(t, "a", "", ""), []string{"a|reject|-|spec.config|7|write the network's configuration into spec.config"}},
		{"a definition, wrong inside", nad(t, "a", "x/y", "{\n"), []string{"a|reject|-|network configuration, line 2, column 1|11|complete the JSON"}},
		{
			"a list of definitions", `{"kind":"List","items":[` + nad(t, "a", "", good) + "," + nad(t, "b", "", "{"+head+ours+dev+`,"mtu":"x"}`) + "]}",
			[]string{"rail0|accept|vf|-|-|-", "rail0|reject|-|mtu|"},
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

func TestLineAt(t *testing.T) {
	t.Parallel()
	const text = "{\n \"a\": {\n  \"b\": [\n   1,\n   {\"c\": 2}\n  ]\n },\n \"a b\":\n  3\n}"
	for path, want := range map[string]int{
		"": 1, "a": 2, "a.b": 3, "a.b[0]": 4, "a.b[1].c": 5, "a.b[1].d": 5, "a.b[7]": 3, "a.x.y": 2, "x": 1, "a b": 9,
	} {
		if got := lineAt([]byte(text), path); got != want {
			t.Errorf("lineAt(%q) = %d, want %d", path, got, want)
		}
	}
	if got := lineAt([]byte("{"), "a"); got != 0 {
		t.Errorf("lineAt of what is broken = %d, want 0", got)
	}
}

// FuzzJudge: no input makes it fail, every verdict is complete, and a line is one of the file's.
func FuzzJudge(f *testing.F) {
	f.Add(`{"cniVersion":"1.0.0","name":"a","type":"podfabric"}`)
	f.Add(`{"plugins":[{"type":"podfabric","mtu":"x"},3],"cniVersion":1}`)
	f.Add(nad(f, "a", "x/y", `{"plugins":[{"type":"podfabric"}]}`))
	f.Add(`{"kind":"List","items":[{"kind":"List","items":[3]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		if looksYAML("f.json", []byte(text)) {
			return
		}
		for _, v := range judgeText(t, text) {
			if v.Warnings == nil || v.Ignored == nil || (v.Verdict == reject) != (v.Reason != nil) || v.Verdict == warn && len(v.Warnings) == 0 {
				t.Errorf("%q: %+v", text, v)
			}
			if v.Line != nil && (*v.Line < 1 || *v.Line > strings.Count(text, "\n")+1) {
				t.Errorf("%q: line %d", text, *v.Line)
			}
		}
	})
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
