// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans"
)

// moveRDMA moves an RDMA device if it is not there yet.
func (s *Session) moveRDMA(v attach.MoveRDMA) error {
	to, err := s.in(v.To)
	if err != nil {
		return err
	}
	from, err := s.in(v.From)
	if err != nil {
		return err
	}
	mode, err := s.host.rdma.Mode()
	if err != nil {
		return err
	}
	if mode == rdmans.Shared && v.To != attach.Host {
		return fmt.Errorf("move RDMA device %s: %w", v.Name, rdmans.ErrShared)
	}
	_, found, err := pick(to, v)
	if err != nil || found {
		return err
	}
	d, found, err := pick(from, v)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("RDMA device %s (index %d) is neither in %s nor in %s: %w", label(v), v.Index, v.To, v.From, attach.ErrConflict)
	}
	err = from.rdma.Move(d.Index, to.ns)
	if v.Soft != "" && errors.Is(err, rdmans.ErrUnsupported) {
		return fmt.Errorf("%w: %s", err, rdmans.SoftRemedy)
	}
	return err
}

func label(v attach.MoveRDMA) string {
	if v.Soft != "" {
		return v.Soft
	}
	return v.Name
}

// pick finds the device of a step in a namespace. Another device under the same index is a conflict: the one that was to be
// moved is gone, and this one is nobody's to move.
func pick(p *place, v attach.MoveRDMA) (rdmans.Device, bool, error) {
	devices, err := p.rdma.Devices()
	if err != nil {
		return rdmans.Device{}, false, err
	}
	for _, d := range devices {
		switch {
		case v.Soft != "" && d.Name == v.Soft:
			return d, true, nil
		case v.Soft == "" && d.Index == v.Index:
			if d.NodeGUID != v.GUID {
				return rdmans.Device{}, false, fmt.Errorf("RDMA device %d has GUID %s, not %s: %w", d.Index, d.NodeGUID, v.GUID, attach.ErrConflict)
			}
			return d, true, nil
		}
	}
	return rdmans.Device{}, false, nil
}

// addSoft makes the device from a thread in the link's namespace, since that is where the kernel looks the netdev up.
func (s *Session) addSoft(v attach.AddSoftRoCE) error {
	for _, p := range s.places() {
		if _, err := p.rdma.ByName(v.Name); !errors.Is(err, rdmans.ErrNotFound) {
			return err
		}
	}
	p, l, err := s.named(v.Link)
	if err != nil {
		return err
	}
	return p.rdma.AddSoft(v.Name, l.Name)
}

func (s *Session) delSoft(v attach.DelSoftRoCE) error {
	for _, p := range s.places() {
		_, err := p.rdma.ByName(v.Name)
		if errors.Is(err, rdmans.ErrNotFound) {
			continue
		}
		if errors.Is(err, rdmans.ErrNoRDMA) {
			return nil
		}
		if err != nil {
			return err
		}
		// It goes with its netdev, which may be going at this moment.
		if err := p.rdma.DelSoft(v.Name); !errors.Is(err, rdmans.ErrNotFound) {
			return err
		}
	}
	return nil
}

// places are the namespaces at hand, the host's first.
func (s *Session) places() []*place {
	if s.pod == nil {
		return []*place{s.host}
	}
	return []*place{s.host, s.pod}
}
