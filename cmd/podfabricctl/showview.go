// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/podfabric/podfabric/plugin/kernel"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/rdmans"
)

// nodeView is the output of `show --json`. Lists are never null; docs/cli.md describes the fields.
type nodeView struct {
	Mode        string           `json:"mode"` // exclusive, shared, none
	Devices     []deviceView     `json:"devices"`
	Attachments []attachmentView `json:"attachments"`
	Warnings    []string         `json:"warnings"`
}

type deviceView struct {
	PCI       *string    `json:"pci"`       // null: a sub-function, or a device of software
	Auxiliary *string    `json:"auxiliary"` // of a sub-function, as mlx5_core.sf.4
	Type      string     `json:"type"`      // pf, vf, sf, function, soft
	PF        *string    `json:"pf"`        // null unless vf or sf
	VF        *int       `json:"vf"`        // number below the PF; null unless vf
	NUMA      *int       `json:"numa"`      // null: no affinity
	Driver    *string    `json:"driver"`
	TotalVFs  int        `json:"totalVFs"`
	NumVFs    int        `json:"numVFs"`
	Netdevs   []linkView `json:"netdevs"`
	RDMA      []rdmaView `json:"rdma"`
	Owner     *ownerView `json:"owner"` // the attachment that has it; null: none
}

type placeView struct {
	NetNS   *string  `json:"netns"` // "host", a path, or net:[inode]; null: it cannot be seen
	Pod     *string  `json:"pod"`   // namespace/name; null: no attachment is recorded in that namespace
	Holders []string `json:"holders"`
	gone    bool     // the pod's runtime has let go of the namespace, so that the holders are what keeps it
}

type linkView struct {
	Name string  `json:"name"`
	MAC  *string `json:"mac"`
	MTU  *int    `json:"mtu"` // bytes
	Up   bool    `json:"up"`
	placeView
}

type rdmaView struct {
	Name     string  `json:"name"`
	Index    *uint32 `json:"index"` // null where the device cannot be seen
	NodeGUID *string `json:"nodeGUID"`
	Uverbs   *int    `json:"uverbs"` // N of uverbsN
	placeView
}

type ownerView struct {
	Pod         string `json:"pod"`
	Network     string `json:"network"`
	ContainerID string `json:"containerID"`
	Interface   string `json:"interface"`
	State       string `json:"state"`
	// Gone: what it hangs on and is no more, "pod" or "function"; null: nothing, or its state says enough.
	Gone *string `json:"gone"`
}

type attachmentView struct {
	ownerView
	Device     string     `json:"device"`
	Kind       string     `json:"kind"`
	NetNS      string     `json:"netns"`
	Addresses  []string   `json:"addresses"`
	RDMA       string     `json:"rdma"`    // moved, soft, stays, none, unknown
	Created    *time.Time `json:"created"` // null, as the age is, without a record that can be read
	AgeSeconds *int64     `json:"ageSeconds"`
	Warnings   []string   `json:"warnings"`
}

func viewOwner(r record.Record) ownerView {
	return ownerView{
		Pod: r.Pod.String(), Network: r.Network, ContainerID: r.Owner.ContainerID, Interface: r.Owner.IfName, State: string(r.State),
	}
}

func (v nodeView) viewDevice(d kernel.Device, records []record.Record) deviceView {
	out := deviceView{
		Type: "function", Driver: orNull(d.Driver), TotalVFs: d.TotalVFs, NumVFs: d.NumVFs, Netdevs: []linkView{}, RDMA: []rdmaView{},
	}
	if d.NUMA >= 0 {
		out.NUMA = &d.NUMA
	}
	switch {
	case d.PCI.IsZero():
		out.Type = "soft"
	case d.Aux != "":
		out.Type, out.Auxiliary, out.PF = "sf", &d.Aux, orNull(d.PCI.String())
	case d.VF():
		out.Type, out.PF, out.VF = "vf", orNull(d.PF.String()), &d.Number
	case d.TotalVFs > 0:
		out.Type = "pf"
	}
	if !d.PCI.IsZero() && d.Aux == "" {
		out.PCI = orNull(d.PCI.String())
	}
	for _, l := range d.Links {
		out.Netdevs = append(out.Netdevs, linkView{
			Name: l.Name, MAC: orNull(l.MAC), MTU: orNull(l.MTU), Up: l.Up, placeView: viewPlace(l.Where, records),
		})
	}
	for _, r := range d.RDMA {
		rv := rdmaView{Name: r.Name, NodeGUID: orNull(r.NodeGUID), placeView: viewPlace(r.Where, records)}
		if rv.NodeGUID != nil {
			rv.Index = &r.Index
		}
		if r.Uverbs >= 0 {
			rv.Uverbs = &r.Uverbs
		}
		out.RDMA = append(out.RDMA, rv)
	}
	if r := ownerOf(d, records); r != nil {
		owner := viewOwner(*r)
		for _, a := range v.Attachments {
			if a.ContainerID == owner.ContainerID && a.Interface == owner.Interface {
				owner.Gone = a.Gone
			}
		}
		out.Owner = &owner
	}
	return out
}

func viewPlace(w kernel.Where, records []record.Record) placeView {
	v := placeView{NetNS: orNull(w.NetNS), Holders: holders(w.Holders)}
	if r, lives := podOf(w, records); r != nil {
		v.Pod, v.gone = orNull(r.Pod.String()), !lives
	}
	return v
}

func holders(list []rdmans.Holder) []string {
	out := []string{}
	for _, h := range list {
		out = append(out, h.String())
	}
	return out
}

func viewAttachment(r record.Record, now time.Time) attachmentView {
	v := attachmentView{
		ownerView: viewOwner(r), Device: r.Subject(), Kind: string(r.Kind), NetNS: r.NetNS.Path, Addresses: []string{},
		Warnings: []string{}, RDMA: "none",
	}
	if !r.Created.IsZero() {
		seconds := int64(now.Sub(r.Created).Seconds())
		v.Created, v.AgeSeconds = &r.Created, &seconds
	}
	for _, a := range r.Addresses {
		v.Addresses = append(v.Addresses, a.String())
	}
	v.Warnings = append(v.Warnings, r.Warnings...)
	switch {
	case r.State == unreadable, r.State == record.Intent && r.Soft == "" && r.Before.RDMA != nil:
		v.RDMA = "unknown" // whether it was moved is written down at the end of ADD
	case r.Soft != "":
		v.RDMA = "soft"
	case r.Moved:
		v.RDMA = "moved"
	case r.Before.RDMA != nil:
		v.RDMA = "stays"
	}
	return v
}

// print writes the tables.
func (v nodeView) print(w io.Writer) error {
	fmt.Fprintf(w, "RDMA mode: %s\n\n", v.Mode)
	rows := [][]string{{"PCI", "TYPE", "DRIVER", "NETDEV", "RDMA", "UVERBS", "NODE GUID", "WHERE", "OWNER"}}
	for _, d := range v.Devices {
		rows = append(rows, d.row())
	}
	if len(v.Devices) == 0 {
		fmt.Fprintln(w, "no SR-IOV and no RDMA devices")
	} else if err := table(w, rows); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if len(v.Attachments) == 0 {
		fmt.Fprintln(w, "no attachments")
		return nil
	}
	rows = [][]string{{"POD", "NETWORK", "INTERFACE", "DEVICE", "RDMA", "STATE", "ADDRESSES", "AGE"}}
	for _, a := range v.Attachments {
		rows = append(rows, []string{
			a.Pod, a.Network, a.Interface, a.Device, a.RDMA, a.state(), strings.Join(a.Addresses, " "), age(a.AgeSeconds),
		})
	}
	return table(w, rows)
}

func (d deviceView) row() []string {
	var names, rdma, uverbs, guids, where []string
	add := func(p placeView) {
		if text := p.String(); !slices.Contains(where, text) {
			where = append(where, text)
		}
	}
	for _, l := range d.Netdevs {
		names = append(names, l.Name)
		add(l.placeView)
	}
	for _, r := range d.RDMA {
		rdma = append(rdma, r.Name)
		if r.Uverbs != nil {
			uverbs = append(uverbs, strconv.Itoa(*r.Uverbs))
		}
		if r.NodeGUID != nil {
			guids = append(guids, *r.NodeGUID)
		}
		add(r.placeView)
	}
	kind, owner := d.Type, ""
	if d.VF != nil {
		kind = fmt.Sprintf("vf %d", *d.VF)
	}
	if d.Owner != nil {
		owner = fmt.Sprintf("%s %s", d.Owner.Pod, d.Owner.Interface)
		if state := strings.TrimPrefix(d.Owner.state(), string(record.Done)+", "); state != string(record.Done) {
			owner += " (" + state + ")"
		}
	}
	join := func(s []string) string { return strings.Join(s, " ") }
	return []string{
		deref(d.PCI) + deref(d.Auxiliary), kind, deref(d.Driver), join(names), join(rdma), join(uverbs), join(guids), strings.Join(where, "; "), owner,
	}
}

// state is what the tables show of how an attachment stands.
func (o ownerView) state() string {
	if o.Gone == nil {
		return o.State
	}
	return o.State + ", " + *o.Gone + " gone"
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// String is what the table shows of a place: the pod, else the namespace with who holds it; both when the pod itself is gone.
func (p placeView) String() string {
	switch {
	case p.NetNS == nil:
		return "not to be seen"
	case p.Pod != nil && p.gone:
		return fmt.Sprintf("%s of pod %s, which is gone (%s)", *p.NetNS, *p.Pod, strings.Join(p.Holders, ", "))
	case p.Pod != nil:
		return "pod " + *p.Pod
	case len(p.Holders) > 0 && p.Holders[0] != *p.NetNS:
		return fmt.Sprintf("%s (%s)", *p.NetNS, strings.Join(p.Holders, ", "))
	}
	return *p.NetNS
}

// age is short, as kubectl has it.
func age(seconds *int64) string {
	if seconds == nil {
		return ""
	}
	d := time.Duration(*seconds) * time.Second
	for _, u := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if d >= 2*u.length {
			return strconv.Itoa(int(d/u.length)) + u.name
		}
	}
	return strconv.FormatInt(max(*seconds, 0), 10) + "s"
}
