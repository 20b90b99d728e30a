// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/statedir"
	"github.com/podfabric/podfabric/rdmans/bus"
)

const (
	// claimWait bounds the wait for others that change claims, each of whom needs microseconds.
	claimWait = 5 * time.Second
	// claimPoll is the distance between two tries.
	claimPoll = time.Millisecond
	// newClaim is where a claim that takes a stale one's place is made. The lock keeps two from meeting there, and one left
	// by a kill is removed by the next.
	newClaim = claimsDir + "/.new"
)

// Claim makes dev the attachment's, whose record must be saved already and name dev. It may be called again. A stale claim
// is replaced. When dev is another attachment's the error is a *ClaimedError.
//
// A fresh claim needs only symlink(2). To replace one, however, is to look and then to act, and two who found the same stale
// claim would both succeed; so claims are changed under a flock on their folder, which the kernel lifts from the dead.
func (s *Store) Claim(dev bus.ID, o attach.Owner) error {
	if err := checkOwner(o); err != nil {
		return err
	}
	root, err := s.write()
	if err != nil {
		return err
	}
	defer closeRoot(root)
	unlock, err := s.lockClaims(root)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := s.load(root, o)
	if err != nil {
		return fmt.Errorf("claim device %s for %s: %w", dev, o, err)
	}
	if r.Device != dev || dev.IsZero() {
		return fmt.Errorf("claim device %s for %s: its record is of device %s: %w", dev, o, r.Device, ErrStale)
	}
	err = root.Symlink(target(o), claimOf(dev))
	if !errors.Is(err, fs.ErrExist) {
		return statedir.Explain(s.dir, s.path(claimOf(dev)), err)
	}
	holder, err := s.claimant(root, dev)
	switch {
	case err == nil && holder == o:
		return nil
	case err == nil:
		return &ClaimedError{Device: dev, Holder: holder}
	case errors.Is(err, ErrStale):
		return s.replace(root, dev, o)
	}
	return err
}

// replace puts a new claim over a stale one, so that a kill leaves either.
func (s *Store) replace(root *os.Root, dev bus.ID, o attach.Owner) error {
	if err := s.remove(root, newClaim); err != nil {
		return err
	}
	if err := root.Symlink(target(o), newClaim); err != nil {
		return statedir.Explain(s.dir, s.path(newClaim), err)
	}
	return statedir.Explain(s.dir, s.path(claimOf(dev)), root.Rename(newClaim, claimOf(dev)))
}

// Claimant says whose dev is. The error wraps ErrNotFound when it is nobody's; then it wraps ErrStale too, and the owner is
// told, when a claim is there that leads to no record or to another device's. A claim whose record cannot be read holds,
// since nobody can know that it does not: Load tells.
func (s *Store) Claimant(dev bus.ID) (attach.Owner, error) {
	root, err := s.read()
	if err != nil {
		return attach.Owner{}, err
	}
	defer closeRoot(root)
	return s.claimant(root, dev)
}

func (s *Store) claimant(root *os.Root, dev bus.ID) (attach.Owner, error) {
	o, err := s.pointee(root, path.Base(claimOf(dev)))
	if err != nil {
		return attach.Owner{}, err
	}
	r, err := s.load(root, o)
	switch {
	case errors.Is(err, ErrNotFound):
		return o, fmt.Errorf("look up claim %s: it leads to no record of %s: %w: %w", s.path(claimOf(dev)), o, ErrStale, ErrNotFound)
	case errors.Is(err, ErrUnreadable):
		return o, nil
	case err != nil:
		return o, err
	case r.Device != dev:
		return o, fmt.Errorf("look up claim %s: the record of %s is of device %s: %w: %w",
			s.path(claimOf(dev)), o, r.Device, ErrStale, ErrNotFound)
	}
	return o, nil
}

// pointee gives the owner that the claim of that file name leads to.
func (s *Store) pointee(root *os.Root, name string) (attach.Owner, error) {
	file := path.Join(claimsDir, name)
	link, err := root.Readlink(file)
	if errors.Is(err, syscall.EINVAL) {
		return attach.Owner{}, &UnreadableError{File: s.path(file), Reason: "it is no symbolic link, so podfabric did not make it; remove it"}
	}
	if err != nil {
		return attach.Owner{}, s.readError(file, err)
	}
	o, ok := ownerOf(link)
	if !ok {
		return attach.Owner{}, &UnreadableError{File: s.path(file), Reason: fmt.Sprintf("it leads to %.256q, which is no record; remove it", link)}
	}
	return o, nil
}

// ClaimedBy gives the device that a claim of o is on, by the claim alone; the record may be unreadable or gone. The error
// wraps ErrNotFound when there is none.
func (s *Store) ClaimedBy(o attach.Owner) (bus.ID, error) {
	root, err := s.read()
	if err != nil {
		return bus.ID{}, err
	}
	defer closeRoot(root)
	devs, err := s.claimsOf(root, o)
	if err != nil {
		return bus.ID{}, err
	}
	if len(devs) == 0 {
		return bus.ID{}, fmt.Errorf("look for a claim of %s: %w", o, ErrNotFound)
	}
	return devs[0], nil
}

// claimsOf passes over what is no claim: it is nobody's.
func (s *Store) claimsOf(root *os.Root, o attach.Owner) ([]bus.ID, error) {
	names, err := s.names(root, claimsDir)
	if err != nil {
		return nil, err
	}
	var devs []bus.ID
	for _, name := range names {
		dev, err := bus.Parse(name)
		if err != nil || dev.String() != name {
			continue
		}
		holder, err := s.pointee(root, name)
		if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrUnreadable) {
			return nil, err // it may be o's
		}
		if err == nil && holder == o {
			devs = append(devs, dev)
		}
	}
	return devs, nil
}

// Unclaim gives dev free if it is o's, and leaves the record. A zero dev stands for every claim of o.
func (s *Store) Unclaim(o attach.Owner, dev bus.ID) error {
	root, err := s.read()
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closeRoot(root)
	return s.unclaim(root, o, dev)
}

func (s *Store) unclaim(root *os.Root, o attach.Owner, dev bus.ID) error {
	if _, err := root.Lstat(claimsDir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := s.lockClaims(root)
	if err != nil {
		return err
	}
	defer unlock()
	devs := []bus.ID{dev}
	if dev.IsZero() {
		if devs, err = s.claimsOf(root, o); err != nil {
			return err
		}
	}
	for _, dev := range devs {
		holder, err := s.pointee(root, path.Base(claimOf(dev)))
		if err == nil && holder == o {
			err = s.remove(root, claimOf(dev))
		}
		// What is no claim is not ours to remove.
		if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrUnreadable) {
			return err
		}
	}
	return nil
}

// lockClaims keeps others from changing claims.
func (s *Store) lockClaims(root *os.Root) (func(), error) {
	if err := statedir.Make(root, claimsDir); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), claimWait)
	defer cancel()
	lock := flock.New(s.path(claimsDir), flock.SetFlag(os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC))
	locked, err := lock.TryLockContext(ctx, claimPoll)
	switch {
	case locked:
		return func() { _ = lock.Unlock() }, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("lock %s, which another process has held for %s: %w", s.path(claimsDir), claimWait, ctx.Err())
	}
	return nil, statedir.Explain(s.dir, s.path(claimsDir), err)
}
