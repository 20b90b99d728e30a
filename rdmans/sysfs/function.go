// SPDX-License-Identifier: Apache-2.0

package sysfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

const pciDevices = "bus/pci/devices"

// Function is a PCI function, /sys/bus/pci/devices/<addr>/, or a sub-function on one, /sys/bus/auxiliary/devices/<name>/.
type Function struct {
	PCI      pci.Addr `json:"pci"`              // of a sub-function: the function that it is on
	Aux      string   `json:"aux,omitempty"`    // of a sub-function: "mlx5_core.sf.4"; empty: it is a PCI function
	Class    uint32   `json:"class"`            // class: 0x020000 Ethernet, 0x020700 InfiniBand
	Driver   string   `json:"driver,omitempty"` // driver ->; empty: none bound
	PF       pci.Addr `json:"pf"`               // physfn ->; zero: it is no VF
	Number   int      `json:"number"`           // N of the PF's virtfnN that leads here; -1: it is no VF
	NUMA     int      `json:"numa"`             // numa_node; -1: no affinity
	TotalVFs int      `json:"totalVFs"`         // sriov_totalvfs; 0: not SR-IOV capable
	NumVFs   int      `json:"numVFs"`           // sriov_numvfs
	Resets   bool     `json:"-"`                // there is a file reset: it can be reset on its own
	// Inode is that of its directory, the same in every view (fs/kernfs: one a node, never used twice in a boot): a function that
	// is made anew at the same address has another one.
	Inode uint64 `json:"-"`
	// Net are the netdevs below it that this view's namespace has: net/.
	Net []string `json:"net,omitempty"`
	// RDMA are the RDMA devices below it that this view's namespace has: infiniband/.
	RDMA []string `json:"rdma,omitempty"`
	// Uverbs are its verbs devices, wherever its RDMA devices are: infiniband_verbs/, a class without namespaces.
	Uverbs []Uverbs `json:"uverbs,omitempty"`
}

// VF tells whether it is a virtual function.
func (fn Function) VF() bool { return !fn.PF.IsZero() }

// ID gives its identity.
func (fn Function) ID() bus.ID {
	if fn.Aux != "" {
		return bus.ID{Aux: fn.Aux}
	}
	return bus.PCI(fn.PCI)
}

// Function reads one function, or gives ErrNotExist.
func (f *FS) Function(a pci.Addr) (Function, error) {
	fn := Function{PCI: a, Number: -1}
	root, err := enter(f.root, pciDevices+"/"+a.String())
	if err != nil {
		return Function{}, clean("PCI function "+a.String(), err)
	}
	if err := errors.Join(fn.fill(f, root), root.Close()); err != nil {
		return Function{}, fmt.Errorf("PCI function %s: %w", a, err)
	}
	return fn, nil
}

// fill reads the files of the function's directory.
func (fn *Function) fill(f *FS, root *os.Root) error {
	class, err := read(root, "class")
	if err != nil {
		return err
	}
	value, err := strconv.ParseUint(strings.TrimPrefix(class, "0x"), 16, 32)
	if err != nil {
		return fmt.Errorf("read class: %w", err)
	}
	fn.Class = uint32(value)
	if fn.Driver, err = target(root, "driver"); err != nil {
		return err
	}
	if fn.NUMA, err = readInt(root, "numa_node"); errors.Is(err, ErrNotExist) {
		fn.NUMA = -1 // a kernel without NUMA has no such file
	} else if err != nil {
		return err
	}
	for _, n := range []struct {
		dst  *int
		name string
	}{{&fn.TotalVFs, "sriov_totalvfs"}, {&fn.NumVFs, "sriov_numvfs"}} {
		if *n.dst, err = readInt(root, n.name); err != nil && !errors.Is(err, ErrNotExist) {
			return err
		}
	}
	if _, err = root.Lstat("reset"); err == nil {
		fn.Resets = true
	} else if !errors.Is(err, fs.ErrNotExist) {
		return clean("look for reset", err)
	}
	if err = fn.fillDevices(root); err != nil {
		return err
	}
	return fn.place(f, root)
}

// fillDevices reads what is below a function, the same on either bus.
func (fn *Function) fillDevices(root *os.Root) error {
	own, err := root.Stat(".")
	if err != nil {
		return clean("look at its directory", err)
	}
	if stat, ok := own.Sys().(*syscall.Stat_t); ok {
		fn.Inode = stat.Ino
	}
	if fn.Net, err = list(root, "net"); err != nil {
		return err
	}
	if fn.RDMA, err = list(root, "infiniband"); err != nil {
		return err
	}
	fn.Uverbs, err = uverbs(root, "infiniband_verbs")
	return err
}

// place finds the PF of a VF and the VF's number below it. The links of the directory lead out of it, so they are read
// as text and followed from the top.
func (fn *Function) place(f *FS, root *os.Root) error {
	pf, err := target(root, "physfn")
	if err != nil || pf == "" {
		return err
	}
	if fn.PF, err = pci.Parse(pf); err != nil {
		return fmt.Errorf("read link physfn: %w", err)
	}
	dir := pciDevices + "/" + pf
	names, err := list(f.root, dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		number, ok := strings.CutPrefix(name, "virtfn")
		if !ok {
			continue
		}
		vf, err := target(f.root, dir+"/"+name)
		if err != nil {
			return err
		}
		if vf == fn.PCI.String() {
			if fn.Number, err = strconv.Atoi(number); err != nil {
				return fmt.Errorf("read link %s: %w", name, err)
			}
			return nil
		}
	}
	return fmt.Errorf("PF %s has no link to it: %w", pf, ErrNotExist)
}

// Functions lists the PCI functions that are network controllers or have RDMA devices, by address.
func (f *FS) Functions() ([]Function, error) {
	names, err := list(f.root, pciDevices)
	if err != nil {
		return nil, err
	}
	var all []Function
	for _, name := range names {
		a, err := pci.Parse(name)
		if err != nil {
			continue
		}
		fn, err := f.Function(a)
		if errors.Is(err, ErrNotExist) {
			continue // unplugged between the two reads
		}
		if err != nil {
			return nil, err
		}
		if fn.Class>>16 == 0x02 || len(fn.RDMA) > 0 || len(fn.Uverbs) > 0 {
			all = append(all, fn)
		}
	}
	return all, nil
}
