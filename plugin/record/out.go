// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/statedir"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// outVersion is the version of an Out; like that of home names it is not that of records.
const outVersion = 1

// outDir is where the files out/<device>.json are.
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

// DropOut forgets that o took dev from home, and removes what writes that were cut short left of it. What another attachment wrote
// stays; what cannot be read goes, since whoever calls knows the device to be home, and holds its lock.
func (s *Store) DropOut(o attach.Owner, dev bus.ID) error {
	root, err := s.read()
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closeRoot(root)
	names, err := s.names(root, outDir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if statedir.IsTemporary(name, path.Base(outOf(dev))) {
			err = errors.Join(err, s.remove(root, path.Join(outDir, name)))
		}
	}
	kept, loadErr := s.LoadOut(dev)
	switch {
	case errors.Is(loadErr, ErrNotFound), loadErr == nil && kept.Owner != o:
		return err
	case loadErr != nil && !errors.Is(loadErr, ErrUnreadable):
		return errors.Join(err, loadErr)
	}
	return errors.Join(err, s.remove(root, outOf(dev)))
}

// Outs lists the devices that SaveOut wrote something of, readable or not, by name.
func (s *Store) Outs() ([]bus.ID, error) {
	root, err := s.read()
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer closeRoot(root)
	names, err := s.names(root, outDir)
	if err != nil {
		return nil, err
	}
	var devs []bus.ID
	for _, name := range names {
		id := strings.TrimSuffix(name, suffix)
		if dev, err := bus.Parse(id); err == nil && path.Base(outOf(dev)) == name {
			devs = append(devs, dev)
		}
	}
	return devs, nil
}

// outOf has an ending that no device's name has, so that a temporary file tells of which device it is.
func outOf(dev bus.ID) string { return path.Join(outDir, dev.String()+suffix) }
