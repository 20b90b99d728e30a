// SPDX-License-Identifier: Apache-2.0

//go:build lab

// Package ctl_test runs podfabricctl on a node with devices: what it shows, how it sets the mode, and that what it repairs is
// right again by the kernel's own word.
package ctl_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/node"
	"github.com/podfabric/podfabric/rdmans/sysfs"
	"github.com/podfabric/podfabric/rdmans/sysfs/sysfstest"
)

// The mode is shared at first, so that the first test can set it; the tests run in their order.
//
//lab:boot pfs=1 vfs=4 mode=shared rdmasim=all seconds=400

func init() { node.Main() }

// ctl runs podfabricctl and gives standard output and the exit code.
func ctl(t *testing.T, args ...string) (string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "podfabricctl", args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if exit.ExitCode() == 2 {
			t.Log(stderr.String())
		}
		return string(out), exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out), 0
}

// want runs podfabricctl and wants an exit code and texts in its output.
func want(t *testing.T, code int, args []string, texts ...string) {
	t.Helper()
	out, got := ctl(t, args...)
	if got != code {
		t.Errorf("podfabricctl %v: exit code %d, want %d\n%s", args, got, code, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("podfabricctl %v: output lacks %q:\n%s", args, text, out)
		}
	}
}

// add attaches a VF to a namespace by the real plugin.
func add(t *testing.T, ns *node.NS, vf string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "podfabric")
	cmd.Env = append(os.Environ(), "CNI_COMMAND=ADD", "CNI_CONTAINERID="+ns.Name, "CNI_NETNS="+ns.Path, "CNI_IFNAME=net1", "CNI_PATH=/opt/cni/bin",
		"CNI_ARGS=K8S_POD_NAMESPACE=team-a;K8S_POD_NAME="+ns.Name+";K8S_POD_UID=00000000-0000-0000-0000-000000000001")
	cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"cniVersion":"1.0.0","name":"rail0","type":"podfabric","deviceID":%q,"rdma":{"wait":"30s"},
		"ipam":{"type":"range","subnet":"10.1.0.0/24","scope":"node"}}`, vf))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ADD: %v\n%s", err, out)
	}
}

func TestModeSet(t *testing.T) {
	const file = "/etc/modprobe.d/ib_core.conf"
	want(t, 0, []string{"mode"}, "shared\nnext boot: shared\n")
	want(t, 0, []string{"mode", "set", "exclusive", "--dry-run"}, "would be written for every boot to come: "+file)
	if _, err := os.Stat(file); err == nil {
		t.Errorf("a dry run wrote %s", file)
	}
	want(t, 0, []string{"mode", "set", "exclusive"}, "the mode is exclusive now, it was shared")
	if out := node.Run(t, "rdma", "system"); !strings.Contains(out, "netns exclusive") {
		t.Errorf("rdma system says %s", out)
	}
	want(t, 0, []string{"mode"}, "exclusive\nnext boot: exclusive\n", file+": exclusive (podfabric)")

	// With another namespace the kernel refuses, and who holds it is said.
	ns := node.NewNS(t)
	want(t, 1, []string{"mode", "set", "shared"}, "in the way: "+ns.Path, "the mode stays exclusive until the next boot")
	if out := node.Run(t, "rdma", "system"); !strings.Contains(out, "netns exclusive") {
		t.Errorf("rdma system says %s", out)
	}
	want(t, 0, []string{"mode", "set", "exclusive"}, "the mode is exclusive already")
}

// shown is as much of `show --json` as the tests ask for.
type shown struct {
	Mode    string
	Devices []struct {
		PCI, Type string
		Netdevs   []struct{ Name, NetNS string }
		RDMA      []struct {
			Name, NodeGUID, NetNS string
			Uverbs                int
		}
		Owner *struct{ Pod, Interface string }
	}
	Attachments []struct{ Pod, State string }
}

func TestShowFindsDevicesInPods(t *testing.T) {
	const settings = `{"version":1,"deadline":"60s"}`
	if err := errors.Join(os.MkdirAll("/etc/podfabric", 0o755), os.WriteFile("/etc/podfabric/node.json", []byte(settings), 0o600)); err != nil {
		t.Fatal(err)
	}
	ns := node.NewNS(t)
	vf := node.VF(t, 1, 0)
	rdma := node.IBDev(vf)
	add(t, ns, vf)
	out, _ := ctl(t, "show", "--json")
	var s shown
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if s.Mode != "exclusive" || len(s.Devices) != 5 || len(s.Attachments) != 1 || s.Attachments[0].State != "done" {
		t.Errorf("shown: %s", out)
	}
	for _, d := range s.Devices {
		where, owned := "host", false
		if d.PCI == vf {
			where, owned = ns.Path, true
			if d.Netdevs[0].Name != "net1" || d.RDMA[0].Name != rdma {
				t.Errorf("the VF in the pod: %+v", d)
			}
		}
		if d.Netdevs[0].NetNS != where || d.RDMA[0].NetNS != where || (d.Owner != nil) != owned {
			t.Errorf("%s is to be in %s: %+v", d.PCI, where, d)
		}
	}
	want(t, 0, []string{"show"}, "pod team-a/"+ns.Name, "RDMA mode: exclusive")
	want(t, 0, []string{"repair", "--dry-run"}, "nothing to repair")

	// The namespace dies and no DEL comes. The kernel brings the netdev home under its name in the pod.
	home := node.Run(t, "ip", "-br", "link")
	ns.Kill(t)
	node.Wait(t, "the VF at home", func() bool { return node.Netdev(vf) != "" && node.IBDev(vf) != "" })
	want(t, 1, []string{"repair", "--dry-run"}, "attachment "+ns.Name+"/net1", "its network namespace is gone")
	want(t, 0, []string{"repair"}, "repaired")
	if name := node.Netdev(vf); name == "net1" || node.IBDev(vf) != rdma || strings.Contains(home, name+" ") {
		t.Errorf("the VF came home as %s and %s; others were\n%s", name, node.IBDev(vf), home)
	}
	want(t, 0, []string{"repair", "--dry-run"}, "nothing to repair")
	if left, err := filepath.Glob("/run/podfabric/[acfp]*/*"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestRepairClosesAHole(t *testing.T) {
	// uverbsN of the PF is 0; without VF 1's device 2 is free, below those of VFs 2 and 3.
	vf := node.VF(t, 1, 1)
	node.Write(t, "/sys/bus/pci/drivers/igbvf/unbind", vf)
	before := numbers(t)
	want(t, 1, []string{"repair", "--dry-run"}, "uverbs2: free")
	if after := numbers(t); after != before {
		t.Errorf("a dry run made %s of %s", after, before)
	}
	want(t, 0, []string{"repair"}, "repaired: move RDMA device")
	if after := numbers(t); before != "0 1 3 4" || after != "0 1 2 3" {
		t.Errorf("uverbs numbers were %s and are %s", before, after)
	}
	want(t, 0, []string{"repair"}, "nothing to repair")
	if out := node.Run(t, "ip", "netns", "list"); out != "" {
		t.Errorf("namespaces are left: %s", out)
	}
	node.Write(t, "/sys/bus/pci/drivers/igbvf/bind", vf)
	node.Wait(t, "the RDMA device of VF 1", func() bool { return node.IBDev(vf) != "" })
}

func numbers(t *testing.T) string {
	t.Helper()
	names, err := filepath.Glob("/sys/class/infiniband_verbs/uverbs*")
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		names[i] = strings.TrimPrefix(filepath.Base(name), "uverbs")
	}
	return strings.Join(names, " ")
}

// TestRecord: what is read of a recording is what is read of the node, but for addresses.
func TestRecord(t *testing.T) {
	out, code := ctl(t, "record")
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	file := filepath.Join(t.TempDir(), "node.txtar")
	if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	live, recorded := functions(t, "/sys"), functions(t, sysfstest.Extract(t, file))
	if live != recorded || live == "[]" {
		t.Errorf("functions of the node:\n%s\nof the recording:\n%s", live, recorded)
	}
	for _, d := range node.RDMA(t, nil) {
		if strings.Contains(out, d.GUID) {
			t.Errorf("the recording holds the GUID of %s", d.Name)
		}
	}
}

func functions(t *testing.T, dir string) string {
	t.Helper()
	sys, err := sysfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sys.Close() }()
	list, err := sys.Functions()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(list, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
