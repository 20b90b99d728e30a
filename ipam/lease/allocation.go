// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"errors"
	"io/fs"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/podfabric/podfabric/ipam"
)

// allocation is one call of Allocate under the lock.
type allocation struct {
	store  Store
	folder folder
	owner  string
	now    time.Time
	pools  []Lease // leases of every subnet, read once
	loaded bool
	taken  []Lease // made by this call
	kept   []Lease // the owner's own that a set has found again
	unused []Lease // the owner's own that it has no use for any more
	after  []func() error
}

// give gives one address of set: the wished one, the one that the owner has, or the next.
func (a *allocation) give(set []ipam.Range, wish netip.Addr) (Addr, string, error) {
	if err := a.load(); err != nil {
		return Addr{}, "", err
	}
	own, has := a.own(set)
	switch {
	case has && (!wish.IsValid() || wish == own.Addr):
		a.kept = append(a.kept, own)
		return addrOf(set, own.Addr), "", nil
	case wish.IsValid():
		if has {
			a.unused = append(a.unused, own)
		}
		return a.grant(set, wish)
	}
	return a.next(set)
}

// grant takes the address that was asked for.
func (a *allocation) grant(set []ipam.Range, wish netip.Addr) (Addr, string, error) {
	if i := slices.IndexFunc(a.pools, func(l Lease) bool { return l.Addr == wish }); i >= 0 {
		return Addr{}, "", &ipam.TakenError{Addr: wish, Owner: a.pools[i].Owner}
	}
	err := a.take(set, wish)
	if errors.Is(err, fs.ErrExist) {
		return Addr{}, "", &ipam.TakenError{Addr: wish, Owner: "something in the lease folder that is no lease"}
	}
	if err != nil {
		return Addr{}, "", err
	}
	return addrOf(set, wish), "", nil
}

// next takes the address that package ipam chooses. A name that exists all the same is a lease of somebody who did not
// take the lock; then the choice is made again without it.
func (a *allocation) next(set []ipam.Range) (Addr, string, error) {
	state, err := a.state(set)
	if err != nil {
		return Addr{}, "", err
	}
	for {
		c, err := ipam.Choose(set, state)
		if err != nil {
			return Addr{}, "", err
		}
		err = a.take(set, c.Addr.Addr())
		if errors.Is(err, fs.ErrExist) {
			state.InUse[c.Addr.Addr()] = true
			continue
		}
		if err != nil {
			return Addr{}, "", err
		}
		return Addr{Prefix: c.Addr, Gateway: c.Gateway}, c.Warning, nil
	}
}

// take makes the lease.
func (a *allocation) take(set []ipam.Range, addr netip.Addr) error {
	r := rangeOf(set, addr)
	l := Lease{Subnet: r.Subnet, Addr: addr, Owner: a.owner}
	if err := a.folder.lease(l); err != nil {
		return err
	}
	a.taken = append(a.taken, l)
	a.pools = append(a.pools, l)
	a.after = append(a.after,
		func() error { return a.folder.setCursor(r, addr) },
		func() error { return a.folder.wake(l) })
	return nil
}

// settle moves the cursors behind what was taken, ends its rest and frees what the owner no longer wants. It comes last, so
// that a call that gives nothing has changed nothing; a crash before it only makes the next choice a less good one.
func (a *allocation) settle() error {
	for _, do := range a.after {
		if err := do(); err != nil {
			return err
		}
	}
	for _, l := range a.unused {
		if err := a.folder.free(l, a.now); err != nil {
			return err
		}
	}
	return nil
}

func (a *allocation) load() error {
	if a.loaded {
		return nil
	}
	leases, errs := a.folder.leases()
	for _, err := range errs {
		if !errors.Is(err, ErrForeign) {
			return err
		}
	}
	a.pools, a.loaded = leases, true
	return nil
}

// own finds a lease of the owner that set could have given and no set before it has.
func (a *allocation) own(set []ipam.Range) (Lease, bool) {
	for _, l := range a.pools {
		if l.Owner == a.owner && rangeOf(set, l.Addr).Subnet == l.Subnet && !slices.Contains(a.kept, l) && !slices.Contains(a.taken, l) {
			return l, true
		}
	}
	return Lease{}, false
}

// state gathers what ipam.Choose asks for. Leases of all subnets count as in use, since two subnets may overlap.
func (a *allocation) state(set []ipam.Range) (ipam.State, error) {
	s := ipam.State{
		InUse:  map[netip.Addr]bool{},
		Freed:  map[netip.Addr]time.Time{},
		Random: a.store.random(),
		Now:    a.now,
	}
	for _, l := range a.pools {
		s.InUse[l.Addr] = true
	}
	for _, r := range set {
		freed, err := a.folder.freed(r.Subnet)
		if err != nil {
			return ipam.State{}, err
		}
		maps.Copy(s.Freed, freed)
		cursor, err := a.folder.cursor(r)
		if err != nil {
			return ipam.State{}, err
		}
		s.Cursor = append(s.Cursor, cursor)
	}
	return s, nil
}

// undo takes back what this call took. Nobody has used the addresses meanwhile, so they need no rest beyond what they had.
func (a *allocation) undo() error {
	var errs []error
	for _, l := range a.taken {
		errs = append(errs, a.folder.drop(l))
	}
	return errors.Join(errs...)
}

func addrOf(set []ipam.Range, addr netip.Addr) Addr {
	r := rangeOf(set, addr)
	return Addr{Prefix: netip.PrefixFrom(addr, r.Subnet.Bits()), Gateway: r.Gateway}
}

// rangeOf gives the first range that can give addr, or the zero range.
func rangeOf(set []ipam.Range, addr netip.Addr) ipam.Range {
	for _, r := range set {
		if r.Contains(addr) {
			return r
		}
	}
	return ipam.Range{}
}
