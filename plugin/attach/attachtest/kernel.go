// SPDX-License-Identifier: Apache-2.0

// Package attachtest is a machine in memory on which attachments are made and taken back: namespaces, PCI functions, netdevs,
// RDMA devices with their indices and uverbs numbers, addresses, routes, sysctls and GID tables. It behaves as the kernel was
// seen to (style.md M1 to M8, review.md part I), half-done moves and returns from dead namespaces included, can fail or be
// killed at any step, and prints all of its state, so that a test compares before and after. It is for tests only and touches
// nothing real.
package attachtest

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// OwnNetNS is a path that leads to the network namespace of the plugin itself.
const OwnNetNS = "/proc/1/ns/net"

// Kernel is the machine. Its methods may be called from several goroutines.
type Kernel struct {
	mu        sync.Mutex
	mode      attach.Mode
	host      *netns
	spaces    []*netns // living ones, host first; also those without a path
	functions []*function
	links     []*link
	rdma      []*device

	nextIndex uint32 // of an RDMA device, never used twice
	nextLink  int    // ifindex
	nextInode uint64 // of functions
	nextIno   uint64
	searches  int // looks into every namespace
	gidDelay  int
	noSoft    error
	vfRefused map[attach.VFSetting]error
	vfIgnored map[attach.VFSetting]bool

	faults   []fault
	applies  int
	changes  int
	trace    []string
	sessions int
}

type netns struct {
	id       attach.NetNS
	visible  bool // the path still leads to it
	returnIn int  // looks until it dies, once it is held
	dead     bool
	noIPv6   bool     // disable_ipv6 is 1 by default in it
	holders  []string // who can be found to keep it alive, once it is held
	deserted bool     // no process is in it
}

// function is a device that can be given to a pod, with what it has by now.
type function struct {
	attach.Function
	link *link
	rdma *device
	spec VF
	// vf is what the PF's driver holds for a VF: it outlives the VF's own driver.
	vf        attach.VFState
	strictMAC bool // ixgbe, i40e: no other effective MAC than the administrative one
	given     bool // igb: that MAC is of an administrator, not the one that the VF has chosen
	resets    int
}

type link struct {
	dev     bus.ID // zero: virtual, dies with its namespace
	ns      *netns
	index   int
	name    string
	alt     []string // alternative names
	typ     string   // "ether", as ip(8) prints it
	kind    string   // "device" for hardware
	mode    string   // of a macvlan or ipvlan
	vid     int      // of a VLAN
	lowers  []*link  // what it sits on; more than one below a bond only
	devID   int      // of an ipvlan on its master, from 1
	lastID  int      // dev_id given last to an ipvlan on it
	peer    *link    // of a veth
	mac     string   // own; see link.address
	mtu     int
	maxMTU  int
	up      bool
	carrier bool
	traits  attach.Traits // kept wherever the link goes
	holdXDP error         // what is told to who takes the program away that a BPF link holds; nil: none does
	dflt    bool          // the node's default route leads through it
	local   netip.Addr    // IPv6 link-local address that the kernel has made; zero: none
	addrs   []netip.Prefix
	routes  []route
	sysctls map[string]string
	inUse   []string
}

type route struct {
	dst netip.Prefix
	via netip.Addr
}

type device struct {
	dev       bus.ID // zero: of no function
	soft      bool
	link      *link // netdev below it; nil: none
	index     uint32
	name      string
	ns        *netns
	guid      string
	ports     int
	linkLayer string
	uverbs    int
	users     []string
	table     gidTable
}

// firstIno is the inode of the host's namespace.
const firstIno = 4026531840

// New gives a machine with nothing but the host's namespace, holding lo.
func New(mode attach.Mode) *Kernel {
	k := &Kernel{mode: mode, nextIno: firstIno}
	k.host = k.space("")
	k.newLink(link{ns: k.host, name: "lo", typ: "loopback", mac: "00:00:00:00:00:00", mtu: 65536, up: true})
	return k
}

func macOf(id bus.ID) string {
	a := id.PCI
	if _, number, ok := strings.Cut(id.Aux, ".sf."); ok {
		n, _ := strconv.Atoi(number)
		return fmt.Sprintf("02:5f:00:%02x:%02x:%02x", byte(n>>16), byte(n>>8), byte(n))
	}
	return fmt.Sprintf("02:54:00:%02x:%02x:%02x", a.Bus, a.Device, a.Function)
}

// guidOf makes a node GUID as sysfs prints it.
func guidOf(mac string) string {
	b := octets(mac)
	return fmt.Sprintf("%02x%02x:%02xff:fe%02x:%02x%02x", b[0], b[1], b[2], b[3], b[4], b[5])
}

func octets(mac string) [6]byte {
	var b [6]byte
	_, _ = fmt.Sscanf(mac, "%02x:%02x:%02x:%02x:%02x:%02x", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5])
	return b
}

func (k *Kernel) newLink(l link) *link {
	k.nextLink++
	l.index = k.nextLink
	if l.traits == (attach.Traits{}) {
		l.traits = freshTraits()
	}
	l.sysctls = freshSysctls(l.ns, l.traits)
	if l.maxMTU == 0 {
		l.maxMTU = 65536
	}
	if l.kind == "" {
		l.kind = hardware
	}
	if l.up {
		l.makeLocal()
	}
	k.links = append(k.links, &l)
	return &l
}

// freshSysctls are what an interface has that is new in its namespace [review.md lab 9]. addr_gen_mode is there once it is not 0,
// accept_dad once it is not 1.
func freshSysctls(ns *netns, traits attach.Traits) map[string]string {
	off := "0"
	if ns.noIPv6 {
		off = "1"
	}
	out := map[string]string{"accept_ra": "1", "autoconf": "1", "disable_ipv6": off}
	if strings.Contains(traits.Flags, "noarp") {
		out[acceptDAD] = "-1" // ipv6_add_dev
	}
	return out
}

func (k *Kernel) newDevice(d device) *device {
	d.index = k.nextIndex
	k.nextIndex++
	d.uverbs = k.freeUverbs()
	d.table = gidTable{size: 256}
	k.rdma = append(k.rdma, &d)
	k.syncGIDs()
	return &d
}

// freeUverbs is the lowest number that no device has.
func (k *Kernel) freeUverbs() int {
	n := 0
	for slices.ContainsFunc(k.rdma, func(d *device) bool { return d.uverbs == n }) {
		n++
	}
	return n
}

func (k *Kernel) function(a bus.ID) *function {
	for _, f := range k.functions {
		if f.ID == a {
			return f
		}
	}
	return nil
}

// linkAt finds a link by name in a namespace.
func (k *Kernel) linkAt(ns *netns, name string) *link {
	for _, l := range k.links {
		if l.ns == ns && l.name == name {
			return l
		}
	}
	return nil
}

// deviceAt finds an RDMA device by name. Names are unique in a namespace in exclusive mode, on the node in shared mode.
func (k *Kernel) deviceAt(ns *netns, name string) *device {
	for _, d := range k.rdma {
		if d.name == name && (d.ns == ns || k.mode == attach.Shared) {
			return d
		}
	}
	return nil
}
