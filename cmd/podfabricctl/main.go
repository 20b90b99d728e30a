// SPDX-License-Identifier: Apache-2.0

// Command podfabricctl is the tool for the people who run nodes: it shows devices and attachments, reads and sets the RDMA
// mode, judges configurations, repairs what was left behind and records a node for tests. It takes no part in a pod's start.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	safe "github.com/podfabric/podfabric/plugin/printable"
)

// version is set by the linker.
var version = "devel"

// A goroutine on the main thread that enters a pod's namespace would leave the process's own view of /proc in the pod: the main
// thread must stay where it began (style.md M9).
func init() { runtime.LockOSThread() }

func main() { os.Exit(run()) }

func run() int {
	syscall.Umask(0o022) // as the plugin, whose files repair makes, too
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return execute(ctx, newMachine(), os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
}

// The exit codes, which docs/cli.md promises.
const (
	exitFine     = 0
	exitFindings = 1 // something is not as it should be, or was refused; it has been said
	exitUnable   = 2 // usage, unreadable input, or nothing could be looked at
)

// errFindings ends a verb that has printed what is wrong.
var errFindings = errors.New("findings")

// streams are the process's, or a test's.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// execute runs one command line and gives the exit code. Whatever a verb prints, a pod may have chosen part of it, as the name
// of an interface or of a process: it must not speak to the terminal. The one text that goes out as it is are the networks of
// validate --convert, which came from the user's own files.
func execute(ctx context.Context, m *machine, args []string, s streams) int {
	return finish(ctx, newRoot(m, streams{s.in, safe.Writer(s.out), safe.Writer(s.err)}), args, s)
}

// finish runs a command and turns its error into an exit code.
func finish(ctx context.Context, cmd *cobra.Command, args []string, s streams) int {
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetIn(s.in)
	cmd.SetOut(s.out)
	cmd.SetErr(s.err)
	err := cmd.ExecuteContext(ctx)
	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, errFindings):
		return exitFindings
	}
	fmt.Fprintln(safe.Writer(s.err), "podfabricctl:", err)
	return exitUnable
}

func newRoot(m *machine, s streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "podfabricctl",
		Short: "the operator's tool of podfabric",
		Long: "podfabricctl " + version + ": the operator's tool of podfabric, the CNI plugin that gives a pod an SR-IOV function and its\n" +
			"RDMA device. It works on the node that it runs on, as root.\n\n" +
			"Exit codes: 0 fine, 1 findings or a refusal, 2 wrong usage, unreadable input, or nothing could be looked at.",
		Args:              noVerb,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SuggestionsMinimumDistance = 2 // letters that may be wrong
	root.PersistentFlags().StringVar(&m.root, "root", "", "look for the files of the node below this folder")
	if err := root.PersistentFlags().MarkHidden("root"); err != nil {
		panic(err) // the flag was made one line above
	}
	root.AddCommand(newVersion(s), newShow(m, s), newMode(m, s), newValidate(m, s), newCheck(m, s), newRepair(m, s), newRecord(m, s))
	return root
}

// noVerb refuses a word that is no verb, and names those that may have been meant.
func noVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	meant := ";"
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		meant = ", is " + strings.Join(near, " or ") + " meant?"
	}
	return fmt.Errorf("unknown command %q%s podfabricctl --help lists them", args[0], meant)
}
