// SPDX-License-Identifier: Apache-2.0

// Package rdmans handles RDMA devices across network namespaces: which namespace mode the kernel is in, which devices a
// namespace has, who holds them open, moving, renaming, and soft RoCE devices. It also says which network namespaces a node
// has and who keeps each of them alive. It knows nothing of CNI, of pods or of this project's configuration, and it keeps
// no state: every call asks the kernel.
package rdmans

import "errors"

// The ways in which a call can fail that a caller tells apart.
var (
	// ErrNoRDMA: the kernel has no RDMA subsystem loaded (ib_core).
	ErrNoRDMA = errors.New("the kernel's RDMA subsystem is not loaded (module ib_core)")
	// ErrNotFound: no such RDMA device, or no such netdev below a new one, in the namespace that was asked.
	ErrNotFound = errors.New("no such device in this network namespace")
	// ErrShared: a move is refused because the kernel is in shared mode.
	ErrShared = errors.New("RDMA devices cannot be moved in shared mode")
	// ErrBusy: the mode cannot be changed while other network namespaces exist.
	ErrBusy = errors.New("other network namespaces exist")
	// ErrUnsupported: the driver or this kernel cannot do it.
	ErrUnsupported = errors.New("not supported by this driver or kernel")
	// ErrNameTaken: another device has the name.
	ErrNameTaken = errors.New("the name is taken by another RDMA device")
	// ErrPermission: CAP_NET_ADMIN is missing in the target namespace.
	ErrPermission = errors.New("permission denied (CAP_NET_ADMIN is needed)")
	// ErrNoNamespace: the path does not lead to a network namespace, or the namespace is gone.
	ErrNoNamespace = errors.New("not a network namespace, or one that is gone")
)
