// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/statedir"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// outVersion is the version of an Out; like that of home names it is not that of records.
const outVersion = 1

// outDir is where the files out/<device> are.
const outDir = "out"

// Out is an attachment's device seen from the device: who took it from home, what it was like there, and what was made of it. It is
// written before the first change and stays until the device is at home as it was, so that a record which is lost or cannot be
// read takes nothing with it.
type Out struct {
	Version int          `json:"version"` // set by SaveOut
	Device  bus.ID       `json:"device"`
	Owner   attach.Owner `json:"owner"`
	Pod     netconf.Pod  `json:"pod"`
	NetNS   attach.NetNS `json:"netns"`
	Before  attach.Facts `json:"before"`
	Given   attach.Given `json:"given"`
}

// Record is what an Out tells of its attachment's record.
func (o Out) Record() Record {
	return Record{
		State: Done, Owner: o.Owner, Pod: o.Pod, NetNS: o.NetNS, Device: o.Device, Before: o.Before, VF: o.Given.VF, Moved: o.Given.Moved,
		Soft: attach.SoftName(o.Owner),
	}
}

// SaveOut writes down that a device is taken from home. Its error wraps ErrUnwritable or ErrOwner.
func (s *Store) SaveOut(o Out) error {
	if err := checkOwner(o.Owner); err != nil {
		return err
	}
	root, err := s.write()
	if err != nil {
		return err
	}
	defer closeRoot(root)
	if err = statedir.Make(root, outDir); err != nil {
		return err
	}
	o.Version = outVersion
	text, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return fmt.Errorf("encode what is out of %s: %w", o.Device, err)
	}
	return statedir.Write(root, outOf(o.Device), append(text, '\n'))
}

// LoadOut gives what SaveOut wrote of dev. The error wraps ErrNotFound or ErrUnreadable.
func (s *Store) LoadOut(dev bus.ID) (Out, error) {
	root, err := s.read()
	if err != nil {
		return Out{}, err
	}
	defer closeRoot(root)
	text, err := s.readFile(root, outOf(dev))
	if err != nil {
		return Out{}, err
	}
	var o Out
	if err := json.Unmarshal(text, &o); err != nil {
		return Out{}, &UnreadableError{File: s.path(outOf(dev)), Reason: "it is not JSON of a device that is out: " + err.Error()}
	}
	if o.Version != outVersion || o.Device != dev || checkOwner(o.Owner) != nil {
		return Out{}, &UnreadableError{File: s.path(outOf(dev)), Reason: "it is of another version or of another device"}
	}
	return o, nil
}

// DropOut forgets that o took dev from home. What another attachment wrote stays; what cannot be read goes, since whoever calls knows
// the device to be home.
func (s *Store) DropOut(o attach.Owner, dev bus.ID) error {
	kept, err := s.LoadOut(dev)
	switch {
	case errors.Is(err, ErrNotFound), err == nil && kept.Owner != o:
		return nil
	case err != nil && !errors.Is(err, ErrUnreadable):
		return err
	}
	root, err := s.read()
	if err != nil {
		return err
	}
	defer closeRoot(root)
	return s.remove(root, outOf(dev))
}

// Outs lists the devices that SaveOut wrote something of, readable or not, by name.
func (s *Store) Outs() ([]bus.ID, error) { return s.devices(outDir) }

func outOf(dev bus.ID) string { return path.Join(outDir, dev.String()) }
