// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// topLevel is everything that may lie at the root of the repository, besides dot files.
var topLevel = strings.Fields("cmd plugin ipam rdmans netconf nad peer nccl e2e deploy docs Makefile go.mod go.sum README.md LICENSE CHANGELOG.md CONTRIBUTING.md")

// files are the paths of the repository's files, those not yet committed included.
func files(t *testing.T) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	var there []string
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		// The list is of the index; the file may have been removed since.
		if info, err := os.Stat(filepath.Join("../..", name)); err == nil && info.Mode().IsRegular() {
			there = append(there, name)
		}
	}
	slices.Sort(there)
	return slices.Compact(there)
}

func TestTopLevel(t *testing.T) {
	t.Parallel()
	for _, f := range files(t) {
		top, _, _ := strings.Cut(f, "/")
		if !strings.HasPrefix(top, ".") && !slices.Contains(topLevel, top) {
			t.Errorf("%s: the top level has %v and dot files, nothing else", f, topLevel)
		}
	}
}

func TestLicenceHeader(t *testing.T) {
	t.Parallel()
	for _, f := range files(t) {
		b, err := os.ReadFile(filepath.Join("../..", f))
		if err != nil {
			t.Fatal(err)
		}
		if msg := headerFault(f, b); msg != "" {
			t.Errorf("%s: %s", f, msg)
		}
	}
}

// headerFault says what is wrong with the head of a source file; "" if nothing is or it is none.
func headerFault(name string, content []byte) string {
	first, rest, _ := strings.Cut(string(content[:min(len(content), 500)]), "\n")
	script := strings.HasPrefix(first, "#!")
	ext := path.Ext(name)
	if !script && ext != ".go" && ext != ".c" && ext != ".sh" && path.Base(name) != "Makefile" {
		return ""
	}
	if script {
		first, _, _ = strings.Cut(rest, "\n")
	}
	want := "SPDX-License-Identifier: Apache-2.0"
	if strings.HasPrefix(name, "e2e/lab/rdmasim/") {
		want = "SPDX-License-Identifier: GPL-2.0" // a kernel module
	}
	if first != "// "+want && first != "# "+want {
		return "begin it with " + want
	}
	// Go takes a comment right above the package clause for the documentation.
	if ext == ".go" && !strings.HasPrefix(rest, "\n") {
		return "leave a blank line after the licence, or it becomes the package's documentation"
	}
	return ""
}

func TestHeaderFault(t *testing.T) {
	t.Parallel()
	const spdx = "SPDX-License-Identifier: "
	for _, tc := range []struct {
		name, file, content string
		good                bool
	}{
		{"Go", "a.go", "// " + spdx + "Apache-2.0\n\npackage a\n", true},
		{"Go without", "a.go", "package a\n", false},
		{"Go, licence as documentation", "a.go", "// " + spdx + "Apache-2.0\npackage a\n", false},
		{"Go, other licence", "a.go", "// " + spdx + "MIT\n\npackage a\n", false},
		{"script", "e2e/lab/boot", "#!/bin/bash\n# " + spdx + "Apache-2.0\n", true},
		{"script without", "e2e/lab/boot", "#!/bin/bash\necho\n", false},
		{"Makefile without", "Makefile", "all:\n", false},
		{"kernel module", "e2e/lab/rdmasim/rdmasim.c", "// " + spdx + "GPL-2.0\n", true},
		{"text", "README.md", "# podfabric\n", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if msg := headerFault(tc.file, []byte(tc.content)); (msg == "") != tc.good {
				t.Errorf("headerFault = %q, want good: %v", msg, tc.good)
			}
		})
	}
}

func TestPackageDocs(t *testing.T) {
	t.Parallel()
	sources := map[string][]byte{}
	for _, f := range files(t) {
		if path.Ext(f) != ".go" || strings.Contains(f, "/testdata/") {
			continue
		}
		b, err := os.ReadFile(filepath.Join("../..", f))
		if err != nil {
			t.Fatal(err)
		}
		sources[f] = b
	}
	for _, msg := range docFaults(t, sources) {
		t.Error(msg)
	}
}

// docFaults are the folders whose package has not exactly one documentation. Of a folder with tests alone, a test file has it.
func docFaults(t *testing.T, sources map[string][]byte) []string {
	t.Helper()
	type dir struct{ docs, testDocs, files int }
	dirs := map[string]*dir{}
	for name, content := range sources {
		f, err := parser.ParseFile(token.NewFileSet(), name, content, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		d := dirs[path.Dir(name)]
		if d == nil {
			d = &dir{}
			dirs[path.Dir(name)] = d
		}
		has := 0
		if f.Doc != nil && f.Doc.Text() != "" {
			has = 1
		}
		if strings.HasSuffix(name, "_test.go") {
			d.testDocs += has
		} else {
			d.docs += has
			d.files++
		}
	}
	var found []string
	for name, d := range dirs {
		n := d.docs
		if d.files == 0 {
			n = d.testDocs
		}
		if n != 1 {
			found = append(found, fmt.Sprintf("%s: %d package documentations, want 1", name, n))
		}
	}
	slices.Sort(found)
	return found
}

func TestDocFaults(t *testing.T) {
	t.Parallel()
	got := docFaults(t, map[string][]byte{
		"good/a.go":         []byte("// Package good is.\npackage good\n"),
		"good/b.go":         []byte("package good\n"),
		"good/a_test.go":    []byte("// Package good_test is not counted.\npackage good_test\n"),
		"none/a.go":         []byte("// A licence.\n\npackage none\n"),
		"two/a.go":          []byte("// Package two is.\npackage two\n"),
		"two/b.go":          []byte("// Package two is.\npackage two\n"),
		"tests/a_test.go":   []byte("// Package tests_test is.\npackage tests_test\n"),
		"notests/a_test.go": []byte("package notests_test\n"),
	})
	want := []string{
		"none: 0 package documentations, want 1",
		"notests: 0 package documentations, want 1",
		"two: 2 package documentations, want 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

// TestMainIsShort keeps logic out of the plugin's main package: it wires parts, and no test reaches it but through a process.
func TestMainIsShort(t *testing.T) {
	t.Parallel()
	lines := 0
	for _, f := range files(t) {
		if path.Dir(f) == "cmd/podfabric" && path.Ext(f) == ".go" && !strings.HasSuffix(f, "_test.go") {
			b, err := os.ReadFile(filepath.Join("../..", f))
			if err != nil {
				t.Fatal(err)
			}
			lines += bytes.Count(b, []byte("\n"))
		}
	}
	if lines >= 80 {
		t.Errorf("cmd/podfabric has %d lines, want fewer than 80", lines)
	}
}
