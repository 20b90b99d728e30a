// SPDX-License-Identifier: Apache-2.0

package attachtest

import (
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// PF is a physical function to add.
type PF struct {
	PCI  pci.Addr
	Link string
	MTU  int    // 0: 1500
	RDMA string // name of its RDMA device; empty: none
	// ESwitch is the mode of its embedded switch; "none": it has none. Default "legacy".
	ESwitch string
}

// SF is a sub-function to add: an auxiliary device with a netdev and an RDMA device of its own.
type SF struct {
	ID   bus.ID
	PF   pci.Addr
	Link string
	RDMA string // empty: none
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
	f := &function{Function: attach.Function{ID: bus.PCI(spec.PCI), Exists: true, Driver: "mlx5_core", Inode: k.newInode()}}
	if f.ESwitch = spec.ESwitch; f.ESwitch == "" {
		f.ESwitch = "legacy"
	}
	if f.ESwitch == "none" {
		f.ESwitch = ""
	}
	f.spec = VF{ID: f.ID, Link: spec.Link, MTU: spec.MTU, RDMA: spec.RDMA, Up: true}
	k.functions = append(k.functions, f)
	k.makeDevices(f)
}

// AddSF adds a sub-function at home, down and with carrier.
func (k *Kernel) AddSF(spec SF) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := &function{Function: attach.Function{ID: spec.ID, Exists: true, Driver: "mlx5_core.sf", PF: spec.PF, Inode: k.newInode()}}
	f.spec = VF{ID: spec.ID, Link: spec.Link, RDMA: spec.RDMA, Driver: f.Driver}
	k.functions = append(k.functions, f)
	k.makeDevices(f)
}

// AddVF adds a virtual function at home.
func (k *Kernel) AddVF(spec VF) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := &function{spec: spec, vf: attach.VFState{MAC: noMAC, Proto: plainVLAN, Spoofchk: true, LinkState: "auto"}}
	f.Function = attach.Function{
		ID: spec.ID, Exists: true, VF: true, Number: spec.Number, PF: spec.PF, NUMA: spec.NUMA, Resets: true, Inode: k.newInode(),
	}
	k.functions = append(k.functions, f)
	k.makeDevices(f)
}

// newInode is that of a function's folder in sysfs: none is used twice.
func (k *Kernel) newInode() uint64 {
	k.nextInode++
	return k.nextInode
}

// noMAC is the administrative MAC of a VF that was given none.
const noMAC = "00:00:00:00:00:00"

// makeDevices makes what a driver makes of a function when it binds. A VF's takes the administrative MAC, if there is one
// (igbvf_probe asks the PF for it; mlx5e reads it from its vport), and derives the node GUID from it.
func (k *Kernel) makeDevices(f *function) {
	spec := f.spec
	if f.VF && f.vf.MAC != noMAC {
		spec.MAC, spec.GUID = f.vf.MAC, ""
	}
	spec = withDefaults(spec)
	f.Driver = spec.Driver
	if spec.Link != "" {
		f.link = k.newLink(link{
			dev: spec.ID, ns: k.host, name: spec.Link, typ: spec.Type, mac: spec.MAC, mtu: spec.MTU, maxMTU: spec.MaxMTU,
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
