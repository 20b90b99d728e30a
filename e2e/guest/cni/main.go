// SPDX-License-Identifier: Apache-2.0

//go:build lab

package cni

import (
	"fmt"
	"os"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/node"
)

const nodeFile = "/etc/podfabric/node.json"

// Main runs the tests of a package on a node with patience: the emulated machine is slow, and its speed is not under test.
func Main(m *testing.M) {
	err := os.MkdirAll("/etc/podfabric", 0o755)
	if err == nil {
		err = os.WriteFile(nodeFile, []byte(`{"version":1,"deadline":"60s"}`), 0o600)
	}
	if err == nil {
		err = keepBinaries()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// keepBinaries puts a copy of the binaries in memory over their folder. That is shared with the host without a cache, so that
// starting a plugin from it takes the emulated machine 600 ms, and from memory 40 ms.
func keepBinaries() error {
	const memory = "/run/bin"
	if _, err := node.Try("cp", "-a", node.Bin, memory); err != nil {
		return err
	}
	_, err := node.Try("mount", "--bind", memory, node.Bin)
	return err
}

// WithIndex gives the node an index until the test ends.
func WithIndex(t testing.TB, index int) {
	t.Helper()
	WithNode(t, fmt.Sprintf(`"index":%d`, index))
}

// WithNode gives the node's file further keys, separated by commas, until the test ends.
func WithNode(t testing.TB, keys string) {
	t.Helper()
	old, err := os.ReadFile(nodeFile)
	if err == nil {
		err = os.WriteFile(nodeFile, fmt.Appendf(nil, `{"version":1,"deadline":"60s",%s}`, keys), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.WriteFile(nodeFile, old, 0o600) })
}
