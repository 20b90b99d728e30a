// SPDX-License-Identifier: Apache-2.0

// Command devices answers whether every device of a node is where it was: `devices save FILE` writes down what there is,
// `devices compare FILE` says "devices home: all", or what differs, and then exits with 1.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"

	"github.com/podfabric/podfabric/plugin/kernel"
)

// Reading other namespaces must not leave the main thread in one (see cmd/podfabric).
func init() { runtime.LockOSThread() }

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: devices save|compare FILE")
		os.Exit(2)
	}
	differs, err := run(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "devices:", err)
		os.Exit(2)
	}
	if differs {
		os.Exit(1)
	}
}

func run(verb, file string) (bool, error) {
	now, err := kernel.New().Snapshot(context.Background())
	if err != nil {
		return false, err
	}
	if verb == "save" {
		text, encodeErr := json.Marshal(now)
		if encodeErr != nil {
			return false, encodeErr
		}
		return false, os.WriteFile(file, text, 0o600)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}
	var before kernel.Snapshot
	if err := json.Unmarshal(text, &before); err != nil {
		return false, fmt.Errorf("read %s: %w", file, err)
	}
	diff := kernel.Diff(before, now)
	if len(diff) == 0 {
		fmt.Println("devices home: all")
		return false, nil
	}
	for _, line := range diff {
		fmt.Println("  " + line)
	}
	if n := missing(before, now); n > 0 {
		fmt.Printf("devices home: %d missing\n", n)
	} else {
		fmt.Printf("devices home: all, with %d differences\n", len(diff))
	}
	return true, nil
}

// missing counts the links and RDMA devices that are not where they were under the name they had.
func missing(before, now kernel.Snapshot) int {
	n := 0
	for ns, was := range before.NetNS {
		is := now.NetNS[ns]
		for name := range was.Links {
			if _, ok := is.Links[name]; !ok {
				n++
			}
		}
		for name := range was.RDMA {
			if _, ok := is.RDMA[name]; !ok {
				n++
			}
		}
	}
	return n
}
