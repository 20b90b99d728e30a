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
	"sync"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
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
	nextIno   uint64
	gidDelay  int
	noSoft    error

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
	noIPv6   bool // disable_ipv6 is 1 by default in it
}

// function is a PCI function with what it has by now.
type function struct {
	attach.Function
	link *link
	rdma *device
	spec VF
}

type link struct {
	dev     bus.ID // zero: virtual, dies with its namespace
	ns      *netns
	index   int
	name    string
	alt     []string // alternative names
	kind    string
	mac     string
	mtu     int
	maxMTU  int
	up      bool
	carrier bool
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

// New gives a machine with nothing but the host's namespace, holding lo.
func New(mode attach.Mode) *Kernel {
	k := &Kernel{mode: mode, nextIno: 4026531840}
	k.host = k.space("")
	k.newLink(link{ns: k.host, name: "lo", kind: "loopback", mac: "00:00:00:00:00:00", mtu: 65536, up: true})
	return k
}

// PF is a physical function to add.
type PF struct {
	PCI  pci.Addr
	Link string
	MTU  int    // 0: 1500
	RDMA string // name of its RDMA device; empty: none
}

// VF is a virtual function to add. Empty fields get what a ConnectX VF would have.
type VF struct {
	ID        bus.ID
	PF        pci.Addr
	Number    int
	Driver    string // default "mlx5_core"; "none": unbound
	Link      string // empty: no netdev
	Type      string // default "ether"
	MAC       string // default derived from PCI
	MTU       int    // default 1500
	MaxMTU    int    // default 9978
	Up        bool
	RDMA      string // empty: no RDMA device
	GUID      string // default derived from MAC
	Ports     int    // default 1
	LinkLayer string // default "Ethernet"
	NUMA      int
}

// AddPF adds a physical function, up and with carrier.
func (k *Kernel) AddPF(spec PF) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if spec.MTU == 0 {
		spec.MTU = 1500
	}
	f := &function{Function: attach.Function{ID: bus.PCI(spec.PCI), Exists: true, Driver: "mlx5_core"}}
	f.link = k.newLink(link{
		dev: bus.PCI(spec.PCI), ns: k.host, name: spec.Link, kind: "ether", mac: macOf(bus.PCI(spec.PCI)), mtu: spec.MTU, maxMTU: 9978,
		up: true, carrier: true,
	})
	if spec.RDMA != "" {
		f.rdma = k.newDevice(device{
			dev: bus.PCI(spec.PCI), link: f.link, name: spec.RDMA, ns: k.host, guid: guidOf(f.link.mac), ports: 1, linkLayer: "Ethernet",
		})
	}
	k.functions = append(k.functions, f)
}

// AddVF adds a virtual function at home.
func (k *Kernel) AddVF(spec VF) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := &function{spec: spec}
	k.functions = append(k.functions, f)
	k.bind(f)
}

// bind makes what a driver makes of a function.
func (k *Kernel) bind(f *function) {
	spec := withDefaults(f.spec)
	f.Function = attach.Function{
		ID: spec.ID, Exists: true, Driver: spec.Driver, VF: true, Number: spec.Number, PF: spec.PF, NUMA: spec.NUMA,
	}
	if spec.Link != "" {
		f.link = k.newLink(link{
			dev: spec.ID, ns: k.host, name: spec.Link, kind: spec.Type, mac: spec.MAC, mtu: spec.MTU, maxMTU: spec.MaxMTU,
			up: spec.Up, carrier: true,
		})
	}
	if spec.RDMA != "" {
		f.rdma = k.newDevice(device{
			dev: spec.ID, link: f.link, name: spec.RDMA, ns: k.host, guid: spec.GUID, ports: spec.Ports, linkLayer: spec.LinkLayer,
		})
	}
}

func withDefaults(s VF) VF {
	or := func(v *string, def string) {
		if *v == "" {
			*v = def
		}
	}
	or(&s.Driver, "mlx5_core")
	or(&s.Type, "ether")
	or(&s.MAC, macOf(s.ID))
	or(&s.GUID, guidOf(s.MAC))
	or(&s.LinkLayer, "Ethernet")
	for v, def := range map[*int]int{&s.MTU: 1500, &s.MaxMTU: 9978, &s.Ports: 1} {
		if *v == 0 {
			*v = def
		}
	}
	if s.Driver == "none" {
		s.Driver = ""
	}
	return s
}

func macOf(id bus.ID) string {
	a := id.PCI
	if id.SF() {
		return fmt.Sprintf("02:5f:00:00:00:%02x", len(id.Aux))
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
	l.sysctls = freshSysctls()
	if l.maxMTU == 0 {
		l.maxMTU = 65536
	}
	k.links = append(k.links, &l)
	return &l
}

// freshSysctls are what an interface has that is new in its namespace [review.md lab 9].
func freshSysctls() map[string]string {
	return map[string]string{"accept_ra": "1", "autoconf": "1", "disable_ipv6": "0"}
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
