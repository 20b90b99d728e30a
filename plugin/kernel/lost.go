// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"slices"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/link"
	"github.com/podfabric/podfabric/rdmans"
)

// lost looks for an attachment's link, which is not in the pod, in every namespace that a process lives in or a path leads to, and gives it
// with its namespace; nil: it is in none of them. One that a descriptor or a thread alone keeps is not found: looking through all of
// those takes too long for a DEL.
func (s *Session) lost(ctx context.Context, q attach.Query) (*attach.Link, attach.NetNS, error) {
	var found *attach.Link
	var in attach.NetNS
	scan := rdmans.Scan{Proc: s.kernel.Proc, Run: s.kernel.RunNetns}
	err := s.each(ctx, scan, func(p *place, n rdmans.Namespace) error {
		if found != nil || s.pod != nil && n.ID == s.pod.ns.ID() {
			return nil
		}
		l, is, err := s.strayed(p, q)
		if err != nil || !is {
			return err
		}
		found, in = s.described(p, l), holding("", n).NS
		found.NS, in.Cookie = attach.Elsewhere, p.ns.Cookie()
		return nil
	})
	return found, in, err
}

// strayed finds an attachment's link in a namespace: as in the pod if it is the pod's, else by a MAC that no other link on the master has.
func (s *Session) strayed(p *place, q attach.Query) (link.Link, bool, error) {
	links, err := p.links.List()
	if err != nil {
		return link.Link{}, false, err
	}
	pods := q.Lost.NetNS.Cookie != 0 && p.ns.ID().Ino == q.Lost.NetNS.Ino && p.ns.Cookie() == q.Lost.NetNS.Cookie
	if l, found := indexed(links, q.Own); pods && found {
		return l, true, nil
	}
	on, err := s.sitsOn(p, links, q.Master.Index)
	if err != nil {
		return link.Link{}, false, err
	}
	if pods {
		l, found, err := own(on, q.Own)
		if errors.Is(err, attach.ErrConflict) {
			return link.Link{}, false, nil // any of several: none that is known to be it
		}
		return l, found, err
	}
	i := slices.IndexFunc(on, func(l link.Link) bool { return q.Lost.MAC != "" && l.MAC == q.Lost.MAC && l.Kind == q.Own.Kind })
	if i < 0 {
		return link.Link{}, false, nil
	}
	return on[i], true, nil
}

// delLost removes a link from the namespace in which it was found. Where that is gone by now, or its holder has ended, the next look tells.
func delLost(v attach.DelLink) error {
	ns, err := rdmans.OpenNS(v.In.Path)
	if errors.Is(err, rdmans.ErrNoNamespace) {
		return nil
	}
	if err != nil {
		return err
	}
	p, err := newPlace(ns)
	if err != nil {
		return errors.Join(err, ns.Close())
	}
	id := attach.NetNS{Dev: ns.ID().Dev, Ino: ns.ID().Ino, Cookie: ns.Cookie()}
	links, err := p.links.List()
	l, found := indexed(links, attach.OwnLink{Kind: v.Kind, Index: v.Index})
	if err == nil && found && id.Same(v.In) {
		err = p.links.Del(l.Index)
	}
	if errors.Is(err, link.ErrNotFound) {
		err = nil
	}
	return errors.Join(err, p.close())
}
