// SPDX-License-Identifier: Apache-2.0

package nad_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/podfabric/podfabric/nad"
)

const head = "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata:\n  name: a\nspec:\n"

// Every key "Lnn" below stands on line nn of its file: what the reader says is compared with where a person sees it.
func TestLines(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"literal":                         head + "  config: |\n    {\"L7\":1,\n\n     \"L9\":{\n       \"L10\":2}}\n",
		"literal, kept and stripped":      head + "  config: |-\n    {\"L7\":1,\n     \"L8\":2}\n\n\n",
		"literal, indentation said":       head + "  config: |2\n       {\"L7\":1,\n     \"L8\":2}\n",
		"literal, comment behind the bar": head + "  config: | # here\n    {\"L7\":1,\n     \"L8\":2}\n",
		"literal, tabs inside":            head + "  config: |\n    {\t\"L7\":1,\n    \t\"L8\":2}\n",
		"literal, on the next line":       head + "  config:\n    |\n    {\"L8\":1,\n     \"L9\":2}\n",
		"folded":                          head + "  config: >\n    {\"L7\":1,\n    \"L8\":2,\n\n\n    \"L11\":3}\n",
		"folded, more indented":           head + "  config: >-\n    {\"L7\":1,\n      \"L8\":2,\n\n      \"L10\":3,\n    \"L11\":4\n    }\n",
		"folded, keep":                    head + "  config: >+\n    {\"L7\":1,\n    \"L8\":2}\n\n",
		"single quoted":                   head + "  config: '{\"L6\":\"it''s\",\n\n    \"L8\":2,\n\t\"L9\":3,\n\n\n  \"L12\":4}'\n",
		"single quoted, next line":        head + "  config:\n    '{\n    \"L8\":2}'\n",
		"double quoted":                   head + "  config: \"{\\\"L6\\\":\\\"\\x41\\u00e9\\U0001F600\\\",\n    \\\"L7\\\":2,\\n\\\n    \\\"L8\\\":3,\n\n    \\\"L10\\\":4}\"\n",
		"double quoted, blanks":           head + "  config: \"{\\\"L6\\\":1,   \n  \\  \\\"L7\\\":2 \\\n    ,\\\"L8\\\":3}\"\n",
		"plain":                           head + "  config: \n    !!str\n    '{\"L8\":1}'\n",
		"anchored":                        head + "  config: &c '{\"L6\":1,\n  \"L7\":2}'\n",
		"windows":                         strings.ReplaceAll(head+"  config: |\n    {\"L7\":1,\n\n     \"L9\":2}\n", "\n", "\r\n"),
		"windows, single quoted":          strings.ReplaceAll(head+"  config: '{\"L6\":1,\n\n    \"L8\":2}'\n", "\n", "\r\n"),
		"two bytes a letter":              head + "  config: '{\"L6\":\"äöü€\",\n    \"L7\":\"ß\",\n  \"L8\":1}'\n",
		"flow":                            head[:len(head)-6] + "spec: {config: '{\"L5\":1,\n  \"L6\":2}'}\n",
		"second document":                 "# one\n---\n" + head + "  config: |\n    {\"L9\":1,\n     \"L10\":2}\n",
		"list":                            "kind: List\napiVersion: v1\nitems:\n- apiVersion: k8s.cni.cncf.io/v1\n  kind: NetworkAttachmentDefinition\n  metadata: {name: a}\n  spec:\n    config: |\n      {\"L9\":1,\n       \"L10\":2}\n",
		"JSON":                            "{\"apiVersion\":\"k8s.cni.cncf.io/v1\",\n\"kind\":\"NetworkAttachmentDefinition\",\"metadata\":{\"name\":\"a\"},\n\"spec\":{\"config\":\n\"{\\\"L4\\\":1,\\n\\\"L4\\\":2}\"}}",
		"configuration":                   "{\n\"L2\":1,\n\n\"L4\":{\"L4\":\n1}}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := "-"
			if strings.HasPrefix(text, "{") {
				file = "a.json"
			}
			list := nad.Read(file, []byte(text))
			if len(list) != 1 || list[0].Fault != nil || list[0].Config == nil || list[0].Config.Root == nil {
				t.Fatalf("%q: %+v", text, list)
			}
			if n := keyLines(t, list[0].Config, list[0].Config.Root); n == 0 {
				t.Error("no key looked at")
			}
		})
	}
}

// keyLines compares the line of each key with its name.
func keyLines(t *testing.T, c *nad.Text, v *nad.Value) int {
	t.Helper()
	n := 0
	for _, m := range v.Members {
		n++
		if got := fmt.Sprintf("L%d", c.Line(m.Start)); got != m.Name {
			t.Errorf("key %s: %s", m.Name, got)
		}
		n += keyLines(t, c, m.Value)
	}
	return n
}

// TestLinesAsWritten takes configurations as the YAML library itself writes them, in every style: line n of the value must be
// found on the file's line that holds its text.
func TestLinesAsWritten(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var b strings.Builder
		b.WriteString("{")
		for i := range 1 + r.IntN(6) {
			b.WriteString(strings.Repeat("\n", r.IntN(3)) + strings.Repeat(" ", r.IntN(4)))
			if i > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(&b, `"K%d": "%s"`, i, []string{"it's", "a b", "é", "x: y", "#", "  ", "long " + strings.Repeat("w ", 50)}[r.IntN(7)])
		}
		b.WriteString("}" + strings.Repeat("\n", r.IntN(3)))
		style := []yaml.Style{yaml.LiteralStyle, yaml.FoldedStyle, yaml.SingleQuotedStyle, yaml.DoubleQuotedStyle}[r.IntN(4)]
		node := yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{
			{Kind: yaml.ScalarNode, Value: "config"}, {Kind: yaml.ScalarNode, Tag: "!!str", Value: b.String(), Style: style},
		}}
		out, err := yaml.Marshal(map[string]any{"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": map[string]string{"name": "a"}, "spec": &node})
		if err != nil {
			t.Fatal(err)
		}
		d := nad.Read("-", out)[0]
		if d.Config == nil || d.Config.Root == nil {
			t.Fatalf("%s: %+v", out, d)
		}
		lines := strings.Split(string(out), "\n")
		for _, m := range d.Config.Root.Members {
			if line := d.Config.Line(m.Start); line > len(lines) || !strings.Contains(lines[line-1], m.Name) {
				t.Fatalf("%s is said to be on line %d of\n%s", m.Name, line, out)
			}
		}
	}
}
