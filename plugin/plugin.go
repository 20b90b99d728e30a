// SPDX-License-Identifier: Apache-2.0

// Package plugin is the CNI verbs: it observes, records, asks attach what to do, does it, and answers. It knows no system
// call and no file format; those are the parts it is built from. Errors leave it with a CNI code and a remedy.
package plugin

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	types100 "github.com/containernetworking/cni/pkg/types/100"

	"github.com/podfabric/podfabric/ipam"
	"github.com/podfabric/podfabric/ipam/lease"
	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/delegate"
	"github.com/podfabric/podfabric/plugin/devinfo"
	"github.com/podfabric/podfabric/plugin/hint"
	"github.com/podfabric/podfabric/plugin/lock"
	"github.com/podfabric/podfabric/plugin/record"
)

// Session is a machine as one verb sees it: the host and at most one pod's namespace.
type Session interface {
	attach.Kernel
	Observe(ctx context.Context, q attach.Query) (attach.Facts, error)
	// Links lists the links at home that a selector may mean.
	Links(ctx context.Context) ([]attach.Candidate, error)
	// Behind says what is behind an interface of the pod; the error wraps attach.ErrConflict when the pod has none of that name.
	Behind(ctx context.Context, ifname string) (attach.Behind, error)
	// Ports gives every port of one RDMA device as the sysfs of namespace ns shows it.
	Ports(ctx context.Context, ns attach.NS, device string) ([]attach.Port, error)
	// Holders says who keeps the devices of q that are neither at home nor in the pod. It looks at every process of the node, so
	// that it is called only to explain. With an error comes what was found until then.
	Holders(ctx context.Context, q attach.Query) ([]attach.Holding, error)
	PodNS() attach.NetNS  // zero when there is none
	HostNS() attach.NetNS // that of the plugin itself
	Close() error
}

// Leases hands out addresses of this node's ranges; lease.Store is the one on disk.
type Leases interface {
	Allocate(ctx context.Context, sets [][]ipam.Range, owner string, want []netip.Addr) (lease.Grant, error)
	Release(ctx context.Context, owner string) error
	// List gives every lease, and an error for each thing that is none.
	List() ([]lease.Lease, []error)
}

// Delegate is another CNI IPAM plugin, run as a process.
type Delegate interface {
	Find(c delegate.Call) error
	Add(ctx context.Context, c delegate.Call) (*types100.Result, error)
	Del(ctx context.Context, c delegate.Call) error
	Check(ctx context.Context, c delegate.Call) error
	GC(ctx context.Context, c delegate.Call) error
	Status(ctx context.Context, c delegate.Call) error
}

// Plugin is built in cmd. Every field is required.
type Plugin struct {
	// Open looks at the machine and, unless netns is empty, into that network namespace. Its errors wrap
	// attach.ErrNoNetNS when the path leads to no namespace and attach.ErrOwnNetNS when it leads to the plugin's own.
	Open     func(ctx context.Context, netns string) (Session, error)
	Records  *record.Store
	Leases   Leases
	Hints    *hint.Store
	Locks    *lock.Dir
	Delegate Delegate
	DevInfo  devinfo.Store
	// Node reads /etc/podfabric/node.json.
	Node func() (netconf.Node, error)
	Log  *slog.Logger
	// Level is that of Log; args.cni.debug lowers it for one attachment.
	Level   *slog.LevelVar
	Now     func() time.Time
	Version string // of this binary, for records and for messages
	// Delegated: it was called as the IPAM plugin of another podfabric.
	Delegated bool
}

// Limits on what a verb waits for beside its deadline.
const (
	// gapWait bounds the wait for a free uverbs number to be taken again by the device that the kernel is bringing home: milliseconds
	// on a machine that is not busy.
	gapWait = 2 * time.Second
	// homeWait bounds the wait for a device that the kernel is bringing home from a dead namespace. Seen under emulation:
	// 45 ms for one, 0.9 s for fourteen at once.
	homeWait = 5 * time.Second
	// undoLimit is the time that undoing a failed ADD has of its own, since the caller's deadline may be why it failed.
	undoLimit = 10 * time.Second
	// finishLimit is the time that writing down what a release came to has of its own.
	finishLimit = 2 * time.Second
	// holderLimit is the time that looking for who keeps a device away has of its own: the caller's may be over by then.
	holderLimit = 5 * time.Second
	// poll is the distance between two looks at something that the kernel does in its own time.
	poll = 10 * time.Millisecond
)
