// SPDX-License-Identifier: Apache-2.0

// Package netconf turns what a runtime hands to the plugin (network configuration on standard input, CNI_ARGS, runtimeConfig)
// and the node's own file into one validated value. It is pure: it reads bytes and returns values or a *Problem, it opens no
// file and asks no kernel, so that `podfabricctl validate` and the plugin cannot disagree.
package netconf

import (
	"encoding/json"
	"net/netip"
	"time"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"

	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// Kind is what an attachment is made of: the key "link".
type Kind string

// The kinds.
const (
	KindVF      Kind = "vf"      // an SR-IOV virtual function, moved whole
	KindMacvlan Kind = "macvlan" // a macvlan on a master
	KindIPVlan  Kind = "ipvlan"  // an ipvlan (l2) on a master
	KindDevice  Kind = "device"  // a PF, a sub-function or any NIC, moved whole
	KindChained Kind = "chained" // the interface of the plugin before us
)

// Conf is a validated configuration for ADD. Nothing in it is parsed again.
type Conf struct {
	CNIVersion string
	Name       string // of the network
	Kind       Kind
	// Inferred: Kind is KindVF because "deviceID" names a PCI function and there is no "link". Only facts tell a VF from a PF or
	// any other function, which are of KindDevice.
	Inferred bool
	// Device is what to move of KindVF and KindDevice; of KindChained what must be behind the interface. Zero: not named, as a
	// bare number from the shared device plugin.
	Device bus.ID
	// By finds the device of KindDevice that is named in another way than by its identity; zero: Device says it.
	By      Selector
	Master  Selector // KindMacvlan, KindIPVlan: the link to sit on
	Macvlan Macvlan
	VF      VFSettings
	// MAC of the pod's interface as aa:bb:cc:dd:ee:ff, of a VF also the administrative one; empty: as it is, or for a macvlan
	// one made from the owner. It is a unicast address.
	MAC  string
	MTU  MTU
	RDMA RDMA
	Rail *int // number of the rail, 0 to 63; nil when the network says none
	Hint Hint
	IPAM IPAM
	// Previous is what the plugin before has made; nil unless KindChained.
	Previous *types100.Result
	// DeviceInfo is where to write the device-info file (runtimeConfig.CNIDeviceInfoFile), a path below one of the folders that
	// Multus uses for it; empty: nowhere.
	DeviceInfo string
	Request    Request
	Debug      bool // args.cni.debug: one attachment logged in full

	// Warnings are findings that do not stop an ADD: unknown keys, ignored keys. One sentence each.
	Warnings []string
}

// MTU of the pod's interface in bytes. The zero value leaves it as it is.
type MTU struct {
	Bytes  int
	FromPF bool // "pf": whatever the PF has when the pod starts
}

// Selector finds one link of the node's own namespace. Exactly one field beside Key is set, but in the zero value.
type Selector struct {
	Key     string // as it stands in the configuration, for messages: "master", "master.rail", "hwaddr"
	Name    string // of the netdev, or an alternative name
	PCI     pci.Addr
	RDMA    string   // name of an RDMA device
	PFNames []string // patterns of path.Match, one of which the name has to fit
	MAC     string   // aa:bb:cc:dd:ee:ff
	Path    string   // of the device in sysfs, as "/sys/devices/pci0000:00/0000:00:1f.6"
}

// MacvlanMode is the key "mode" of a macvlan, with the kernel's words (include/uapi/linux/if_link.h, enum macvlan_mode).
type MacvlanMode string

// The modes of a macvlan.
const (
	MacvlanBridge   MacvlanMode = "bridge"
	MacvlanPrivate  MacvlanMode = "private"
	MacvlanVEPA     MacvlanMode = "vepa"
	MacvlanPassthru MacvlanMode = "passthru"
)

// Macvlan is what only a macvlan has.
type Macvlan struct {
	Mode       MacvlanMode
	BCQueueLen *int // broadcasts and multicasts that may wait; nil: the kernel's default
}

// RDMAMode says what is to happen to the RDMA device of the function.
type RDMAMode string

// The values of rdma.mode.
const (
	RDMAAuto  RDMAMode = "auto"  // move in an exclusive node, share in a shared one
	RDMAMove  RDMAMode = "move"  // move, and refuse a node in shared mode
	RDMAShare RDMAMode = "share" // leave it, and refuse a node in exclusive mode
	RDMAOff   RDMAMode = "off"   // RDMA is not looked at
)

// Require says how much of RDMA must work before ADD succeeds.
type Require string

// The values of rdma.require. RequireDefault stands for the rule "active if the function has an RDMA device and the
// attachment an address, else no", which needs facts and so is settled by attach.
const (
	RequireDefault Require = ""
	RequireActive  Require = "active" // a RoCE v2 GID of each address and an active port
	RequireGID     Require = "gid"    // the GID alone
	RequireNo      Require = "no"
)

// RDMA is the section "rdma".
type RDMA struct {
	Mode     RDMAMode
	Require  Require
	SoftRoCE bool          // make an rxe device on the pod's interface
	Wait     time.Duration // for the GID and the port, both together
}

// Role says whether an attachment enters NCCL's device list.
type Role string

// The values of hint.role. RoleDefault is settled over all attachments of a pod: compute if the rail is set, or if no
// attachment of the pod says rail or role.
const (
	RoleDefault Role = ""
	RoleCompute Role = "compute"
	RoleOther   Role = "other"
)

// NoRight says what happens when no setting makes every rail come out right.
type NoRight string

// The values of hint.noRight.
const (
	NoRightWarn NoRight = "warn"
	NoRightFail NoRight = "fail"
)

// Hint is the section "hint".
type Hint struct {
	Role       Role
	Volume     string // name of the pod's emptyDir; default "podfabric"
	Require    bool   // ADD fails when the hint cannot be delivered into the pod
	NCCL       string // oldest NCCL that must read it right, as "2.21"; default "2.21"
	NoRight    NoRight
	FailClosed bool // NCCL_NET=IB is written, so that NCCL stops rather than fall back to TCP
	// TrafficClass for NCCL_IB_TC, nil to say nothing.
	TrafficClass *int
}

// IPAMKind is who hands out addresses.
type IPAMKind string

// The kinds of address management.
const (
	IPAMNone     IPAMKind = ""
	IPAMRange    IPAMKind = "range"
	IPAMStatic   IPAMKind = "static"
	IPAMDelegate IPAMKind = "delegate" // any other CNI IPAM plugin, called as a process
)

// IPAM is the section "ipam".
type IPAM struct {
	Kind IPAMKind
	// Ranges: the outer list gives one address each, the inner one its alternatives (host-local's grammar). They are already
	// cut down to this node's block.
	Ranges [][]Range
	Static []Address
	Routes []Route
	// DefaultRoute: the configuration asks in so many words for a default route ("defaultRoute": true). Without it Parse
	// refuses one in Routes; a caller does the same with what a delegate answers.
	DefaultRoute bool
	// Want are addresses that the runtime asks for (capability "ips"); each lies in one of Ranges. Empty: any will do.
	Want []netip.Addr
	DNS  types.DNS
	// Plugin is the delegate's type, and Delegate the whole configuration as it came, all fields passed on.
	Plugin   string
	Delegate json.RawMessage
}

// Range is a run of addresses of one subnet that this node may hand out.
type Range struct {
	Subnet     netip.Prefix // gives the prefix length of the address, and the pool that leases are kept by
	First      netip.Addr   // inclusive
	Last       netip.Addr   // inclusive
	Gateway    netip.Addr   // zero: none
	Exclude    []netip.Prefix
	NodeScoped bool // the subnet is this node's alone ("scope": "node")
}

// Address is one address of the pod's interface.
type Address struct {
	Prefix  netip.Prefix // address and length
	Gateway netip.Addr   // zero: none
}

// Route is one route of the pod's interface.
type Route struct {
	Dst netip.Prefix
	Via netip.Addr // zero: on the link
}

// Raw is what a runtime hands to the plugin, unread: the bytes on standard input and the CNI_ variables.
type Raw struct {
	Stdin       []byte
	ContainerID string // CNI_CONTAINERID
	NetNS       string // CNI_NETNS
	IfName      string // CNI_IFNAME
	Args        string // CNI_ARGS
	Path        string // CNI_PATH
}

// Request is the attachment that the runtime asks for.
type Request struct {
	ContainerID string
	IfName      string
	NetNS       string // path; may be empty on DEL
	Path        string // CNI_PATH, list of folders of plugins
	Args        string // CNI_ARGS as it came, for a delegate
	Pod         Pod
}

// Pod is what CNI_ARGS says of the pod. It is used for messages and for the place of the hint, never as an identity.
type Pod struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid,omitempty"` // empty outside Kubernetes
}

// String gives namespace/name, or a word that reads well in a message when the runtime gave no names.
func (p Pod) String() string {
	switch {
	case p.Name == "":
		return "(no pod named)"
	case p.Namespace == "":
		return p.Name
	}
	return p.Namespace + "/" + p.Name
}

// Teardown is all that DEL, CHECK, GC and STATUS read of a configuration; everything else comes from the record, so that no
// key can keep a pod from going away.
type Teardown struct {
	CNIVersion string
	Name       string
	IPAM       IPAM // Kind, Plugin and Delegate only
	Request    Request
	// Device is what "deviceID" or "pciBusID" names; zero: nothing that is a device.
	Device bus.ID
	// Kind is the kind that "link" names; empty: it names none.
	Kind Kind
	// Alone: the runtime would have passed a "prevResult" and did not, so that no plugin came before podfabric. Runtimes pass one
	// to DEL from version 0.4.0 on (CNI specification, section DEL), also to the only plugin of a list: its own.
	Alone bool
	// Attachments are those that GC must leave ("cni.dev/valid-attachments"); nil: the runtime gave no list, and GC does
	// nothing.
	Attachments []Attachment
}

// Attachment names one attachment of a network on a node.
type Attachment struct {
	ContainerID string
	IfName      string
}
