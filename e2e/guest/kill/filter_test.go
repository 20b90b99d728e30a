// SPDX-License-Identifier: Apache-2.0

//go:build lab

package kill_test

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// filterThread has those system calls of this thread, and of what it starts, stop for the tracer that may change something: stopping at
// all of them would take an ADD a minute on the emulated machine. The thread itself has no tracer, so that it can make none of them
// any more, and must end.
func filterThread() error {
	filter := stops()
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0); err != nil {
		return fmt.Errorf("install the filter: %w", err)
	}
	return nil
}

// stops is the filter, a program of seccomp(2): which calls stop. Offsets are those of struct seccomp_data.
func stops() []unix.SockFilter {
	const (
		number    = 0
		argument0 = 16
		argument2 = 32
		load      = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal     = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		set       = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	)
	stop := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_TRACE}
	pass := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	filter := []unix.SockFilter{
		{Code: load, K: number},
		{Code: equal, K: unix.SYS_OPENAT, Jf: 4},
		{Code: load, K: argument2},
		{Code: set, K: unix.O_CREAT, Jf: 1},
		stop, pass,
		{Code: equal, K: unix.SYS_SOCKET, Jf: 4},
		{Code: load, K: argument0},
		{Code: equal, K: unix.AF_NETLINK, Jf: 1},
		stop, pass,
		// Go's scheduler writes 8 bytes to wake itself, on whichever thread, and no file of ours has that length.
		{Code: equal, K: unix.SYS_WRITE, Jf: 4},
		{Code: load, K: argument2},
		{Code: equal, K: 8, Jf: 1},
		pass, stop,
	}
	for _, call := range []uint32{
		unix.SYS_SENDTO, unix.SYS_MKDIRAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_SYMLINKAT, unix.SYS_UNLINKAT,
	} {
		filter = append(filter, unix.SockFilter{Code: equal, K: call, Jf: 1}, stop)
	}
	return append(filter, pass)
}
