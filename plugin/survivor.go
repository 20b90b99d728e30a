// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/hint"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// A record may be lost while its pod lives, and claim, lease and hint with an owner of which nothing is recorded look like what a dead pod
// has left. These say otherwise: out/<device>.json and the records of the sandbox's other attachments name its network namespace, and
// lease and hint its addresses, to which an interface somewhere may still answer.

// deleteIt is what ends a survivor.
const deleteIt = "; delete the pod: its DEL gives back what it has; if there is no such pod, end what keeps the network namespace"

// survivor says why an attachment of which nothing is recorded may live, and what to do; empty: nothing tells that it does.
func (r *repairing) survivor(ctx context.Context, owner attach.Owner) (string, error) {
	why, err := r.sandbox(ctx, func(o attach.Owner, _ netconf.Pod) bool { return o.ContainerID == owner.ContainerID })
	if err != nil || why != "" {
		return why, err
	}
	parts, err := r.Hints.Parts()
	if err != nil {
		return "", fmt.Errorf("read the parts of hints: %w", err)
	}
	parts = slices.DeleteFunc(parts, func(f hint.Fragment) bool { return f.Owner != owner })
	if why, err = r.astray(ctx, owner, parts); err != nil || why != "" {
		return why, err
	}
	return r.answering(ctx, owner, parts)
}

// astray says where a device is that an attachment has by its claim or by its part of the hint, and that is not at home.
func (r *repairing) astray(ctx context.Context, owner attach.Owner, parts []hint.Fragment) (string, error) {
	var devs []bus.ID
	dev, err := r.Records.ClaimedBy(owner)
	if err == nil {
		devs = append(devs, dev)
	} else if !errors.Is(err, record.ErrNotFound) {
		return "", fmt.Errorf("look for the claim of %s: %w", owner, err)
	}
	for _, f := range parts {
		dev = bus.ID{PCI: f.PCI, Aux: f.Auxiliary}
		holder, claimErr := r.Records.Claimant(dev)
		if f.Master == "" && (claimErr != nil || holder == owner) { // else it is another attachment's since
			devs = append(devs, dev)
		}
	}
	if len(devs) == 0 {
		return "", nil
	}
	all, err := r.elsewhere(ctx)
	if err != nil {
		return "", err
	}
	for _, a := range all {
		if slices.Contains(devs, a.Device) {
			return "it may live: " + where(a) + deleteIt, nil
		}
	}
	return "", nil
}

// sandbox looks for a namespace that lives, among those that are known of the sandboxes that is picks.
func (r *repairing) sandbox(ctx context.Context, is func(attach.Owner, netconf.Pod) bool) (string, error) {
	records, err := r.traces(is)
	if err != nil {
		return "", err
	}
	for _, rec := range records {
		if rec.NetNS.IsZero() {
			continue // where it was is not known
		}
		lives, err := r.lives(ctx, rec)
		if err != nil {
			return "", err
		}
		if lives {
			return fmt.Sprintf("its pod lives: %s, in network namespace %s", rec.Pod, rec.NetNS.Path) + deleteIt, nil
		}
	}
	return "", nil
}

// traces gives the records, and what is kept at devices, of the attachments that is picks.
func (p *Plugin) traces(is func(attach.Owner, netconf.Pod) bool) ([]record.Record, error) {
	devs, err := p.Records.Outs()
	if err != nil {
		return nil, fmt.Errorf("list devices that are out: %w", err)
	}
	records, errs := p.Records.List()
	for _, err := range errs {
		known, ok := errors.AsType[*record.UnreadableError](err)
		if !ok {
			return nil, fmt.Errorf("list records: %w", err) // it may be of whom is asked for
		}
		records = append(records, record.Record{Owner: known.Owner, Pod: known.Pod, NetNS: known.NetNS})
	}
	for _, dev := range devs {
		out, err := p.Records.LoadOut(dev)
		if errors.Is(err, record.ErrNotFound) || errors.Is(err, record.ErrUnreadable) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read what is out of %s: %w", dev, err)
		}
		records = append(records, out.Record())
	}
	return slices.DeleteFunc(records, func(rec record.Record) bool { return !is(rec.Owner, rec.Pod) }), nil
}

// answering says which interface, in whose namespace, has an address of an attachment, or the MAC that podfabric makes for it.
func (r *repairing) answering(ctx context.Context, owner attach.Owner, parts []hint.Fragment) (string, error) {
	addrs := map[netip.Addr]bool{}
	leases, _ := r.Leases.List() // what is no lease has no owner
	for _, l := range leases {
		if l.Owner == owner.String() {
			addrs[l.Addr] = true
		}
	}
	for _, f := range parts {
		for _, p := range f.Addresses {
			addrs[p.Addr()] = true
		}
	}
	seen, err := r.interfaces(ctx)
	if err != nil {
		return "", err
	}
	mac := attach.OwnMAC(owner)
	for _, i := range seen {
		if has := slices.IndexFunc(i.Addrs, func(a netip.Addr) bool { return addrs[a] }); has >= 0 {
			others, err := r.others(i, owner)
			if err != nil {
				return "", err
			}
			if others {
				continue
			}
			return fmt.Sprintf("it may live: %s, and answers to %s", i.Held, i.Addrs[has]) + deleteIt, nil
		}
		if i.MAC == mac {
			return fmt.Sprintf("it may live: %s, and has the MAC %s that is made for it", i.Held, mac) + deleteIt, nil
		}
	}
	return "", nil
}

// others tells whether an interface is known to be of another attachment, whose network may well have the same addresses.
func (r *repairing) others(i attach.Interface, owner attach.Owner) (bool, error) {
	records, err := r.traces(func(o attach.Owner, _ netconf.Pod) bool { return o != owner && o.IfName == i.Name })
	return slices.ContainsFunc(records, func(rec record.Record) bool { return !rec.NetNS.IsZero() && rec.NetNS.Same(i.Held.NS) }), err
}

// elsewhere gives what Machine.Elsewhere does. It looks at every process of the node, so that it is asked once for all that is found of a kind.
func (r *repairing) elsewhere(ctx context.Context) ([]attach.Astray, error) {
	if r.away == nil {
		all, err := r.machine.Elsewhere(ctx)
		if err != nil {
			err = fmt.Errorf("look for devices in other network namespaces: %w", err)
		}
		r.away = func() ([]attach.Astray, error) { return all, err }
	}
	return r.away()
}

// interfaces gives what Machine.Interfaces does, likewise.
func (r *repairing) interfaces(ctx context.Context) ([]attach.Interface, error) {
	if r.seen == nil {
		all, err := r.machine.Interfaces(ctx)
		if err != nil {
			err = fmt.Errorf("look for interfaces in other network namespaces: %w", err)
		}
		r.seen = func() ([]attach.Interface, error) { return all, err }
	}
	return r.seen()
}

// reader says why a pod may live of whose hint no attachment is recorded; empty: nothing tells that it does.
func (r *repairing) reader(ctx context.Context, key string) (string, error) {
	why, err := r.sandbox(ctx, func(o attach.Owner, pod netconf.Pod) bool { return pod.UID == key || o.ContainerID == key })
	if err != nil || why != "" {
		return why, err
	}
	owners, err := r.Hints.Owners(key)
	if err != nil {
		return "", fmt.Errorf("look at the hint of pod %s: %w", key, err)
	}
	for _, o := range owners {
		if why, err = r.survivor(ctx, o); err != nil || why != "" {
			return why, err
		}
	}
	return "", nil
}

// owners gives the owners of which something is kept beside records, by the name that a soft RoCE device of theirs has.
func (r *repairing) owners() (map[string]attach.Owner, error) {
	out := map[string]attach.Owner{}
	parts, err := r.Hints.Parts()
	if err != nil {
		return nil, fmt.Errorf("read the parts of hints: %w", err)
	}
	for _, f := range parts {
		out[attach.SoftName(f.Owner)] = f.Owner
	}
	devs, err := r.Records.Outs()
	if err != nil {
		return nil, fmt.Errorf("list devices that are out: %w", err)
	}
	for _, dev := range devs {
		if o, err := r.Records.LoadOut(dev); err == nil {
			out[attach.SoftName(o.Owner)] = o.Owner
		}
		if o, err := r.Records.Claimant(dev); err == nil || errors.Is(err, record.ErrStale) {
			out[attach.SoftName(o)] = o
		}
	}
	leases, _ := r.Leases.List()
	for _, l := range leases {
		if id, ifname, ok := strings.Cut(l.Owner, "/"); ok {
			o := attach.Owner{ContainerID: id, IfName: ifname}
			out[attach.SoftName(o)] = o
		}
	}
	return out, nil
}
