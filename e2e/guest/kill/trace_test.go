// SPDX-License-Identifier: Apache-2.0

//go:build lab

package kill_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/e2e/guest/cni"
)

// tracer follows a process through its system calls and kills it after one of those that change something: the kernel has done what
// was asked, and nobody has read the answer. strace(1) counts an injection for each thread apart, and which thread of a Go program
// makes a call is not the same twice; here one count runs over all.
type tracer struct {
	killAt string   // the sort of call to die after; "": none
	nth    int      // which of them, from 1
	calls  []string // those that change something, in order

	main    int
	others  map[int]bool   // threads of other processes that were started by it
	inside  map[int]string // threads that are in a call: what it changes, or ""
	sockets map[int]uint64 // protocol of each netlink socket
}

// trace runs a command to its end, natural or not.
func trace(t *testing.T, cmd *exec.Cmd, killAt string, nth int) ([]string, syscall.WaitStatus) {
	t.Helper()
	tr := &tracer{killAt: killAt, nth: nth, others: map[int]bool{}, inside: map[int]string{}, sockets: map[int]uint64{}}
	type ending struct {
		status syscall.WaitStatus
		err    error
	}
	ended := make(chan ending)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine. The kernel takes a tracer's requests from it alone
		if err := filterThread(); err != nil {
			ended <- ending{err: err}
			return
		}
		status, err := tr.run(cmd)
		ended <- ending{status, err}
	}()
	end := <-ended
	if end.err != nil {
		t.Fatal(end.err)
	}
	return tr.calls, end.status
}

func (tr *tracer) run(cmd *exec.Cmd) (syscall.WaitStatus, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	tr.main = cmd.Process.Pid
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(tr.main, &status, 0, nil); err != nil {
		return 0, fmt.Errorf("wait for the first stop: %w", err)
	}
	options := unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACESECCOMP | unix.PTRACE_O_EXITKILL |
		unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK
	if err := unix.PtraceSetOptions(tr.main, options); err != nil {
		return 0, fmt.Errorf("trace: %w", err)
	}
	on, signal := unix.PtraceCont, 0
	for tid := tr.main; ; {
		// A thread that has died meanwhile cannot be told to go on.
		if err := on(tid, signal); err != nil && !errors.Is(err, unix.ESRCH) {
			return 0, fmt.Errorf("go on: %w", err)
		}
		for {
			var err error
			if tid, err = syscall.Wait4(-1, &status, unix.WALL, nil); err != nil {
				return 0, fmt.Errorf("wait for a stop: %w", err)
			}
			if status.Stopped() {
				break
			}
			if tid == tr.main {
				return status, nil
			}
		}
		on, signal = tr.stopped(tid, status)
	}
}

// syscallStop is the signal of a stop at the end of a system call, with TRACESYSGOOD.
const syscallStop = syscall.SIGTRAP | 0x80

// stopped handles one stop and gives how to go on, and the signal to deliver.
func (tr *tracer) stopped(tid int, status syscall.WaitStatus) (func(pid, signal int) error, int) {
	event, sig := int(status)>>16, status.StopSignal()
	switch {
	case event == unix.PTRACE_EVENT_SECCOMP, sig == syscallStop:
		if !tr.others[tid] && tr.call(tid) { // a delegate is not under test
			return unix.PtraceSyscall, 0
		}
	case event == unix.PTRACE_EVENT_VFORK, event == unix.PTRACE_EVENT_FORK, event == unix.PTRACE_EVENT_CLONE:
		child, err := unix.PtraceGetEventMsg(tid)
		if err == nil && (tr.others[tid] || event != unix.PTRACE_EVENT_CLONE) {
			tr.others[int(child)] = true
		}
	case sig == syscall.SIGTRAP, sig == syscall.SIGSTOP: // a new program, or a new thread seen from itself
	default:
		return unix.PtraceCont, int(sig)
	}
	return unix.PtraceCont, 0
}

// call looks at a system call that begins, and tells whether to look at it again when it ends; and at one that ends.
func (tr *tracer) call(tid int) bool {
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(tid, &regs) != nil {
		return false
	}
	what, leaving := tr.inside[tid]
	if !leaving {
		what = tr.changes(tid, regs)
		if what == "" && regs.Orig_rax != unix.SYS_SOCKET {
			return false
		}
		tr.inside[tid] = what
		return true
	}
	delete(tr.inside, tid)
	if int64(regs.Rax) < 0 {
		return false
	}
	if regs.Orig_rax == unix.SYS_SOCKET {
		tr.sockets[int(regs.Rax)] = regs.Rdx
		return false
	}
	tr.calls = append(tr.calls, what)
	if what == tr.killAt && count(tr.calls, what) == tr.nth {
		_ = syscall.Kill(tr.main, syscall.SIGKILL)
	}
	return false
}

// changes says what a system call that begins will change; "" if nothing. A lock is nothing: the kernel lifts it from the dead.
func (tr *tracer) changes(tid int, regs unix.PtraceRegs) string {
	var what, path string
	switch regs.Orig_rax {
	case unix.SYS_SENDTO:
		var head [16]byte
		if _, err := unix.PtracePeekData(tid, uintptr(regs.Rsi), head[:]); err != nil {
			return ""
		}
		return request(tr.sockets[int(regs.Rdi)], binary.LittleEndian.Uint16(head[4:]))
	case unix.SYS_WRITE:
		what, path = "write", tr.descriptor(regs.Rdi)
		if strings.HasPrefix(path, "/proc/") {
			return "sysctl"
		}
		if !strings.HasPrefix(path, cni.StateDir) {
			return "" // an answer, or the log
		}
	case unix.SYS_OPENAT:
		what, path = "create", tr.path(tid, regs.Rdi, regs.Rsi)
		if regs.Rdx&unix.O_CREAT == 0 {
			return ""
		}
	case unix.SYS_MKDIRAT:
		what, path = "mkdir", tr.path(tid, regs.Rdi, regs.Rsi)
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		what, path = "rename", tr.path(tid, regs.Rdx, regs.R10)
	case unix.SYS_SYMLINKAT:
		what, path = "symlink", tr.path(tid, regs.Rsi, regs.Rdx)
	case unix.SYS_UNLINKAT:
		what, path = "unlink", tr.path(tid, regs.Rdi, regs.Rsi)
	}
	if strings.HasPrefix(path, cni.StateDir+"/locks") {
		return ""
	}
	return what
}

// descriptor is where one of the process's descriptors leads.
func (tr *tracer) descriptor(fd uint64) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", tr.main, int32(fd)))
	return path
}

// path reads the name that a system call is given, below the folder that it is given.
func (tr *tracer) path(tid int, folder, name uint64) string {
	var text [256]byte
	n, _ := unix.PtracePeekData(tid, uintptr(name), text[:])
	base, _, _ := bytes.Cut(text[:n], []byte{0})
	if filepath.IsAbs(string(base)) {
		return string(base)
	}
	return filepath.Join(tr.descriptor(folder), string(base))
}

// request names a netlink request that changes something.
func request(protocol uint64, kind uint16) string {
	switch protocol {
	case unix.NETLINK_ROUTE:
		names := map[uint16]string{
			unix.RTM_NEWLINK: "RTM_NEWLINK", unix.RTM_DELLINK: "RTM_DELLINK", unix.RTM_SETLINK: "RTM_SETLINK",
			unix.RTM_NEWADDR: "RTM_NEWADDR", unix.RTM_NEWROUTE: "RTM_NEWROUTE",
		}
		if kind >= unix.RTM_BASE && kind&3 != 2 { // the kernel numbers NEW, DEL, GET, SET of each object so
			if name, known := names[kind]; known {
				return name
			}
			return fmt.Sprintf("RTM_%d", kind)
		}
	case unix.NETLINK_RDMA:
		// enum rdma_nldev_command of rdma_netlink.h; the client, RDMA_NL_NLDEV, stands above it.
		return map[uint16]string{2: "RDMA_SET", 3: "RDMA_NEWLINK", 4: "RDMA_DELLINK", 7: "RDMA_SYS_SET"}[kind&0x3ff]
	}
	return ""
}
