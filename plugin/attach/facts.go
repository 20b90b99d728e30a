// SPDX-License-Identifier: Apache-2.0

// Package attach decides. From a configuration and the facts of a node it makes the list of steps that attach a device to a
// pod, from recorded and present facts the list that brings it home, and it runs such lists over a small interface. It is
// pure: it makes no system call and reads no clock; what touches the kernel is plugin/kernel.
package attach

import (
	"net/netip"
	"strings"

	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// NS names a network namespace from the plugin's point of view.
type NS string

// The namespaces an attachment knows. Elsewhere is any other: a dead pod's that still lives, or one that cannot be seen.
const (
	Host      NS = "host"
	Pod       NS = "pod"
	Elsewhere NS = "elsewhere"
)

// Place is where a device is and what it is called there.
type Place struct {
	NS   NS     `json:"ns"`
	Name string `json:"name"`
}

// Mode is the RDMA subsystem's namespace mode (rdma system show netns).
type Mode string

// The modes. NoRDMA: the kernel has no RDMA subsystem loaded.
const (
	Exclusive Mode = "exclusive"
	Shared    Mode = "shared"
	NoRDMA    Mode = ""
)

// Facts are what was seen of one function, the node around it and the pod, at one moment. They are plain values and go
// into the record as they are.
type Facts struct {
	Mode     Mode     `json:"mode,omitempty"`
	Function Function `json:"function"`
	Link     *Link    `json:"link,omitempty"` // the function's netdev; nil: seen nowhere, or it has none
	RDMA     *RDMA    `json:"rdma,omitempty"` // the function's RDMA device; nil: it has none
	LinkNS   NetNS    `json:"-"`              // where Link is if that is Elsewhere, by a path of who keeps it; zero: not known
	Soft     *RDMA    `json:"soft,omitempty"` // the soft RoCE device of this attachment; nil: none seen
	// Master is the link at home that the attachment's is on; nil for kinds that move a device whole. With it, Function and RDMA
	// are what is below the master and stays at home, and Link is the attachment's own in the pod.
	Master *Master `json:"master,omitempty"`
	// VF is what the PF's driver holds for the function; nil: not asked for, no VF, or the PF's netdev is away.
	VF *VFState `json:"vf,omitempty"`
	// Siblings are the administrative MACs of the PF's other VFs, by number; nil with VF.
	Siblings map[int]string `json:"-"`
	// Uverbs are the numbers N of every /dev/infiniband/uverbsN on the node, ascending.
	Uverbs []int `json:"uverbs,omitempty"`
	// PodLinks are the interface names in the pod's namespace, sorted; nil when there is no namespace.
	PodLinks []string `json:"podLinks,omitempty"`
	// HostLinks and HostRDMA are the names taken at home, sorted: what a device coming home may collide with.
	HostLinks []string `json:"-"`
	HostRDMA  []string `json:"-"`
}

// Function is a PCI function as the host's sysfs shows it, wherever its devices are.
type Function struct {
	ID     bus.ID   `json:"id"`
	Exists bool     `json:"exists"`
	Driver string   `json:"driver,omitempty"` // "igbvf", "mlx5_core", "vfio-pci"; empty: none bound
	VF     bool     `json:"vf"`
	Number int      `json:"number"`           // VF number below its PF
	PF     pci.Addr `json:"pf,omitzero"`      // of a VF or a sub-function; zero: it is neither
	PFLink string   `json:"pfLink,omitempty"` // the PF's netdev in the host's namespace; empty when it is away
	PFMTU  int      `json:"pfMTU,omitempty"`  // bytes; 0 when the PF's netdev is away
	NUMA   int      `json:"numa"`             // -1: no affinity
	// Inode is that of its folder in sysfs: another function that came to the same address has another one. 0: not known.
	Inode  uint64 `json:"inode,omitempty"`
	NumVFs int    `json:"numVFs,omitempty"` // VFs that a PF has now
	// ESwitch is the mode of the PF's embedded switch, "legacy" or "switchdev"; empty: it has none or does not say. It is asked
	// for together with VF.
	ESwitch string `json:"eswitch,omitempty"`
	// Resets: the function can be reset on its own (/sys/bus/pci/devices/*/reset). It is asked for together with VF.
	Resets bool `json:"-"`
}

// Userspace tells whether the function is bound to a driver that gives it to a program and makes no netdev.
func (f Function) Userspace() bool {
	return strings.Contains(f.Driver, "vfio") || strings.Contains(f.Driver, "uio")
}

// Master is a link at home that macvlans and ipvlans sit on: a PF's, a VLAN on one, a bond of some.
type Master struct {
	Name  string `json:"name"`
	Index int    `json:"index"` // in the host's namespace; kept over renames
	Type  string `json:"type"`  // "ether", "infiniband", as ip(8) prints it
	Kind  string `json:"kind"`  // "device" for hardware, "vlan", "bond"
	MAC   string `json:"mac"`
	MTU   int    `json:"mtu"` // bytes
	Up    bool   `json:"up"`
	// Default: the node's default route leads through it.
	Default bool `json:"default,omitempty"`
	// RDMA are the names of all RDMA devices behind it, through VLANs and bonds, wherever they are, sorted. The one of
	// Facts.RDMA is the first.
	RDMA []string `json:"rdma,omitempty"`
}

// VFState is what a PF's driver holds for one of its VFs.
type VFState struct {
	MAC       string `json:"mac"` // administrative; zeros: none given
	VLAN      int    `json:"vlan"`
	QoS       int    `json:"qos"`
	Proto     string `json:"proto"` // "802.1q", "802.1ad"
	Spoofchk  bool   `json:"spoofchk"`
	Trust     bool   `json:"trust"`
	LinkState string `json:"linkState"` // "auto", "enable", "disable"
	MinTxRate int    `json:"minTxRate"` // Mb/s; 0: no limit
	MaxTxRate int    `json:"maxTxRate"` // Mb/s; 0: no limit
}

// OwnLink is how the link of an attachment is known in the pod when no function tells: by its index, else by its kind and MAC,
// since a pod may rename it, else by kind and name.
type OwnLink struct {
	Kind string `json:"kind"` // "macvlan", "ipvlan"; of a chained one whatever the plugin before made
	Name string `json:"name"`
	MAC  string `json:"mac,omitempty"` // empty: its master's, as an ipvlan's
	// Index is its index in the pod's namespace, once it was seen there: a pod may rename it and give it another MAC. 0: not known.
	Index int `json:"index,omitempty"`
}

// Candidate is a link at home that a selector may mean.
type Candidate struct {
	Name     string
	AltNames []string
	Index    int
	Type     string // "ether", "infiniband"
	Kind     string // "device" for hardware
	MAC      string
	Device   bus.ID   // that it belongs to; zero: none
	Path     string   // of that device in sysfs, as "/sys/devices/pci0000:00/0000:00:1f.6"; empty: none
	VF       bool     // the device is a VF
	RDMA     []string // RDMA devices of that device at home
	Default  bool     // it carries the default route
	Lower    Lower    // the link at home that it sits on; zero: none
}

// Master is the link that a new one of a kind really sits on when it is made on c: the kernel steps over one of the same kind
// (macvlan_common_newlink, ipvlan_link_new), which may go away while what was made on it stays.
func (c Candidate) Master(kind string) Lower {
	if c.Lower.Index != 0 && (c.Kind == kind || kind == "macvlan" && c.Kind == "macvtap") {
		return c.Lower
	}
	return Lower{Name: c.Name, Index: c.Index}
}

// Behind is what was found behind an interface of the pod that another plugin made.
type Behind struct {
	Device bus.ID // the function that it is the netdev of; zero: none
	// Master is the link at home that it sits on; zero: none, or none that can be seen.
	Master Lower
	Kind   string // "device" for hardware, "macvlan", "ipvlan", "vlan", "veth"
	Type   string // "ether", "infiniband"
	MAC    string
}

// Lower names a link at home. The index is what counts, the name is for messages.
type Lower struct {
	Name  string `json:"name"`
	Index int    `json:"index"`
}

// Link is a network device.
type Link struct {
	Place
	Index    int      `json:"index"`          // in its present namespace; changes with every move
	Type     string   `json:"type"`           // "ether", "infiniband", as ip(8) prints it
	Kind     string   `json:"kind,omitempty"` // "device" for hardware, "macvlan", "ipvlan"
	MAC      string   `json:"mac"`            // aa:bb:cc:dd:ee:ff
	MTU      int      `json:"mtu"`            // bytes
	Up       bool     `json:"up"`
	AltNames []string `json:"altNames,omitempty"`
	Traits   *Traits  `json:"traits,omitempty"` // nil: not known, as from an older program, or not a function's own
	// Uppers are the links in the pod that sit on it, wherever it is itself, by index. Moves do not take them off.
	Uppers []Upper `json:"uppers,omitempty"`
	// Addrs are the addresses on it, of every scope, as netip.Prefix.Compare orders them. CHECK needs them of a link in the pod.
	Addrs []netip.Prefix `json:"addrs,omitempty"`
	// InUse says in words what the node itself does with the link: "it carries the default route", "it is a port of bridge
	// br0". Empty: nothing.
	InUse []string `json:"inUse,omitempty"`
}

// Upper is a VLAN, macvlan or the like on a function's netdev.
type Upper struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Index int    `json:"index"`
}

// RDMA is an RDMA device.
type RDMA struct {
	Index     uint32 `json:"index"` // kept for the device's life, over moves and renames
	Name      string `json:"name"`
	NS        NS     `json:"ns"`
	NodeGUID  string `json:"nodeGUID"` // 0254:00ff:fe12:3456, as sysfs prints it; empty when not visible
	Ports     int    `json:"ports"`
	LinkLayer string `json:"linkLayer,omitempty"` // "Ethernet", "InfiniBand"
	Uverbs    int    `json:"uverbs"`              // N of uverbsN; -1: none
	// Beside are the names of other RDMA devices of the same function at home: which of them a pod would need cannot be told.
	Beside []string `json:"beside,omitempty"`
	// Users are the processes that hold the device open, as "ib_write_bw (pid 71)".
	Users []string `json:"users,omitempty"`
}

// RoCEv2 is the type of a GID by which RDMA traffic is routed, as sysfs words it (gid_attrs/types).
const RoCEv2 = "RoCE v2"

// ZeroGUID is the node GUID of a VF whose driver was bound before it had an administrative MAC.
const ZeroGUID = "0000:0000:0000:0000"

// Port is one RDMA port as the pod's own sysfs shows it.
type Port struct {
	Device    string // name in the pod
	Number    int
	LinkLayer string // "Ethernet", "InfiniBand"
	State     string // "ACTIVE", "DOWN", as sysfs words it without the number
	RateMbps  int    // 400000 for 400 Gb/sec
	GIDs      []GID  // entries that are not zero, ascending by index
	TableSize int    // slots in all
}

// GID is one entry of a port's GID table.
type GID struct {
	Index  int        `json:"index"`
	Addr   netip.Addr `json:"addr"`             // ::ffff:a.b.c.d for IPv4, as the kernel keeps it
	Type   string     `json:"type,omitempty"`   // "RoCE v2", "IB/RoCE v1"; empty when the kernel refused to say
	Netdev string     `json:"netdev,omitempty"` // name of the netdev, as it is called in its own namespace; empty when refused
}

// Owner is the identity of an attachment: unique on a node, known on every verb.
type Owner struct {
	ContainerID string `json:"containerID"`
	IfName      string `json:"ifname"`
}

// String gives the form used in file names and messages.
func (o Owner) String() string { return o.ContainerID + "/" + o.IfName }

// NetNS is the identity of a network namespace. The path alone is none: runtimes use it again for another pod. Device and inode are
// one as long as anything holds the namespace; then the kernel gives the inode to the next one at once.
type NetNS struct {
	Path string `json:"path"`
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
	// Cookie is a number that the kernel gives to no other namespace until the node boots again (SO_NETNS_COOKIE). 0: not known, as
	// from a kernel before 5.14 or an older program.
	Cookie uint64 `json:"cookie,omitempty"`
}

// Same tells whether two are one namespace, whatever paths lead to it, as far as both are known.
func (n NetNS) Same(other NetNS) bool {
	return n.Dev == other.Dev && n.Ino == other.Ino && (n.Cookie == other.Cookie || n.Cookie == 0 || other.Cookie == 0)
}

// IsZero tells whether n is the zero value, which stands for "no namespace".
func (n NetNS) IsZero() bool { return n == NetNS{} }

// Query says what Observe is to look at.
type Query struct {
	Device bus.ID
	Soft   string // name of the soft RoCE device; empty: none expected
	VF     bool   // also what the PF's driver holds for the function; some drivers take their time
	// Master: look at what is below this link instead of at Device; zero: none.
	Master Lower
	// Own is the attachment's link in the pod, where Device does not tell which it is; zero: it does.
	Own OwnLink
	// Lost: where the pod has no such link on Master, look for it in every namespace that a process lives in or a path leads to. That
	// takes a while on a node with many pods. nil: do not.
	Lost *Lost
}
