// SPDX-License-Identifier: Apache-2.0

// Package kernel is the machine: it collects the facts that attach decides on, applies its steps, and tells where a node's
// devices are. It decides nothing itself, keeps nothing between two calls but open sockets, and reads no configuration.
package kernel

import (
	"context"
	"errors"
	"fmt"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/link"
	"github.com/podfabric/podfabric/rdmans"
	"github.com/podfabric/podfabric/rdmans/sysfs"
)

// Kernel says where the machine's file systems are.
type Kernel struct {
	Sysfs    string // "/sys", as the host's namespace sees it
	Proc     string // "/proc"
	RunNetns string // where bind mounts of namespaces are kept: "/run/netns"
}

// liveSysfs is the only place where the libraries sriovnet and rdmamap look.
const liveSysfs = "/sys"

// New gives the machine that the process runs on.
func New() *Kernel { return &Kernel{Sysfs: liveSysfs, Proc: "/proc", RunNetns: "/run/netns"} }

// Session is the machine as one verb sees it: the host's namespace, that of the process, and at most one pod's. It keeps the
// pod's namespace alive, so it must not outlive the verb. It is not for several goroutines at once.
type Session struct {
	kernel *Kernel
	sys    *sysfs.FS // the host's view
	host   *place
	pod    *place // nil: none
	cookie uint64 // of the pod's namespace
	// parents: the kernel has been seen to say which function a netdev belongs to.
	parents bool
}

// place is one namespace with what is needed to work in it.
type place struct {
	ns    *rdmans.NS
	links *link.Conn
	rdma  *rdmans.Conn
}

// Open looks at the host and, unless path is empty, into the network namespace there. attach.ErrNoNetNS: the path leads to
// none (any more). attach.ErrOwnNetNS: it leads to the host's.
func (k *Kernel) Open(ctx context.Context, path string) (*Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open network namespaces: %w", err)
	}
	self, err := rdmans.Self()
	if err != nil {
		return nil, err
	}
	var pod *rdmans.NS
	if path != "" {
		pod, err = rdmans.OpenNS(path)
		if errors.Is(err, rdmans.ErrNoNamespace) {
			return nil, fmt.Errorf("%w: %w", attach.ErrNoNetNS, err)
		}
		if err != nil {
			return nil, err
		}
		if pod.ID() == self.ID() {
			return nil, errors.Join(fmt.Errorf("%s: %w", path, attach.ErrOwnNetNS), pod.Close())
		}
	}
	s := &Session{kernel: k}
	if err := s.open(self, pod); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// open fills the session; what it has got by the time of an error is Close's to free.
func (s *Session) open(self, pod *rdmans.NS) error {
	if pod != nil {
		s.pod, s.cookie = &place{ns: pod}, pod.Cookie()
	}
	var err error
	if s.host, err = newPlace(self); err != nil {
		return err
	}
	if s.pod != nil {
		if s.pod, err = newPlace(pod); err != nil {
			s.pod = &place{ns: pod}
			return err
		}
	}
	s.sys, err = sysfs.Open(s.kernel.Sysfs)
	return err
}

func newPlace(ns *rdmans.NS) (*place, error) {
	links, err := link.Open(ns.Do)
	if err != nil {
		return nil, err
	}
	return &place{ns: ns, links: links, rdma: rdmans.In(ns)}, nil
}

func (p *place) close() error {
	if p == nil {
		return nil
	}
	var err error
	if p.links != nil {
		err = p.links.Close()
	}
	return errors.Join(err, p.ns.Close())
}

// Close lets go of both namespaces.
func (s *Session) Close() error {
	err := errors.Join(s.host.close(), s.pod.close())
	if s.sys != nil {
		err = errors.Join(err, s.sys.Close())
	}
	return err
}

// PodNS gives path and identity of the pod's namespace; zero when the session has none.
func (s *Session) PodNS() attach.NetNS {
	if s.pod == nil {
		return attach.NetNS{}
	}
	id := s.pod.ns.ID()
	return attach.NetNS{Path: s.pod.ns.Path(), Dev: id.Dev, Ino: id.Ino, Cookie: s.cookie}
}

// HostNS gives path and identity of the host's namespace, which is the process's own.
func (s *Session) HostNS() attach.NetNS {
	id := s.host.ns.ID()
	return attach.NetNS{Path: s.host.ns.Path(), Dev: id.Dev, Ino: id.Ino, Cookie: s.host.ns.Cookie()}
}

// in gives the place for a namespace of a step. ErrConflict when this session has none.
func (s *Session) in(ns attach.NS) (*place, error) {
	switch ns {
	case attach.Host:
		return s.host, nil
	case attach.Pod:
		if s.pod != nil {
			return s.pod, nil
		}
	case attach.Elsewhere:
	}
	return nil, fmt.Errorf("no network namespace %q at hand: %w", ns, attach.ErrConflict)
}

// view opens sysfs as a namespace sees it.
func (s *Session) view(p *place) (*sysfs.FS, error) {
	if p == s.host {
		return sysfs.Open(s.kernel.Sysfs)
	}
	return sysfs.View(p.ns.Do)
}

// Ports reads every port of an RDMA device as the sysfs of a namespace shows it, with its GID table. An error wraps
// sysfs.ErrNotExist when that namespace has no such device.
func (s *Session) Ports(ctx context.Context, ns attach.NS, device string) ([]attach.Port, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read ports of %s: %w", device, err)
	}
	p, err := s.in(ns)
	if err != nil {
		return nil, err
	}
	view, err := s.view(p)
	if err != nil {
		return nil, err
	}
	found, err := view.Ports(device)
	if err = errors.Join(err, view.Close()); err != nil {
		return nil, err
	}
	ports := make([]attach.Port, 0, len(found))
	for _, f := range found {
		port := attach.Port{
			Device: device, Number: f.Number, LinkLayer: f.LinkLayer, State: f.State, RateMbps: f.RateMbps, TableSize: f.TableSize,
		}
		for _, g := range f.GIDs {
			port.GIDs = append(port.GIDs, attach.GID(g))
		}
		ports = append(ports, port)
	}
	return ports, nil
}
