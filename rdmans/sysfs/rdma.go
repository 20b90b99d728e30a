// SPDX-License-Identifier: Apache-2.0

package sysfs

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/rdmans/bus"
)

const (
	rdmaClass   = "class/infiniband"
	uverbsClass = "class/infiniband_verbs"
)

// Uverbs is a verbs device: what /dev/infiniband/uverbsN opens.
type Uverbs struct {
	Number int    `json:"number"` // N
	Device string `json:"device"` // ibdev: name of its RDMA device, in whatever namespace that is
}

// Uverbs lists the verbs devices of the whole node, by number; the class has no namespaces. None when ib_uverbs is not loaded.
func (f *FS) Uverbs() ([]Uverbs, error) { return uverbs(f.root, uverbsClass) }

// uverbs reads the verbs devices in a directory.
func uverbs(root *os.Root, dir string) ([]Uverbs, error) {
	names, err := list(root, dir)
	if err != nil {
		return nil, err
	}
	var all []Uverbs
	for _, name := range names {
		n, err := strconv.Atoi(strings.TrimPrefix(name, "uverbs"))
		if err != nil {
			continue // abi_version
		}
		device, err := read(root, dir+"/"+name+"/ibdev")
		if errors.Is(err, ErrNotExist) || errors.Is(err, unix.EIO) {
			continue // moved or gone between the two reads
		}
		if err != nil {
			return nil, err
		}
		all = append(all, Uverbs{Number: n, Device: device})
	}
	slices.SortFunc(all, func(a, b Uverbs) int { return cmp.Compare(a.Number, b.Number) })
	return all, nil
}

// Port is a port of an RDMA device: class/infiniband/<device>/ports/<number>/.
type Port struct {
	Number    int    `json:"number"`
	LinkLayer string `json:"linkLayer"` // link_layer: "Ethernet", "InfiniBand"
	State     string `json:"state"`     // state without its number: "ACTIVE", "DOWN"
	RateMbps  int    `json:"rateMbps"`  // rate, in Mb/s; 0: not said
	GIDs      []GID  `json:"gids"`      // entries that are not zero, by index
	TableSize int    `json:"tableSize"` // slots of the GID table
}

// GID is an entry of a port's GID table.
type GID struct {
	Index  int        `json:"index"`
	Addr   netip.Addr `json:"addr"`   // gids/<index>; ::ffff:a.b.c.d for IPv4, as the kernel keeps it
	Type   string     `json:"type"`   // gid_attrs/types/<index>: "RoCE v2", "IB/RoCE v1"; empty: the kernel refused (EINVAL)
	Netdev string     `json:"netdev"` // gid_attrs/ndevs/<index>: name in the netdev's own namespace; empty: refused
}

// RDMADevices lists the names of the RDMA devices that this view's namespace has.
func (f *FS) RDMADevices() ([]string, error) { return list(f.root, rdmaClass) }

// NodeGUID reads a device's node GUID as the kernel prints it: 0254:00ff:fe12:3456.
func (f *FS) NodeGUID(device string) (string, error) {
	return read(f.root, rdmaClass+"/"+device+"/node_guid")
}

// LinkLayer reads the link layer of a device's first port, without its GID table.
func (f *FS) LinkLayer(device string) (string, error) {
	return read(f.root, rdmaClass+"/"+device+"/ports/1/link_layer")
}

// Ports reads all ports of a device with their GID tables. ErrNotExist when this view's namespace has no such device.
func (f *FS) Ports(device string) ([]Port, error) {
	root, err := enter(f.root, rdmaClass+"/"+device)
	if err != nil {
		return nil, clean("RDMA device "+device, err)
	}
	ports, err := readPorts(root)
	if err = errors.Join(err, root.Close()); err != nil {
		return nil, fmt.Errorf("RDMA device %s: %w", device, err)
	}
	return ports, nil
}

func readPorts(device *os.Root) ([]Port, error) {
	names, err := list(device, "ports")
	if err != nil {
		return nil, err
	}
	ports := make([]Port, 0, len(names))
	for _, name := range names {
		number, err := strconv.Atoi(name)
		if err != nil {
			return nil, fmt.Errorf("port %q: %w", name, err)
		}
		root, err := enter(device, "ports/"+name)
		if err != nil {
			return nil, clean("port "+name, err)
		}
		port := Port{Number: number}
		if err := errors.Join(port.fill(root), root.Close()); err != nil {
			return nil, fmt.Errorf("port %s: %w", name, err)
		}
		ports = append(ports, port)
	}
	slices.SortFunc(ports, func(a, b Port) int { return cmp.Compare(a.Number, b.Number) })
	return ports, nil
}

func (p *Port) fill(root *os.Root) error {
	var err error
	if p.LinkLayer, err = read(root, "link_layer"); err != nil {
		return err
	}
	state, err := read(root, "state")
	if err != nil {
		return err
	}
	if p.State, err = parseState(state); err != nil {
		return err
	}
	rate, err := read(root, "rate")
	if err != nil && !errors.Is(err, unix.EINVAL) {
		return err // EINVAL: a link that has no speed, for some drivers
	}
	if p.RateMbps, err = parseRate(rate); err != nil {
		return err
	}
	return p.fillGIDs(root)
}

// fillGIDs reads the GID table. Each of its up to some hundred slots is a file, so the directory is opened once.
func (p *Port) fillGIDs(root *os.Root) error {
	names, err := list(root, "gids")
	if err != nil {
		return err
	}
	p.TableSize = len(names)
	table, err := enter(root, "gids")
	if err != nil {
		return clean("gids", err)
	}
	for _, name := range names {
		gid, set, err := readGID(root, table, name)
		if err != nil {
			return errors.Join(err, table.Close())
		}
		if set {
			p.GIDs = append(p.GIDs, gid)
		}
	}
	slices.SortFunc(p.GIDs, func(a, b GID) int { return cmp.Compare(a.Index, b.Index) })
	if err := table.Close(); err != nil {
		return fmt.Errorf("close gids: %w", err)
	}
	return nil
}

// readGID reads one slot, and tells whether it is in use.
func readGID(root, table *os.Root, name string) (GID, bool, error) {
	var gid GID
	text, err := read(table, name)
	if errors.Is(err, unix.EINVAL) {
		return GID{}, false, nil
	}
	if err != nil {
		return GID{}, false, fmt.Errorf("GID: %w", err)
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return GID{}, false, fmt.Errorf("GID %s: %w", name, err)
	}
	if addr.IsUnspecified() {
		return GID{}, false, nil
	}
	gid.Addr = addr
	if gid.Index, err = strconv.Atoi(name); err != nil {
		return GID{}, false, fmt.Errorf("GID %s: %w", name, err)
	}
	for _, attr := range []struct {
		dst *string
		dir string
	}{{&gid.Type, "gid_attrs/types/"}, {&gid.Netdev, "gid_attrs/ndevs/"}} {
		// EINVAL: the slot has been emptied since, or this kernel does not show a foreign one.
		if *attr.dst, err = read(root, attr.dir+name); err != nil && !errors.Is(err, unix.EINVAL) {
			return GID{}, false, err
		}
	}
	return gid, true, nil
}

// parseState takes the word of "4: ACTIVE".
func parseState(s string) (string, error) {
	_, word, ok := strings.Cut(s, ": ")
	if !ok {
		return "", fmt.Errorf("port state %q: %w", s, ErrSyntax)
	}
	return word, nil
}

// parseRate reads "400 Gb/sec (4X NDR)" or "2.5 Gb/sec (1X SDR)" into Mb/s; nothing is 0.
func parseRate(s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	number, rest, _ := strings.Cut(s, " ")
	gbps, err := strconv.ParseFloat(number, 64)
	if err != nil || !strings.HasPrefix(rest, "Gb/sec") || gbps < 0 || gbps > 1e6 {
		return 0, fmt.Errorf("port rate %q: %w", s, ErrSyntax)
	}
	return int(gbps*1000 + 0.5), nil
}

// Parent gives the function that an RDMA device of this view's namespace belongs to; zero for a device of software.
func (f *FS) Parent(device string) (bus.ID, error) { return f.owner(rdmaClass + "/" + device) }
