// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"fmt"
	"path"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/statedir"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// homeVersion is the version of a home. It is not that of records, so that a program which cannot read a newer one's records still
// knows the names to give back.
const homeVersion = 1

// home is the file names/<device>.
type home struct {
	Version int          `json:"version"`
	Facts   attach.Facts `json:"facts"`
}

// SaveHome keeps what dev is like at home, for the case that a record is lost while the device is away: the kernel brings
// it back under the pod's name or as devN, and from then on nobody could tell. The first facts are kept until the node
// boots, unless they are of another device that had the same address, or cannot be read; but what a PF holds for a VF is kept
// as it is now, since others set that too. Facts of a device that is not at home are not kept.
func (s *Store) SaveHome(dev bus.ID, f attach.Facts) error {
	if f.Link == nil && !f.Function.Userspace() || f.Link != nil && f.Link.NS != attach.Host {
		return nil
	}
	if kept, err := s.LoadHome(dev); err == nil && attach.SameFunction(kept, f) && (kept.Link == nil) == (f.Link == nil) {
		if kept.VF == f.VF || kept.VF != nil && f.VF != nil && *kept.VF == *f.VF {
			return nil
		}
		kept.VF = f.VF
		f = kept
	}
	root, err := s.write()
	if err != nil {
		return err
	}
	defer closeRoot(root)
	if err = statedir.Make(root, namesDir); err != nil {
		return err
	}
	text, err := json.MarshalIndent(home{Version: homeVersion, Facts: f}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode home of %s: %w", dev, err)
	}
	return statedir.Write(root, nameOf(dev), append(text, '\n'))
}

// LoadHome gives what SaveHome kept. The error wraps ErrNotFound or ErrUnreadable.
func (s *Store) LoadHome(dev bus.ID) (attach.Facts, error) {
	root, err := s.read()
	if err != nil {
		return attach.Facts{}, err
	}
	defer closeRoot(root)
	text, err := s.readFile(root, nameOf(dev))
	if err != nil {
		return attach.Facts{}, err
	}
	var h home
	if err := json.Unmarshal(text, &h); err != nil {
		return attach.Facts{}, &UnreadableError{File: s.path(nameOf(dev)), Reason: "it is not JSON of a home: " + err.Error()}
	}
	if h.Version != homeVersion || h.Facts.Function.ID != dev {
		return attach.Facts{}, &UnreadableError{File: s.path(nameOf(dev)), Reason: "it is of another version or of another device"}
	}
	return h.Facts, nil
}

func nameOf(dev bus.ID) string { return path.Join(namesDir, dev.String()) }
