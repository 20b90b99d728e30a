// SPDX-License-Identifier: Apache-2.0

// Package lease keeps on disk which address is whose. It does not choose addresses, that is package ipam's, and knows its
// owners only as keys.
//
// Below the store's folder there is one folder for each subnet, and in it:
//
//	10.1.0.7        symbolic link, its target is the owner's key: a lease
//	freed/10.1.0.9  symbolic link, its target is the time of release: an address at rest
//	cursor/<first>  symbolic link, its target is the address last given from the range that begins at first
//
// A symbolic link is the smallest file there is: symlink(2) makes name and content in one call and fails when the name
// exists, so that a lease is never half written and never given twice, and `ls -l` shows who has what. The links point
// nowhere and are never followed. Colons of IPv6 are written as '-'.
package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/podfabric/podfabric/ipam"
)

// The errors of this package, beside those of package ipam.
var (
	// ErrUnwritable: the folder or its file system cannot be written.
	ErrUnwritable = errors.New("the lease folder cannot be written")
	// ErrForeign: something lies in the folder that is no lease. It is left in place.
	ErrForeign = errors.New("not a lease")
	// ErrOwner: an owner's key is empty, too long or holds a zero byte.
	ErrOwner = errors.New("not a usable owner key")
)

// Lease is one address in use.
type Lease struct {
	Subnet netip.Prefix
	Addr   netip.Addr
	Owner  string
	Since  time.Time // of the file
}

// Addr is one address that Allocate gave.
type Addr struct {
	Prefix  netip.Prefix // address, with the length of its subnet
	Gateway netip.Addr   // zero: none
}

// Grant is what Allocate gave: one address for each set, in their order.
type Grant struct {
	Addrs    []Addr
	Warnings []string // one sentence each
}

// Store is a folder of leases. All fields but Dir and Lock have defaults.
type Store struct {
	Dir string // made when missing, its parent must exist
	// Lock keeps other processes out while a store is changed. That no address is given twice does not hang on it; that the
	// one freed last comes last, and that a release frees only what is still its owner's, does.
	Lock   func(ctx context.Context, holder string) (release func(), err error)
	Now    func() time.Time      // default time.Now
	Random func(n uint64) uint64 // from 0 to n-1, default math/rand; see ipam.State
}

func (s Store) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}

func (s Store) random() func(uint64) uint64 {
	if s.Random == nil {
		return rand.Uint64N
	}
	return s.Random
}

// Allocate gives owner one address of each set; the ranges of a set are alternatives. want names addresses that are asked
// for, each of which takes the place of one set; the other sets choose. An owner that has an address of a set already gets
// the same again, unless it asks for another one. When an address cannot be had, none is given.
//
// Errors wrap ipam.ErrRange, ipam.ErrExhausted, ipam.ErrOutside, ipam.ErrTaken, ErrOwner, ErrUnwritable or what Lock
// returned.
func (s Store) Allocate(ctx context.Context, sets [][]ipam.Range, owner string, want []netip.Addr) (Grant, error) {
	if err := checkOwner(owner); err != nil {
		return Grant{}, err
	}
	wishes, err := ipam.Place(sets, want)
	if err != nil {
		return Grant{}, fmt.Errorf("allocate addresses: %w", err)
	}
	unlock, err := s.Lock(ctx, "an allocation of addresses for "+owner)
	if err != nil {
		return Grant{}, fmt.Errorf("lock leases: %w", err)
	}
	defer unlock()
	f, err := open(s.Dir)
	if err != nil {
		return Grant{}, err
	}
	defer f.close()
	a := allocation{store: s, folder: f, owner: owner, now: s.now()}
	var grant Grant
	for i, set := range sets {
		addr, warning, err := a.give(set, wishes[i])
		if err != nil {
			return Grant{}, errors.Join(fmt.Errorf("allocate address %d of %d: %w", i+1, len(sets), err), a.undo())
		}
		grant.Addrs = append(grant.Addrs, addr)
		if warning != "" {
			grant.Warnings = append(grant.Warnings, warning)
		}
	}
	if err := a.settle(); err != nil {
		return Grant{}, errors.Join(fmt.Errorf("allocate addresses: %w", err), a.undo())
	}
	return grant, nil
}

// Release frees every lease of owner, in whatever subnet. It needs nothing but the key, and to have nothing is success.
func (s Store) Release(ctx context.Context, owner string) error {
	if err := checkOwner(owner); err != nil {
		return err
	}
	// Every DEL comes here, and most of those with other addresses would wait for nothing.
	if all, errs := s.List(); len(errs) == 0 && !slices.ContainsFunc(all, func(l Lease) bool { return l.Owner == owner }) {
		return nil
	}
	unlock, err := s.Lock(ctx, "a release of the addresses of "+owner)
	if err != nil {
		return fmt.Errorf("lock leases: %w", err)
	}
	defer unlock()
	f, err := look(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was leased since the node booted
	}
	if err != nil {
		return err
	}
	defer f.close()
	leases, errs := f.leases()
	errs = slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, ErrForeign) })
	now := s.now()
	for _, l := range leases {
		if l.Owner == owner {
			errs = append(errs, f.free(l, now))
		}
	}
	return errors.Join(errs...)
}

// List gives every lease, by subnet and address, and an error for each thing that could not be read as one. It writes nothing.
func (s Store) List() ([]Lease, []error) {
	f, err := look(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, []error{err}
	}
	defer f.close()
	leases, errs := f.leases()
	slices.SortFunc(leases, func(a, b Lease) int {
		return cmp.Or(a.Subnet.Addr().Compare(b.Subnet.Addr()), a.Subnet.Bits()-b.Subnet.Bits(), a.Addr.Compare(b.Addr))
	})
	return leases, errs
}
