// SPDX-License-Identifier: Apache-2.0

// Package disk_test lets every single system call that the built plugin makes on its files fail, of kind macvlan, on this machine's
// kernel. The guest's package of that name does so with VFs. Each test has a machine of its own: network, mounts, processes.
package disk_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/plugin/kernel"
)

const (
	// binEnv names the folder of the programs.
	binEnv = "PODFABRIC_TEST_DISK_BIN"
	// insideEnv tells a test that it is alone on its machine.
	insideEnv = "PODFABRIC_TEST_DISK_INSIDE"

	stateDir = "/run/podfabric"
	nodeFile = "/etc/podfabric/node.json"
	// cniDir is where host-local keeps its leases.
	cniDir = "/var/lib/cni"
)

// TestMain builds the programs once for all machines.
func TestMain(m *testing.M) {
	if os.Getenv(insideEnv) != "" || os.Geteuid() != 0 {
		os.Exit(m.Run())
	}
	bin, err := os.MkdirTemp("", "disk")
	if err == nil {
		err = build(bin)
	}
	if err == nil {
		err = os.Setenv(binEnv, bin)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build the programs:", err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(bin)
	os.Exit(code)
}

func build(bin string) error {
	for dir, pkg := range map[string]string{"../..": "./cmd/...", "../peers/plugins": "github.com/containernetworking/plugins/plugins/ipam/host-local"} {
		cmd := exec.Command("go", "build", "-C", dir, "-trimpath", "-o", bin+"/", pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s of %s: %w: %s", pkg, dir, err, out)
		}
	}
	return nil
}

// alone tells whether the test is the one on its machine. If not, it runs it there, and takes over what it says.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("run this test as root: it makes namespaces, mounts and links")
	}
	if os.Getenv(insideEnv) != "" {
		furnish(t)
		return true
	}
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^"+t.Name()+"$", "-test.count=1", "-test.v")
	cmd.Env = append(os.Environ(), insideEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	} else {
		t.Logf("%s", out)
	}
	return false
}

// furnish gives the machine what is its own: /run, /proc, /sys, a copy of /etc, /var/lib, and a NIC.
func furnish(t *testing.T) {
	t.Helper()
	const script = `set -e
		mount -t proc proc /proc
		mount -t tmpfs -o mode=755 tmpfs /run
		mkdir /run/etc /run/lock
		cp -a /etc/. /run/etc
		mount --bind /run/etc /etc
		rm -rf /etc/podfabric
		mkdir /etc/podfabric
		mount -t sysfs sysfs /sys
		mount -t tmpfs -o mode=755 tmpfs /var/lib
		ip link set lo up
		ip link add m0 type veth peer name m1
		for l in m0 m1; do ip link set $l addrgenmode none up; done`
	shell(t, "sh", "-c", script)
	write(t, nodeFile, `{"version":1,"deadline":"20s"}`)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// shell runs a command, whose failure is the test's.
func shell(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), name, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// netns makes a pod's namespace and gives its path.
func netns(t *testing.T, name string) string {
	t.Helper()
	shell(t, "ip", "netns", "add", name)
	return "/run/netns/" + name
}

// state is what a machine was at one moment.
type state struct {
	devices kernel.Snapshot
	files   []string
}

func look(t *testing.T) state {
	t.Helper()
	s, err := kernel.New().Snapshot(t.Context())
	if err != nil {
		t.Fatalf("look at the machine: %v", err)
	}
	return state{s, append(files(t, stateDir), files(t, cniDir)...)}
}

// differs says what is not as it was; empty: nothing.
func (s state) differs(t *testing.T) string {
	t.Helper()
	now := look(t)
	text := strings.Join(kernel.Diff(s.devices, now.devices), "\n")
	return strings.TrimSpace(text + "\n" + cmp.Diff(s.files, now.files))
}

// files lists what is kept of attachments: neither locks nor home names, which stay for the boot, nor which address comes next.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if d.IsDir() && dir == stateDir && (rel == "locks" || rel == "names") {
			return fs.SkipDir
		}
		of, base := filepath.Base(filepath.Dir(rel)), filepath.Base(rel)
		if !d.IsDir() && of != "cursor" && of != "freed" && base != "lock" && !strings.HasPrefix(base, "last_reserved_ip") {
			out = append(out, path)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}
