// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// ownerMax keeps a key below what symlink(2) takes on every file system (PATH_MAX with its zero byte).
const ownerMax = 1024

func checkOwner(owner string) error {
	if owner == "" || len(owner) > ownerMax || strings.ContainsRune(owner, 0) {
		return fmt.Errorf("check owner %.64q: %w", owner, ErrOwner)
	}
	return nil
}

// addrName is an address as a file name; no text form of an address holds a '-' of its own.
func addrName(a netip.Addr) string { return strings.ReplaceAll(a.String(), ":", "-") }

// poolName is a subnet as a file name: 10.1.0.0_16, fd00-1--_64.
func poolName(p netip.Prefix) string { return addrName(p.Addr()) + fmt.Sprintf("_%d", p.Bits()) }

// parseAddr reads addrName, in the one form that it writes: two names for one address would be two leases.
func parseAddr(name string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(strings.ReplaceAll(name, "-", ":"))
	return a, err == nil && a.Zone() == "" && addrName(a) == name
}

func parsePool(name string) (netip.Prefix, error) {
	text := strings.Replace(strings.ReplaceAll(name, "-", ":"), "_", "/", 1)
	p, err := netip.ParsePrefix(text)
	if err != nil || p != p.Masked() || poolName(p) != name {
		return netip.Prefix{}, fmt.Errorf("its name is not a subnet's: %w", ErrForeign)
	}
	return p, nil
}

func parseLease(subnet netip.Prefix, name, owner string) (Lease, error) {
	a, ok := parseAddr(name)
	if !ok || !subnet.Contains(a) {
		return Lease{}, fmt.Errorf("its name is not an address of %s: %w", subnet, ErrForeign)
	}
	if err := checkOwner(owner); err != nil {
		return Lease{}, fmt.Errorf("its target is not an owner: %w", ErrForeign)
	}
	return Lease{Subnet: subnet, Addr: a, Owner: owner}, nil
}

func parseFreed(subnet netip.Prefix, name, target string) (netip.Addr, time.Time, bool) {
	a, ok := parseAddr(name)
	since, err := time.Parse(time.RFC3339Nano, target)
	return a, since, ok && err == nil && subnet.Contains(a)
}
