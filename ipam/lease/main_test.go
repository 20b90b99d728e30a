// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/podfabric/podfabric/ipam"
	"github.com/podfabric/podfabric/ipam/lease"
	"github.com/podfabric/podfabric/plugin/lock"
	"github.com/podfabric/podfabric/plugin/statedir/proctest"
)

func TestMain(m *testing.M) {
	os.Exit(proctest.Main(m, map[string]func([]string) error{
		"allocate":     allocate,
		"allocateMany": allocateMany,
		"release":      release,
		"full":         full,
	}))
}

// store is the store of dir with a lock as the plugin has it.
func store(dir string) lease.Store {
	locks := lock.New(filepath.Join(filepath.Dir(dir), filepath.Base(dir)+".locks"))
	return lease.Store{
		Dir:    dir,
		Lock:   func(ctx context.Context, holder string) (func(), error) { return locks.Acquire(ctx, "leases", holder) },
		Random: func(uint64) uint64 { return 0 },
	}
}

func sets(subnets ...string) [][]ipam.Range {
	all := make([][]ipam.Range, 0, len(subnets))
	for _, s := range subnets {
		all = append(all, []ipam.Range{{Subnet: netip.MustParsePrefix(s)}})
	}
	return all
}

func allocate(args []string) error {
	_, err := store(args[0]).Allocate(context.Background(), sets(args[2:]...), args[1], nil)
	return err
}

// allocateMany takes a number of addresses for an owner each and prints them.
func allocateMany(args []string) error {
	s := store(args[0])
	for i := range 10 {
		g, err := s.Allocate(context.Background(), sets(args[2:]...), fmt.Sprintf("%s-%d", args[1], i), nil)
		if err != nil {
			return err
		}
		fmt.Println(g.Addrs[0].Prefix)
		if i%3 == 2 { // in between some are given back, by their owner
			if err := s.Release(context.Background(), fmt.Sprintf("%s-%d", args[1], i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func release(args []string) error {
	return store(args[0]).Release(context.Background(), args[1])
}
