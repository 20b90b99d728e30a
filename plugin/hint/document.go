// SPDX-License-Identifier: Apache-2.0

package hint

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"

	"github.com/podfabric/podfabric/nccl"
	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/printable"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// documentVersion of fabric.json. Within one version fields are only added (docs/fabric.schema.json).
const documentVersion = 1

// Document is fabric.json. Lists are never null.
type Document struct {
	Version  int         `json:"version"`
	Pod      netconf.Pod `json:"pod"`
	Mode     attach.Mode `json:"mode"` // of the node's RDMA subsystem; empty: it has none
	Rails    []Rail      `json:"rails"`
	NCCL     NCCL        `json:"nccl"`
	Warnings []string    `json:"warnings"`
}

// Rail is one attachment in fabric.json, compute or not.
type Rail struct {
	Netdev    string         `json:"netdev"` // in the pod
	Network   string         `json:"network"`
	Link      netconf.Kind   `json:"link"`
	Rail      *int           `json:"rail"`
	Role      netconf.Role   `json:"role"` // settled: compute or other
	PCI       *string        `json:"pci"`
	PF        *string        `json:"pf"`
	Auxiliary *string        `json:"auxiliary"` // sub-function
	Master    *string        `json:"master"`    // link at home that the pod's is on
	VF        *int           `json:"vf"`
	NUMA      *int           `json:"numa"`
	MTU       int            `json:"mtu"` // of the netdev, bytes
	Addresses []netip.Prefix `json:"addresses"`
	RDMA      *Port          `json:"rdma"`
	Warnings  []string       `json:"warnings"`
}

// Port is the RDMA port of a rail in fabric.json.
type Port struct {
	Device    string    `json:"device"`
	Port      int       `json:"port"`
	HCA       string    `json:"hca"` // "mlx5_0:1"
	Uverbs    *int      `json:"uverbs"`
	LinkLayer string    `json:"linkLayer"`
	State     string    `json:"state"`
	RateMbps  int       `json:"rateMbps"`
	MTU       int       `json:"mtu"` // RDMA's active MTU, bytes; 0: unknown
	SoftRoCE  bool      `json:"softRoCE"`
	Shared    bool      `json:"sharedTable"`
	GIDIndex  *int      `json:"gidIndex"` // the RoCE v2 entry of the first address, IPv4 first
	GIDs      []PortGID `json:"gids"`     // the pod's own
	Foreign   int       `json:"foreignGIDs"`
}

// PortGID is one of the pod's own GIDs.
type PortGID struct {
	Index   int        `json:"index"`
	Type    string     `json:"type"`
	Address netip.Addr `json:"address"` // a.b.c.d for IPv4
	GID     string     `json:"gid"`     // as sysfs prints it
}

// NCCL is what nccl.conf says, with the reasons as values.
type NCCL struct {
	Oldest   string         `json:"oldest"` // version that must read it right
	HCAs     []string       `json:"hcas"`
	Settings []nccl.Setting `json:"settings"`
	Notes    []string       `json:"notes"`
	NoRight  *string        `json:"noRight"` // why no setting is right on every rail
}

// render makes the two files.
func (p pod) render() ([]file, error) {
	conf, err := nccl.Render(append([]string{"podfabric hint, version 1"}, p.decision.Comments...), p.decision.Settings)
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", ncclFile, err)
	}
	text, err := json.MarshalIndent(p.document(), "", "  ")
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", fabricFile, err)
	}
	// JSON lets pass what turns the direction of writing; whoever looks at the file on the node has a terminal.
	return []file{{fabricFile, []byte(printable.Text(string(text)) + "\n")}, {ncclFile, conf}}, nil
}

func (p pod) document() Document {
	d := Document{
		Version: documentVersion, Rails: []Rail{}, Warnings: lines(p.decision.Warnings),
		NCCL: NCCL{
			Oldest: p.oldest.String(), HCAs: []string{}, Settings: p.decision.Settings, Notes: lines(p.decision.Comments),
		},
	}
	if d.NCCL.Settings == nil {
		d.NCCL.Settings = []nccl.Setting{}
	}
	if p.decision.NoRight != "" {
		d.NCCL.NoRight = &p.decision.NoRight
	}
	for _, f := range p.attachments {
		d.Pod, d.Mode = f.Pod, f.Mode
		d.Rails = append(d.Rails, f.row())
		if f.Settings.Role == netconf.RoleCompute && f.RDMA != nil {
			d.NCCL.HCAs = append(d.NCCL.HCAs, f.rail().HCA.String())
		}
	}
	return d
}

func (f Fragment) row() Rail {
	r := Rail{
		Netdev: f.Owner.IfName, Network: f.Network, Link: f.Kind, Rail: f.Rail, Role: f.Settings.Role,
		VF: known(f.VF), NUMA: known(f.NUMA), MTU: f.MTU, Addresses: []netip.Prefix{}, Warnings: lines(f.Warnings),
	}
	r.PCI, r.PF, r.Auxiliary, r.Master = address(f.PCI), address(f.PF), text(f.Auxiliary), text(f.Master)
	r.Addresses = append(r.Addresses, f.Addresses...)
	if f.RDMA != nil {
		r.RDMA = f.port()
	}
	return r
}

func (f Fragment) port() *Port {
	d := f.RDMA
	p := &Port{
		Device: d.Device, Port: d.Port, HCA: f.rail().HCA.String(), Uverbs: known(d.Uverbs),
		LinkLayer: d.LinkLayer, State: d.State, RateMbps: d.RateMbps, SoftRoCE: d.Soft, Shared: d.Shared, GIDs: []PortGID{},
	}
	if d.LinkLayer != nccl.EthernetLink {
		p.GIDs, p.Foreign = ownGIDs(d, nil)
		return p
	}
	p.MTU = roceMTU(f.MTU)
	addrs := f.addrs()
	p.GIDs, p.Foreign = ownGIDs(d, addrs)
	for _, a := range addrs {
		for _, g := range p.GIDs {
			if p.GIDIndex == nil && g.Address == a && g.Type == nccl.RoCEv2 {
				p.GIDIndex = &g.Index
			}
		}
	}
	return p
}

// ownGIDs parts the table into the pod's own entries and the number of the others. On a port of the pod's own every entry is; on a shared one only those of its addresses are, since
// of the others even the name of the netdev says nothing (every pod's is net1).
func ownGIDs(d *RDMA, addrs []netip.Addr) ([]PortGID, int) {
	own, foreign := []PortGID{}, 0
	for _, g := range d.GIDs {
		a := g.Addr.Unmap()
		if d.Shared && !slices.Contains(addrs, a) {
			foreign++
			continue
		}
		own = append(own, PortGID{Index: g.Index, Type: g.Type, Address: a, GID: sysfsForm(g.Addr)})
	}
	return own, foreign
}

// sysfsForm writes a GID as the kernel does: eight groups of four digits.
func sysfsForm(a netip.Addr) string {
	return netip.AddrFrom16(a.As16()).StringExpanded()
}

func address(a pci.Addr) *string {
	if a.IsZero() {
		return nil
	}
	return text(a.String())
}

// text turns the empty string of "there is none" into null.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// known turns the -1 of "there is none" into null.
func known(n int) *int {
	if n < 0 {
		return nil
	}
	return &n
}

func lines(list []string) []string {
	return append([]string{}, list...)
}
