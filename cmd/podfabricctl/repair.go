// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/podfabric/podfabric/plugin"
)

// repairer is what this verb needs of a node.
type repairer interface {
	Repair(ctx context.Context, log io.Writer, dry bool) ([]plugin.Finding, error)
	Privileged() bool
}

func newRepair(r repairer, s streams) *cobra.Command {
	var dry, asJSON bool
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "bring home and give back what dead pods and killed processes have left",
		Long: "repair finds attachments whose pod is gone or whose ADD or DEL was cut short, claims, addresses, soft RoCE devices and hint\n" +
			"files without an attachment, devices at home under a wrong name, and holes in the uverbs numbers; and puts them right.\n" +
			"It may run while pods start and end. What it cannot or must not repair it says.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return repair(cmd.Context(), r, s, dry, asJSON)
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "change nothing, say what would be done; exit 1 if there is anything")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array of findings")
	return cmd
}

func repair(ctx context.Context, r repairer, s streams, dry, asJSON bool) error {
	if !r.Privileged() {
		return errRoot
	}
	found, err := r.Repair(ctx, s.err, dry)
	if found == nil {
		found = []plugin.Finding{}
	}
	var printErr error
	if asJSON {
		printErr = printJSON(s.out, found)
	} else {
		printFindings(s.out, found)
	}
	if err = errors.Join(err, printErr); err != nil {
		return err
	}
	done := func(f plugin.Finding) bool { return f.Outcome == plugin.Repaired || f.Outcome == plugin.Noted }
	if slices.ContainsFunc(found, func(f plugin.Finding) bool { return !done(f) }) {
		return errFindings
	}
	return nil
}

// errRoot: the verb needs what only root has.
var errRoot = errors.New("run it as root: network namespaces and /run/podfabric are closed to others")

func printFindings(w io.Writer, found []plugin.Finding) {
	switch more := slices.ContainsFunc(found, func(f plugin.Finding) bool { return f.Outcome != plugin.Noted }); {
	case len(found) == 0:
		fmt.Fprintln(w, "nothing to repair")
	case !more:
		fmt.Fprintf(w, "nothing that repair may touch; %d noted:\n", len(found))
	}
	for _, f := range found {
		f.Object, f.Action = printable(f.Object), printable(f.Action)
		fmt.Fprintf(w, "%s: %s\n", f.Object, printable(f.Why))
		switch {
		case f.Outcome == plugin.Planned && f.Detail != "":
			fmt.Fprintf(w, "    would %s %s\n", f.Action, printable(f.Detail))
		case f.Outcome == plugin.Planned:
			fmt.Fprintf(w, "    would %s\n", f.Action)
		case f.Outcome == plugin.Left && f.Action != "":
			fmt.Fprintf(w, "    not finished (%s): %s\n", f.Action, printable(f.Detail))
		case f.Detail != "" && f.Action != "":
			fmt.Fprintf(w, "    %s (%s): %s\n", f.Outcome, f.Action, printable(f.Detail))
		case f.Detail != "":
			fmt.Fprintf(w, "    %s: %s\n", f.Outcome, printable(f.Detail))
		default:
			fmt.Fprintf(w, "    %s: %s\n", f.Outcome, f.Action)
		}
	}
}
