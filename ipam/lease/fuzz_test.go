// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/podfabric/podfabric/ipam/lease"
)

// FuzzFolder: with a file, a link, a folder or a fifo of any name and content in the folder of leases, addresses are given or
// refused in time, none that is leased is given again, and what is given can be given back.
func FuzzFolder(f *testing.F) {
	for i, s := range [][2]string{
		{"10.1.0.0_29/10.1.0.1", "other"},
		{"10.1.0.0_29/freed/10.1.0.1", "2026-11-30T12:00:00Z"},
		{"10.1.0.0_29/cursor/10.1.0.0", "10.1.0.6"},
		{"10.1.0.0_29/cursor/10.1.0.0", "255.255.255.255"},
		{"10.1.0.0_29", "../../outside"},
		{"10.1.0.0_29/freed", "/"},
		{"10.1.0.0_29/.new", "x"},
		{"10.1.0.0_29/freed/.new", ""},
		{"10.1.0.0_8/10.1.0.1", "other"},
		{"10.1.0.0_29/10.1.0.01", "other"},
		{"10.1.0.0_29/10.1.0.1\n", "a\x1b[2J"},
		{"fd00-1--_64/fd00-1--1", "other"},
		{"fd00-1--_64/freed/fd00-1--1", "9999-12-31T23:59:59Z"},
		{"0.0.0.0_0/10.1.0.2", strings.Repeat("o", 1500)},
	} {
		for kind := range uint8(4) {
			f.Add(s[0], kind+uint8(i)%4, s[1])
		}
	}
	f.Fuzz(func(t *testing.T, name string, kind uint8, text string) {
		base := t.TempDir()
		outside, dir := filepath.Join(base, "outside"), filepath.Join(base, "leases")
		if err := errors.Join(os.Mkdir(outside, 0o700), os.Mkdir(dir, 0o700)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.Clean("/"+name))
		_ = os.MkdirAll(filepath.Dir(path), 0o700)
		switch kind % 4 {
		case 0:
			_ = os.Symlink(text, path)
		case 1:
			_ = os.WriteFile(path, []byte(text), 0o600)
		case 2:
			_ = os.MkdirAll(path, 0o700)
		case 3:
			_ = syscall.Mkfifo(path, 0o600)
		}
		alarm := time.AfterFunc(3*time.Minute, func() { panic("the store hangs") })
		defer alarm.Stop()
		s := store(dir)
		leases, errs := s.List()
		g, err := s.Allocate(t.Context(), sets("10.1.0.0/29", "fd00:1::/64"), "new", nil)
		errs = append(errs, err)
		for _, a := range g.Addrs {
			for _, l := range leases {
				if l.Addr == a.Prefix.Addr() && l.Owner != "new" {
					t.Errorf("%s of %q was given again", l.Addr, l.Owner)
				}
			}
		}
		if err == nil && len(g.Addrs) != 2 {
			t.Errorf("gave %v", g.Addrs)
		}
		released := s.Release(t.Context(), "new")
		left, _ := s.List()
		if released == nil && slices.ContainsFunc(left, func(l lease.Lease) bool { return l.Owner == "new" }) {
			t.Errorf("after the release there is %v", left)
		}
		errs = append(errs, released)
		for _, err := range errs {
			if err != nil && strings.Contains(strings.ToLower(err.Error()), "no such file") {
				t.Errorf("text %q", err)
			}
		}
		if made, err := os.ReadDir(outside); err != nil || len(made) > 0 {
			t.Errorf("outside the store there is %v, %v", made, err)
		}
	})
}
