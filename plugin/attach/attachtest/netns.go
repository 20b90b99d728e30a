// SPDX-License-Identifier: Apache-2.0

package attachtest

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/podfabric/podfabric/plugin/attach"
)

func (k *Kernel) space(path string) *netns {
	k.nextIno++
	// Cookies are given in turn, and no two are alike.
	ns := &netns{id: attach.NetNS{Path: path, Dev: 4, Ino: k.nextIno, Cookie: k.nextIno - firstIno}, visible: true, returnIn: -1}
	k.spaces = append(k.spaces, ns)
	return ns
}

// AddNetNS makes a namespace, holding lo, that path leads to. A path may be used again once its namespace is dead or held.
func (k *Kernel) AddNetNS(path string) attach.NetNS {
	k.mu.Lock()
	defer k.mu.Unlock()
	ns := k.space(path)
	k.newLink(link{ns: ns, name: "lo", typ: "loopback", mac: "00:00:00:00:00:00", mtu: 65536})
	return ns.id
}

// KillNetNS ends a namespace, living or held, at once. What has hardware below it comes home: a netdev down, without addresses,
// under the name it has or as devN if that is taken, an RDMA device under its name or as ibdevN. All else dies.
func (k *Kernel) KillNetNS(path string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, ns := range slices.Clone(k.spaces) {
		if ns != k.host && ns.id.Path == path {
			k.die(ns)
		}
	}
}

// RenewNetNS ends the namespace at a path and makes another there, which gets its inode, as the kernel gives it to the next one.
func (k *Kernel) RenewNetNS(path string) attach.NetNS {
	k.mu.Lock()
	ino := k.byPath(path).id.Ino
	k.mu.Unlock()
	k.KillNetNS(path)
	k.AddNetNS(path)
	k.mu.Lock()
	defer k.mu.Unlock()
	ns := k.byPath(path)
	ns.id.Ino = ino
	return ns.id
}

// HoldNetNS takes the path from a namespace that something, a stray process perhaps, still holds: its devices are in no
// namespace that can be seen. After looks more calls of Observe it dies; with a negative number it stays until KillNetNS.
func (k *Kernel) HoldNetNS(path string, looks int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if ns := k.byPath(path); ns != nil {
		ns.visible, ns.returnIn = false, looks
	}
}

func (k *Kernel) byPath(path string) *netns {
	for _, ns := range k.spaces {
		if ns != k.host && ns.visible && ns.id.Path == path {
			return ns
		}
	}
	return nil
}

func (k *Kernel) die(ns *netns) {
	ns.dead, ns.visible = true, false
	k.spaces = slices.DeleteFunc(k.spaces, func(x *netns) bool { return x == ns })
	for _, l := range slices.Clone(k.links) {
		if l.ns != ns {
			continue
		}
		if !slices.Contains(k.links, l) {
			continue // gone with its master
		}
		if l.dev.IsZero() {
			k.dropLink(l)
			continue
		}
		name := l.name
		for n := 0; k.linkAt(k.host, name) != nil; n++ {
			name = fmt.Sprintf("dev%d", n)
		}
		l.alt = slices.DeleteFunc(l.alt, func(n string) bool { return k.linkAt(k.host, n) != nil })
		k.relocate(l, k.host, name)
	}
	for _, d := range slices.Clone(k.rdma) {
		if d.ns != ns {
			continue
		}
		if k.deviceAt(k.host, d.name) != nil {
			d.name = fmt.Sprintf("ibdev%d", d.index)
		}
		k.reregister(d, k.host)
	}
}

// relocate is what the kernel does to a link that changes its namespace (style.md M5, M8).
func (k *Kernel) relocate(l *link, ns *netns, name string) {
	k.nextLink++
	l.ns, l.name, l.index = ns, name, k.nextLink
	l.up, l.addrs, l.routes, l.sysctls, l.inUse = false, nil, nil, freshSysctls(ns, l.traits), nil
	l.local, l.dflt = netip.Addr{}, false
	k.release(l)
	for _, d := range slices.Clone(k.rdma) {
		if d.link != l {
			continue
		}
		if d.soft {
			k.dropDevice(d)
			continue
		}
		d.table.clear()
	}
	k.syncGIDs()
}

// reregister is what the kernel does to an RDMA device that changes its namespace: users lose it, its uverbs number is freed
// and the lowest free one taken, its GIDs are written anew.
func (k *Kernel) reregister(d *device, ns *netns) {
	d.ns, d.users = ns, nil
	d.uverbs = -1
	d.uverbs = k.freeUverbs()
	d.table.clear()
	k.syncGIDs()
}

// release takes a link out of its bonds: a port that leaves the namespace leaves them. VLANs, macvlans and ipvlans stay on it
// wherever it goes (NETDEV_UNREGISTER of a move is no end to them).
func (k *Kernel) release(l *link) {
	for _, b := range k.uppers(l) {
		if b.kind == bond {
			b.lowers = slices.DeleteFunc(b.lowers, func(x *link) bool { return x == l })
		}
	}
}

// dropLink is the end of a link and of all that sits on it but bonds, and of the other end of a pair.
func (k *Kernel) dropLink(l *link) {
	k.release(l)
	for _, x := range k.uppers(l) {
		k.dropLink(x)
	}
	if p := l.peer; p != nil {
		l.peer, p.peer = nil, nil
		k.dropLink(p)
	}
	k.links = slices.DeleteFunc(k.links, func(x *link) bool { return x == l })
	for _, d := range slices.Clone(k.rdma) {
		if d.link == l && d.soft {
			k.dropDevice(d)
		} else if d.link == l {
			d.link = nil
		}
	}
	k.syncGIDs()
}

func (k *Kernel) dropDevice(d *device) {
	k.rdma = slices.DeleteFunc(k.rdma, func(x *device) bool { return x == d })
}

// Session is one verb's view of the machine: the host and at most one pod's namespace.
type Session struct {
	k      *Kernel
	pod    *netns // nil: none
	closed bool
}

// Open looks at the machine and, unless path is empty, into that namespace.
func (k *Kernel) Open(ctx context.Context, path string) (*Session, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s := &Session{k: k}
	switch {
	case path == OwnNetNS:
		return nil, fmt.Errorf("open %s: %w", path, attach.ErrOwnNetNS)
	case path != "":
		if s.pod = k.byPath(path); s.pod == nil {
			return nil, fmt.Errorf("open %s: %w", path, attach.ErrNoNetNS)
		}
	}
	k.sessions++
	return s, nil
}

// PodNS gives the identity of the pod's namespace; zero when there is none.
func (s *Session) PodNS() attach.NetNS {
	if s.pod == nil {
		return attach.NetNS{}
	}
	return s.pod.id
}

// HostNS gives the identity of the host's namespace.
func (s *Session) HostNS() attach.NetNS { return s.k.host.id }

// Close ends the session. It may be called again.
func (s *Session) Close() error {
	s.k.mu.Lock()
	defer s.k.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.k.sessions--
	}
	return nil
}

// at gives the namespace that ns means in this session; nil when there is none or it is dead.
func (s *Session) at(ns attach.NS) *netns {
	switch ns {
	case attach.Host:
		return s.k.host
	case attach.Pod:
		if s.pod != nil && !s.pod.dead {
			return s.pod
		}
	case attach.Elsewhere:
	}
	return nil
}

// from gives the name by which the session knows ns.
func (s *Session) from(ns *netns) attach.NS {
	switch ns {
	case s.k.host:
		return attach.Host
	case s.pod:
		return attach.Pod
	}
	return attach.Elsewhere
}
