// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
)

// configuration is the page of all keys.
const configuration = "docs/configuration.md"

// tables gives the tables of a page that are marked <!-- keys: NAME -->, by name.
func tables(page string) map[string]string {
	found := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^<!-- keys: (.*) -->\n((?:\|.*\n)*)`).FindAllStringSubmatch(page, -1) {
		found[m[1]] += m[2]
	}
	return found
}

// cell makes a text fit into a table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// kindsOf says which kinds take a key.
func kindsOf(k netconf.Key) string {
	if len(k.Kinds) == 5 {
		return "all"
	}
	var names []string
	for _, kind := range k.Kinds {
		names = append(names, string(kind))
	}
	return strings.Join(names, ", ")
}

// wantTables are the tables as the code has them: one of each section of a configuration, and one of what is always refused.
func wantTables() map[string]string {
	const (
		head  = "| key | kinds | type | default | unit | since | meaning |\n| --- | --- | --- | --- | --- | --- | --- |\n"
		noes  = "| key | why, and what instead |\n| --- | --- |\n"
		never = "refused"
	)
	want := map[string]string{}
	for _, k := range netconf.Keys() {
		name := k.Section
		switch {
		case strings.HasPrefix(name, "node.json"):
			continue // docs/node.md
		case name == "":
			name = "top"
		}
		if k.Refused != "" {
			if want[never] == "" {
				want[never] = noes
			}
			path := k.Name
			if k.Section != "" {
				path = k.Section + "." + k.Name
			}
			want[never] += fmt.Sprintf("| `%s` | %s |\n", path, cell(k.Refused))
			continue
		}
		if want[name] == "" {
			want[name] = head
		}
		shape := strings.NewReplacer("a ", "", "an ", "").Replace(k.Shape)
		want[name] += fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s | %s |\n",
			k.Name, kindsOf(k), shape, cell(k.Default), k.Unit, k.Since, cell(k.What))
	}
	return want
}

// kindTable is netconf's own table of which key belongs to which kind, as Markdown.
func kindTable(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	for i, line := range strings.Split(strings.TrimSpace(read(t, "netconf/testdata/kinds.golden")), "\n") {
		cells := regexp.MustCompile(`\s{2,}`).Split(strings.TrimSpace(line), -1)
		if len(cells) != 6 {
			t.Fatalf("netconf/testdata/kinds.golden, line %d: %d columns", i+1, len(cells))
		}
		for j, c := range cells[1:] {
			switch {
			case i == 0 || c == "later" || c == "ignored":
			case c == "yes":
			case c == "refused":
				cells[j+1] = "–"
			default:
				t.Errorf("netconf/testdata/kinds.golden, line %d: %q", i+1, c)
			}
		}
		if i > 0 {
			cells[0] = "`" + cells[0] + "`"
		}
		fmt.Fprintf(&out, "| %s |\n", strings.Join(cells, " | "))
		if i == 0 {
			out.WriteString("| --- | --- | --- | --- | --- | --- |\n")
		}
	}
	return out.String()
}

// TestEveryKeyIsListed compares the tables of the page with what Parse judges by: neither may have a key more, and each line says
// the same. UPDATE=1 writes the tables anew.
func TestEveryKeyIsListed(t *testing.T) {
	t.Parallel()
	want := wantTables()
	want["by kind"] = kindTable(t)
	page := read(t, configuration)
	if os.Getenv("UPDATE") == "1" {
		for name, table := range want {
			mark := "<!-- keys: " + name + " -->\n"
			old := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(mark) + `((?:\|.*\n)*)`)
			page = old.ReplaceAllLiteralString(page, mark+table)
		}
		if err := os.WriteFile(filepath.Join(top, configuration), []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, tables(page)); diff != "" {
		t.Errorf("tables of %s (-code +page); UPDATE=1 writes them anew\n%s", configuration, diff)
	}
}

func TestEveryKeyOfTheNodeIsListed(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/node.md")
	n := 0
	for _, k := range netconf.Keys() {
		if !strings.HasPrefix(k.Section, "node.json") {
			continue
		}
		n++
		if !strings.Contains(page, "`"+k.Name+"`") && !strings.Contains(page, `"`+k.Name+`"`) && !strings.Contains(page, "."+k.Name+"`") {
			t.Errorf("docs/node.md does not speak of %q of %s", k.Name, k.Section)
		}
	}
	if n < 20 {
		t.Errorf("node.json has %d keys", n)
	}
}

// TestWhoMaySayWhat holds the table of what a pod's annotation may say against netconf's golden file, which Parse is held to.
func TestWhoMaySayWhat(t *testing.T) {
	t.Parallel()
	outcomes := map[string]string{}
	for line := range strings.Lines(read(t, "netconf/testdata/sources.golden")) {
		cells := regexp.MustCompile(`\s{2,}`).Split(strings.TrimSpace(line), -1)
		if len(cells) >= 3 {
			outcomes[cells[0]+" "+cells[1]], _, _ = strings.Cut(cells[2], " ")
		}
	}
	_, section, ok := strings.Cut(read(t, configuration), "<!-- sources -->\n")
	if !ok {
		t.Fatal("no table of sources")
	}
	rows := 0
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if rows++; rows <= 2 || len(cells) < 4 {
			continue
		}
		source, key := strings.TrimSpace(cells[0]), strings.Trim(strings.TrimSpace(cells[1]), "`")
		if key == "any other" {
			key = "unheard"
		}
		for i, opt := range []string{"", ", opt-in"} {
			if got, want := strings.TrimSpace(cells[2+i]), outcomes[source+opt+" "+key]; got != want {
				t.Errorf("%s %s%s: the page says %q, Parse %q", source, key, opt, got, want)
			}
		}
	}
	if rows < 15 {
		t.Errorf("the table of sources has %d rows", rows)
	}
}
