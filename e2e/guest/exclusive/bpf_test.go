// SPDX-License-Identifier: Apache-2.0

//go:build lab

package exclusive_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/e2e/guest/node"
)

// attachXDP puts a program that lets everything pass on a link of a pod, as a BPF link: it stays while the descriptor is open,
// wherever the netdev goes, and nobody else can take it away. The returned function closes it.
func attachXDP(t *testing.T, pod *node.NS, ifname string) func() {
	t.Helper()
	const (
		progLoad, linkCreate  = 5, 28 // enum bpf_cmd
		typeXDP, attachXDPtyp = 6, 37 // BPF_PROG_TYPE_XDP, BPF_XDP
	)
	program := []uint64{2<<32 | 0xb7, 0x95} // r0 = XDP_PASS; exit
	license := []byte("GPL\x00")
	load := struct {
		typ, instructions        uint32
		at, license              uint64
		level, size              uint32
		log                      uint64
		version, flags           uint32
		name                     [16]byte
		ifindex, expected        uint32
		fd, infoSize             uint32
		info                     uint64
		infoCount, lineSize      uint32
		line                     uint64
		lineCount, attachedBTFID uint32
	}{typ: typeXDP, instructions: 2, at: address(&program[0]), license: address(&license[0]), expected: attachXDPtyp}
	fd := bpf(t, progLoad, unsafe.Pointer(&load), unsafe.Sizeof(load))
	runtime.KeepAlive(program)
	runtime.KeepAlive(license)
	defer func() { _ = unix.Close(fd) }()

	var index int
	pod.Do(t, func() error {
		_, err := fmt.Sscan(node.Run(t, "sh", "-c", "ip -o link show dev "+ifname+" | cut -d: -f1"), &index)
		return err
	})
	link := -1
	pod.Do(t, func() error {
		create := struct {
			program, index, typ, flags uint32
			rest                       [6]uint64
		}{program: uint32(fd), index: uint32(index), typ: attachXDPtyp, flags: unix.XDP_FLAGS_SKB_MODE}
		link = bpf(t, linkCreate, unsafe.Pointer(&create), unsafe.Sizeof(create))
		return nil
	})
	f := os.NewFile(uintptr(link), "BPF link")
	t.Cleanup(func() { _ = f.Close() })
	return func() { _ = f.Close() }
}

func address[T any](p *T) uint64 { return uint64(uintptr(unsafe.Pointer(p))) }

func bpf(t *testing.T, cmd uintptr, attr unsafe.Pointer, size uintptr) int {
	t.Helper()
	fd, _, errno := unix.Syscall(unix.SYS_BPF, cmd, uintptr(attr), size)
	if errno != 0 {
		t.Fatalf("bpf(%d): %v", cmd, errno)
	}
	return int(fd)
}
