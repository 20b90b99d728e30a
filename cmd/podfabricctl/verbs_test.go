// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// named finds the name of the tool and the one or two words after it.
var named = regexp.MustCompile("podfabricctl ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?")

// prose are words that may follow the tool's name and are no verbs.
var prose = []string{"is", "and", "to"}

// faults are the commands that a text names and that do not exist.
func faults(root *cobra.Command, text string) []string {
	var found []string
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		verb := child(root, m[1])
		switch {
		case slices.Contains(prose, m[1]):
		case verb == nil:
			found = append(found, m[0])
		case verb.HasSubCommands() && m[2] == "set" && child(verb, "set") == nil:
			found = append(found, m[0])
		case !verb.HasSubCommands() && m[2] == "set":
			found = append(found, m[0])
		}
	}
	return found
}

func child(cmd *cobra.Command, name string) *cobra.Command {
	for _, c := range cmd.Commands() {
		if c.Name() == name {
			return c
		}
	}
	return nil
}

// TestMessagesNameVerbs reads every string of the module's code, and its documents: a message that names a command that is not
// there sends somebody the wrong way at three in the morning.
func TestMessagesNameVerbs(t *testing.T) {
	t.Parallel()
	root := newRoot(&machine{}, streams{})
	seen := 0
	err := filepath.WalkDir("../..", func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (strings.HasPrefix(e.Name(), ".") && e.Name() != ".." || e.Name() == "testdata") {
			return filepath.SkipDir
		}
		for _, text := range texts(t, path) {
			seen += len(named.FindAllString(text, -1))
			for _, fault := range faults(root, text) {
				t.Errorf("%s names %q, which is no command", path, fault)
			}
		}
		return nil
	})
	must(t, err)
	if seen < 5 {
		t.Errorf("only %d commands are named in all: does the test still read the messages?", seen)
	}
}

// texts are the strings of a Go file, or what is set as code in a document.
func texts(t *testing.T, path string) []string {
	t.Helper()
	switch {
	case filepath.Ext(path) == ".md":
		text, err := os.ReadFile(path)
		must(t, err)
		return code(string(text))
	case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
		return nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	must(t, err)
	var all []string
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				all = append(all, text)
			}
		}
		return true
	})
	return all
}

var span = regexp.MustCompile("`[^`]*`")

// code gives the blocks and spans of code in Markdown.
func code(text string) []string {
	var all []string
	fenced := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced = !fenced
		case fenced, strings.HasPrefix(line, "    "):
			all = append(all, line)
		default:
			all = append(all, span.FindAllString(line, -1)...)
		}
	}
	return all
}

func TestFaults(t *testing.T) {
	t.Parallel()
	root := newRoot(&machine{}, streams{})
	for text, want := range map[string]int{
		"run podfabricctl mode set exclusive": 0, "podfabricctl show tells": 0, "podfabricctl is the tool": 0, "podfabricctl doctor": 1,
		"podfabricctl show set": 1, "run podfabricctl": 0, "podfabricctl-x y": 0, "podfabricctl repair and podfabricctl leases": 1,
	} {
		if got := faults(root, text); len(got) != want {
			t.Errorf("faults(%q) = %q, want %d", text, got, want)
		}
	}
}
