// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podfabric/podfabric/plugin/record"
)

// checker is what this verb needs of a node.
type checker interface {
	Records() ([]record.Record, []error)
	Inspect(ctx context.Context, rec record.Record) (lost, warnings []string, err error)
	Privileged() bool
}

// checked is one element of the output of `check --json`.
type checked struct {
	Pod         string   `json:"pod"` // namespace/name; empty outside Kubernetes
	ContainerID string   `json:"containerID"`
	IfName      string   `json:"ifname"`
	Network     string   `json:"network"`
	Link        string   `json:"link"`
	Device      string   `json:"device"` // what it is made of
	Lost        []string `json:"lost"`   // what CHECK answers an error to
	Warnings    []string `json:"warnings"`
}

func newCheck(c checker, s streams) *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "check --all|POD…",
		Short: "hold attachments against what ADD recorded, as CHECK does",
		Long: "check looks whether devices, netdevs, addresses and GIDs of pods are still as ADD left them. Multus calls CHECK for none of its\n" +
			"networks, so this is the way to that code: run it daily with --all. What took a pod's connection away is \"lost\"; what may\n" +
			"mend itself, or never mattered to a running job, is a warning: a GID at another index, a port that is down.\n" +
			"POD is NAMESPACE/NAME, NAME, the pod's UID, or the first digits of its container ID. Exit 1 when there is anything to say.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return errors.New("name pods, or give --all for every attachment of this node")
			}
			if !c.Privileged() {
				return errRoot
			}
			return check(cmd.Context(), c, s, args, asJSON)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "check every attachment of this node")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array of attachments")
	return cmd
}

func check(ctx context.Context, c checker, s streams, pods []string, asJSON bool) error {
	records, errs := c.Records()
	chosen, err := choose(records, pods)
	if err != nil {
		return err
	}
	list := make([]checked, 0, len(chosen))
	findings := len(errs) > 0 && len(pods) == 0
	for _, rec := range chosen {
		lost, warnings, inspectErr := c.Inspect(ctx, rec)
		if inspectErr != nil {
			return fmt.Errorf("check attachment %s: %w", rec.Owner, inspectErr)
		}
		findings = findings || len(lost)+len(warnings) > 0
		list = append(list, newChecked(rec, lost, warnings))
	}
	if asJSON {
		err = printJSON(s.out, list)
	} else {
		printChecked(s.out, list)
	}
	if findings && len(pods) == 0 {
		for _, e := range errs {
			fmt.Fprintln(s.err, "podfabricctl:", printable(e.Error()))
		}
	}
	if err == nil && findings {
		return errFindings
	}
	return err
}

// choose picks the attachments of pods; none named are all.
func choose(records []record.Record, pods []string) ([]record.Record, error) {
	if len(pods) == 0 {
		return records, nil
	}
	var out []record.Record
	found := map[string]bool{}
	for _, rec := range records {
		for _, pod := range pods {
			if names(rec, pod) {
				found[pod] = true
				out = append(out, rec)
				break
			}
		}
	}
	for _, pod := range pods {
		if !found[pod] {
			return nil, fmt.Errorf("no attachment of pod %q is recorded on this node; podfabricctl show lists those that are", pod)
		}
	}
	return out, nil
}

// shortID is how many digits of a container ID name it, as container tools print them.
const shortID = 8

func names(rec record.Record, pod string) bool {
	switch pod {
	case "":
		return false
	case rec.Pod.Name, rec.Pod.UID, rec.Pod.Namespace + "/" + rec.Pod.Name:
		return true
	}
	id := rec.Owner.ContainerID
	return id == pod || len(pod) >= shortID && strings.HasPrefix(id, pod)
}

func newChecked(rec record.Record, lost, warnings []string) checked {
	out := checked{
		ContainerID: rec.Owner.ContainerID, IfName: rec.Owner.IfName, Network: rec.Network, Link: string(rec.Kind), Device: rec.Subject(),
		Lost: append([]string{}, lost...), Warnings: append([]string{}, warnings...),
	}
	if rec.Pod.Name != "" {
		out.Pod = rec.Pod.String()
	}
	return out
}

func printChecked(w io.Writer, list []checked) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no attachment on this node")
	}
	for _, c := range list {
		who := c.Pod
		if who == "" {
			who = "container " + c.ContainerID
		}
		state := "ok"
		if len(c.Lost) > 0 {
			state = "lost"
		} else if len(c.Warnings) > 0 {
			state = "ok, with warnings"
		}
		fmt.Fprintln(w, printable(fmt.Sprintf("%s %s (%s, %s of %s): %s", who, c.IfName, c.Network, c.Link, c.Device, state)))
		for _, text := range c.Lost {
			fmt.Fprintln(w, "    lost:", printable(text))
		}
		for _, text := range c.Warnings {
			fmt.Fprintln(w, "    warning:", printable(text))
		}
	}
}
