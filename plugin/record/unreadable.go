// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// UnreadableError is ErrUnreadable with the file and the reason.
type UnreadableError struct {
	File   string
	Reason string
	Owner  attach.Owner // whose record the file is by its name; zero: it is no record's
	Pod    netconf.Pod  // of Owner, as far as the file or what is kept at the device tells; zero: nothing does
	Device bus.ID       // of Owner, by its claim or by what is kept at the device; zero: neither tells
	NetNS  attach.NetNS // of Pod, by what is kept at the device; zero: it does not tell
	Newer  bool         // a newer version wrote it
}

// Error names file, pod and reason.
func (e *UnreadableError) Error() string {
	text := "read record " + e.File
	if e.Pod.Name != "" {
		text += " of pod " + e.Pod.String()
	}
	return text + ": " + e.Reason
}

// Unwrap gives ErrUnreadable.
func (e *UnreadableError) Unwrap() error { return ErrUnreadable }

// Remedy says what a person does about an attachment whose record it is, with the pod's name if that is known.
func (e *UnreadableError) Remedy() string {
	text := "delete the pod of container " + e.Owner.ContainerID
	switch {
	case e.Pod.Name != "":
		text = "delete pod " + e.Pod.String()
	case e.Owner.ContainerID == "":
		return "look at the file that the details name, and remove it if it is not podfabric's"
	}
	if e.Newer {
		return "install the newer podfabric that wrote the record again, or " + text
	}
	return text
}

// unreadable says why text is no record of o. What else tells of o is for tell to add.
func (s *Store) unreadable(o attach.Owner, text []byte, cause error) error {
	e := &UnreadableError{File: s.path(fileOf(o)), Reason: cause.Error(), Owner: o, Newer: errors.Is(cause, errNewer)}
	var r struct {
		Pod netconf.Pod `json:"pod"`
	}
	if err := json.Unmarshal(text, &r); err == nil {
		e.Pod = r.Pod
	}
	return e
}

// tell adds to errors of records what claims and devices tell of their owners. After a downgrade that may be all records of a node, so both are
// read once for all of them. It is for messages, so that what cannot be read is passed over.
func (s *Store) tell(root *os.Root, errs []error) {
	var records []*UnreadableError
	for _, err := range errs {
		if e, ok := errors.AsType[*UnreadableError](err); ok && e.Owner != (attach.Owner{}) {
			records = append(records, e)
		}
	}
	if len(records) == 0 {
		return
	}
	outs, claims := s.takenBy(), s.claimed(root)
	for _, e := range records {
		out := outs[e.Owner]
		e.NetNS, e.Device = out.NetNS, out.Device
		if dev, is := claims[e.Owner]; is {
			e.Device = dev
		}
		if e.Pod.Name == "" {
			e.Pod = out.Pod
		}
	}
}

// takenBy gives what is kept at devices by the attachment that took each from home, the first of several.
func (s *Store) takenBy() map[attach.Owner]Out {
	outs := map[attach.Owner]Out{}
	devs, _ := s.Outs()
	for _, dev := range devs {
		out, err := s.LoadOut(dev)
		if _, is := outs[out.Owner]; err == nil && !is {
			outs[out.Owner] = out
		}
	}
	return outs
}

// claimed gives the devices that there are claims on by who claims them, the first of several.
func (s *Store) claimed(root *os.Root) map[attach.Owner]bus.ID {
	claims := map[attach.Owner]bus.ID{}
	names, _ := s.names(root, claimsDir)
	for _, name := range names {
		dev, err := bus.Parse(name)
		if err != nil || dev.String() != name {
			continue
		}
		o, err := s.pointee(root, name)
		if _, is := claims[o]; err == nil && !is {
			claims[o] = dev
		}
	}
	return claims
}

func newer(version int) error {
	return fmt.Errorf("%w: its version is %d, this program knows %d", errNewer, version, Version)
}
