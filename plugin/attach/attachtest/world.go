// SPDX-License-Identifier: Apache-2.0

package attachtest

import (
	"net/netip"
	"slices"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// What others do to the machine meanwhile: the pod, the node's owner, another program.

// in runs fn under the lock.
func (k *Kernel) in(fn func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	fn()
}

// AddLink puts a virtual link of kind dummy into the namespace that path leads to, or into the host's when it is empty.
func (k *Kernel) AddLink(path, name string) {
	k.in(func() {
		k.newLink(link{ns: k.nsOf(path), name: name, typ: "ether", kind: "dummy", mac: "02:00:00:00:00:01", mtu: 1500, carrier: true})
	})
}

// AddRDMA puts an RDMA device of no function into the host's namespace: it takes a name and a uverbs number.
func (k *Kernel) AddRDMA(name string) {
	k.in(func() {
		k.newDevice(device{name: name, ns: k.host, guid: "0200:00ff:fe00:0001", ports: 1, linkLayer: "Ethernet"})
	})
}

// RemoveRDMA takes an RDMA device away, of a function or not, leaving a hole in the uverbs numbers.
func (k *Kernel) RemoveRDMA(name string) {
	k.in(func() {
		for _, d := range slices.Clone(k.rdma) {
			if d.name != name {
				continue
			}
			k.dropDevice(d)
			if f := k.function(d.dev); f != nil {
				f.rdma = nil
			}
		}
	})
}

// RemoveFunction takes a function away with all it has, as sriov_numvfs does.
func (k *Kernel) RemoveFunction(a bus.ID) {
	k.in(func() {
		k.unbind(k.function(a))
		k.functions = slices.DeleteFunc(k.functions, func(f *function) bool { return f.ID == a })
	})
}

// Rebind unbinds a function's driver and binds driver, the same when empty. What it makes is new: another RDMA index, and a
// netdev at home under the name of its VF.
func (k *Kernel) Rebind(a bus.ID, driver string) {
	k.in(func() {
		f := k.function(a)
		k.unbind(f)
		if driver != "" {
			f.Driver = driver
			return
		}
		k.makeDevices(f)
	})
}

func (k *Kernel) unbind(f *function) {
	if f.rdma != nil {
		k.dropDevice(f.rdma)
	}
	if f.link != nil {
		k.dropLink(f.link)
	}
	f.link, f.rdma, f.Driver = nil, nil, ""
}

// RenameLink is what a pod does to an interface that it does not want to be called so.
func (k *Kernel) RenameLink(a bus.ID, name string) {
	k.in(func() { k.function(a).link.name = name; k.syncGIDs() })
}

// RenamePodLink renames any link of a namespace, the host's with an empty path.
func (k *Kernel) RenamePodLink(path, name, to string) {
	k.in(func() { k.podLink(path, name).name = to; k.syncGIDs() })
}

// SetPodMAC is what a pod with CAP_NET_ADMIN does to its interface.
func (k *Kernel) SetPodMAC(path, name, mac string) {
	k.in(func() { k.podLink(path, name).setMAC(mac); k.syncGIDs() })
}

// DelPodLink is what a pod does to an interface that it does not want.
func (k *Kernel) DelPodLink(path, name string) { k.in(func() { k.dropLink(k.podLink(path, name)) }) }

// SetPodUp sets the state of any link of a namespace.
func (k *Kernel) SetPodUp(path, name string, up bool) {
	k.in(func() { k.setUp(k.podLink(path, name), up); k.syncGIDs() })
}

// PutAddr puts an address on any link of a namespace, as the plugin before in a chain does, or the node's owner.
func (k *Kernel) PutAddr(path, name string, addr netip.Prefix) {
	k.in(func() {
		l := k.podLink(path, name)
		l.addrs = append(l.addrs, addr)
		k.syncGIDs()
	})
}

// Give moves a function's netdev into a pod under name and sets it up, as sriov and host-device do, or home with an empty path.
func (k *Kernel) Give(a bus.ID, path, name string) {
	k.in(func() {
		l := k.function(a).link
		k.relocate(l, k.nsOf(path), name)
		k.setUp(l, path != "")
		k.syncGIDs()
	})
}

// SetType makes a link at home one of another type: "infiniband" for IPoIB.
func (k *Kernel) SetType(name, typ string) { k.in(func() { k.hostLink(name).typ = typ }) }

// SetDefault says whether the node's default route leads through a link at home.
func (k *Kernel) SetDefault(name string, on bool) { k.in(func() { k.hostLink(name).dflt = on }) }

// SetHostMTU sets the MTU of a link at home, and with it of what cannot have a larger one.
func (k *Kernel) SetHostMTU(name string, mtu int) { k.in(func() { k.setMTU(k.hostLink(name), mtu) }) }

// SetHostAltNames gives a link at home alternative names.
func (k *Kernel) SetHostAltNames(name string, alt ...string) {
	k.in(func() { k.hostLink(name).alt = slices.Clone(alt) })
}

// RenameRDMA gives a function's RDMA device another name.
func (k *Kernel) RenameRDMA(a bus.ID, name string) {
	k.in(func() { k.function(a).rdma.name = name })
}

// SetLink changes a function's link: MAC if not empty, MTU if not 0, and its state.
func (k *Kernel) SetLink(a bus.ID, mac string, mtu int, up bool) {
	k.in(func() {
		l := k.function(a).link
		if mac != "" {
			l.setMAC(mac)
		}
		if mtu != 0 {
			k.setMTU(l, mtu)
		}
		k.setUp(l, up)
		k.syncGIDs()
	})
}

// SetAltNames gives a function's netdev alternative names.
func (k *Kernel) SetAltNames(a bus.ID, names ...string) {
	k.in(func() { k.function(a).link.alt = slices.Clone(names) })
}

// SetMaxMTU bounds what the driver of a function's link takes.
func (k *Kernel) SetMaxMTU(a bus.ID, mtu int) { k.in(func() { k.function(a).link.maxMTU = mtu }) }

// SetCarrier plugs the cable in or out.
func (k *Kernel) SetCarrier(a bus.ID, on bool) { k.in(func() { k.function(a).link.carrier = on }) }

// SetInUse says what the node does with a function's link.
func (k *Kernel) SetInUse(a bus.ID, what ...string) {
	k.in(func() { k.function(a).link.inUse = what })
}

// SetUsers says which processes have a function's RDMA device open.
func (k *Kernel) SetUsers(a bus.ID, users ...string) {
	k.in(func() { k.function(a).rdma.users = users })
}

// FlushAddrs takes every address off a function's link.
func (k *Kernel) FlushAddrs(a bus.ID) {
	k.in(func() { k.function(a).link.addrs = nil; k.syncGIDs() })
}

// DisableIPv6 sets disable_ipv6 on every link that comes into a namespace from now on, as runtimes do in clusters without IPv6.
func (k *Kernel) DisableIPv6(path string) { k.in(func() { k.byPath(path).noIPv6 = true }) }

// SetMode sets the mode of the RDMA subsystem, whatever a kernel would say.
func (k *Kernel) SetMode(m attach.Mode) { k.in(func() { k.mode = m }) }

// RefuseSoftMoves lets soft RoCE devices be made but not moved, with err: kernels before 7.1.
func (k *Kernel) RefuseSoftMoves(err error) { k.in(func() { k.noSoft = err }) }
