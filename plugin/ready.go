// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/hint"
	"github.com/podfabric/podfabric/plugin/record"
)

// ready waits, without a lock, until RDMA works as far as rdma.require asks: the kernel writes GIDs from a work queue, after the
// address was acknowledged, and a port becomes active when its link does.
func (a *adding) ready(ctx context.Context, addrs attach.Addresses) (attach.Facts, []attach.Port, error) {
	wait, cancel := context.WithTimeout(ctx, a.conf.RDMA.Wait)
	defer cancel()
	for {
		facts, err := a.observe(ctx)
		if err != nil {
			return facts, nil, err
		}
		ports, err := a.ports(ctx, facts)
		if err != nil {
			return facts, nil, err
		}
		missing, ok := attach.Ready(a.conf, a.rec.Before, addrs.Prefixes(), ports)
		if ok {
			return facts, ports, attach.Clash(a.conf, addrs.Prefixes(), ports, 1)
		}
		if pause(wait) != nil {
			if m := facts.Master; m != nil && !m.Up {
				return facts, ports, &netconf.Problem{
					Code: netconf.CodeNotReady, Remedy: "set the master up: ip link set " + m.Name + " up; podfabric leaves the node's links as they are",
					Field: "rdma.require", Found: missing + ", and master " + m.Name + " is down",
				}
			}
			return facts, ports, &netconf.Problem{
				Code:   netconf.CodeNotReady,
				Remedy: "look at the cable and the switch port of this rail, raise rdma.wait, or set rdma.require to gid or no",
				Field:  "rdma.require", Found: missing,
				Right: fmt.Sprintf("a GID of each address and an active port within %s (rdma.wait)", a.conf.RDMA.Wait),
			}
		}
	}
}

// unclashed looks, before anything is put on a shared port, whether another pod has one of the addresses there already: of two
// equal GIDs nobody could tell which is whose.
func (a *adding) unclashed(ctx context.Context, facts attach.Facts, addrs attach.Addresses) error {
	if facts.Master == nil || facts.RDMA == nil || facts.RDMA.NS != attach.Host || a.conf.RDMA.Mode == netconf.RDMAOff {
		return nil
	}
	ports, err := a.session.Ports(ctx, attach.Host, facts.RDMA.Name)
	if err != nil {
		return fmt.Errorf("read the ports of RDMA device %s: %w", facts.RDMA.Name, err)
	}
	return attach.Clash(a.conf, addrs.Prefixes(), ports, 0)
}

// ports reads the ports of the attachment's RDMA device as the pod sees them; none when RDMA is not looked at.
func (a *adding) ports(ctx context.Context, facts attach.Facts) ([]attach.Port, error) {
	dev := facts.RDMA
	if a.conf.RDMA.SoftRoCE {
		dev = facts.Soft
	}
	if dev == nil || a.conf.RDMA.Mode == netconf.RDMAOff {
		return nil, nil
	}
	ports, err := a.session.Ports(ctx, attach.Pod, dev.Name)
	if err != nil {
		return nil, fmt.Errorf("read the ports of RDMA device %s: %w", dev.Name, err)
	}
	return ports, nil
}

// ownGIDs are the entries that carry the attachment's addresses, by which CHECK tells drift from loss.
func ownGIDs(addrs attach.Addresses, ports []attach.Port) []attach.WantGID {
	var out []attach.WantGID
	for _, port := range ports {
		for _, g := range port.GIDs {
			if g.Type == attach.RoCEv2 && addrs.Has(g.Addr) {
				out = append(out, attach.WantGID{Port: port.Number, Index: g.Index, Addr: g.Addr})
			}
		}
	}
	return out
}

// lives tells whether an attachment is recorded, not about to go, and in a namespace that is still there. Where that cannot be known it does
// not: a sandbox that nothing is known of must not keep the hint from the one that the runtime makes now.
func (p *Plugin) lives(ctx context.Context, o attach.Owner) bool {
	rec, err := p.Records.Load(o)
	if err != nil || rec.State == record.Deleting || rec.State == record.Returning {
		return false
	}
	s, err := p.reopen(ctx, rec, "")
	if err != nil {
		return false
	}
	defer func() { _ = s.Close() }()
	return !s.PodNS().IsZero()
}

// writeHint puts this attachment's part into the pod's hint.
func (a *adding) writeHint(ctx context.Context, addrs []netip.Prefix, facts attach.Facts, ports []attach.Port) error {
	f := hint.NewFragment(hint.Seen{Conf: a.conf, Facts: facts, Ports: ports, Addrs: addrs})
	warnings, err := a.Hints.Put(ctx, hintKey(a.rec), f)
	for _, w := range warnings {
		a.log.WarnContext(ctx, w)
	}
	if err != nil {
		return fmt.Errorf("write the hint: %w", err)
	}
	return nil
}
