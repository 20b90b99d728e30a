// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/podfabric/podfabric/rdmans"
)

// moder is what this verb needs of a node.
type moder interface {
	Mode() (rdmans.Mode, error)
	SetMode(rdmans.Mode) error
	Namespaces(ctx context.Context) ([]rdmans.Namespace, error)
	// Initramfs tells whether ib_core is in the initramfs of the running kernel; known is false when nobody could tell.
	Initramfs(ctx context.Context) (has, known bool)
	Root() string // prefix of files
	Privileged() bool
}

// modeView is the output of `mode --json`.
type modeView struct {
	Mode       string    `json:"mode"`     // exclusive, shared, none: the kernel has no RDMA subsystem loaded
	NextBoot   string    `json:"nextBoot"` // exclusive, shared, unclear
	Persistent []setting `json:"persistent"`
}

func newMode(n moder, s streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "mode",
		Short: "print the RDMA namespace mode of this node and what sets it at the next boot; or set it",
		Long: "mode prints exclusive (an RDMA device is in one network namespace, and podfabric moves it into the pod), shared (every namespace\n" +
			"sees every device), or none (the kernel has no RDMA subsystem loaded), and what will set it at the next boot.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			mode, err := modeWord(n)
			if err != nil {
				return err
			}
			list, err := persistent(n.Root())
			if err != nil {
				return err
			}
			v := modeView{Mode: mode, NextBoot: nextBoot(list), Persistent: list}
			if asJSON {
				return printJSON(s.out, v)
			}
			fmt.Fprintln(s.out, mode)
			printNextBoot(s.out, list)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.AddCommand(newModeSet(n, s))
	return cmd
}

func printNextBoot(w io.Writer, list []setting) {
	fmt.Fprintf(w, "next boot: %s\n", nextBoot(list))
	if len(list) == 0 {
		fmt.Fprintln(w, "    nothing sets it; shared is the kernel's own default")
	}
	for _, l := range list {
		fmt.Fprintf(w, "    %s: %s (%s)\n", l.Source, l.Mode, l.Owner)
	}
}

func newModeSet(n moder, s streams) *cobra.Command {
	var dry, asJSON bool
	cmd := &cobra.Command{
		Use:   "set exclusive|shared",
		Short: "set the RDMA namespace mode, now if the kernel lets it, and for every boot to come",
		Long: "set changes the mode at once, which the kernel allows only while no other network namespace exists, and writes\n" +
			modeFile + " for every boot to come. It changes nothing when somebody else sets the mode of this node: then it says\n" +
			"who, and what to do there. Exit 1: refused, or not in force before the next boot.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(cmd.ValidArgs, args[0]) {
				return errors.New("give the mode to set: exclusive or shared")
			}
			return nil
		},
		ValidArgs: []string{string(rdmans.Exclusive), string(rdmans.Shared)},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !n.Privileged() {
				return errRoot
			}
			v, err := setMode(cmd.Context(), n, rdmans.Mode(args[0]), dry)
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(s.out, v)
			} else {
				v.print(s.out)
			}
			if err == nil && (v.Refused != nil || len(v.Pending) > 0) {
				return errFindings
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "change nothing, say what would be done")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
