// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/kernel"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/rdmans"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/sysfs"
)

// machine is the node that the process runs on. Each verb says by an interface of its own what it needs of it.
type machine struct {
	kernel *kernel.Kernel
	root   string // prefix of the node's files; empty but in tests
}

func newMachine() *machine { return &machine{kernel: kernel.New()} }

// path gives where a file of the node is.
func (m *machine) path(name string) string { return filepath.Join(m.root, name) }

// Root gives the prefix of the node's files.
func (m *machine) Root() string { return m.root }

// Privileged tells whether namespaces and records can be looked into.
func (m *machine) Privileged() bool { return os.Geteuid() == 0 }

// Now is the clock.
func (m *machine) Now() time.Time { return time.Now() }

// Mode reads the RDMA mode; rdmans.ErrNoRDMA when there is none.
func (m *machine) Mode() (rdmans.Mode, error) {
	var mode rdmans.Mode
	err := m.rdma(func(c *rdmans.Conn) error {
		var err error
		mode, err = c.Mode()
		return err
	})
	return mode, err
}

// SetMode sets the RDMA mode; rdmans.ErrBusy while other namespaces exist.
func (m *machine) SetMode(mode rdmans.Mode) error {
	return m.rdma(func(c *rdmans.Conn) error { return c.SetMode(mode) })
}

func (m *machine) rdma(f func(*rdmans.Conn) error) error {
	self, err := rdmans.Self()
	if err != nil {
		return err
	}
	return errors.Join(f(rdmans.In(self)), self.Close())
}

// Namespaces lists the other network namespaces, whoever holds them.
func (m *machine) Namespaces(ctx context.Context) ([]rdmans.Namespace, error) {
	return rdmans.Scan{Proc: m.kernel.Proc, Run: m.kernel.RunNetns, Deep: true}.Namespaces(ctx)
}

// Inventory lists the node's devices wherever they are.
func (m *machine) Inventory(ctx context.Context) ([]kernel.Device, error) {
	var devices []kernel.Device
	var err error
	for range looks {
		if devices, err = m.kernel.Inventory(ctx); err != nil {
			return nil, err
		}
		if err = confirm(devices); err == nil {
			return devices, nil
		}
	}
	return nil, err
}

// looks is how often Inventory begins again while VFs come and go.
const looks = 5

// AtHome lists the network functions as the process's own namespace sees them.
func (m *machine) AtHome() ([]sysfs.Function, error) {
	sys, err := sysfs.Open(m.kernel.Sysfs)
	if err != nil {
		return nil, err
	}
	functions, err := sys.Functions()
	return functions, errors.Join(err, sys.Close())
}

// Records lists the attachments, and an error for each thing that is none.
func (m *machine) Records() ([]record.Record, []error) {
	return record.New(m.path(plugin.StateDir)).List()
}

// Unrecorded lists the devices that an attachment took from home and whose record is lost.
func (m *machine) Unrecorded(ctx context.Context) ([]plugin.Unrecorded, error) {
	return m.plugin(io.Discard).Unrecorded(ctx)
}

// Gone tells what an attachment hangs on and is no more.
func (m *machine) Gone(ctx context.Context, rec record.Record) (string, error) {
	return m.plugin(io.Discard).Gone(ctx, rec)
}

// Room tells whether a record could be written.
func (m *machine) Room() error { return record.New(m.path(plugin.StateDir)).Room() }

// Node reads the node's settings.
func (m *machine) Node() (netconf.Node, error) { return plugin.ReadNode(m.path(netconf.NodePath)) }

// Functions lists the functions that have an RDMA device somewhere.
func (m *machine) Functions(context.Context) ([]bus.ID, error) {
	functions, err := m.AtHome()
	var out []bus.ID
	for _, fn := range functions {
		if len(fn.RDMA)+len(fn.Uverbs) > 0 {
			out = append(out, bus.PCI(fn.PCI))
		}
	}
	return out, err
}

// Promised looks for the device in kubelet's list of the devices that it gave to containers (pkg/kubelet/cm/devicemanager). An entry
// of a container that has ended stays for a while; that errs on the safe side.
func (m *machine) Promised(_ context.Context, dev bus.ID) (bool, error) {
	node, err := m.Node()
	if err != nil {
		if node, err = netconf.ParseNode(nil); err != nil {
			return false, err
		}
	}
	name := m.path(filepath.Join(node.KubeletRoot, "device-plugins/kubelet_internal_checkpoint"))
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read kubelet's list of devices: %w", err)
	}
	_, entries, _ := bytes.Cut(text, []byte(`"PodDeviceEntries"`))
	entries, _, _ = bytes.Cut(entries, []byte(`"RegisteredDevices"`))
	return bytes.Contains(entries, []byte(`"`+dev.String()+`"`)), nil
}

// Elsewhere lists the functions of which something is in another namespace.
func (m *machine) Elsewhere(ctx context.Context) ([]attach.Astray, error) {
	return m.kernel.Elsewhere(ctx)
}

// Interfaces lists the links in other namespaces.
func (m *machine) Interfaces(ctx context.Context) ([]attach.Interface, error) {
	return m.kernel.Interfaces(ctx)
}

// Scratch makes an empty network namespace.
func (m *machine) Scratch(context.Context) (string, func(), error) { return rdmans.Scratch() }

// plugin gives the verbs of the plugin on this node. Its log goes to w.
func (m *machine) plugin(w io.Writer) *plugin.Plugin {
	return plugin.New(plugin.Config{
		Dir:     m.path(plugin.StateDir),
		Open:    func(ctx context.Context, netns string) (plugin.Session, error) { return m.kernel.Open(ctx, netns) },
		Node:    m.Node,
		Stderr:  w,
		Version: version,
	})
}

// Inspect compares a record with what is there now.
func (m *machine) Inspect(ctx context.Context, rec record.Record) (lost, warnings []string, err error) { //nolint:nonamedreturns // tells the lists apart
	return m.plugin(io.Discard).Inspect(ctx, rec)
}

// Repair looks for what was left behind, and puts it right unless dry is set.
func (m *machine) Repair(ctx context.Context, log io.Writer, dry bool) ([]plugin.Finding, error) {
	return m.plugin(log).Repair(ctx, m, dry)
}
