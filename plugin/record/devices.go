// SPDX-License-Identifier: Apache-2.0

package record

import (
	"errors"

	"github.com/podfabric/podfabric/rdmans/bus"
)

// Claims lists the devices that a claim stands for, good, stale or unreadable, by name. What is no device's name is left out.
func (s *Store) Claims() ([]bus.ID, error) { return s.devices(claimsDir) }

// Homes lists the devices that SaveHome kept something of, readable or not, by name.
func (s *Store) Homes() ([]bus.ID, error) { return s.devices(namesDir) }

func (s *Store) devices(folder string) ([]bus.ID, error) {
	root, err := s.read()
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer closeRoot(root)
	names, err := s.names(root, folder)
	if err != nil {
		return nil, err
	}
	var devs []bus.ID
	for _, name := range names {
		if dev, err := bus.Parse(name); err == nil && dev.String() == name {
			devs = append(devs, dev)
		}
	}
	return devs, nil
}
