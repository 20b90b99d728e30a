// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The fault injector is for tests: the program that is shipped has no symbol and no text of it. That the same look finds both in
// the program of the tests says that it looks right.
func TestReleaseHasNoFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		flags []string
		has   bool
	}{
		{"release", nil, false},
		{"with the tag", []string{"-tags", "faults"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			exe := filepath.Join(t.TempDir(), "podfabric")
			run(t, "go", append(append([]string{"build", "-o", exe}, tt.flags...), ".")...)
			symbols := run(t, "go", "tool", "nm", exe)
			if got := bytes.Contains(symbols, []byte("podfabric/plugin/fault.")); got != tt.has {
				t.Errorf("a symbol of plugin/fault: %t, wanted %t", got, tt.has)
			}
			content, err := os.ReadFile(exe)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{"PODFABRIC_FAULT", "injected fault", "plugin/fault"} {
				if got := bytes.Contains(content, []byte(text)); got != tt.has {
					t.Errorf("%q in the binary: %t, wanted %t", text, got, tt.has)
				}
			}
		})
	}
}

func run(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, stderr.Bytes())
	}
	return out
}
