// SPDX-License-Identifier: Apache-2.0

package netconf

import "strings"

// CNI error codes. 1 to 99 are the CNI specification's (spec 1.1.0, section "Error"); from 100 on they are ours and listed
// in docs/errors.md.
const (
	CodeVersion     uint = 1   // incompatible CNI version
	CodeEnvironment uint = 4   // a CNI_ variable is missing or illegal
	CodeIO          uint = 5   // a file could not be read or written
	CodeDecode      uint = 6   // not JSON
	CodeInvalid     uint = 7   // the configuration cannot work
	CodeNetNS       uint = 8   // the network namespace is missing or is the node's own
	CodeTryLater    uint = 11  // will work once something else has ended
	CodeUnavailable uint = 50  // no ADD can work on this node as it stands
	CodeNoRDMA      uint = 100 // the kernel has no RDMA subsystem loaded
	CodeMode        uint = 101 // the node's RDMA namespace mode does not allow what was asked
	CodeDevice      uint = 102 // the device exists and is not one that can be given to a pod
	CodeInUse       uint = 103 // the device is used by the node itself
	CodeUverbs      uint = 104 // the uverbs number would change
	CodeNotReady    uint = 105 // no GID or no active port in time
	CodeExhausted   uint = 106 // no address left
	CodeNameTaken   uint = 107 // the interface name exists in the pod
	CodeHint        uint = 108 // the hint could not be delivered or cannot be right, and it was required
	CodeDelegate    uint = 109 // another IPAM plugin failed without a code of its own
	CodeInternal    uint = 199 // a step failed in a way that is not known; the error has the detail
)

// Problem is a refusal that a person has to act on. Its text begins with the remedy, because kubelet cuts long events.
type Problem struct { //nolint:errname // callers read netconf.Problem; it is a finding more than a failure
	Code   uint
	Remedy string // imperative sentence without a final period
	Field  string // where: "ipam.ranges[0][1].subnet", "CNI_IFNAME", "rdma device mlx5_3"
	Found  string // what stood there; empty when nothing did
	Right  string // what would be right; empty when the remedy says it
	Err    error  // the cause, or nil
}

// Error gives remedy, field, found, right and cause in this order on one line.
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.Remedy)
	if d := p.Details(); d != "" {
		b.WriteString(": ")
		b.WriteString(d)
	}
	return b.String()
}

// Details is Error without the remedy: what the CNI result carries beside the message.
func (p *Problem) Details() string {
	var parts []string
	if p.Field != "" {
		parts = append(parts, p.Field)
	}
	if p.Found != "" {
		parts = append(parts, "found "+p.Found)
	}
	if p.Right != "" {
		parts = append(parts, "right is "+p.Right)
	}
	if p.Err != nil {
		parts = append(parts, p.Err.Error())
	}
	return strings.Join(parts, ", ")
}

// Unwrap gives the cause.
func (p *Problem) Unwrap() error { return p.Err }
