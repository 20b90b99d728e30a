// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podfabric/podfabric/netconf"
)

// versionFacts is the output of `version --json`.
type versionFacts struct {
	Version string   `json:"version"`
	Go      string   `json:"go"`
	System  string   `json:"system"` // "linux/amd64"
	CNI     []string `json:"cni"`    // versions of the CNI specification, oldest first
}

func newVersion(s streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "print the version, and the versions of CNI that this podfabric speaks",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := versionFacts{
				Version: version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, CNI: netconf.Versions(),
			}
			if asJSON {
				return printJSON(s.out, v)
			}
			fmt.Fprintf(s.out, "podfabricctl %s (%s, %s, CNI %s)\n", v.Version, v.Go, v.System, strings.Join(v.CNI, " "))
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
