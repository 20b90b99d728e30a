// SPDX-License-Identifier: Apache-2.0

package nad_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/nad"
)

// brief is what tables compare of documents.
func brief(list []nad.Document) []string {
	out := []string{}
	for _, d := range list {
		s := fmt.Sprintf("%d %s", d.Line, d.Name)
		f := d.Fault
		if f == nil && d.Config != nil {
			f = d.Config.Fault
		}
		switch {
		case f != nil:
			s += fmt.Sprintf(" | %d %s: %s", f.Line, f.Field, f.Reason)
		case d.Config == nil:
			s += " | none"
		default:
			s += " | " + strings.Join(strings.Fields(string(nad.Encode(d.Config.Root))), "")
		}
		out = append(out, s)
	}
	return out
}

// The begin of what is said of each document. Messages behind the last colon are encoding/json's and the YAML library's own.
func TestRead(t *testing.T) {
	t.Parallel()
	const conf = "  config: '{}'\n"
	for _, tc := range []struct {
		name, file, text string
		want             []string
	}{
		{"configuration", "a.json", `{"a":1}`, []string{`1  | {"a":1}`}},
		{"configuration from a stream", "-", "\n {\"a\":1}\n", []string{`2  | {"a":1}`}},
		{"configuration in a YAML file", "a.yaml", `{"a":1}`, []string{`1  | {"a":1}`}},
		{"configuration as YAML", "a.yaml", "type: macvlan\n", []string{"1  | 1 : write the configuration as JSON"}},
		{"YAML in a JSON file", "a.json", head + conf, []string{"1  | 1 : write text in \" quotes: invalid character 'a' looking for beginning of value"}},
		{"definition", "a.yaml", head + conf, []string{"1 a | {}"}},
		{"definition in braces", "-", "{apiVersion: k8s.cni.cncf.io/v1, kind: NetworkAttachmentDefinition, metadata: {name: a}, spec: {config: '{}'}}", []string{"1 a | {}"}},
		{"stream", "a.yaml", "---\n" + head + conf + "---\n# nothing\n---\n" + strings.Replace(head, "name: a", "name: b", 1) + conf + "...\n", []string{"2 a | {}", "11 b | {}"}},
		{"directive", "a.yaml", "%YAML 1.1\n---\n" + head + conf, []string{"3 a | {}"}},
		{"one broken among good ones", "a.yaml", head + conf + "---\na: [\n---\n" + head + conf, []string{"1 a | {}", "7  | 8 : write a value, or close the bracket", "10 a | {}"}},
		{"empty", "a.yaml", "", []string{"1  | 1 : write a network: the file is empty"}},
		{"comments", "a.yaml", "# a\n---\n", []string{"1  | 1 : write a network: there is no document"}},
		{"a word", "-", "hello\n", []string{`1  | 1 : write a Kubernetes object: found "hello"`}},
		{"list", "-", "kind: NetworkAttachmentDefinitionList\nitems: []\n", []string{}},
		{"merged", "a.yaml", "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata:\n  <<: {name: m}\nspec: {config: '{}'}\n", []string{"1 m | {}"}},
		{"merged list", "a.yaml", "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata:\n  <<: [{name: m}, {name: n}]\nspec: {config: '{}'}\n", []string{"1 m | {}"}},
		{"alias", "a.yaml", "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata:\n  name: &n a\n  labels: {n: *n}\nspec: {config: '{}'}\n", []string{"1 a | {}"}},
		{"a name that is a number", "a.yaml", strings.Replace(head, "name: a", "name: 7", 1) + conf, []string{"1  | 4 metadata.name: write metadata.name as a string"}},
		{"a name of a template", "a.yaml", strings.Replace(head, "name: a", "name: {{ .Name }}", 1) + conf, []string{"1  | 4 metadata.name: write metadata.name as a string, and render a template first"}},
		{"a name beside metadata", "a.yaml", strings.Replace(head, "  name: a", "name: a", 1) + conf, []string{"1  | 4 metadata.name: indent name below metadata"}},
		{"a comment first", "-", "// a\n{}", []string{"1  | 1 : remove the comment"}},
		{"no name", "a.yaml", strings.Replace(head, "name: a", "namespace: a", 1) + conf, []string{"1  | 4 metadata.name: add a name"}},
		{"a name to come", "a.yaml", strings.Replace(head, "name: a", "generateName: a-", 1) + conf, []string{"1  | {}"}},
		{"no metadata", "a.yaml", "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nspec: {config: '{}'}\n", []string{"1  | 1 metadata: add metadata"}},
		{"no kind", "a.yaml", "apiVersion: k8s.cni.cncf.io/v1\nmetadata: {name: a}\n", []string{"1 a | 1 kind: add \"kind"}},
		{"key twice", "a.yaml", head + conf + "kind: NetworkAttachmentDefinition\n", []string{"1 a | 7 kind: write kind once"}},
		{"spec as a string", "a.yaml", strings.TrimSuffix(head, "\n") + " '{}'\n", []string{"1 a | 5 spec: write spec as an object"}},
		{"config as a number", "a.yaml", head + "  config: 7\n", []string{"1 a | 6 spec.config: write spec.config as a string"}},
		{"config as a list", "a.yaml", head + "  config: '[]'\n", []string{"1 a | 6 spec.config: give a JSON object in { }: found a list of 0"}},
		{"config of blanks", "a.yaml", head + "  config: ' '\n", []string{"1 a | 6 spec.config: write a configuration: the text is empty"}},
		{"no config", "a.yaml", head, []string{"1 a | none"}},
		{"config elsewhere", "a.yaml", head + "  cofig: '{}'\n", []string{"1 a | 6 spec.cofig: move the configuration to spec.config"}},
		{"annotation as a number", "a.yaml", strings.Replace(head, "spec", "  annotations: {x: 5}\nspec", 1) + conf, []string{"1 a | 5 metadata.annotations.x: write metadata.annotations.x as a string"}},
		{"spelling of the kind", "a.yaml", strings.Replace(head, "tion\n", "ton\n", 1) + conf, []string{"1 a | 2 kind: write NetworkAttachmentDefinition instead"}},
		{"a byte order mark before a definition", "a.yaml", "\uFEFF" + head + conf, []string{"1 a | {}"}},
		{"a byte order mark before a configuration", "a.json", "\uFEFF{}", []string{"1  | 1 : remove the byte order mark"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := brief(nad.Read(tc.file, []byte(tc.text)))
			if len(got) != len(tc.want) {
				t.Fatalf("got %q, want %q", got, tc.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], tc.want[i]) {
					t.Errorf("got  %s\nwant %s", got[i], tc.want[i])
				}
			}
		})
	}
}

// TestBrokenJSON: the remedy, and the line on which the mistake is.
func TestBrokenJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{\"a\":1,\n}":                 "2 remove the comma before this }",
		"{\"a\":[1,\n]}":               "2 remove the comma before this ]",
		"{\"a\":[1\n}":                 "2 close the list with ] before this }",
		"{\"a\":[{\"b\":1\n]}":         "2 close the object with } before this ]",
		"{\"a\":1\n\"b\":2}":           "2 write a comma between two keys",
		"{\"a\":[1\n2]}":               "2 write a comma between two elements",
		"{\"a\":[1,\n,2]}":             "2 remove this comma",
		"{\"a\"\n1}":                   "2 write : between a key and its value",
		"{\n a:1}":                     "2 write the key in \" quotes",
		"{\n 'a':1}":                   "2 write \" instead of '",
		"{\"a\":\nTrue}":               "2 write true or false in small letters",
		"{\"a\":\nNone}":               "2 write null",
		"{\"a\":\nbridge}":             "2 write text in \" quotes",
		"{\n#x\n\"a\":1}":              "2 remove the comment",
		"{\n/* x */\"a\":1}":           "2 remove the comment",
		"{\"a\":\n\"b\tc\"}":           "2 close the string",
		"{\"a\":\n\"\\d\"}":            `2 write \\ for one backslash`,
		"{\"a\":\n„b“}":                `2 write plain " quotes: typographic ones are no JSON: invalid character '„' looking`,
		"{\"a\":1}\n{}":                "2 keep one JSON document",
		"{\"a\":1}\n}":                 "2 remove this }, or one before it: there is one too many",
		"{\"a\":1}\nEOF":               "2 remove what follows",
		"{\n{{ .Values.vlan }}":        "2 render the template first",
		"{\"a\":\n{{ .Values.vlan }}}": "2 render the template first",
		"{\"a\":\n}":                   "2 write a value behind the :",
		"{\n\\\"a\\\":1}":              "2 remove the backslashes before the quotes",
		"// a.conf\n{}":                "1 remove the comment",
		"{\"a\":{\n\"b\":1":            "2 complete the JSON, it ends too early: the { of line 1 is never closed",
		"{\n\"a":                       "2 close the string with \"",
		"{\"a\":\n":                    "1 complete the JSON",
		"":                             "1 write a configuration",
		strings.Repeat("[", 200) + "1": "1 complete the JSON",
		strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200): "1 correct the JSON: lists and objects nest more than 100 deep",
	} {
		d := nad.Read("a.json", []byte(text))[0]
		if got := fmt.Sprintf("%d %s", d.Fault.Line, d.Fault.Reason); !strings.HasPrefix(got, want) {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestMended(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":[{"b":1}}`:              `{"a":[{"b":1}]}`,
		`{"a":[1,],}`:                 `{"a":[1]}`,
		"{\"a\":1, // x }\n\"b\":2}":  `{"a":1,"b":2}`,
		"{“a”:1}":                     `{"a":1}`,
		`{"a":1}{"b":2,}`:             `{"a":1}`,
		`{"a":{"b":"}"`:               `{"a":{"b":"}"}}`,
		`{"a":"http://x","b":"#"`:     `{"a":"http://x","b":"#"}`,
		`{"a" 1}`:                     "",
		"{\"a\":\"b\"\n\"c\":[{}{}]}": `{"a":"b","c":[{},{}]}`,
	} {
		got := ""
		if v := nad.Mended([]byte(text)); v != nil {
			got = strings.Join(strings.Fields(string(nad.Encode(v))), "")
		}
		if got != want {
			t.Errorf("Mended(%s) = %s, want %s", text, got, want)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	const text = "{\n \"a\": {\n  \"b\": [\n   1,\n   {\"c\": 2}\n  ]\n },\n \"a b\":\n  3, \"s\":\n {\"net.x\":\n4, \"net\": {\"x\":\n5}}}"
	c := nad.Read("a.json", []byte(text))[0].Config
	for path, want := range map[string]int{
		"": 1, "a": 2, "a.b": 3, "a.b[0]": 4, "a.b[1].c": 5, "a.b[1].d": 5, "a.b[7]": 3, "a.x.y": 2, "x": 1, "a b": 9, "s.net.x": 11, "s.net": 11,
	} {
		if got := c.Line(c.Root.Find(path).Start); got != want {
			t.Errorf("line of %q = %d, want %d", path, got, want)
		}
	}
}

func TestReplace(t *testing.T) {
	t.Parallel()
	yes := &nad.Value{Shape: nad.Object, Members: []nad.Member{{Name: "x", Value: &nad.Value{Shape: nad.String, Text: "<a>\n"}}}}
	for name, tc := range map[string][2]string{
		"a.yaml": {
			"# c\n" + head + "  config: '{}' # gone\nstatus: {}\n",
			"# c\n" + head + "  config: |\n    {\n      \"x\": \"<a>\\n\"\n    }\nstatus: {}\n",
		},
		"a.json": {
			`{"kind":"NetworkAttachmentDefinition", "apiVersion":"k8s.cni.cncf.io/v1","metadata":{"name":"a"},"spec":{"config":"{}"} }`,
			`{"kind":"NetworkAttachmentDefinition", "apiVersion":"k8s.cni.cncf.io/v1","metadata":{"name":"a"},"spec":{"config":"{\n  \"x\": \"<a>\\n\"\n}"} }` + "\n",
		},
		"b.json": {`{"y":1}`, "{\n  \"x\": \"<a>\\n\"\n}\n"},
	} {
		d := nad.Read(name, []byte(tc[0]))[0]
		got, err := d.Replace(yes)
		if diff := cmp.Diff(tc[1], string(got)); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", name, err, diff)
		}
	}
}

// FuzzRead: nothing makes it fail, each document is complete, and a line is one of the file's.
func FuzzRead(f *testing.F) {
	f.Add("-", head+"  config: >2-\n    {\n   'x': \"\\u00\"}\n---\n- *a\n")
	f.Add("a.json", `{"kind":"List","items":[{"kind":"NetworkAttachmentDefinition","spec":{"config":"{\"a\":[}"}}]}`)
	f.Add("a.yaml", "kind: List\nitems: &a [*a, {<<: {kind: List}, items: *a}]\n")
	f.Add("a.yaml", head+"  config: \"{\\\"a\\\":\n\n   1, \\\n   b}\"\r\n...\n%X\n---\nx")
	f.Fuzz(func(t *testing.T, name, text string) {
		lines := strings.Count(text, "\n") + 1
		in := func(line int) {
			if line < 1 || line > lines {
				t.Errorf("%q: line %d", text, line)
			}
		}
		for _, d := range nad.Read(name, []byte(text)) {
			in(d.Line)
			switch {
			case d.Fault != nil:
				in(d.Fault.Line)
				if d.Fault.Reason == "" {
					t.Errorf("%q: no reason", text)
				}
			case d.Config != nil && d.Config.Fault != nil:
				in(d.Config.Fault.Line)
				nad.Mended(d.Config.Bytes)
			case d.Config != nil:
				for o := 0; o <= len(d.Config.Bytes); o += 7 {
					in(d.Config.Line(o))
				}
				if again := nad.Read("x.json", nad.Encode(d.Config.Root)); len(again) != 1 {
					t.Errorf("%q: encoded, it is %d documents", text, len(again))
				}
			case !d.Definition:
				t.Errorf("%q: neither fault nor configuration", text)
			}
		}
	})
}
