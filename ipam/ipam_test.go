// SPDX-License-Identifier: Apache-2.0

package ipam_test

import (
	"errors"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/podfabric/podfabric/ipam"
)

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func addr(s string) netip.Addr {
	if s == "" {
		return netip.Addr{}
	}
	return netip.MustParseAddr(s)
}

func rng(subnet, first, last, gateway string, exclude ...string) ipam.Range {
	r := ipam.Range{Subnet: prefix(subnet), First: addr(first), Last: addr(last), Gateway: addr(gateway)}
	for _, x := range exclude {
		r.Exclude = append(r.Exclude, prefix(x))
	}
	return r
}

// TestSize has its numbers from the RFCs that Range names.
func TestSize(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		r    ipam.Range
		size uint64
		in   string // addresses that can be given
		out  string // and that cannot
	}{
		{"network and broadcast", rng("10.1.0.0/24", "", "", ""), 254, "10.1.0.1 10.1.0.254", "10.1.0.0 10.1.0.255 10.1.1.1 ::ffff:10.1.0.1"},
		{"gateway", rng("10.1.0.0/24", "", "", "10.1.0.1"), 253, "10.1.0.2", "10.1.0.1"},
		{"gateway elsewhere", rng("10.1.0.0/24", "", "", "fe80::1"), 254, "10.1.0.1", "10.1.0.0"},
		{"block in a subnet", rng("10.1.0.0/16", "10.1.0.64", "10.1.0.127", ""), 64, "10.1.0.64 10.1.0.127", "10.1.0.63 10.1.0.128"},
		{"first block", rng("10.1.0.0/16", "10.1.0.0", "10.1.0.63", ""), 63, "10.1.0.1", "10.1.0.0"},
		{"last block", rng("10.1.0.0/16", "10.1.255.192", "10.1.255.255", ""), 63, "10.1.255.254", "10.1.255.255"},
		{"exclusions", rng("10.1.0.0/24", "", "", "", "10.1.0.0/28", "10.1.0.100/32", "10.1.0.240/28", "10.9.0.0/16"), 223, "10.1.0.16 10.1.0.101 10.1.0.239", "10.1.0.15 10.1.0.100 10.1.0.240"},
		{"exclusion not masked", rng("10.1.0.0/24", "", "", "", "10.1.0.9/28"), 239, "10.1.0.16", "10.1.0.1 10.1.0.15"},
		{"exclusion of all of IPv4", rng("10.1.0.0/24", "", "", "", "0.0.0.0/0"), 0, "", "10.1.0.1"},
		{"exclusion of the other family", rng("10.1.0.0/24", "", "", "", "::/0"), 254, "10.1.0.1", ""},
		{"point to point", rng("10.1.0.0/31", "", "", ""), 2, "10.1.0.0 10.1.0.1", ""},
		{"one address", rng("10.1.0.7/32", "", "", ""), 1, "10.1.0.7", ""},
		{"end of IPv4", rng("255.255.255.254/31", "", "", ""), 2, "255.255.255.255", ""},
		{"all of IPv4", rng("0.0.0.0/0", "", "", ""), 1<<32 - 2, "0.0.0.1", "0.0.0.0 255.255.255.255"},
		{"IPv6 /64", rng("fd00::/64", "", "", ""), math.MaxUint64, "fd00::1 fd00::ffff:ffff:ffff:ffff", "fd00:: fd00:0:0:1::"},
		{"IPv6 /48", rng("fd00::/48", "", "", "fd00::1"), math.MaxUint64, "fd00::2", "fd00:: fd00::1"},
		{"IPv6 halves", rng("fd00::/64", "", "", "", "fd00::8000:0:0:0/65"), 1<<63 - 1, "fd00::1", "fd00::8000:0:0:0"},
		{"IPv6 /112", rng("fd00::/112", "", "", ""), 65535, "fd00::ffff", "fd00::"},
		{"IPv6 point to point", rng("fd00::/127", "", "", ""), 2, "fd00:: fd00::1", ""},
		{"end of IPv6", rng("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127", "", "", ""), 2, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := tc.r.Size(); got != tc.size {
				t.Errorf("size %d, want %d", got, tc.size)
			}
			for a := range strings.FieldsSeq(tc.in) {
				if !tc.r.Contains(addr(a)) {
					t.Errorf("%s cannot be given", a)
				}
			}
			for a := range strings.FieldsSeq(tc.out) {
				if tc.r.Contains(addr(a)) {
					t.Errorf("%s can be given", a)
				}
			}
			if err := tc.r.Check(); (err == nil) != (tc.size > 0) {
				t.Errorf("check: %v", err)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	unmasked := ipam.Range{Subnet: netip.PrefixFrom(addr("10.1.0.1"), 24)}
	badExclude := rng("10.1.0.0/24", "", "", "")
	badExclude.Exclude = []netip.Prefix{{}}
	for _, tc := range []struct {
		name, says string
		r          ipam.Range
	}{
		{"nothing", "none", ipam.Range{}},
		{"not masked", "10.1.0.1/24", unmasked},
		{"first outside", "10.2.0.1", rng("10.1.0.0/24", "10.2.0.1", "", "")},
		{"last outside", "10.2.0.1", rng("10.1.0.0/24", "", "10.2.0.1", "")},
		{"last of the other family", "fd00::1", rng("10.1.0.0/24", "", "fd00::1", "")},
		{"backwards", "above", rng("10.1.0.0/24", "10.1.0.9", "10.1.0.8", "")},
		{"bad exclusion", "no prefix", badExclude},
		{"only the gateway", "gateway", rng("10.1.0.0/24", "10.1.0.1", "10.1.0.1", "10.1.0.1")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			err := tc.r.Check()
			if !errors.Is(err, ipam.ErrRange) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v", err)
			}
			if tc.r.Size() != 0 || tc.r.Contains(addr("10.1.0.1")) && tc.name != "backwards" {
				t.Error("it can give something")
			}
			if _, err := ipam.Choose([]ipam.Range{tc.r}, ipam.State{}); err == nil {
				t.Error("an address was chosen")
			}
		})
	}
}

// TestBlock has its values computed by hand.
func TestBlock(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		subnet  string
		perNode int
		index   uint64
		want    string // empty: refused
	}{
		{"10.1.0.0/16", 26, 0, "10.1.0.0/26"},
		{"10.1.0.0/16", 26, 17, "10.1.4.64/26"},
		{"10.1.0.0/16", 26, 1023, "10.1.255.192/26"},
		{"10.1.0.0/16", 26, 1024, ""},
		{"10.1.0.0/16", 26, math.MaxUint64, ""},
		{"10.1.0.0/16", 16, 0, "10.1.0.0/16"},
		{"10.1.0.0/16", 16, 1, ""},
		{"10.1.0.0/16", 15, 0, ""},
		{"10.1.0.0/16", 33, 0, ""},
		{"10.1.0.0/16", -1, 0, ""},
		{"10.1.0.0/30", 32, 3, "10.1.0.3/32"},
		{"0.0.0.0/0", 8, 255, "255.0.0.0/8"},
		{"fd00::/48", 64, 0xabcd, "fd00:0:0:abcd::/64"},
		{"fd00::/48", 64, 0x10000, ""},
		{"fd00::/32", 80, 0x123456789abc, "fd00:0:1234:5678:9abc::/80"},
		{"fd00::/32", 128, math.MaxUint64, "fd00::ffff:ffff:ffff:ffff/128"},
		{"::/0", 64, math.MaxUint64, "ffff:ffff:ffff:ffff::/64"},
		{"::/0", 1, 1, "8000::/1"},
		{"fd00::/64", 96, 1, "fd00::1:0:0/96"},
	} {
		got, err := ipam.Block(prefix(tc.subnet), tc.perNode, tc.index)
		if tc.want == "" {
			if !errors.Is(err, ipam.ErrRange) {
				t.Errorf("Block(%s, %d, %d) = %s, %v", tc.subnet, tc.perNode, tc.index, got, err)
			}
			continue
		}
		if err != nil || got != prefix(tc.want) {
			t.Errorf("Block(%s, %d, %d) = %s, %v, want %s", tc.subnet, tc.perNode, tc.index, got, err, tc.want)
		}
	}
	for _, bad := range []netip.Prefix{{}, netip.PrefixFrom(addr("10.1.0.1"), 24)} {
		if _, err := ipam.Block(bad, 26, 0); !errors.Is(err, ipam.ErrRange) {
			t.Errorf("Block(%s): %v", bad, err)
		}
	}
}

func TestChoose(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	used := func(addrs ...string) map[netip.Addr]bool {
		m := map[netip.Addr]bool{}
		for _, a := range addrs {
			m[addr(a)] = true
		}
		return m
	}
	small := rng("10.1.0.0/29", "10.1.0.1", "10.1.0.3", "")
	for _, tc := range []struct {
		name   string
		ranges []ipam.Range
		s      ipam.State
		want   string
		warns  bool
	}{
		{"the first", []ipam.Range{small}, ipam.State{}, "10.1.0.1/29", false},
		{"behind the cursor", []ipam.Range{small}, ipam.State{Cursor: []netip.Addr{addr("10.1.0.1")}}, "10.1.0.2/29", false},
		{"round the end", []ipam.Range{small}, ipam.State{Cursor: []netip.Addr{addr("10.1.0.3")}}, "10.1.0.1/29", false},
		{"a cursor outside", []ipam.Range{small}, ipam.State{Cursor: []netip.Addr{addr("10.1.0.200")}}, "10.1.0.1/29", false},
		{"a cursor at the end of all", []ipam.Range{rng("255.255.255.254/31", "", "", "")}, ipam.State{Cursor: []netip.Addr{addr("255.255.255.255")}}, "255.255.255.254/31", false},
		{"over what is in use", []ipam.Range{small}, ipam.State{InUse: used("10.1.0.1", "10.1.0.2")}, "10.1.0.3/29", false},
		{"over a hole", []ipam.Range{rng("10.1.0.0/29", "", "", "10.1.0.2", "10.1.0.3/32")}, ipam.State{InUse: used("10.1.0.1")}, "10.1.0.4/29", false},
		{"the alternative", []ipam.Range{rng("10.1.0.0/30", "", "", "10.1.0.1"), rng("10.2.0.0/24", "", "", "")}, ipam.State{InUse: used("10.1.0.2")}, "10.2.0.1/24", false},
		{"never given before rested", []ipam.Range{small}, ipam.State{Freed: map[netip.Addr]time.Time{addr("10.1.0.1"): ago(time.Hour)}}, "10.1.0.2/29", false},
		{
			"rested for longest",
			[]ipam.Range{small},
			ipam.State{InUse: used("10.1.0.1"), Freed: map[netip.Addr]time.Time{addr("10.1.0.1"): ago(99 * time.Hour), addr("10.1.0.2"): ago(61 * time.Second), addr("10.1.0.3"): ago(60 * time.Second), addr("10.7.0.3"): ago(time.Hour)}},
			"10.1.0.2/29", false,
		},
		{
			"the lowest of equals, too early",
			[]ipam.Range{small},
			ipam.State{InUse: used("10.1.0.1"), Freed: map[netip.Addr]time.Time{addr("10.1.0.3"): ago(59 * time.Second), addr("10.1.0.2"): ago(59 * time.Second)}},
			"10.1.0.2/29", true,
		},
		{
			"freed in the future of a clock set back",
			[]ipam.Range{rng("10.1.0.9/32", "", "", "")},
			ipam.State{Freed: map[netip.Addr]time.Time{addr("10.1.0.9"): ago(-time.Hour)}},
			"10.1.0.9/32", true,
		},
		{"random", []ipam.Range{rng("10.1.0.0/24", "", "", "", "10.1.0.0/25")}, ipam.State{Random: func(n uint64) uint64 { return n - 1 }}, "10.1.0.254/24", false},
		{"random behind a hole", []ipam.Range{rng("10.1.0.0/24", "", "", "10.1.0.5")}, ipam.State{Random: func(uint64) uint64 { return 10 }}, "10.1.0.12/24", false},
		{"IPv6", []ipam.Range{rng("fd00::/64", "", "", "fd00::1")}, ipam.State{InUse: used("fd00::2")}, "fd00::3/64", false},
		{"IPv6 random", []ipam.Range{rng("fd00::/64", "", "", "")}, ipam.State{Random: func(n uint64) uint64 { return n - 1 }}, "fd00::ffff:ffff:ffff:ffff/64", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.s.Now = now
			got, err := ipam.Choose(tc.ranges, tc.s)
			if err != nil || got.Addr != prefix(tc.want) || (got.Warning != "") != tc.warns {
				t.Errorf("got %+v, %v, want %s", got, err, tc.want)
			}
			if got.Gateway != tc.ranges[got.Range].Gateway {
				t.Errorf("gateway %s", got.Gateway)
			}
		})
	}
}

func TestChooseExhausted(t *testing.T) {
	t.Parallel()
	ranges := []ipam.Range{rng("10.1.0.0/30", "", "", "10.1.0.1"), rng("10.2.0.0/16", "10.2.0.64", "10.2.0.65", "")}
	_, err := ipam.Choose(ranges, ipam.State{InUse: map[netip.Addr]bool{
		addr("10.1.0.2"): true, addr("10.2.0.64"): true, addr("10.2.0.65"): true, addr("10.9.0.1"): true, addr("10.9.0.2"): false,
	}})
	const want = "choose address: no address left in 10.1.0.0/30 or 10.2.0.0/16 (10.2.0.64 to 10.2.0.65): 3 of 3 in use"
	if !errors.Is(err, ipam.ErrExhausted) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if _, err := ipam.Choose(nil, ipam.State{}); !errors.Is(err, ipam.ErrRange) {
		t.Errorf("no ranges: %v", err)
	}
}

func TestTakenErrorNamesOwner(t *testing.T) {
	t.Parallel()
	err := &ipam.TakenError{Addr: addr("10.1.0.1"), Owner: "cid/net1"}
	if !errors.Is(err, ipam.ErrTaken) || err.Error() != "give address 10.1.0.1: in use by cid/net1" {
		t.Error(err)
	}
}

// FuzzChoose: whatever range and use, a chosen address can be given and is not in use; when none is chosen, all are in use.
func FuzzChoose(f *testing.F) {
	f.Add([]byte{10, 1, 0, 0}, 24, uint64(0), []byte{1, 2, 3}, uint64(7))
	f.Add([]byte{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 124, uint64(3), []byte{0, 1, 2, 3, 4, 5, 6, 7, 8}, uint64(1))
	f.Fuzz(func(t *testing.T, base []byte, length int, index uint64, inUse []byte, start uint64) {
		a, ok := netip.AddrFromSlice(base)
		if !ok {
			return
		}
		subnet, err := a.Prefix(length)
		if err != nil {
			return
		}
		r := ipam.Range{Subnet: subnet, Gateway: subnet.Addr().Next()}
		if block, blockErr := ipam.Block(subnet, min(length+3, a.BitLen()), index%8); blockErr == nil {
			if !subnet.Contains(block.Addr()) {
				t.Fatalf("block %s is outside %s", block, subnet)
			}
			r.First = block.Addr()
		}
		s := ipam.State{InUse: map[netip.Addr]bool{}, Random: func(n uint64) uint64 { return start % n }}
		given := uint64(0)
		for next, i := r.First, 0; next.IsValid() && i < len(inUse); i++ {
			for range inUse[i] % 4 {
				next = next.Next()
			}
			if next.IsValid() && r.Contains(next) && !s.InUse[next] {
				s.InUse[next] = true
				given++
			}
		}
		c, err := ipam.Choose([]ipam.Range{r}, s)
		switch {
		case err == nil && (s.InUse[c.Addr.Addr()] || !r.Contains(c.Addr.Addr()) || c.Addr.Bits() != subnet.Bits()):
			t.Errorf("%s of %s was chosen; in use %v", c.Addr, r, s.InUse)
		case errors.Is(err, ipam.ErrExhausted) && given != r.Size():
			t.Errorf("exhausted with %d of %d in use", given, r.Size())
		}
	})
}
