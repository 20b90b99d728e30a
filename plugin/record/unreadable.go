// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"errors"
	"fmt"

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

// unreadable says why text is no record of o.
func (s *Store) unreadable(o attach.Owner, text []byte, cause error) error {
	e := &UnreadableError{File: s.path(fileOf(o)), Reason: cause.Error(), Owner: o, Newer: errors.Is(cause, errNewer)}
	var r struct {
		Pod netconf.Pod `json:"pod"`
	}
	if err := json.Unmarshal(text, &r); err == nil {
		e.Pod = r.Pod
	}
	out := s.takenBy(o)
	e.NetNS = out.NetNS
	if e.Pod.Name == "" {
		e.Pod = out.Pod
	}
	if dev, err := s.ClaimedBy(o); err == nil {
		e.Device = dev
	} else {
		e.Device = out.Device
	}
	return e
}

// takenBy gives what is kept at the device that an attachment took from home; zero: nothing is. It is for messages, so that what cannot be
// read is passed over.
func (s *Store) takenBy(o attach.Owner) Out {
	devs, err := s.Outs()
	if err != nil {
		return Out{}
	}
	for _, dev := range devs {
		if out, err := s.LoadOut(dev); err == nil && out.Owner == o {
			return out
		}
	}
	return Out{}
}

func newer(version int) error {
	return fmt.Errorf("%w: its version is %d, this program knows %d", errNewer, version, Version)
}
