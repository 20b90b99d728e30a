// SPDX-License-Identifier: Apache-2.0

package attach

import "net/netip"

// Want is what a record promises of an attachment.
type Want struct {
	IfName string
	Before Facts          // of the function, before it was attached
	Addrs  []netip.Prefix // on the pod's interface
	Moved  bool           // the function's RDMA device is in the pod
	Soft   string         // name of the soft RoCE device; empty: none
	GIDs   []WantGID      // of the addresses, as ADD saw them
}

// WantGID is a GID that ADD saw.
type WantGID struct {
	Port  int        `json:"port"`
	Index int        `json:"index"`
	Addr  netip.Addr `json:"addr"`
}

// Diff compares.
func Diff(w Want, now Facts, ports []Port) (errs, warnings []string) { return nil, nil }
