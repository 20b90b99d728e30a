// SPDX-License-Identifier: Apache-2.0

// Package link handles the netdevs of one network namespace: finds them by function, moves and renames them, makes macvlans and
// ipvlans, sets MAC, state, addresses, routes, sysctls and what a PF keeps for its VFs, and says what a namespace uses a netdev for. Each function that changes
// something makes one system call that does; deciding whether it is wanted is the caller's. It knows nothing of pods.
package link

import "errors"

// The ways in which a call can fail that a caller tells apart.
var (
	// ErrNotFound: no such netdev, address, route or sysctl in this namespace.
	ErrNotFound = errors.New("does not exist in this network namespace")
	// ErrNameTaken: another netdev of the target namespace has the name.
	ErrNameTaken = errors.New("the interface name is taken")
	// ErrExists: the address or route exists already, for a route perhaps through another netdev.
	ErrExists = errors.New("exists already")
	// ErrRefused: the kernel does not take the value (EINVAL), for instance an MTU above the driver's.
	ErrRefused = errors.New("the kernel refuses the value")
	// ErrBusy: something else uses the netdev in a way that rules this out (EBUSY).
	ErrBusy = errors.New("it is in use in another way")
	// ErrUnsupported: the kernel or the driver has no such thing (EOPNOTSUPP, EPROTONOSUPPORT).
	ErrUnsupported = errors.New("the driver does not know this setting")
	// ErrPermission: CAP_NET_ADMIN is missing.
	ErrPermission = errors.New("permission denied (CAP_NET_ADMIN is needed)")
)
