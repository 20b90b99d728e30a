// SPDX-License-Identifier: Apache-2.0

package record

import (
	"errors"

	"github.com/podfabric/podfabric/rdmans/pci"
)

// Claims lists the devices that a claim stands for, good, stale or unreadable, by name. What is no device's name is left out.
func (s *Store) Claims() ([]pci.Addr, error) { return s.devices(claimsDir) }

// Homes lists the devices that SaveHome kept something of, readable or not, by name.
func (s *Store) Homes() ([]pci.Addr, error) { return s.devices(namesDir) }

func (s *Store) devices(folder string) ([]pci.Addr, error) {
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
	var devs []pci.Addr
	for _, name := range names {
		if dev, err := pci.Parse(name); err == nil && dev.String() == name {
			devs = append(devs, dev)
		}
	}
	return devs, nil
}
