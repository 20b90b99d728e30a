// SPDX-License-Identifier: Apache-2.0

// Package leak_test attaches and detaches thousands of times on this machine's kernel, and counts what the kernel and the file
// system hold before and after: whatever one cycle leaves behind is there thousands of times in the end. The tests run on a machine
// of their own: processes, mounts, network, /run and /var/lib are private, so that all of it can be counted; what the kernel counts
// for everybody is compared with a tolerance that one object a cycle exceeds by far. There is no RDMA here; the guest's package crowd
// does the same with VFs and their RDMA devices.
package leak_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// insideEnv tells the second process of the test that it is on the private machine; its value is the folder of the programs.
const insideEnv = "PODFABRIC_LEAK_BIN"

// The main thread serves no goroutine that enters a pod: it cannot end, and would keep the pod's namespace alive.
func init() { runtime.LockOSThread() }

// TestMain runs the tests in a second process, on a machine of its own. Without root there is none, and each test says so.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv(insideEnv) != "":
		if err := furnish(); err != nil {
			fmt.Fprintln(os.Stderr, "make a machine for the tests:", err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	case os.Geteuid() == 0:
		code, err := again()
		if err != nil {
			fmt.Fprintln(os.Stderr, "run the tests on a machine of their own:", err)
			os.Exit(1)
		}
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// again builds the programs and runs this very program in new namespaces.
func again() (int, error) {
	bin, err := os.MkdirTemp("", "leak")
	if err != nil {
		return 0, fmt.Errorf("make a folder for programs: %w", err)
	}
	defer os.RemoveAll(bin)
	build := exec.Command("go", "build", "-C", "../..", "-trimpath", "-o", bin+"/", "./cmd/podfabric", "./e2e/guest/fakeipam")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), insideEnv+"="+bin, "TMPDIR=/run/tmp")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID,
		Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
	}
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// furnish gives the machine what is its own, a NIC whose other end is at home too, and on it a macvlan whose MAC is taken thereby.
// At home there is no IPv6, whose routes come and go with a link's state in their own time.
func furnish() error {
	const script = `set -e
		mount -t proc proc /proc
		mount -t sysfs sysfs /sys
		mount -t tmpfs -o mode=755 tmpfs /run
		mount -t tmpfs -o mode=755 tmpfs /var/lib
		mkdir /run/etc /run/lock /run/netns /run/tmp
		cp -a /etc/. /run/etc
		mount --bind /run/etc /etc
		rm -rf /etc/podfabric
		mkdir /etc/podfabric
		echo '{"version":1,"deadline":"120s"}' >/etc/podfabric/node.json
		ip link set lo up
		echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
		ip link add m0 type veth peer name m1
		for l in m0 m1; do ip link set $l up; done
		ip link add taken link m0 address 02:00:00:00:00:99 type macvlan mode bridge
		ip link set taken up`
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// programs is the folder of the built programs.
func programs(t *testing.T) string {
	t.Helper()
	bin := os.Getenv(insideEnv)
	if bin == "" {
		t.Fatal("run this test as root: it makes mounts and network namespaces")
	}
	return bin
}

var pods atomic.Int64

// pod makes a network namespace, as a runtime does, and gives its path. It goes by its path alone: nothing else holds it.
func pod() (string, error) {
	path := filepath.Join("/run/netns", fmt.Sprint("pod", pods.Add(1)))
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return "", fmt.Errorf("make a pod: %w", err)
	}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			err = unix.Mount(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()), path, "", unix.MS_BIND, "")
		}
		made <- err
	}()
	if err := <-made; err != nil {
		return "", fmt.Errorf("make a pod: %w", err)
	}
	return path, nil
}

// end takes a pod's namespace away.
func end(path string) error {
	if err := errors.Join(unix.Unmount(path, unix.MNT_DETACH), os.Remove(path)); err != nil {
		return fmt.Errorf("end a pod: %w", err)
	}
	return nil
}
