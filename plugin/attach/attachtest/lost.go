// SPDX-License-Identifier: Apache-2.0

package attachtest

import (
	"strings"

	"github.com/podfabric/podfabric/plugin/attach"
)

// lost looks for the attachment's link in the namespaces that a path or a process leads to.
func (s *Session) lost(q attach.Query, f *attach.Facts) {
	k := s.k
	k.searches++
	for _, ns := range k.spaces {
		if ns == k.host || ns == s.pod || !ns.visible && !ns.inhabited() {
			continue
		}
		if l := k.strayed(ns, q); l != nil {
			f.Link, f.LinkNS = s.facts(l), k.holding("", ns).NS
			return
		}
	}
}

// inhabited tells whether a process lives in a namespace that is held: one with a descriptor of it lives elsewhere.
func (ns *netns) inhabited() bool {
	for _, h := range ns.holders {
		if !strings.Contains(h, ",") {
			return true
		}
	}
	return false
}

func (k *Kernel) strayed(ns *netns, q attach.Query) *link {
	master := k.masterAt(q.Master.Index)
	on := func(l *link) bool { return master != nil && outOf(ns, l) == master }
	if q.Lost.NetNS.Cookie == ns.id.Cookie {
		return k.owned(ns, q.Own, true, on)
	}
	for _, l := range k.links {
		if l.ns == ns && l.kind == q.Own.Kind && q.Lost.MAC != "" && l.address() == q.Lost.MAC && on(l) {
			return l
		}
	}
	return nil
}

// delLost removes a link from the namespace in which it was found.
func (s *Session) delLost(step attach.DelLink) error {
	for _, ns := range s.k.spaces {
		if ns.id.Cookie != step.In.Cookie {
			continue
		}
		own := attach.OwnLink{Kind: step.Kind, Index: step.Index}
		if l := s.k.owned(ns, own, false, func(*link) bool { return false }); l != nil {
			s.k.call()
			s.k.dropLink(l)
		}
	}
	return nil
}

// Searches counts the looks into every namespace so far.
func (k *Kernel) Searches() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.searches
}
