// SPDX-License-Identifier: Apache-2.0

// Package conformance_test drives the built plugin as container runtimes do, through libcni and bare, for every version and every
// verb of the CNI specification, on this machine's kernel. The tests run on a machine of their own: network namespace, /run, /sys
// and /etc are private to the process, and end with it. There is no RDMA here, so networks say rdma.mode off.
package conformance_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// insideEnv tells the second process of the test that it is on the private machine; its value is the folder of the programs.
const insideEnv = "PODFABRIC_CONFORMANCE_BIN"

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

// again runs this very program in new namespaces of mounts and network.
func again() (int, error) {
	bin, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return 0, fmt.Errorf("make a folder for programs: %w", err)
	}
	defer os.RemoveAll(bin)
	self, err := os.Executable()
	if err != nil {
		return 0, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), insideEnv+"="+bin)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET, Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
	}
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// furnish gives the machine what is its own: /run, /sys of its network namespace, a copy of /etc, and a NIC.
func furnish() error {
	const script = `set -e
		mount -t tmpfs -o mode=755 tmpfs /run
		mkdir /run/etc /run/lock
		cp -a /etc/. /run/etc
		mount --bind /run/etc /etc
		rm -rf /etc/podfabric
		mount -t sysfs sysfs /sys
		ip link set lo up
		ip link add m0 mtu 9000 type veth peer name m1
		for l in m0 m1; do ip link set $l mtu 9000 addrgenmode none up; done`
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// programs builds the plugin, libcni's caller and other people's plugins, once, and gives their folder.
func programs(t *testing.T) string {
	t.Helper()
	bin := os.Getenv(insideEnv)
	if bin == "" {
		t.Fatal("run this test as root: it makes mounts and network namespaces")
	}
	done := filepath.Join(bin, "done")
	if _, err := os.Stat(done); err == nil {
		return bin
	}
	for dir, pkg := range map[string]string{"../..": "./cmd/podfabric", "../peers/libcni": ".", "../peers/plugins": "tool"} {
		build(t, dir, pkg, bin)
	}
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return bin
}

// build builds programs of a module into a folder.
func build(t *testing.T, dir, pkg, bin string) {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	// With the network and the mounts of the first process: Go may have to fetch a module.
	cmd := exec.CommandContext(t.Context(), "nsenter", "--net", "--mount", "--target", strconv.Itoa(os.Getppid()), "env", "CGO_ENABLED=0",
		"go", "build", "-C", filepath.Join(here, dir), "-trimpath", "-o", bin+"/", pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s of %s: %v\n%s", pkg, dir, err, out)
	}
}
