// SPDX-License-Identifier: Apache-2.0

// Package docs_test holds the documents to the code: every example parses, every code is listed.
package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/netconf"
)

const top = "../.."

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Each block of docs/ipam.md is a whole section ipam, for a rail on a node that has all that the page speaks of.
func TestAddressesOfTheGuide(t *testing.T) {
	t.Parallel()
	node, err := netconf.ParseNode([]byte(`{"index":17,"rails":{"0":{"subnet":"10.3.17.0/27","gateway":"10.3.17.1"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(read(t, "docs/ipam.md"), -1)
	if len(blocks) != 4 {
		t.Fatalf("docs/ipam.md has %d examples", len(blocks))
	}
	for _, m := range blocks {
		conf := `{"cniVersion":"1.1.0","name":"n","type":"podfabric","deviceID":"0000:3b:00.2","rail":0,"ipam":` + m[1] + `}`
		c, err := netconf.Parse(netconf.Raw{Stdin: []byte(conf), ContainerID: "c", NetNS: "/run/netns/c", IfName: "net1"}, node)
		if err != nil || len(c.Warnings) > 0 {
			t.Errorf("%s: %v, %q", m[1], err, c.Warnings)
		}
		// 17 blocks of 64 addresses before it: 10.1.0.0 + 17*64 = 10.1.4.64.
		if strings.Contains(m[1], "perNode") && !strings.HasPrefix(c.IPAM.Ranges[0][0].First.String(), "10.1.4.") {
			t.Errorf("node 17's block begins at %s", c.IPAM.Ranges[0][0].First)
		}
	}
}

func TestEveryCodeIsListed(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(read(t, "docs/errors.md"), -1) {
		listed[m[1]] = true
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(top, "netconf/problem.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Code") {
			literal, ok := spec.Values[0].(*ast.BasicLit)
			if !ok {
				t.Fatalf("%s is no literal", spec.Names[0].Name)
			}
			code := literal.Value
			known[code] = true
			if !listed[code] {
				t.Errorf("docs/errors.md does not list %s, code %s", spec.Names[0].Name, code)
			}
		}
		return true
	})
	for code := range listed {
		if !known[code] {
			t.Errorf("docs/errors.md lists code %s, which the code does not know", code)
		}
	}
}

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(top, "docs/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(filepath.Join(top, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, more...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", filepath.Base(file), m[1])
			}
		}
	}
}
