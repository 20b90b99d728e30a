// SPDX-License-Identifier: Apache-2.0

//go:build lab

// Package reboot_test takes the plugin's surroundings away with the built binaries: the node boots and /run is empty, the runtime is
// gone, the state folder is emptied under running pods, the caller dies in the middle of a call or does not read its answer.
package reboot_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

//lab:boot pfs=2 vfs=3 mode=exclusive seconds=240 rdmasim=all bin=./e2e/guest/fakeipam peers=plugins/host-local

func init() { node.Main() }

func TestMain(m *testing.M) { cni.Main(m) }

const (
	// leases is a folder that outlives a boot.
	leases   = "/var/lib/cni/networks"
	delegate = `{"type":"host-local","dataDir":"` + leases + `","ranges":[[{"subnet":"10.2.0.0/24"}]]}`
	slow     = `{"type":"fakeipam"}`
	ranges   = `{"type":"range","ranges":[[{"subnet":"10.1.0.0/24","scope":"node"}]]}`
	noList   = `,"cni.dev/valid-attachments":[]`
)

// attachment is one of a VF to a pod of its own.
type attachment struct {
	cni.Call
	ns *node.NS
	vf string
}

func newAttachment(t *testing.T, id, vf, ipam string) attachment {
	t.Helper()
	ns := node.NewNS(t)
	return attachment{ns: ns, vf: vf, Call: cni.Call{
		Conf: fmt.Sprintf(`{"cniVersion":"1.1.0","name":"rail0","type":"podfabric","deviceID":%q,"rdma":{"wait":"30s"},"ipam":%s}`,
			vf, ipam),
		ContainerID: id, NetNS: ns.Path, UID: "22222222-0000-4000-8000-0000000000" + id[len(id)-2:],
	}}
}

// die takes the pod's namespace away and waits for the kernel to bring the devices home, under whatever names.
func (a attachment) die(t *testing.T) {
	t.Helper()
	a.ns.Kill(t)
	node.Wait(t, a.vf+" home", func() bool { return node.Netdev(a.vf) != "" && node.IBDev(a.vf) != "" })
}

// leased are the owners of addresses that host-local holds.
func leased(t *testing.T) []string {
	t.Helper()
	var owners []string
	err := filepath.WalkDir(leases, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() || !strings.HasPrefix(d.Name(), "10.") {
			return err
		}
		text, err := os.ReadFile(path)
		id, _, _ := strings.Cut(string(text), "\n")
		owners = append(owners, strings.TrimSpace(id))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(owners)
	return owners
}

func wantLeased(t *testing.T, when string, want ...string) {
	t.Helper()
	if got := leased(t); !slices.Equal(got, want) {
		t.Errorf("%s: host-local holds addresses for %q, wanted %q", when, got, want)
	}
}

// TestReboot: after a boot /run is empty and the devices are at home, anew; host-local's addresses are still given away. The runtime
// sends the DEL of each sandbox that it knows from its disk.
func TestReboot(t *testing.T) {
	gone := []struct {
		name  string
		netns func(t *testing.T) string
	}{
		{"no path", func(*testing.T) string { return "" }},
		{"a path that is gone", func(*testing.T) string { return "/run/netns/before-boot" }},
		{"a path that is another pod's now", func(t *testing.T) string { t.Helper(); return node.NewNS(t).Path }},
	}
	var all []attachment
	for i := range gone {
		a := newAttachment(t, fmt.Sprintf("boot0%d", i), node.VF(t, 1, i), delegate)
		a.Add(t)
		all = append(all, a)
	}
	for _, a := range all {
		a.die(t)
	}
	if err := os.RemoveAll(cni.StateDir); err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		node.Rebind(t, a.vf)
		node.Wait(t, "an RDMA device on "+a.vf, func() bool { return node.IBDev(a.vf) != "" })
	}
	booted := cni.Look(t)
	wantLeased(t, "after the boot", "boot00", "boot01", "boot02")
	for i, g := range gone {
		all[i].NetNS = g.netns(t)
		all[i].Del(t)
		var rest []string
		for _, a := range all[i+1:] {
			rest = append(rest, a.ContainerID)
		}
		wantLeased(t, "after DEL with "+g.name, rest...)
		all[i].Del(t) // a runtime may send it twice
	}
	booted.Unchanged(t)

	// What booted can be used again.
	again := newAttachment(t, "boot07", node.VF(t, 1, 0), delegate)
	again.Add(t)
	again.Del(t)
	booted.Unchanged(t)
}
