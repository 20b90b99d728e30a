// SPDX-License-Identifier: Apache-2.0

// Package chain_test runs the built plugin beside real plugins of others, on this machine's kernel.
package chain_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// build compiles podfabric and the peers' host-local with the flags of a release.
func build(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("run this test as root: it makes mounts and network namespaces")
	}
	bin := t.TempDir()
	for dir, pkg := range map[string]string{
		"../..":            "./cmd/podfabric",
		"../peers/plugins": "github.com/containernetworking/plugins/plugins/ipam/host-local",
	} {
		cmd := exec.Command("go", "build", "-trimpath", "-o", bin+"/", pkg)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", pkg, err, out)
		}
	}
	return bin
}

// call runs a plugin as a runtime does, with a /run of its own, so that the machine's stays as it is. state is that /run.
func call(t *testing.T, bin, plugin, verb, conf, state string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `mount --bind "$1" /run && exec "$2"`, "call", state, filepath.Join(bin, plugin))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Unshareflags: syscall.CLONE_NEWNS}
	cmd.Stdin = strings.NewReader(conf)
	cmd.Env = append(os.Environ(), "CNI_COMMAND="+verb, "CNI_CONTAINERID=after-boot", "CNI_IFNAME=net1", "CNI_NETNS=", "CNI_PATH="+bin)
	if verb == "ADD" {
		cmd.Env = append(cmd.Env, "CNI_NETNS=/proc/1/ns/net") // host-local only wants one, and does not look inside
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", plugin, verb, err, stdout.Bytes(), stderr.Bytes())
	}
}

// After a reboot /run is empty and host-local's disk is not; the runtime sends DEL for the sandboxes of before. Whoever returns
// early there, as host-device does (plugins issue 1196), leaks a pool at each reboot.
func TestLeaseOfHostLocalIsReleasedWithoutARecord(t *testing.T) {
	bin := build(t)
	leases, state := t.TempDir(), t.TempDir()
	conf := `{"cniVersion":"1.0.0","name":"rail0","type":"podfabric","deviceID":"0000:3b:00.2",
		"ipam":{"type":"host-local","dataDir":"` + leases + `","ranges":[[{"subnet":"10.66.0.0/24"}]]}}`

	call(t, bin, "host-local", "ADD", conf, state)
	if got, err := filepath.Glob(leases + "/rail0/10.66.0.*"); err != nil || len(got) != 1 {
		t.Fatalf("host-local's leases after its ADD: %q, %v", got, err)
	}
	call(t, bin, "podfabric", "DEL", conf, state)
	if got, err := filepath.Glob(leases + "/rail0/10.66.0.*"); err != nil || len(got) != 0 {
		t.Errorf("host-local's leases after our DEL: %q, %v", got, err)
	}
	call(t, bin, "podfabric", "DEL", conf, state)
}
