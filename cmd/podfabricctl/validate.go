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

	notes int // how many of the last warnings are no surprise, but worth a line
}

// noder gives the node's own settings.
type noder interface {
	Node() (netconf.Node, error)
}

// asking is what the command line of validate says.
type asking struct {
	json, convert bool
	node, plugins string
}

func newValidate(n noder, s streams) *cobra.Command {
	var a asking
	cmd := &cobra.Command{
		Use:   "validate FILE…|-",
		Short: "judge network configurations as ADD would",
		Long: "validate reads NetworkAttachmentDefinitions (YAML or JSON, several in a file or a list), CNI configurations and lists of plugins,\n" +
			"and says of each network whether an attachment can succeed: podfabric's own as its ADD judges them, sriov's, macvlan's and others'\n" +
			"by their plugins' rules. It looks at texts alone: whether a device exists, only ADD finds.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(n, s, cmd.OutOrStdout(), args) },
	}
	cmd.Flags().BoolVar(&a.json, "json", false, "print a JSON array, also for one network")
	cmd.Flags().BoolVar(&a.convert, "convert", false, "print the podfabric configurations that replace those of sriov, macvlan, ipvlan and host-device")
	cmd.Flags().StringVar(&a.node, "node", "", "settings of the node to judge for (default "+netconf.NodePath+"; none there: the defaults)")
	cmd.Flags().StringVar(&a.plugins, "plugins", "", "folder of the node's plugins, as /opt/cni/bin: a plugin that is not in it is refused")
	cmd.MarkFlagsMutuallyExclusive("json", "convert")
	return cmd
}

// run judges the files. Converted networks go to raw as they are.
func (a asking) run(n noder, s streams, raw io.Writer, args []string) error {
	var j judging
	var err error
	if j.node, j.known, err = nodeSettings(n, a.node); err != nil {
		return err
	}
	j.nodeFile = a.node
	if j.installed, err = installed(a.plugins); err != nil {
		return err
	}
	list := []verdict{}
	var converted conversions
	var unread error // one input that cannot be read keeps no other from its verdict
	for _, name := range args {
		text, readErr := readInput(name, s.in)
		if readErr != nil {
			unread = errors.Join(unread, readErr)
			continue
		}
		j.file = name
		if a.convert {
			converted.file(j, text, s.err)
			continue
		}
		list = append(list, judge(j, text)...)
	}
	findings := slices.ContainsFunc(list, func(v verdict) bool { return v.Verdict == reject })
	switch {
	case a.convert:
		err, findings = converted.print(raw), converted.findings()
	case a.json:
		err = printJSON(s.out, list)
	default:
		printVerdicts(s.out, list)
	}
	if err = errors.Join(err, unread); err == nil && findings {
		return errFindings
	}
	return err
}

// installed reads the folder of a node's plugins; nil: none was named.
func installed(folder string) (func(string) bool, error) {
	if folder == "" {
		return nil, nil //nolint:nilnil // what is not known is nil
	}
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the plugins: %s does not exist", folder)
	}
	if err != nil {
		return nil, fmt.Errorf("read the plugins: %w", err)
	}
	return func(name string) bool {
		return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name && !e.IsDir() })
	}, nil
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
	node, err = netconf.ParseNodeFile(file, text)
	return node, true, err
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
		for i, text := range v.Warnings {
			label := "    warning:"
			if i >= len(v.Warnings)-v.notes {
				label = "    note:"
			}
			fmt.Fprintln(w, label, printable(text))
		}
	}
	if len(list) == 0 {
		fmt.Fprintln(w, "no network in it")
	}
}
