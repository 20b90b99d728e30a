// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
)

// checker is what this verb needs of a node.
type checker interface {
	Records() ([]record.Record, []error)
	Unrecorded(ctx context.Context) ([]plugin.Unrecorded, error)
	Elsewhere(ctx context.Context) ([]attach.Astray, error)
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
	Noted       []string `json:"noted"` // of a device of which podfabric knows nothing, and all else is empty
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
	unrecorded, err := c.Unrecorded(ctx)
	if err != nil {
		return err
	}
	k := gather(records, errs, unrecorded)
	chosen, err := choose(k.records, pods)
	if err != nil {
		return err
	}
	list := make([]checked, 0, len(chosen))
	findings := len(k.errs) > 0 && len(pods) == 0
	for _, rec := range chosen {
		v, checkErr := k.check(ctx, c, rec)
		if checkErr != nil {
			return checkErr
		}
		if len(v.Lost) > 0 && k.changed(c, rec) {
			continue
		}
		findings = findings || len(v.Lost)+len(v.Warnings) > 0
		list = append(list, v)
	}
	if len(pods) == 0 {
		more, strangerErr := k.strangers(ctx, c)
		if strangerErr != nil {
			return strangerErr
		}
		list = append(list, more...)
	}
	if asJSON {
		err = printJSON(s.out, list)
	} else {
		printChecked(s.out, list)
	}
	if findings && len(pods) == 0 {
		for _, e := range k.errs {
			fmt.Fprintln(s.err, "podfabricctl:", printable(e.Error()))
		}
	}
	if err == nil && findings {
		return errFindings
	}
	return err
}

// check holds one attachment against its record; without a good one it is lost.
func (k known) check(ctx context.Context, c checker, rec record.Record) (checked, error) {
	if text, bad := k.said[rec.Owner]; bad && !recorded(rec) {
		return newChecked(rec, []string{text}, nil), nil
	}
	lost, warnings, err := c.Inspect(ctx, rec)
	if err != nil {
		return checked{}, fmt.Errorf("check attachment %s: %w", rec.Owner, err)
	}
	return newChecked(rec, lost, warnings), nil
}

// changed tells whether an attachment ended, or went on, since its record was read: many take a while to look at, and pods end all the time.
func (k known) changed(c checker, rec record.Record) bool {
	if !recorded(rec) {
		return false
	}
	now, errs := c.Records()
	same := func(r record.Record) bool {
		return r.Owner == rec.Owner && r.State == rec.State && r.Created.Equal(rec.Created)
	}
	return len(errs) <= len(k.said)+len(k.errs) && !slices.ContainsFunc(now, same)
}

// strangers are devices in other namespaces that podfabric knows nothing of: another program's, or its state folder was emptied. While a
// record that cannot be read may be of one, none is said to be.
func (k known) strangers(ctx context.Context, c checker) ([]checked, error) {
	astray, err := c.Elsewhere(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for devices in other network namespaces: %w", err)
	}
	now, errs := c.Records() // an ADD may have begun meanwhile
	hidden := slices.ContainsFunc(k.records, func(r record.Record) bool { return r.State == unreadable && r.Device.IsZero() })
	if hidden || len(k.errs) > 0 || len(errs) > len(k.said) {
		return nil, nil
	}
	var list []checked
	for _, a := range astray {
		of := func(r record.Record) bool { return r.Device == a.Device }
		if slices.ContainsFunc(k.records, of) || slices.ContainsFunc(now, of) {
			continue
		}
		var where []string
		for _, h := range a.Held {
			where = append(where, h.String())
		}
		v := newChecked(record.Record{Device: a.Device}, nil, nil)
		v.Noted = []string{strings.Join(where, ", ") + ", and nothing is recorded of it: another program may have given it to a pod; " +
			"if podfabric did and its state folder was emptied since, delete the pod"}
		list = append(list, v)
	}
	return list, nil
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
		Lost: append([]string{}, lost...), Warnings: append([]string{}, warnings...), Noted: []string{},
	}
	if rec.State == unreadable && rec.Device.IsZero() {
		out.Device = ""
	}
	if rec.Pod.Name != "" {
		out.Pod = rec.Pod.String()
	}
	return out
}

// String names it, with what of it is known: "team-a/train-0 net1 (rail0, vf of 0000:3b:00.3)".
func (c checked) String() string {
	var parts []string
	if c.Network != "" {
		parts = append(parts, c.Network)
	}
	switch {
	case c.Link != "":
		parts = append(parts, c.Link+" of "+c.Device)
	case c.Device != "":
		parts = append(parts, c.Device)
	}
	who := c.Pod
	switch {
	case who == "" && c.ContainerID == "":
		return "device " + c.Device
	case who == "":
		who = "container " + c.ContainerID
	}
	who += " " + c.IfName
	if len(parts) > 0 {
		who += " (" + strings.Join(parts, ", ") + ")"
	}
	return who
}

func printChecked(w io.Writer, list []checked) {
	if !slices.ContainsFunc(list, func(c checked) bool { return c.ContainerID != "" }) {
		fmt.Fprintln(w, "no attachment on this node")
	}
	for _, c := range list {
		state := "ok"
		switch {
		case len(c.Lost) > 0:
			state = "lost"
		case len(c.Warnings) > 0:
			state = "ok, with warnings"
		case len(c.Noted) > 0:
			state = "noted"
		}
		fmt.Fprintln(w, printable(c.String()+": "+state))
		for _, part := range []struct {
			word  string
			texts []string
		}{{"lost", c.Lost}, {"warning", c.Warnings}, {"noted", c.Noted}} {
			for _, text := range part.texts {
				fmt.Fprintf(w, "    %s: %s\n", part.word, printable(text))
			}
		}
	}
}
