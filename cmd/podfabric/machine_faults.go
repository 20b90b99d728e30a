// SPDX-License-Identifier: Apache-2.0

//go:build faults

package main

import (
	"os"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/fault"
)

func machine(open fault.Open) fault.Open {
	return fault.Wrap(os.Getenv("PODFABRIC_FAULT"), plugin.StateDir, open)
}
