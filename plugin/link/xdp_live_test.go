// SPDX-License-Identifier: Apache-2.0

package link_test

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/plugin/link"
)

func bpf[T any](t *testing.T, cmd uintptr, attr *T) int {
	t.Helper()
	fd, _, errno := unix.Syscall(unix.SYS_BPF, cmd, uintptr(unsafe.Pointer(attr)), unsafe.Sizeof(*attr))
	if errno != 0 {
		t.Fatalf("bpf(%d): %v", cmd, errno)
	}
	return int(fd)
}

// xdp loads a program that lets everything pass.
func xdp(t *testing.T) int {
	t.Helper()
	program := []uint64{2<<32 | 0xb7, 0x95} // r0 = XDP_PASS; exit
	license := []byte("GPL\x00")
	// The beginning of union bpf_attr for BPF_PROG_LOAD, 6 being BPF_PROG_TYPE_XDP and 37 BPF_XDP.
	load := struct {
		typ, instructions uint32
		at, license       uint64
		level, size       uint32
		log               uint64
		version, flags    uint32
		name              [16]byte
		ifindex, expected uint32
	}{typ: 6, instructions: 2, at: uint64(uintptr(unsafe.Pointer(&program[0]))), license: uint64(uintptr(unsafe.Pointer(&license[0]))), expected: 37}
	fd := bpf(t, 5, &load)
	runtime.KeepAlive(program)
	runtime.KeepAlive(license)
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// A program attached by netlink is seen, goes along, and is taken away, however it was attached.
func TestXDPIsTakenAway(t *testing.T) {
	t.Parallel()
	for mode, flag := range map[string]uint32{"native": unix.XDP_FLAGS_DRV_MODE, "generic": unix.XDP_FLAGS_SKB_MODE} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			home, pod := newSpace(t), newSpace(t)
			l := pod.add(t, plain("v0"))
			must(t, pod.do(func() error {
				req := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
				msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
				msg.Index = int32(l.Index)
				req.AddData(msg)
				attr := nl.NewRtAttr(unix.IFLA_XDP|unix.NLA_F_NESTED, nil)
				attr.AddRtAttr(nl.IFLA_XDP_FD, nl.Uint32Attr(uint32(xdp(t))))
				attr.AddRtAttr(nl.IFLA_XDP_FLAGS, nl.Uint32Attr(flag))
				req.AddData(attr)
				_, err := req.Execute(unix.NETLINK_ROUTE, 0)
				return err
			}))
			must(t, pod.Move(l.Index, link.Change{Name: "v0", NetNS: int(home.ns.Fd())}))
			moved, want := home.get(t, "v0"), l.Traits
			want.XDP = mode
			if diff := cmp.Diff(want, moved.Traits); diff != "" {
				t.Errorf("after the move (-want +got):\n%s", diff)
			}
			must(t, home.SetTraits(moved.Index, moved.Traits, moved.Traits))
			if got := home.get(t, "v0").Traits.XDP; got != mode {
				t.Errorf("a program that was to stay is %q", got)
			}
			must(t, home.SetTraits(moved.Index, moved.Traits, l.Traits))
			if diff := cmp.Diff(l.Traits, home.get(t, "v0").Traits); diff != "" {
				t.Errorf("set back (-want +got):\n%s", diff)
			}
		})
	}
}

// One that a BPF link holds stays until that is closed. All else is done.
func TestXDPOfABPFLinkIsRefused(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	l := s.add(t, plain("v0"))
	var held *os.File
	must(t, s.do(func() error {
		create := struct {
			program, index, typ, flags uint32
			rest                       [6]uint64
		}{program: uint32(xdp(t)), index: uint32(l.Index), typ: 37, flags: unix.XDP_FLAGS_SKB_MODE}
		held = os.NewFile(uintptr(bpf(t, 28, &create)), "BPF link") // BPF_LINK_CREATE
		return nil
	}))
	s.run(t, "ip", "link", "set", "dev", "v0", "promisc", "on", "alias", "mine", "group", "42")
	err := s.SetTraits(l.Index, s.get(t, "v0").Traits, l.Traits)
	want := l.Traits
	want.XDP = "generic"
	if diff := cmp.Diff(want, s.get(t, "v0").Traits); diff != "" || !errors.Is(err, link.ErrRefused) || !errors.Is(err, unix.EBUSY) {
		t.Errorf("%v; traits (-want +got):\n%s", err, diff)
	}
	must(t, held.Close())
	if diff := cmp.Diff(l.Traits, s.get(t, "v0").Traits); diff != "" {
		t.Errorf("after the link's end (-want +got):\n%s", diff)
	}
}
