// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podfabric/podfabric/netconf"
)

// Verdict words.
const (
	accept = "accept"
	warn   = "warn"
	reject = "reject"
)

// verdict is one element of the output of `validate --json`.
type verdict struct {
	File     string   `json:"file"` // as given; "-": standard input
	Name     *string  `json:"name"` // of the network; null: it has none, or cannot be read
	Verdict  string   `json:"verdict"`
	Link     *string  `json:"link"`  // kind of attachment; for another plugin's, the kind that would take its place, else null
	Field    *string  `json:"field"` // what a reject is about
	Line     *int     `json:"line"`  // where that is in the file, from 1
	Reason   *string  `json:"reason"`
	Warnings []string `json:"warnings"`
	Ignored  []string `json:"ignored"` // keys without effect
}

// noder gives the node's own settings.
type noder interface {
	Node() (netconf.Node, error)
}

func newValidate(n noder, s streams) *cobra.Command {
	var asJSON bool
	var nodeFile string
	cmd := &cobra.Command{
		Use:   "validate FILE…|-",
		Short: "judge network configurations as ADD would",
		Long: "validate reads CNI configurations, lists of them, and NetworkAttachmentDefinitions as JSON (kubectl get net-attach-def -A -o json),\n" +
			"and says of each network of podfabric whether ADD accepts it. It looks at texts alone: whether a device exists, only ADD finds.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			node, known, err := nodeSettings(n, nodeFile)
			if err != nil {
				return err
			}
			list := []verdict{}
			var unread error // one input that cannot be read keeps no other from its verdict
			for _, name := range args {
				found, judgeErr := judgeFile(judging{file: name, node: node, known: known}, s.in)
				unread = errors.Join(unread, judgeErr)
				list = append(list, found...)
			}
			if asJSON {
				err = printJSON(s.out, list)
			} else {
				printVerdicts(s.out, list)
			}
			if err = errors.Join(err, unread); err == nil && slices.ContainsFunc(list, func(v verdict) bool { return v.Verdict == reject }) {
				return errFindings
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array, also for one network")
	cmd.Flags().StringVar(&nodeFile, "node", "", "settings of the node to judge for (default "+netconf.NodePath+"; none there: the defaults)")
	return cmd
}

// nodeSettings reads the node file. known is false when there is none: then nothing is held against a network that needs one.
func nodeSettings(n noder, file string) (node netconf.Node, known bool, err error) { //nolint:nonamedreturns // says what the values are
	if file == "" {
		node, err = n.Node()
		if err != nil {
			return node, false, err
		}
		return node, node.Index != nil || len(node.Rails) > 0, nil
	}
	text, err := readInput(file, strings.NewReader(""))
	if err != nil {
		return node, false, err
	}
	node, err = netconf.ParseNode(text)
	return node, true, err
}

func judgeFile(j judging, stdin io.Reader) ([]verdict, error) {
	text, err := readInput(j.file, stdin)
	if err != nil {
		return nil, err
	}
	return judge(j, text)
}

// inputMax bounds an input, in bytes.
const inputMax = 64 << 20

func readInput(name string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s does not exist", name)
		}
		if err != nil {
			return nil, fmt.Errorf("open the input: %w", err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, inputMax+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(text) > inputMax {
		return nil, fmt.Errorf("read %s: it is larger than %d MiB", name, inputMax>>20)
	}
	return text, nil
}

func printVerdicts(w io.Writer, list []verdict) {
	for _, v := range list {
		at := v.File
		if v.Line != nil {
			at += fmt.Sprintf(":%d", *v.Line)
		}
		name := "(no name)"
		if v.Name != nil {
			name = *v.Name
		}
		line := fmt.Sprintf("%s: %s: %s", at, name, v.Verdict)
		if v.Link != nil {
			line += " (" + *v.Link + ")"
		}
		if v.Reason != nil {
			line += ": " + *v.Reason
		}
		fmt.Fprintln(w, printable(line))
		for _, text := range v.Warnings {
			fmt.Fprintln(w, "    warning:", printable(text))
		}
	}
	if len(list) == 0 {
		fmt.Fprintln(w, "no network in it")
	}
}

// looksYAML tells YAML from JSON that is broken.
func looksYAML(file string, text []byte) bool {
	if strings.HasSuffix(file, ".yaml") || strings.HasSuffix(file, ".yml") {
		return !strings.HasPrefix(strings.TrimSpace(string(text)), "{")
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		return line == "---" || strings.HasPrefix(line, "apiVersion:") || strings.HasPrefix(line, "kind:") || strings.HasPrefix(line, "metadata:")
	}
	return false
}
