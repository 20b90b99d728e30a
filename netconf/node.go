// SPDX-License-Identifier: Apache-2.0

package netconf

import (
	"net/netip"
	"slices"
	"time"

	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// NodePath is where the node's own settings lie. The file is optional.
const NodePath = "/etc/podfabric/node.json"

// Defaults of the node file.
const (
	DefaultDeadline    = 20 * time.Second
	DefaultKubeletRoot = "/var/lib/kubelet"
)

// Node is /etc/podfabric/node.json: what is true of one node and what its owner allows there. No network configuration and no
// pod can say any of it. ParseNode(nil) gives the defaults.
type Node struct {
	Index         *int         // number of the node in its cluster, from 0; nil: not known
	Rails         map[int]Rail // by number of the rail
	ExpectedRails int          // rails that a pod should see; 0: not said
	Allow         Allow

	// PodMayChooseDevice lets runtimeConfig.deviceID, which a pod's annotation fills, differ from the configuration's.
	PodMayChooseDevice bool
	// OverrideGuards are the functions that may be given away though the node itself uses them.
	OverrideGuards []bus.ID
	KubeletRoot    string
	Delivery       Delivery
	Uverbs         UverbsPolicy
	// Deadline bounds all waits of one verb together, from the start of the process.
	Deadline time.Duration
	Log      Log
}

// Rail is what the node says of one rail.
type Rail struct {
	PCI     pci.Addr     // of the PF; zero: not said
	Subnet  netip.Prefix // this node's alone; invalid: not said
	Gateway netip.Addr   // zero: none
}

// Allow are the node's allow-lists. A nil list allows all, an empty one nothing.
type Allow struct {
	PFs     []pci.Addr
	Masters []string
	Kinds   []Kind
	Subnets []netip.Prefix
}

// Delivery is the way of the hint into the pod.
type Delivery string

// The values of hint.delivery.
const (
	DeliveryVolume Delivery = "volume" // ADD writes it into the pod's emptyDir
	DeliveryAgent  Delivery = "agent"  // podfabricd mounts it
)

// UverbsPolicy is what happens when moving a device would change its uverbs number.
type UverbsPolicy string

// The values of uverbs.
const (
	UverbsRefuse UverbsPolicy = "refuse"
	UverbsAgent  UverbsPolicy = "agent" // podfabricd delivers the device nodes as they are after the move
)

// LogFormat is the form of the log's lines.
type LogFormat string

// The values of log.format.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// Log is the section "log". Standard error is always written.
type Log struct {
	File   string // absolute path; empty: none
	Level  string // debug, info, warn or error
	Format LogFormat
}

// AllowsPF tells whether VFs of the PF, or the PF itself, may be given to pods.
func (n Node) AllowsPF(pf pci.Addr) bool {
	return n.Allow.PFs == nil || slices.Contains(n.Allow.PFs, pf)
}

// AllowsMaster tells whether pods may get a macvlan or ipvlan on the link.
func (n Node) AllowsMaster(name string) bool {
	return n.Allow.Masters == nil || slices.Contains(n.Allow.Masters, name)
}

// AllowsKind tells whether attachments of the kind may be made.
func (n Node) AllowsKind(k Kind) bool {
	return n.Allow.Kinds == nil || slices.Contains(n.Allow.Kinds, k)
}

// AllowsSubnet tells whether every address of p may be given to a pod. Callers that get addresses from another IPAM plugin
// ask once more with each of them, since Parse could not know them.
func (n Node) AllowsSubnet(p netip.Prefix) bool {
	if n.Allow.Subnets == nil {
		return true
	}
	return slices.ContainsFunc(n.Allow.Subnets, func(a netip.Prefix) bool {
		return a.Bits() <= p.Bits() && a.Contains(p.Addr())
	})
}

// Overrides tells whether the guards for devices in use are lifted for the function.
func (n Node) Overrides(id bus.ID) bool { return slices.Contains(n.OverrideGuards, id) }

// deadline is Deadline, with the default for a Node that did not come from ParseNode.
func (n Node) deadline() time.Duration {
	if n.Deadline <= 0 {
		return DefaultDeadline
	}
	return n.Deadline
}
