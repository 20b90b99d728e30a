// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/podfabric/podfabric/ipam"
	"github.com/podfabric/podfabric/ipam/lease"
	"github.com/podfabric/podfabric/plugin/lock"
	"github.com/podfabric/podfabric/plugin/statedir/proctest"
)

func mustAllocate(t *testing.T, s lease.Store, owner string, subnets ...string) lease.Grant {
	t.Helper()
	g, err := s.Allocate(t.Context(), sets(subnets...), owner, nil)
	if err != nil {
		t.Fatalf("allocate for %s: %v", owner, err)
	}
	return g
}

func owned(t *testing.T, s lease.Store, owner string) map[netip.Addr]bool {
	t.Helper()
	leases, errs := s.List()
	if len(errs) != 0 {
		t.Fatalf("list: %v", errs)
	}
	addrs := map[netip.Addr]bool{}
	for _, l := range leases {
		if l.Owner == owner {
			addrs[l.Addr] = true
		}
	}
	return addrs
}

func prefixes(g lease.Grant) string {
	var text []string
	for _, a := range g.Addrs {
		text = append(text, a.Prefix.String())
	}
	return strings.Join(text, " ")
}

func newStore(t *testing.T) (lease.Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "leases")
	return store(dir), dir
}

func TestAllocateAndRelease(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	// After a boot a DEL finds nothing at all, and makes nothing.
	if err := s.Release(t.Context(), "cid-a/net1"); err != nil {
		t.Errorf("release from a store that is not there: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("release made the folder")
	}
	pools := []string{"10.1.0.0/24", "fd00:1::/64"}
	if got, want := prefixes(mustAllocate(t, s, "cid-a/net1", pools...)), "10.1.0.1/24 fd00:1::1/64"; got != want {
		t.Errorf("first owner got %s, want %s", got, want)
	}
	if got, want := prefixes(mustAllocate(t, s, "cid-b/net1", pools...)), "10.1.0.2/24 fd00:1::2/64"; got != want {
		t.Errorf("second owner got %s, want %s", got, want)
	}
	if got, want := prefixes(mustAllocate(t, s, "cid-a/net1", pools...)), "10.1.0.1/24 fd00:1::1/64"; got != want {
		t.Errorf("first owner asking again got %s, want %s", got, want)
	}
	// What an operator sees with ls -l.
	if owner, err := os.Readlink(filepath.Join(dir, "fd00-1--_64", "fd00-1--2")); err != nil || owner != "cid-b/net1" {
		t.Errorf("link is %q, %v", owner, err)
	}
	leases, errs := s.List()
	want := []lease.Lease{
		{Subnet: netip.MustParsePrefix("10.1.0.0/24"), Addr: netip.MustParseAddr("10.1.0.1"), Owner: "cid-a/net1"},
		{Subnet: netip.MustParsePrefix("10.1.0.0/24"), Addr: netip.MustParseAddr("10.1.0.2"), Owner: "cid-b/net1"},
		{Subnet: netip.MustParsePrefix("fd00:1::/64"), Addr: netip.MustParseAddr("fd00:1::1"), Owner: "cid-a/net1"},
		{Subnet: netip.MustParsePrefix("fd00:1::/64"), Addr: netip.MustParseAddr("fd00:1::2"), Owner: "cid-b/net1"},
	}
	diff := cmp.Diff(want, leases, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}), cmpopts.IgnoreFields(lease.Lease{}, "Since"))
	if diff != "" || len(errs) != 0 {
		t.Errorf("leases (-want +got):\n%s%v", diff, errs)
	}
	for range 2 { // the second time there is nothing to release
		if err := s.Release(t.Context(), "cid-a/net1"); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(owned(t, s, "cid-a/net1")); got != 0 {
		t.Errorf("%d leases left", got)
	}
	if got := len(owned(t, s, "cid-b/net1")); got != 2 {
		t.Errorf("the other owner has %d leases, want 2", got)
	}
}

// TestFreedLast walks a /29, five addresses beside the gateway, with a clock of its own.
func TestFreedLast(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	s.Now = func() time.Time { return now }
	pool := [][]ipam.Range{{{
		Subnet: netip.MustParsePrefix("10.9.0.0/29"), Gateway: netip.MustParseAddr("10.9.0.1"),
	}}}
	take := func(owner string) (string, []string) {
		t.Helper()
		g, err := s.Allocate(t.Context(), pool, owner, nil)
		if err != nil {
			t.Fatal(err)
		}
		if gw := g.Addrs[0].Gateway.String(); gw != "10.9.0.1" {
			t.Errorf("gateway is %s", gw)
		}
		return g.Addrs[0].Prefix.Addr().String(), g.Warnings
	}
	free := func(owner string) {
		t.Helper()
		if err := s.Release(t.Context(), owner); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []string{"10.9.0.2", "10.9.0.3", "10.9.0.4"} {
		if got, warn := take(fmt.Sprint("o", i)); got != want || len(warn) != 0 {
			t.Errorf("fresh pool gave %s %v, want %s", got, warn, want)
		}
	}
	free("o1") // .3
	now = now.Add(10 * time.Second)
	free("o0") // .2
	now = now.Add(10 * time.Minute)
	for _, want := range []string{"10.9.0.5", "10.9.0.6", "10.9.0.3", "10.9.0.2"} {
		if got, warn := take("p" + want); got != want || len(warn) != 0 {
			t.Errorf("got %s %v, want %s: first what was never given, then what is free for longest", got, warn, want)
		}
	}
	_, err := s.Allocate(t.Context(), pool, "q", nil)
	var full *ipam.ExhaustedError
	if !errors.As(err, &full) || full.InUse != 5 || full.Size != 5 || !strings.Contains(err.Error(), "10.9.0.0/29") {
		t.Errorf("full pool: %v", err)
	}
	free("p10.9.0.6")
	now = now.Add(20 * time.Second)
	free("p10.9.0.5")
	now = now.Add(15 * time.Second)
	got, warn := take("q")
	if got != "10.9.0.6" || len(warn) != 1 || !strings.Contains(warn[0], "35s") {
		t.Errorf("got %s %v, want 10.9.0.6 with a warning of 35 s", got, warn)
	}
}

// TestRandomStart: a node that knows nothing of a range asks for a random place among its 254 addresses.
func TestRandomStart(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	var asked uint64
	s.Random = func(n uint64) uint64 { asked = n; return 99 }
	if got := prefixes(mustAllocate(t, s, "a", "10.1.0.0/24")); got != "10.1.0.100/24" || asked != 254 {
		t.Errorf("got %s of %d, want 10.1.0.100/24 of 254", got, asked)
	}
	if got := prefixes(mustAllocate(t, s, "b", "10.1.0.0/24")); got != "10.1.0.101/24" {
		t.Errorf("got %s, want the next one", got)
	}
	s.Random = nil
	mustAllocate(t, s, "c", "fd00::/64")
}

func TestWant(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	pools := sets("10.1.0.0/24", "fd00:1::/64")
	ask := func(owner string, want ...string) (string, error) {
		var addrs []netip.Addr
		for _, w := range want {
			addrs = append(addrs, netip.MustParseAddr(w))
		}
		g, err := s.Allocate(t.Context(), pools, owner, addrs)
		return prefixes(g), err
	}
	if got, err := ask("a", "fd00:1::77"); err != nil || got != "10.1.0.1/24 fd00:1::77/64" {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := ask("a", "10.1.0.9"); err != nil || got != "10.1.0.9/24 fd00:1::77/64" {
		t.Errorf("another wish of the same owner: got %s, %v", got, err)
	}
	if got := len(owned(t, s, "a")); got != 2 {
		t.Errorf("owner has %d leases, want 2: the one it no longer wants is free", got)
	}
	var taken *ipam.TakenError
	if _, err := ask("b", "10.1.0.9"); !errors.As(err, &taken) || taken.Owner != "a" {
		t.Errorf("address in use: %v", err)
	}
	for _, outside := range []string{"10.1.0.0", "10.1.0.255", "10.2.0.1", "fd00:1::"} {
		if _, err := ask("b", outside); !errors.Is(err, ipam.ErrOutside) {
			t.Errorf("%s: %v", outside, err)
		}
	}
	if _, err := ask("b", "10.1.0.10", "10.1.0.11"); !errors.Is(err, ipam.ErrOutside) {
		t.Errorf("two addresses of one set: %v", err)
	}
	if got := len(owned(t, s, "b")); got != 0 {
		t.Errorf("refused owner has %d leases", got)
	}
}

// TestAllOrNothing: the second set has nothing left, so the first gives nothing either, and its address rests as before.
func TestAllOrNothing(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	mustAllocate(t, s, "a", "10.1.0.0/32")
	_, err := s.Allocate(t.Context(), sets("10.2.0.0/24", "10.1.0.0/32"), "b", nil)
	if !errors.Is(err, ipam.ErrExhausted) {
		t.Fatalf("got %v", err)
	}
	if got := len(owned(t, s, "b")); got != 0 {
		t.Errorf("owner has %d leases after a failure", got)
	}
	if _, err := os.Lstat(filepath.Join(dir, "10.2.0.0_24", "cursor")); err == nil {
		t.Error("the cursor moved")
	}
}

// TestOverlap: two networks of one fabric, one with a wider mask, are two folders and yet one pool.
func TestOverlap(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := mustAllocate(t, s, "a", "10.1.0.0/16").Addrs[0].Prefix.Addr()
	b := mustAllocate(t, s, "b", "10.1.0.0/24").Addrs[0].Prefix.Addr()
	if a == b {
		t.Errorf("%s was given twice", a)
	}
}

func TestForeign(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	mustAllocate(t, s, "a", "10.1.0.0/24")
	pool := filepath.Join(dir, "10.1.0.0_24")
	for name, make := range map[string]func(path string) error{
		"10.1.0.2":   func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
		"notes.txt":  func(path string) error { return os.Symlink("a", path) },
		"10.2.0.1":   func(path string) error { return os.Symlink("a", path) },
		"010.1.0.7":  func(path string) error { return os.Symlink("a", path) },
		"../README":  func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"../1.2.3.4": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		if err := make(filepath.Join(pool, name)); err != nil {
			t.Fatal(err)
		}
	}
	if got := prefixes(mustAllocate(t, s, "b", "10.1.0.0/24")); got != "10.1.0.3/24" {
		t.Errorf("got %s, want the one behind the foreign file", got)
	}
	_, err := s.Allocate(t.Context(), sets("10.1.0.0/24"), "c", []netip.Addr{netip.MustParseAddr("10.1.0.2")})
	if !errors.Is(err, ipam.ErrTaken) {
		t.Errorf("asked for the foreign file's: %v", err)
	}
	leases, errs := s.List()
	if len(leases) != 2 || len(errs) != 6 {
		t.Errorf("%d leases, errors %v", len(leases), errs)
	}
	for _, err := range errs {
		if !errors.Is(err, lease.ErrForeign) || !strings.Contains(err.Error(), dir) {
			t.Errorf("error %v", err)
		}
	}
	if err := s.Release(t.Context(), "a"); err != nil {
		t.Errorf("release among foreign files: %v", err)
	}
}

func TestBadOwner(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	for _, owner := range []string{"", "a\x00b", strings.Repeat("x", 1025)} {
		if _, err := s.Allocate(t.Context(), sets("10.1.0.0/24"), owner, nil); !errors.Is(err, lease.ErrOwner) {
			t.Errorf("allocate for %.9q: %v", owner, err)
		}
		if err := s.Release(t.Context(), owner); !errors.Is(err, lease.ErrOwner) {
			t.Errorf("release of %.9q: %v", owner, err)
		}
	}
}

func TestLockFails(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	if _, err := s.Allocate(t.Context(), sets("10.2.0.0/24"), "a", nil); err != nil {
		t.Fatal(err)
	}
	held := errors.New("held")
	s.Lock = func(context.Context, string) (func(), error) { return nil, held }
	if _, err := s.Allocate(t.Context(), sets("10.1.0.0/24"), "a", nil); !errors.Is(err, held) {
		t.Errorf("allocate: %v", err)
	}
	if err := s.Release(t.Context(), "a"); !errors.Is(err, held) {
		t.Errorf("release: %v", err)
	}
}

// TestBadFolder: what stands in the way is named, and never in the words that Multus takes as success.
func TestBadFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"a file": file, "below a file": filepath.Join(file, "leases"), "no parent": filepath.Join(dir, "no", "leases"),
	} {
		s := lease.Store{Dir: path, Lock: func(context.Context, string) (func(), error) { return func() {}, nil }}
		_, err := s.Allocate(t.Context(), sets("10.1.0.0/24"), "a", nil)
		if !errors.Is(err, lease.ErrUnwritable) {
			t.Errorf("%s: %v", name, err)
		}
		_, listErrs := s.List()
		released := s.Release(t.Context(), "a")
		if absent := name == "no parent"; absent != (released == nil) || absent != (len(listErrs) == 0) {
			t.Errorf("%s: release %v, list %v; what is not there holds nothing", name, released, listErrs)
		}
		for _, err := range append(listErrs, err, released) {
			if err != nil && (!strings.Contains(err.Error(), path) || strings.Contains(strings.ToLower(err.Error()), "no such file")) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestProcesses lets 16 processes with 10 allocations each race for a /24.
func TestProcesses(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			out := proctest.Run(t, "allocateMany", dir, fmt.Sprint("process", i), "10.1.0.0/24")
			mu.Lock()
			defer mu.Unlock()
			if n := len(strings.Fields(out)); n != 10 {
				t.Errorf("process %d got %d addresses", i, n)
			}
		})
	}
	wg.Wait()
	leases, errs := s.List()
	seen := map[string]bool{}
	for _, l := range leases {
		seen[l.Owner] = true
	}
	// Each process gave three of its ten back. Two leases of one address cannot be, as they would be one file; that none
	// was overwritten shows in the number of owners.
	if len(errs) != 0 || len(leases) != 16*7 || len(seen) != 16*7 {
		t.Errorf("%d leases of %d owners, want 112 of 112; errors %v", len(leases), len(seen), errs)
	}
}

// TestNoLock lets goroutines race without any lock: not even then is an address given twice.
func TestNoLock(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	s.Lock = func(context.Context, string) (func(), error) { return func() {}, nil }
	var mu sync.Mutex
	var wg sync.WaitGroup
	got := map[netip.Addr]int{}
	for i := range 64 {
		wg.Go(func() {
			g, err := s.Allocate(context.Background(), sets("10.1.0.0/24"), fmt.Sprint("owner", i), nil)
			if err != nil && !errors.Is(err, lease.ErrUnwritable) { // two may meet at the cursor's temporary name
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				got[g.Addrs[0].Prefix.Addr()]++
			}
		})
	}
	wg.Wait()
	for a, n := range got {
		if n != 1 {
			t.Errorf("%s was given %d times", a, n)
		}
	}
}

// TestForgets: a /64 does not remember all that it ever gave.
func TestForgets(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	s.Now = func() time.Time { return now }
	freed := filepath.Join(dir, "fd00--_64", "freed")
	if err := os.MkdirAll(freed, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 1100 {
		when := now.Add(time.Duration(i-1200) * time.Minute).Format(time.RFC3339Nano)
		if err := os.Symlink(when, filepath.Join(freed, fmt.Sprintf("fd00--1-%x", i+1))); err != nil {
			t.Fatal(err)
		}
	}
	mustAllocate(t, s, "a", "fd00::/64")
	if err := s.Release(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(freed)
	if err != nil || len(left) != 1024 {
		t.Errorf("%d addresses at rest, want 1024; %v", len(left), err)
	}
	if _, err := os.Lstat(filepath.Join(freed, "fd00--1-1")); err == nil {
		t.Error("the one free for longest is still remembered")
	}
}

func FuzzEntry(f *testing.F) {
	f.Add("10.1.0.0_24", "10.1.0.1", "cid/net1")
	f.Add("fd00-1--_64", "fd00-1--1", "")
	f.Add("freed", "cursor", "2026-11-30T12:00:00Z")
	f.Fuzz(func(t *testing.T, pool, name, target string) {
		dir := filepath.Join(t.TempDir(), "leases")
		for _, part := range []string{pool, name} {
			if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "/\x00") || len(part) > 200 {
				return
			}
		}
		if err := os.MkdirAll(filepath.Join(dir, pool), 0o700); err != nil {
			t.Fatal(err)
		}
		if os.Symlink(target, filepath.Join(dir, pool, name)) != nil {
			return // no target that a link can have
		}
		s := lease.Store{Dir: dir, Lock: func(context.Context, string) (func(), error) { return func() {}, nil }}
		leases, _ := s.List()
		for _, l := range leases {
			if !l.Subnet.Contains(l.Addr) || l.Owner != target {
				t.Errorf("%s/%s -> %s was read as %+v", pool, name, target, l)
			}
		}
		g, err := s.Allocate(t.Context(), sets("10.1.0.0/24", "fd00:1::/64"), "new", nil)
		if err != nil {
			return // something stands where a folder must be
		}
		for _, l := range leases {
			for _, a := range g.Addrs {
				if l.Addr == a.Prefix.Addr() && l.Owner != "new" {
					t.Errorf("%s was given twice", l.Addr)
				}
			}
		}
	})
}

// TestReleaseOfNothingWaitsForNobody: the lock is everybody's, and may be a stopped process's.
func TestReleaseOfNothingWaitsForNobody(t *testing.T) {
	t.Parallel()
	s := store(filepath.Join(t.TempDir(), "leases"))
	if err := s.Release(t.Context(), "b/net1"); err != nil {
		t.Errorf("with no folder: %v", err)
	}
	if _, err := s.Allocate(t.Context(), sets("10.1.0.0/24"), "a/net1", nil); err != nil {
		t.Fatal(err)
	}
	unlock, err := s.Lock(t.Context(), "ADD c/net1")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), "b/net1"); err != nil {
		t.Errorf("of an owner without an address: %v", err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Release(soon, "a/net1"); !errors.Is(err, lock.ErrHeld) || !strings.Contains(err.Error(), "ADD c/net1") {
		t.Errorf("of one with an address: %v", err)
	}
	unlock()
	if err := s.Release(t.Context(), "a/net1"); err != nil {
		t.Error(err)
	}
}
