// SPDX-License-Identifier: Apache-2.0

// Package hint tells a pod which RDMA devices and GIDs are its own. ADD gives it one fragment for each attachment; from those
// of one sandbox it renders fabric.json and nccl.conf, beside the pod's other state on the host and in the pod's emptyDir. It
// decides nothing about NCCL (package nccl does) and trusts nothing that stands in the emptyDir, which the pod can write.
package hint

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// Sentinels of this package.
var (
	// ErrFragment is wrapped when a fragment on disk is not one that this version can read.
	ErrFragment = errors.New("not a hint fragment of version 1")
	// ErrConflict is wrapped when two networks of one pod ask for different hints.
	ErrConflict = errors.New("networks of one pod disagree about the hint")
	// ErrNoRight is wrapped when no setting of NCCL is right on every rail and the network wants that to fail.
	ErrNoRight = errors.New("no NCCL setting is right on every rail")
	// ErrUndelivered is wrapped when the hint cannot reach the pod and the network requires it to.
	ErrUndelivered = errors.New("the hint cannot be delivered into the pod")
	// ErrName is wrapped when a pod, container or interface name cannot be a file name.
	ErrName = errors.New("name cannot be a file name")
)

const fragmentVersion = 1

// Fragment is what ADD knows of one attachment. It is kept on the host only, since on a shared port it names the addresses of
// other pods.
type Fragment struct {
	Version   int            `json:"version"`
	Owner     attach.Owner   `json:"owner"`
	Pod       netconf.Pod    `json:"pod"`
	Network   string         `json:"network"`
	Kind      netconf.Kind   `json:"link"`
	Rail      *int           `json:"rail,omitempty"`
	PCI       pci.Addr       `json:"pci"`                 // of the device, or of the one below the master; zero: none
	Auxiliary string         `json:"auxiliary,omitempty"` // of a sub-function, as "mlx5_core.sf.4"
	Master    string         `json:"master,omitempty"`    // link at home that the pod's is on
	PF        pci.Addr       `json:"pf"`                  // zero: not a VF
	VF        int            `json:"vf"`                  // number below its PF; -1: not a VF
	NUMA      int            `json:"numa"`                // -1: no affinity
	MTU       int            `json:"mtu"`                 // of the netdev, bytes
	Mode      attach.Mode    `json:"mode,omitempty"`
	Addresses []netip.Prefix `json:"addresses,omitempty"`
	RDMA      *RDMA          `json:"rdma,omitempty"` // nil: no RDMA device, or none looked at
	Settings  Settings       `json:"hint"`
	Warnings  []string       `json:"warnings,omitempty"`
}

// RDMA is the RDMA device of an attachment and its only port.
type RDMA struct {
	Device    string `json:"device"` // name in the pod
	Port      int    `json:"port"`
	Uverbs    int    `json:"uverbs"` // N of /dev/infiniband/uverbsN; -1: none
	LinkLayer string `json:"linkLayer"`
	State     string `json:"state"`
	RateMbps  int    `json:"rateMbps"`
	Soft      bool   `json:"softRoCE"`
	Shared    bool   `json:"sharedTable"` // the GID table can hold other pods' entries
	GIDs      []GID  `json:"gids,omitempty"`
	TableSize int    `json:"gidTableSize"`
}

// GID is one entry of the port's table, another pod's on a shared port.
type GID struct {
	Index int        `json:"index"`
	Addr  netip.Addr `json:"addr"`
	Type  string     `json:"type,omitempty"` // empty: the kernel refused to say
}

// Settings is the section "hint" of the attachment's network.
type Settings struct {
	Role         netconf.Role    `json:"role,omitempty"`
	Volume       string          `json:"volume,omitempty"`
	Require      bool            `json:"require,omitempty"`
	NCCL         string          `json:"nccl,omitempty"` // oldest version, as "2.21"; empty: that one
	NoRight      netconf.NoRight `json:"noRight,omitempty"`
	FailClosed   bool            `json:"failClosed,omitempty"`
	TrafficClass *int            `json:"trafficClass,omitempty"`
}

// Seen is what a fragment is made of: the configuration, and the facts and ports after the attachment was made.
type Seen struct {
	Conf     netconf.Conf
	Facts    attach.Facts   // observed with the attachment in place
	Ports    []attach.Port  // of the attachment's RDMA device as the pod's sysfs shows them; nil: not looked at
	Addrs    []netip.Prefix // of the pod's interface
	Warnings []string       // findings of this ADD that the pod's owner should read
}

// NewFragment brings together what a hint needs.
func NewFragment(s Seen) Fragment {
	c, fn := s.Conf, s.Facts.Function
	f := Fragment{
		Version: fragmentVersion,
		Owner:   attach.Owner{ContainerID: c.Request.ContainerID, IfName: c.Request.IfName},
		Pod:     c.Request.Pod, Network: c.Name, Kind: c.Kind, Rail: c.Rail,
		PCI: fn.ID.PCI, Auxiliary: fn.ID.Aux, PF: fn.PF, VF: -1, NUMA: fn.NUMA,
		Mode: s.Facts.Mode, Addresses: s.Addrs,
		Settings: Settings{
			Role: c.Hint.Role, Volume: c.Hint.Volume, Require: c.Hint.Require, NCCL: c.Hint.NCCL,
			NoRight: c.Hint.NoRight, FailClosed: c.Hint.FailClosed, TrafficClass: c.Hint.TrafficClass,
		},
		Warnings: append(slices.Clone(c.Warnings), s.Warnings...),
	}
	if fn.VF {
		f.VF = fn.Number
	}
	if s.Facts.Master != nil {
		f.Master = s.Facts.Master.Name
	}
	if s.Facts.Link != nil {
		f.MTU = s.Facts.Link.MTU
	}
	dev := s.Facts.RDMA
	if c.RDMA.SoftRoCE {
		dev = s.Facts.Soft
	}
	if dev != nil && len(s.Ports) > 0 && c.RDMA.Mode != netconf.RDMAOff {
		f.RDMA = newRDMA(*dev, s.Ports[0], c, s.Facts.Master != nil && !c.RDMA.SoftRoCE)
	}
	return f
}

func newRDMA(dev attach.RDMA, port attach.Port, c netconf.Conf, shared bool) *RDMA {
	r := &RDMA{
		Device: port.Device, Port: port.Number, Uverbs: dev.Uverbs,
		LinkLayer: port.LinkLayer, State: port.State, RateMbps: port.RateMbps,
		Soft: c.RDMA.SoftRoCE, Shared: shared,
		TableSize: port.TableSize,
	}
	for _, g := range port.GIDs {
		r.GIDs = append(r.GIDs, GID{Index: g.Index, Addr: g.Addr, Type: g.Type})
	}
	return r
}

// DecodeFragment reads a fragment from disk. Its errors wrap ErrFragment.
func DecodeFragment(text []byte) (Fragment, error) {
	var f Fragment
	if err := json.Unmarshal(text, &f); err != nil {
		return Fragment{}, fmt.Errorf("decode hint fragment: %w: %w", ErrFragment, err)
	}
	if f.Version != fragmentVersion {
		return Fragment{}, fmt.Errorf("decode hint fragment of version %d: %w", f.Version, ErrFragment)
	}
	return f, nil
}
