// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/kernel"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/rdmans"
	"github.com/podfabric/podfabric/rdmans/sysfs"
)

// shower is what this verb needs of a node.
type shower interface {
	Mode() (rdmans.Mode, error)
	Inventory(ctx context.Context) ([]kernel.Device, error)
	AtHome() ([]sysfs.Function, error)
	Records() ([]record.Record, []error)
	Unrecorded(ctx context.Context) ([]plugin.Unrecorded, error)
	Gone(ctx context.Context, rec record.Record) (string, error)
	Room() error
	Privileged() bool
	Now() time.Time
}

func newShow(n shower, s streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "list the node's devices and where they are, the RDMA mode, and the attachments of pods",
		Long: "show lists SR-IOV and RDMA devices in whatever network namespace they are, with the pod that has them or the processes that\n" +
			"hold that namespace, the RDMA mode, and what is recorded of attachments. Without root it sees only what is at home.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, err := look(cmd.Context(), n)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(s.out, v)
			}
			for _, w := range v.Warnings {
				fmt.Fprintln(s.err, "podfabricctl:", printable(w))
			}
			return v.print(s.out)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// look collects everything. Without root it leaves out what it must not see and says so.
func look(ctx context.Context, n shower) (nodeView, error) {
	mode, err := modeWord(n)
	if err != nil {
		return nodeView{}, err
	}
	v := nodeView{Mode: mode, Devices: []deviceView{}, Attachments: []attachmentView{}, Warnings: []string{}}
	var k known
	var devices []kernel.Device
	if n.Privileged() {
		k = v.recorded(ctx, n)
		devices, err = n.Inventory(ctx)
	} else {
		v.Warnings = append(v.Warnings, "run it as root: devices in pods, their owners and all attachments are missing here")
		devices, err = atHome(n)
	}
	if err != nil {
		return nodeView{}, err
	}
	for _, r := range k.records {
		a := viewAttachment(r, n.Now())
		if r.State == record.Done || r.State == record.Intent {
			gone, err := n.Gone(ctx, r)
			if err != nil {
				v.Warnings = append(v.Warnings, err.Error())
			}
			a.Gone = orNull(gone)
		}
		v.Attachments = append(v.Attachments, a)
	}
	for _, d := range devices {
		v.Devices = append(v.Devices, v.viewDevice(d, k.records))
	}
	return v, nil
}

// recorded gives what is known of attachments, and adds the warnings.
func (v *nodeView) recorded(ctx context.Context, n shower) known {
	records, errs := n.Records()
	lost, err := n.Unrecorded(ctx)
	if err != nil {
		errs = append(errs, err)
	}
	k := gather(records, errs, lost)
	for _, err := range k.errs {
		v.Warnings = append(v.Warnings, err.Error())
	}
	for _, r := range k.records {
		switch r.State {
		case unrecorded:
			v.Warnings = append(v.Warnings, fmt.Sprintf("device %s of pod %s (container %s, interface %s): %s",
				r.Device, r.Pod, r.Owner.ContainerID, r.Owner.IfName, k.said[r.Owner]))
		case unreadable:
			v.Warnings = append(v.Warnings, k.said[r.Owner])
		case record.Intent, record.Done, record.Deleting, record.Returning:
		}
	}
	if err := n.Room(); err != nil {
		v.Warnings = append(v.Warnings, "every ADD will be refused: "+err.Error())
	}
	return k
}

// modeWord is the mode, "none" without an RDMA subsystem.
func modeWord(n interface{ Mode() (rdmans.Mode, error) }) (string, error) {
	mode, err := n.Mode()
	if errors.Is(err, rdmans.ErrNoRDMA) {
		return "none", nil
	}
	return string(mode), err
}

// atHome is an inventory of what any user can see.
func atHome(n shower) ([]kernel.Device, error) {
	functions, err := n.AtHome()
	if err != nil {
		return nil, err
	}
	var out []kernel.Device
	home := kernel.Where{NetNS: kernel.HostNS}
	for _, fn := range functions {
		if !fn.VF() && fn.TotalVFs == 0 && len(fn.RDMA)+len(fn.Uverbs) == 0 {
			continue
		}
		d := kernel.Device{Function: fn}
		for _, name := range fn.Net {
			d.Links = append(d.Links, kernel.LinkAt{Where: home, Name: name})
		}
		for _, u := range fn.Uverbs {
			at := kernel.RDMAAt{Device: rdmans.Device{Name: u.Device}, Uverbs: u.Number}
			for _, name := range fn.RDMA {
				if name == u.Device {
					at.Where = home
				}
			}
			d.RDMA = append(d.RDMA, at)
		}
		out = append(out, d)
	}
	return out, nil
}

// ownerOf finds the attachment that has a device.
func ownerOf(d kernel.Device, records []record.Record) *record.Record {
	var owner *record.Record
	for i, r := range records {
		if !has(r, d) {
			continue
		}
		// A record that only waits for something of a former owner names the device too.
		if owner == nil || r.State != record.Returning && owner.State == record.Returning {
			owner = &records[i]
		}
	}
	return owner
}

// has tells whether a record is of a device.
func has(r record.Record, d kernel.Device) bool {
	if !d.PCI.IsZero() {
		return r.Device == d.ID()
	}
	return slices.ContainsFunc(d.RDMA, func(rdma kernel.RDMAAt) bool { return r.Soft != "" && r.Soft == rdma.Name })
}

// podOf finds the pod whose namespace a place is, and tells whether the path by which the runtime knew it still leads there. Where
// it does not, the pod is gone, and others keep its namespace.
func podOf(w kernel.Where, records []record.Record) (*record.Record, bool) {
	if w.NetNS == kernel.HostNS || w.NetNS == "" {
		return nil, false
	}
	paths := map[string]bool{plain(w.NetNS): true}
	for _, h := range w.Holders {
		if h.Mount != "" {
			paths[plain(h.Mount)] = true
		}
		if h.PID != 0 && h.By == "" {
			paths[fmt.Sprintf("/proc/%d/ns/net", h.PID)] = true
		}
	}
	for i, r := range records {
		if paths[plain(r.NetNS.Path)] {
			return &records[i], true
		}
		if w.NetNS == (rdmans.ID{Ino: r.NetNS.Ino}).String() {
			return &records[i], false
		}
	}
	return nil, false
}

// plain gives one name to the two that most systems have for /run.
func plain(path string) string {
	if rest, ok := strings.CutPrefix(path, "/var/run/"); ok {
		return "/run/" + rest
	}
	return path
}
