// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"strings"
)

// Homed gives facts their home names. A device whose last way home met a taken name still has the name that the kernel or a pod
// gave it; were that recorded as its home name, it would keep it for ever. home are the facts that were kept when the device
// was first seen; those of another device that had the same address do not count. A name that somebody chose since, an
// operator or udev, stays.
func Homed(seen, home Facts) Facts {
	if seen.Master != nil || !SameFunction(seen, home) {
		return seen // what stays at home is called as it is
	}
	if l, h := seen.Link, home.Link; l != nil && h != nil && l.NS == Host && h.NS == Host && strayLink(l.Name) {
		named := *l
		named.Name = h.Name
		seen.Link = &named
	}
	if d, h := seen.RDMA, home.RDMA; d != nil && h != nil && d.NS == Host && d.Name == fmt.Sprintf("ibdev%d", d.Index) {
		named := *d
		named.Name = h.Name
		seen.RDMA = &named
	}
	return seen
}

// Named gives facts the names of home, whatever the device is called.
func Named(seen, home Facts) Facts {
	if !SameFunction(seen, home) {
		return seen
	}
	if l, h := seen.Link, home.Link; l != nil && h != nil && l.NS == Host && h.NS == Host {
		named := *l
		named.Name = h.Name
		seen.Link = &named
	}
	if d, h := seen.RDMA, home.RDMA; d != nil && h != nil && d.NS == Host {
		named := *d
		named.Name = h.Name
		seen.RDMA = &named
	}
	return seen
}

// SameFunction tells whether two facts are of one function with one RDMA device, by what both keep for their lives.
func SameFunction(a, b Facts) bool {
	if a.Function.ID != b.Function.ID || Anew(a.Function, b.Function) || (a.RDMA == nil) != (b.RDMA == nil) {
		return false
	}
	return a.RDMA == nil || a.RDMA.Index == b.RDMA.Index && a.RDMA.NodeGUID == b.RDMA.NodeGUID
}

// strayLink tells whether a name is one under which the kernel returns a netdev: devN when its own is taken, or the pod's, which
// Multus makes netN.
func strayLink(name string) bool {
	for _, prefix := range []string{"dev", "net"} {
		if digits, ok := strings.CutPrefix(name, prefix); ok && digits != "" && strings.Trim(digits, "0123456789") == "" {
			return true
		}
	}
	return false
}
