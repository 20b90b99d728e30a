// SPDX-License-Identifier: Apache-2.0

package sysfs

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

const auxDevices = "bus/auxiliary/devices"

// Device reads a PCI function or a sub-function, or gives ErrNotExist.
func (f *FS) Device(id bus.ID) (Function, error) {
	if id.SF() {
		return f.subFunction(id)
	}
	return f.Function(id.PCI)
}

// subFunction reads a sub-function (Documentation/networking/device_drivers/ethernet/mellanox/mlx5/switchdev.rst). Class and
// NUMA node are those of the function that it is on: the auxiliary bus has no such files.
func (f *FS) subFunction(id bus.ID) (Function, error) {
	what := "sub-function " + id.Aux
	parent, err := f.Below(id)
	if err != nil {
		return Function{}, err
	}
	on, err := f.Function(parent)
	if err != nil {
		return Function{}, fmt.Errorf("%s: %w", what, err)
	}
	fn := Function{PCI: parent, Aux: id.Aux, Class: on.Class, NUMA: on.NUMA, Number: -1}
	root, err := enter(f.root, auxDevices+"/"+id.Aux)
	if err != nil {
		return Function{}, clean(what, err)
	}
	if err := errors.Join(fn.fillSub(root), root.Close()); err != nil {
		return Function{}, fmt.Errorf("%s: %w", what, err)
	}
	return fn, nil
}

// fillSub reads the files of a sub-function's directory.
func (fn *Function) fillSub(root *os.Root) error {
	var err error
	if fn.Driver, err = target(root, "driver"); err != nil {
		return err
	}
	return fn.fillDevices(root)
}

// Below gives the PCI function that a sub-function is on: the next above it in the tree of devices.
func (f *FS) Below(id bus.ID) (pci.Addr, error) {
	dir, err := f.Path(id)
	if err != nil {
		return pci.Addr{}, err
	}
	for above := path.Dir(dir); above != "/"; above = path.Dir(above) {
		if a, err := pci.Parse(path.Base(above)); err == nil {
			return a, nil
		}
	}
	return pci.Addr{}, fmt.Errorf("sub-function %s at %s: %w", id, dir, ErrSyntax)
}

// SFs lists the sub-functions of the node, by name.
func (f *FS) SFs() ([]Function, error) {
	names, err := list(f.root, auxDevices)
	if err != nil {
		return nil, err
	}
	var all []Function
	for _, name := range names {
		if !bus.IsSF(name) {
			continue // mlx5_core.rdma.0 and its like: parts of a driver
		}
		fn, err := f.Device(bus.ID{Aux: name})
		if errors.Is(err, ErrNotExist) {
			continue // removed between the two reads
		}
		if err != nil {
			return nil, err
		}
		all = append(all, fn)
	}
	return all, nil
}

// Path gives where a device is in the tree of devices, as "/sys/devices/pci0000:00/0000:00:1f.6" wherever sysfs is mounted.
func (f *FS) Path(id bus.ID) (string, error) {
	dir := pciDevices
	if id.SF() {
		dir = auxDevices
	}
	text, err := f.root.Readlink(dir + "/" + id.String())
	if err != nil {
		return "", clean("device "+id.String(), err)
	}
	return path.Join("/sys", dir, text), nil
}

// NetDevice gives the function that a netdev of this view's namespace belongs to; zero for one of software.
func (f *FS) NetDevice(name string) (bus.ID, error) { return f.owner("class/net/" + name) }

// owner reads the device out of a link of a class, as
// ../../devices/pci0000:00/0000:00:01.0/0000:3b:00.2/infiniband/mlx5_3.
func (f *FS) owner(link string) (bus.ID, error) {
	text, err := f.root.Readlink(link)
	if err != nil {
		return bus.ID{}, clean("device of "+link, err)
	}
	id, err := bus.Parse(path.Base(path.Dir(path.Dir(text))))
	if err != nil {
		return bus.ID{}, nil //nolint:nilerr // a parent that is no function is the answer, not a failure
	}
	return id, nil
}

// Representor tells whether a netdev stands for another port than its function's own: a PF in switchdev mode has one for each
// VF and SF beside it (class/net/<name>/phys_port_name: "p0" the port, "pf0vf3" a representor).
func (f *FS) Representor(name string) (bool, error) {
	port, err := read(f.root, "class/net/"+name+"/phys_port_name")
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, ErrNotExist) {
		return false, nil // an ordinary driver names no ports
	}
	if err != nil {
		return false, err
	}
	_, err = strconv.Atoi(strings.TrimPrefix(port, "p"))
	return err != nil && port != "", nil
}

// Uplink picks, of the netdevs below a function, the port itself and no representor. Empty when there is none.
func (f *FS) Uplink(names []string) (string, error) {
	for _, name := range names {
		other, err := f.Representor(name)
		if err != nil {
			return "", err
		}
		if !other {
			return name, nil
		}
	}
	return "", nil
}
