// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	types100 "github.com/containernetworking/cni/pkg/types/100"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
)

// diskEnv names the folder that TestDiskInside may mount on, in a mount namespace of its own.
const diskEnv = "PODFABRIC_TEST_DISK"

// TestDisk needs root for a small tmpfs of its own.
func TestDisk(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Fatal("run this test as root: it mounts a tmpfs")
	}
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestDiskInside$", "-test.count=1")
	cmd.Env = append(os.Environ(), diskEnv+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestDiskInside is the child of TestDisk, and nothing by itself.
func TestDiskInside(t *testing.T) { //nolint:paralleltest // it is alone in its process
	dir := os.Getenv(diskEnv)
	if dir == "" {
		return
	}
	must(t, syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
	must(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=512k"))
	m := newMachineIn(t, filepath.Join(dir, "node"), attach.Exclusive)
	m.pod("pod1")
	m.pod("pod2")
	filler := filepath.Join(dir, "filler")
	fill := func() {
		f, err := os.Create(filler)
		must(t, err)
		for err == nil {
			_, err = f.Write(make([]byte, 4096))
		}
		must(t, f.Close())
	}
	start, home := m.state(t), m.where(3)
	r, next := request{pod: "pod1", dev: 3}, request{pod: "pod2", dev: 6, ipam: delegated}

	m.mustAdd(t, r)
	added := m.state(t)
	fill()
	answered(t, m.add(t, next), 5, "free space")
	m.same(t, "ADD on a full disk", added)
	answered(t, m.plugin.Status(t.Context(), netconf.Raw{}), 50, "free space")
	if text := plugin.Answer(m.plugin.Status(t.Context(), netconf.Raw{})).Details; strings.Contains(text, "free space") || !strings.Contains(text, "no space left") {
		t.Errorf("the details repeat the remedy, or lack the cause: %q", text)
	}
	warned := func(what, right string) {
		t.Helper()
		for _, dry := range []bool{true, false} {
			found := m.findings(t, dry)
			if len(found) != 1 || found[0].Kind != plugin.FindState || found[0].Outcome != plugin.Left || !strings.Contains(found[0].Detail, right) {
				t.Errorf("repair on a %s disk: %+v", what, found)
			}
		}
		m.same(t, "repair on a "+what+" disk", added)
	}
	warned("full", "free space or inodes")
	m.mustDel(t, r)
	m.same(t, "DEL on a full disk", start)

	must(t, os.Remove(filler))
	m.ipam.set(func(context.Context) (*types100.Result, error) {
		fill()
		return nil, nil //nolint:nilnil // then it works as ever
	}, nil)
	answered(t, m.add(t, next), 5, "free space")
	m.same(t, "ADD while the disk becomes full", start)

	must(t, os.Remove(filler))
	m.ipam.set(nil, nil)
	m.mustAdd(t, r)
	added = m.state(t)
	mount := func(flags uintptr) { must(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT|flags, "")) }
	mount(syscall.MS_RDONLY)
	answered(t, m.add(t, next), 5, "read-only")
	m.same(t, "ADD on a read-only disk", added)
	answered(t, m.plugin.Status(t.Context(), netconf.Raw{}), 50, "read-only")
	warned("read-only", "read-write")
	answered(t, m.del(t, r), 5, "read-only")
	if at := m.where(3); at != home {
		t.Errorf("after DEL on a read-only disk the devices are at %v, want %v", at, home)
	}
	mount(0)
	m.mustDel(t, r)
	m.same(t, "DEL", start)

	must(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT, "nr_inodes=200"))
	m.mustAdd(t, r)
	added = m.state(t)
	var err error
	for n := 0; err == nil; n++ {
		err = syscall.Mknod(fmt.Sprintf("%s%d", filler, n), syscall.S_IFREG, 0)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	answered(t, m.add(t, next), 5, "free space or inodes")
	m.same(t, "ADD without inodes", added)
	warned("disk without inodes on the", "free space or inodes")
	m.mustDel(t, r)
	m.same(t, "DEL without inodes", start)
}
