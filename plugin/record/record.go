// SPDX-License-Identifier: Apache-2.0

// Package record keeps on disk what was done to which device for which pod, so that whoever comes next can take it back:
// a DEL, another ADD, a repair, also of another version of this program and after a kill at any moment. It decides nothing
// about devices and touches none.
//
// Below the store's folder:
//
//	attachments/<containerID>/<ifname>.json  a record
//	claims/<device>                          symbolic link ../attachments/<containerID>/<ifname>.json
//	names/<device>                           what the device was like at home, kept for the boot
//	names/<device>.uverbs                    by which number the last pod's container was given it, kept for the boot
//	out/<device>.json                        who took the device from home, and what was made of it
//
// symlink(2) is the exclusive create of a claim, and a claim that leads to no record of its device is nobody's.
package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/statedir"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// The errors of this package.
var (
	// ErrNotFound: there is no such record or claim; nothing was done.
	ErrNotFound = errors.New("no record")
	// ErrUnreadable: something stands there and is no record that this version understands. It is kept. The error is an
	// *UnreadableError.
	ErrUnreadable = errors.New("the record cannot be read")
	// ErrClaimed: the device is another attachment's. The error is a *ClaimedError.
	ErrClaimed = errors.New("the device is claimed")
	// ErrStale: a claim leads to no record, or to another device's. It comes with ErrNotFound, since nobody holds the device.
	ErrStale = errors.New("the claim is stale")
	// ErrOwner: a container ID or an interface name cannot be part of a path.
	ErrOwner = errors.New("not usable as a file name")
	// ErrUnwritable: the folder or its file system cannot be written. The error is a *statedir.UnwritableError.
	ErrUnwritable = statedir.ErrUnwritable

	// errNewer begins the reason of a record that a newer version wrote.
	errNewer = errors.New("a newer podfabric wrote it")
)

// ClaimedError is ErrClaimed with who holds the device.
type ClaimedError struct {
	Device bus.ID
	Holder attach.Owner
}

// Error names device and holder.
func (e *ClaimedError) Error() string {
	return fmt.Sprintf("claim device %s: held by container %s, interface %s", e.Device, e.Holder.ContainerID, e.Holder.IfName)
}

// Unwrap gives ErrClaimed.
func (e *ClaimedError) Unwrap() error { return ErrClaimed }

// State is how far an attachment has come.
type State string

// The states. From the intent on, everything that may have been done can be told from Before and what is seen.
const (
	Intent    State = "intent"    // ADD has begun, or was killed
	Done      State = "done"      // ADD has succeeded
	Deleting  State = "deleting"  // DEL has begun; an ADD still at work must undo
	Returning State = "returning" // DEL is over and something is not home yet
)

// IPAM is what is needed to give addresses back without a configuration.
type IPAM struct {
	Kind   netconf.IPAMKind `json:"kind,omitempty"`
	Plugin string           `json:"plugin,omitempty"` // the delegate's type
	Config json.RawMessage  `json:"config,omitempty"` // the whole configuration, for the delegate
}

// Record is one attachment. It holds facts and the result, never steps, so that a newer program can undo an older one's work.
type Record struct {
	Version    int              `json:"version"`              // set by Save
	Compatible int              `json:"compatible,omitempty"` // set by Save: the oldest version whose programs may act on it; 0: its own
	State      State            `json:"state"`
	Owner      attach.Owner     `json:"owner"`
	Pod        netconf.Pod      `json:"pod"`
	Network    string           `json:"network"`
	CNIVersion string           `json:"cniVersion,omitempty"`
	NetNS      attach.NetNS     `json:"netns"`
	Device     bus.ID           `json:"device,omitzero"` // what was moved whole, and is claimed; zero: nothing
	Master     attach.Lower     `json:"master,omitzero"` // the link at home that the pod's is on; zero: none
	Own        attach.OwnLink   `json:"own,omitzero"`    // which the pod's link is, where no device tells; the MAC asked for
	Kind       netconf.Kind     `json:"kind,omitempty"`
	VF         *attach.VFState  `json:"vf,omitempty"`        // what the PF's driver is to hold for the VF, and when ADD was done held; nil: not set
	FLR        bool             `json:"flr,omitempty"`       // a function-level reset is to be made at DEL
	Soft       string           `json:"soft,omitempty"`      // name of the soft RoCE device, made or to be made
	Moved      bool             `json:"moved,omitempty"`     // the RDMA device was moved into the pod
	Before     attach.Facts     `json:"before"`              // facts before the first change
	Addresses  []netip.Prefix   `json:"addresses,omitempty"` // on the pod's interface
	GIDs       []attach.WantGID `json:"gids,omitempty"`      // of these addresses, as ADD saw them
	IPAM       IPAM             `json:"ipam"`
	Args       string           `json:"args,omitempty"`   // CNI_ARGS
	Path       string           `json:"path,omitempty"`   // CNI_PATH
	Result     json.RawMessage  `json:"result,omitempty"` // what ADD printed, version 1.1
	Warnings   []string         `json:"warnings,omitempty"`
	Created    time.Time        `json:"created"`
	Writer     string           `json:"writer,omitempty"` // version of the program that wrote it
}

// Subject names in a message what the attachment is made of.
func (r Record) Subject() string {
	switch {
	case !r.Device.IsZero():
		return r.Device.String()
	case r.Master.Index != 0:
		return r.Master.Name
	}
	return r.Owner.IfName
}

// Decode reads a record. One of a newer version counts if it says that programs of this version may act on it. The error says why
// it is none, in words for a person.
func Decode(text []byte) (Record, error) {
	var head struct {
		Version    *int `json:"version"`
		Compatible int  `json:"compatible"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return Record{}, fmt.Errorf("it is not JSON of a record: %w", err)
	}
	switch {
	case head.Version == nil:
		return Record{}, errors.New("it has no version, so podfabric did not write it")
	case *head.Version > Version && (head.Compatible < 1 || head.Compatible > Version):
		return Record{}, newer(*head.Version)
	case *head.Version < 1:
		return Record{}, fmt.Errorf("its version is %d, which never was", *head.Version)
	}
	var r Record
	if err := json.Unmarshal(text, &r); err != nil {
		return Record{}, fmt.Errorf("it is not a record of version %d: %w", *head.Version, err)
	}
	switch r.State {
	case Intent, Done, Deleting, Returning:
	default:
		return Record{}, fmt.Errorf("its state is %q, which never was", r.State)
	}
	if err := checkOwner(r.Owner); err != nil {
		return Record{}, err
	}
	return r, nil
}

func encode(r Record) ([]byte, error) {
	r.Version, r.Compatible = Version, compatible
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	return append(text, '\n'), nil
}
