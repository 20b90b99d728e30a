// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
	"github.com/podfabric/podfabric/rdmans/bus"
)

// target settles what the attachment is made of and how it is looked at from then on: the one place where a name of a
// configuration is turned into an identity.
func (a *adding) target(ctx context.Context) error {
	switch a.conf.Kind {
	case netconf.KindMacvlan, netconf.KindIPVlan:
		return a.master(ctx)
	case netconf.KindChained:
		return a.behind(ctx)
	case netconf.KindDevice:
		if a.conf.By.Key != "" {
			return a.selected(ctx)
		}
	case netconf.KindVF:
	}
	a.rec.Device, a.rec.Own.MAC = a.conf.Device, a.conf.MAC
	return nil
}

// master finds the link that a macvlan or ipvlan is to sit on.
func (a *adding) master(ctx context.Context) error {
	found, err := a.pick(ctx, a.conf.Master)
	if err != nil {
		return a.taken(ctx, err)
	}
	a.rec.Master = found.Master(string(a.conf.Kind))
	a.rec.Own = attach.OwnLink{Kind: string(a.conf.Kind), Name: a.rec.Owner.IfName}
	switch {
	case a.conf.Kind != netconf.KindMacvlan:
	case a.conf.Macvlan.Mode == netconf.MacvlanPassthru:
		a.rec.Own.MAC = found.MAC // its master's, and it is alone on it
	default:
		a.conf.MAC = cmp.Or(a.conf.MAC, attach.OwnMAC(a.rec.Owner))
		a.rec.Own.MAC = a.conf.MAC
	}
	return nil
}

// taken says who has the device that a master is the link of, if that is why it was not found: err.
func (a *adding) taken(ctx context.Context, err error) error {
	id, known := a.remembered(ctx, a.conf.Master)
	if !known {
		return err
	}
	holder, claimErr := a.Records.Claimant(id)
	if claimErr != nil {
		return err
	}
	owner := fmt.Sprintf("container %s, interface %s", holder.ContainerID, holder.IfName)
	if rec, loadErr := a.Records.Load(holder); loadErr == nil {
		owner = fmt.Sprintf("pod %s (%s, network %s)", rec.Pod, owner, rec.Network)
	}
	return &netconf.Problem{
		Code: netconf.CodeTryLater, Remedy: "delete the pod that has the device whole, or name another master",
		Field: a.conf.Master.Key, Found: fmt.Sprintf("%s, owned by %s", id, owner),
	}
}

// selected finds a device that is named by its netdev, MAC or path. One that a dead pod still has, or that came home from it under
// the pod's name, is found by what was kept of it.
func (a *adding) selected(ctx context.Context) error {
	found, err := a.pick(ctx, a.conf.By)
	if err != nil {
		id, known := a.remembered(ctx, a.conf.By)
		if !known {
			return err
		}
		found = attach.Candidate{Device: id}
	}
	if found.Device.IsZero() {
		return &netconf.Problem{
			Code: netconf.CodeDevice, Remedy: "name a network card: this interface belongs to no device that could be given away",
			Field: a.conf.By.Key, Found: fmt.Sprintf("%s, a link of kind %q", found.Name, found.Kind),
		}
	}
	a.conf.Device, a.rec.Device, a.rec.Own.MAC = found.Device, found.Device, a.conf.MAC
	return nil
}

// remembered looks for a device that had this name, MAC or path at home, and has not come back to them.
func (a *adding) remembered(ctx context.Context, by netconf.Selector) (bus.ID, bool) {
	devices, err := a.Records.Homes()
	if err != nil {
		return bus.ID{}, false
	}
	for _, id := range devices {
		home, err := a.Records.LoadHome(id)
		if err != nil || home.Link == nil {
			continue
		}
		named := by.Name != "" && (home.Link.Name == by.Name || slices.Contains(home.Link.AltNames, by.Name))
		named = named || by.MAC != "" && home.Link.MAC == by.MAC || by.RDMA != "" && home.RDMA != nil && home.RDMA.Name == by.RDMA
		named = named || !by.PCI.IsZero() && id == bus.PCI(by.PCI)
		if named && a.stray(ctx, id, home) || by.Path != "" && path.Base(by.Path) == id.String() {
			return id, true
		}
	}
	return bus.ID{}, false
}

// stray tells whether a device is away, or at home as a pod left it. One at home that nobody claims has the name and the MAC that
// its owner wants it to have.
func (a *adding) stray(ctx context.Context, id bus.ID, home attach.Facts) bool {
	if _, err := a.Records.Claimant(id); !errors.Is(err, record.ErrNotFound) || errors.Is(err, record.ErrStale) {
		return true
	}
	now, err := a.session.Observe(ctx, attach.Query{Device: id})
	if err != nil {
		return false
	}
	away := now.Link == nil || now.Link.NS != attach.Host
	return away || now.Link.Name != home.Link.Name && attach.Homed(now, home).Link.Name == home.Link.Name
}

func (a *adding) pick(ctx context.Context, by netconf.Selector) (attach.Candidate, error) {
	links, err := a.session.Links(ctx)
	if err != nil {
		return attach.Candidate{}, fmt.Errorf("list the node's links: %w", err)
	}
	if by.PCI.IsZero() && by.Path == "" {
		links = slices.DeleteFunc(links, a.borrowed)
	}
	return attach.Pick(by, a.node, links)
}

// borrowed tells whether a link has a name or MAC that a pod may have given it: an attachment took its device from home, and it came back
// without a DEL. By these it could be taken for a device that the pod never had; remembered finds it by its own.
func (a *adding) borrowed(l attach.Candidate) bool {
	if l.Device.IsZero() {
		return false
	}
	out, err := a.Records.LoadOut(l.Device)
	if err != nil || out.Before.Link == nil || out.Before.Link.NS != attach.Host {
		return false
	}
	was := out.Before.Link
	strange := func(name string) bool { return !slices.Contains(was.AltNames, name) }
	renamed := out.Before.RDMA != nil && len(l.RDMA) > 0 && !slices.Contains(l.RDMA, out.Before.RDMA.Name)
	return l.Name != was.Name || l.MAC != was.MAC || renamed || slices.ContainsFunc(l.AltNames, strange)
}

// behind finds what the plugin before us put into the pod: a device of its own, a link on a master that stays at home, or neither.
// Whether that will do is for attach.Guard to say.
func (a *adding) behind(ctx context.Context) error {
	name := a.rec.Owner.IfName
	found, err := a.session.Behind(ctx, name)
	if errors.Is(err, attach.ErrConflict) {
		return &netconf.Problem{
			Code:   netconf.CodeInvalid,
			Remedy: "put the plugin that makes the interface before podfabric: the pod has no such interface",
			Field:  "prevResult", Found: name + ", which is not in the pod", Err: err,
		}
	}
	if err != nil {
		return fmt.Errorf("look at interface %s in the pod: %w", name, err)
	}
	switch {
	case !found.Device.IsZero():
		a.rec.Device = found.Device
	case found.Master.Index != 0:
		a.rec.Master, a.rec.Own = found.Master, attach.OwnLink{Kind: found.Kind, Name: name, MAC: found.MAC}
	default:
		a.rec.Own = attach.OwnLink{Kind: found.Kind, Name: name, MAC: found.MAC}
	}
	return nil
}

// unshared refuses to move a device whole that other pods' links sit on: those in their namespaces cannot be seen from home, and stay
// on it wherever it goes, so that its pod would share it. Links of a pod that is gone went with it.
func (a *adding) unshared(ctx context.Context, facts attach.Facts) error {
	whole := a.conf.Kind == netconf.KindDevice || a.conf.Kind == netconf.KindVF
	if !whole || a.node.Overrides(facts.Function.ID) {
		return nil
	}
	records, _ := a.Records.List() // one that cannot be read is of a pod that nobody knows to live
	var users []string
	for _, rec := range records {
		if rec.Master.Index == 0 || rec.Before.Function.ID != facts.Function.ID {
			continue
		}
		shared, err := a.shares(ctx, rec)
		if err != nil {
			return err
		}
		if shared {
			users = append(users, fmt.Sprintf("%s of pod %s", rec.Owner.IfName, rec.Pod))
		}
	}
	if len(users) == 0 {
		return nil
	}
	return &netconf.Problem{
		Code:   netconf.CodeInUse,
		Remedy: "delete the pods that have a macvlan or ipvlan on the device, use another one, or list it in overrideGuards of " + netconf.NodePath,
		Field:  "device " + facts.Function.ID.String(), Found: strings.Join(users, ", ") + " on it", Right: "shared by nobody",
	}
}

// query is how the devices of an attachment are looked at.
func query(rec record.Record) attach.Query {
	return attach.Query{Device: rec.Device, Soft: rec.Soft, VF: rec.VF != nil || rec.Before.VF != nil, Master: rec.Master, Own: rec.Own}
}
