// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mark tells the tracer where the function begins and where it ends: a call that the Go runtime does not make.
func mark() { _, _ = syscall.Getpgid(0) }

// Step tells the tracer of Watch that the function has come one step further: another call that the Go runtime does not make.
func Step() { _, _ = unix.Getsid(0) }

// Watch runs the function, which must succeed, and stops it before each system call with which it would change a file or folder:
// meanwhile look is called with that call's name and the number of steps that the function has made so far.
func Watch(t testing.TB, look func(call string, steps int), name string, args ...string) {
	t.Helper()
	trace(t, func(call string, steps int) bool {
		look(call, steps)
		return false
	}, name, args)
}

// Cut runs the function and kills the process, as kill -9 does, before the n-th system call, counted from 1, with which it
// would change a file or folder. It returns that call's name, or "" when there is no n-th call, in which case the function
// ran to its end and must have succeeded. One loop over n so goes through every moment at which a process may die.
func Cut(t testing.TB, n int, name string, args ...string) string {
	t.Helper()
	count, cut := 0, ""
	trace(t, func(call string, _ int) bool {
		if count++; count == n {
			cut = call
		}
		return count == n
	}, name, args)
	return cut
}

// trace runs the function and asks look before each change, after which it is killed if look says so.
func trace(t testing.TB, look func(call string, steps int) bool, name string, args []string) {
	t.Helper()
	// ptrace(2) takes requests only from the thread that started the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	exe := executable(t)
	pid, err := syscall.ForkExec(exe, []string{exe}, &syscall.ProcAttr{
		Env:   environ(t, name, args),
		Files: []uintptr{0, 1, 2},
		Sys:   &syscall.SysProcAttr{Ptrace: true, Setpgid: true},
	})
	if err != nil {
		t.Fatalf("start traced process: %v", err)
	}
	tr := tracer{pid: pid, look: look}
	if err := tr.run(); err != nil {
		t.Fatalf("trace %s %q: %v", name, args, err)
	}
}

// tracer follows one process and all its threads.
type tracer struct {
	pid    int
	look   func(call string, steps int) bool
	inside bool // between the two marks
	steps  int
	cut    bool
}

func (tr *tracer) run() error {
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(tr.pid, &ws, unix.WALL, nil); err != nil {
		return fmt.Errorf("wait for exec: %w", err)
	}
	const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_EXITKILL
	if err := syscall.PtraceSetOptions(tr.pid, options); err != nil {
		return fmt.Errorf("set options: %w", err)
	}
	for tid := tr.pid; ; {
		if signal, err := tr.stopped(tid, ws); err != nil {
			return err
		} else if err := syscall.PtraceSyscall(tid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("continue thread %d: %w", tid, err)
		}
		for {
			var err error
			// The threads of this process alone: other tests have children, too.
			if tid, err = syscall.Wait4(-tr.pid, &ws, unix.WALL, nil); err != nil {
				return fmt.Errorf("wait: %w", err)
			}
			if ws.Stopped() {
				break
			}
			if tid == tr.pid {
				return tr.ended(ws)
			}
		}
	}
}

func (tr *tracer) ended(ws syscall.WaitStatus) error {
	if !tr.cut && ws.ExitStatus() != 0 {
		return fmt.Errorf("it ended by itself with status %d, signal %d", ws.ExitStatus(), ws.Signal())
	}
	return nil
}

// stopped looks at why a thread stopped and says which signal it must get when it goes on.
func (tr *tracer) stopped(tid int, ws syscall.WaitStatus) (int, error) {
	switch signal := ws.StopSignal(); signal {
	case syscall.SIGTRAP | 0x80:
		return 0, tr.syscall(tid)
	case syscall.SIGTRAP, syscall.SIGSTOP: // exec, a clone, a thread's first stop
		return 0, nil
	default:
		return int(signal), nil
	}
}

// syscallInfo is struct ptrace_syscall_info (include/uapi/linux/ptrace.h) at the entry of a call.
type syscallInfo struct {
	Op     uint8
	_      [3]uint8
	Arch   uint32
	IP, SP uint64
	Nr     uint64
	Args   [6]uint64
	_      [4]uint64
}

func (tr *tracer) syscall(tid int) error {
	var info syscallInfo
	_, _, errno := syscall.Syscall6(syscall.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(tid), unsafe.Sizeof(info),
		uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno == syscall.ESRCH {
		return nil // another thread has ended the process meanwhile
	}
	if errno != 0 {
		return fmt.Errorf("get system call of thread %d: %w", tid, errno)
	}
	if info.Op != unix.PTRACE_SYSCALL_INFO_ENTRY {
		return nil
	}
	switch info.Nr {
	case unix.SYS_GETPGID:
		tr.inside = !tr.inside
	case unix.SYS_GETSID:
		tr.steps++
	}
	name := change(info.Nr, info.Args)
	if !tr.inside || name == "" || tr.cut {
		return nil
	}
	if tr.cut = tr.look(name, tr.steps); !tr.cut {
		return nil
	}
	if err := syscall.Kill(tr.pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill: %w", os.NewSyscallError("kill", err))
	}
	return nil
}

// change names a call that changes a file or folder. Eight bytes are what the Go runtime writes to wake its poller.
func change(nr uint64, args [6]uint64) string {
	switch nr {
	case unix.SYS_MKDIRAT:
		return "mkdirat"
	case unix.SYS_SYMLINKAT:
		return "symlinkat"
	case unix.SYS_UNLINKAT:
		return "unlinkat"
	case unix.SYS_LINKAT:
		return "linkat"
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		return "renameat"
	case unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2:
		return "fchmod"
	case unix.SYS_FTRUNCATE:
		return "ftruncate"
	case unix.SYS_FSYNC:
		return "fsync"
	case unix.SYS_OPENAT:
		if args[2]&unix.O_CREAT != 0 {
			return "openat"
		}
	case unix.SYS_WRITE, unix.SYS_PWRITE64:
		if args[0] > 2 && args[2] > 8 {
			return "write"
		}
	}
	return ""
}
