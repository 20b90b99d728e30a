// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"

	"github.com/podfabric/podfabric/plugin/statedir"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// promiseVersion is the version of a promise; like that of home names it is not that of records.
const promiseVersion = 1

// promise is the file names/<device>.uverbs.
type promise struct {
	Version int    `json:"version"`
	Pod     string `json:"pod"`    // UID
	Uverbs  int    `json:"uverbs"` // N of /dev/infiniband/uverbsN
}

// Promise keeps the uverbs number that dev has when a pod first asks for it, and gives the number that is kept. The device nodes of a
// container are chosen once, while its attachments may be made and taken back any number of times. Of each device the last pod is
// remembered until the node boots; one that cannot be read is of nobody. The error wraps ErrUnwritable.
func (s *Store) Promise(dev bus.ID, podUID string, uverbs int) (int, error) {
	root, err := s.write()
	if err != nil {
		return 0, err
	}
	defer closeRoot(root)
	text, err := s.readFile(root, promiseOf(dev))
	if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrUnreadable) {
		return 0, err
	}
	var kept promise
	if err == nil && json.Unmarshal(text, &kept) == nil && kept.Version == promiseVersion && kept.Pod == podUID && kept.Uverbs >= 0 {
		return kept.Uverbs, nil
	}
	if err = statedir.Make(root, namesDir); err != nil {
		return 0, err
	}
	text, err = json.Marshal(promise{promiseVersion, podUID, uverbs})
	if err != nil {
		return 0, fmt.Errorf("encode the uverbs number of %s: %w", dev, err)
	}
	return uverbs, statedir.Write(root, promiseOf(dev), append(text, '\n'))
}

// promiseOf has an ending that no device's name has.
func promiseOf(dev bus.ID) string { return path.Join(namesDir, dev.String()+".uverbs") }
