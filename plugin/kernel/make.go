// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"slices"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/link"
)

// spare is how far above all present ones an index is that no namespace gives to a new link meanwhile.
const spare = 1 << 20

// addLink makes a macvlan or ipvlan in the pod, unless the very one is there.
func (s *Session) addLink(v attach.AddLink) error {
	to, err := s.in(v.Link.NS)
	if err != nil {
		return err
	}
	home, err := s.host.links.List()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(home, func(l link.Link) bool { return l.Index == v.Master.Index }) {
		return fmt.Errorf("master %s (link %d) is not at home: %w", v.Master.Name, v.Master.Index, attach.ErrConflict)
	}
	there, err := to.links.List()
	if err != nil {
		return err
	}
	own, err := s.sitsOn(to, there, v.Master.Index)
	if err != nil {
		return err
	}
	for _, l := range own {
		if l.Kind == v.Kind && l.Name == v.Link.Name && (v.MAC == "" || l.MAC == v.MAC) {
			return nil
		}
	}
	n := link.New{
		Kind: v.Kind, Mode: v.Mode, Lower: v.Master.Index, Name: v.Link.Name, MAC: v.MAC, MTU: v.MTU, BCQueueLen: v.BCQueueLen,
	}
	if slices.Contains(names(home), v.Link.Name) {
		n.Index = spare + max(highest(home), highest(there))
	}
	err = to.ns.WithFD(func(fd int) error {
		n.NetNS = fd
		return s.host.links.Add(n)
	})
	if errors.Is(err, link.ErrNotFound) {
		return fmt.Errorf("%w: %w", attach.ErrConflict, err)
	}
	return err
}

func highest(links []link.Link) int {
	top := 0
	for _, l := range links {
		top = max(top, l.Index)
	}
	return top
}

// delLink removes the link of a step from the pod. One that is not there is gone already.
func (s *Session) delLink(v attach.DelLink) error {
	if v.Link.NS == attach.Elsewhere {
		return delLost(v)
	}
	p, err := s.in(v.Link.NS)
	if err != nil {
		return err
	}
	links, err := p.links.List()
	if err != nil {
		return err
	}
	l, found, err := s.made(p, links, v)
	if err != nil || !found {
		return err
	}
	err = p.links.Del(l.Index)
	if errors.Is(err, link.ErrNotFound) {
		return nil
	}
	return err
}

// made finds the link of a step among those of the pod.
func (s *Session) made(p *place, links []link.Link, v attach.DelLink) (link.Link, bool, error) {
	known := attach.OwnLink{Kind: v.Kind, Name: v.Link.Name, MAC: v.MAC, Index: v.Index}
	if v.Index != 0 {
		l, found := indexed(links, known)
		return l, found, nil
	}
	on, err := s.sitsOn(p, links, v.Master.Index)
	if err != nil {
		return link.Link{}, false, err
	}
	if v.MAC != "" {
		// One of another MAC is not the one that was made, whatever its name.
		on = slices.DeleteFunc(on, func(l link.Link) bool { return l.MAC != v.MAC })
	}
	return own(on, known)
}

// own picks the link of an attachment: by kind and MAC whatever its name, else by kind and name. More than one with the MAC and
// none with the name is a conflict: any of them could be another's.
func own(links []link.Link, known attach.OwnLink) (link.Link, bool, error) {
	kind := slices.DeleteFunc(slices.Clone(links), func(l link.Link) bool { return l.Kind != known.Kind })
	if mac := slices.DeleteFunc(slices.Clone(kind), func(l link.Link) bool { return l.MAC != known.MAC }); len(mac) > 0 {
		kind = mac
		if len(mac) == 1 {
			return mac[0], true, nil
		}
	}
	i := slices.IndexFunc(kind, func(l link.Link) bool { return l.Name == known.Name })
	switch {
	case i >= 0:
		return kind[i], true, nil
	case len(kind) > 1 && kind[0].MAC == known.MAC:
		return link.Link{}, false, fmt.Errorf("%d links of kind %s have MAC %s, none of them is %s: %w", len(kind), known.Kind, known.MAC,
			known.Name, attach.ErrConflict)
	}
	return link.Link{}, false, nil
}
