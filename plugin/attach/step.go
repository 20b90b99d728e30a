// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"net/netip"

	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// Step is one change as data. Applying it makes exactly one state-changing system call, and none when the state after it
// already holds. A step holds the state before and after, so that its reverse needs no look at the system.
type Step interface {
	Reverse() Step  // nil when there is nothing to put back
	String() string // one line; logs and golden files hold it
	isStep()        // keeps the list of steps in this package, so that every one has a reverse and a test
}

// MoveLink moves the netdev of a PCI function between namespaces, renames it and sets its MTU, in one RTM_NEWLINK. When the
// namespaces are equal it is a rename, when the places are it sets the MTU alone. The kernel may fail it half done, with the
// netdev in the new namespace under its old name, so applying it finds the netdev by its PCI parent in either namespace, under
// whatever name. A move takes a link down and its addresses off (style.md M4, M5).
type MoveLink struct {
	Device   bus.ID
	From, To Place
	MTU      [2]int // bytes, before and after; 0 in MTU[1] leaves it
}

// AddLink makes a macvlan or ipvlan on a link at home, in the pod from the start and under its name there: nothing is ever seen
// of it at home. A name that is taken leaves nothing behind.
type AddLink struct {
	Kind       string // "macvlan", "ipvlan"
	Master     Lower
	Link       Place
	Mode       string // of a macvlan: "bridge", "private", "vepa", "passthru"; of an ipvlan: "l2"
	MAC        string // empty: the master's, as an ipvlan has and a macvlan in mode passthru
	MTU        int    // bytes; 0: the master's
	BCQueueLen int    // 0: the kernel's default
}

// DelLink removes a link made by AddLink, or by a pod on its device, under whatever name it has by now: it is known by its index, else by its kind and MAC.
type DelLink struct {
	Kind   string
	Master Lower
	Link   Place
	MAC    string // empty: its kind, name and master tell
	Index  int    // of the link, where it was seen; kind and index tell then, also when its master is not at home any more. 0: not known
	In     NetNS  // where Link is Elsewhere: the namespace that it was seen in. Once that is gone, so is the link
}

// VFSetting is one thing that a PF's driver keeps for a VF. Each has a netlink attribute of its own (IFLA_VF_*).
type VFSetting string

// The settings. VFVLAN is VLAN, QoS and protocol, VFRate both rates: the kernel sets them together.
const (
	VFVLAN      VFSetting = "vlan"
	VFMAC       VFSetting = "mac"
	VFRate      VFSetting = "rate"
	VFSpoofchk  VFSetting = "spoofchk"
	VFTrust     VFSetting = "trust"
	VFLinkState VFSetting = "link_state"
)

// SetVF sets one thing of a VF through its PF and reads it back, since drivers say yes to what they do not do. It needs no
// namespace of a pod.
type SetVF struct {
	PF       pci.Addr
	Number   int
	What     VFSetting
	From, To VFState // of which What counts
}

// ResetFunction makes a function-level reset.
type ResetFunction struct{ Device bus.ID }

// MoveRDMA moves an RDMA device between namespaces. Soft names a soft RoCE device, which has no PCI function and no index
// that could be known beforehand; otherwise Index identifies the device, and GUID guards against another one having
// taken its place.
type MoveRDMA struct {
	Index    uint32
	GUID     string
	Soft     string
	Name     string // for messages only
	From, To NS
}

// RenameRDMA gives an RDMA device back the name it had: the kernel calls it ibdevN when the name was taken on return.
type RenameRDMA struct {
	Index    uint32
	NS       NS
	From, To string
}

// AddSoftRoCE makes an rxe device on the pod's interface. The kernel makes it in the initial namespace whatever the caller's.
type AddSoftRoCE struct {
	Name string
	Link Place // netdev below it, in the pod
}

// DelSoftRoCE removes an rxe device wherever it is.
type DelSoftRoCE struct{ Name string }

// SetSysctl writes one key below /proc/sys in the namespace. Where the kernel has no IPv6 at all, accept_ra and autoconf are
// off already.
type SetSysctl struct {
	NS       NS
	Key      string // "net/ipv6/conf/net1/accept_ra"
	From, To string // From is empty when it is not known, as of an interface that is still to come; then nothing is put back
}

// SetMAC sets the effective MAC of a link.
type SetMAC struct {
	Link     Place
	From, To string
}

// SetAltName gives a link an alternative name or takes it away. These share one table with names, and stay with a link over moves.
type SetAltName struct {
	Link     Place
	Name     string
	From, To bool // whether it has the name
}

// SetTraits sets those traits of a link that differ, in one RTM_NEWLINK. An XDP program is taken away but never given.
type SetTraits struct {
	Link     Place
	From, To Traits
}

// SetUp sets a link's administrative state.
type SetUp struct {
	Link     Place
	From, To bool
}

// AddAddr puts an address on a link; IPv6 without duplicate address detection, since whoever hands out addresses owns them.
type AddAddr struct {
	Link Place
	Addr netip.Prefix
}

// DelAddr takes an address off a link; a link that is not there has none.
type DelAddr struct {
	Link Place
	Addr netip.Prefix
}

// AddRoute adds a route through a link to the main table.
type AddRoute struct {
	Link Place
	Dst  netip.Prefix
	Via  netip.Addr // zero: on the link
}

// DelRoute removes a route through a link; a link that is not there has none.
type DelRoute struct {
	Link Place
	Dst  netip.Prefix
	Via  netip.Addr
}

// Kernel applies steps to a machine: the real one (plugin/kernel) or a stateful fake (attachtest).
type Kernel interface {
	// Apply ensures the state after s. It returns nil when that state holds already, and an error that wraps ErrConflict when
	// the object of s is not where s has it before or after.
	Apply(ctx context.Context, s Step) error
}
