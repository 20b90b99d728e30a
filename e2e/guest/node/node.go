// SPDX-License-Identifier: Apache-2.0

//go:build lab

// Package node is what tests in the lab's guest share: the machine that e2e/lab/prepare has made, its NICs and VFs, network
// namespaces for pods, and ways to ask the kernel that do not go through the code under test.
//
// # Threads
//
// A network namespace belongs to a thread, and the Go runtime moves goroutines between threads as it likes. So code that is to
// run in another namespace runs in a goroutine of its own, locked to its thread, which is never unlocked: the runtime then ends
// the thread with the goroutine, and no other goroutine can find itself in the wrong namespace. [NS.Do] does that; a test never
// calls setns or unshare itself. What f starts inside Do with go runs on other threads, in the host's namespace.
//
// The main thread cannot end. [Main] locks it away before anything else runs, so that it never serves such a goroutine.
package node

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// Bin is the folder of the built binaries: podfabric, podfabricctl, and those of the boot profile.
const Bin = "/mnt/work/bin"

// Out is a folder that outlives the guest, if boot was told where to.
const Out = "/mnt/work/out"

// Patience is how long a test waits for what must come. Under emulation a GID takes tenths of a second and a port seconds.
const Patience = 60 * time.Second

// Main is to be called from an init function of the test package: a goroutine of an init runs on the main thread, and the lock
// keeps it there.
//
//	func init() { node.Main() }
func Main() { runtime.LockOSThread() }

// PF is the PCI address of the nth NIC, counted from 1.
func PF(t testing.TB, n int) string {
	t.Helper()
	uevents, err := filepath.Glob("/sys/bus/pci/devices/*/sriov_totalvfs")
	if err != nil || n < 1 || n > len(uevents) {
		t.Fatalf("no NIC %d: the machine has %d (%v)", n, len(uevents), err)
	}
	slices.Sort(uevents)
	return filepath.Base(filepath.Dir(uevents[n-1]))
}

// VFs are the PCI addresses of a PF's VFs, by VF number.
func VFs(t testing.TB, pf string) []string {
	t.Helper()
	var vfs []string
	for n := 0; ; n++ {
		target, err := os.Readlink(filepath.Join("/sys/bus/pci/devices", pf, fmt.Sprintf("virtfn%d", n)))
		if err != nil {
			return vfs
		}
		vfs = append(vfs, filepath.Base(target))
	}
}

// VF is the PCI address of VF vf, counted from 0, of NIC pf, counted from 1.
func VF(t testing.TB, pf, vf int) string {
	t.Helper()
	vfs := VFs(t, PF(t, pf))
	if vf >= len(vfs) {
		t.Fatalf("no VF %d on NIC %d: it has %d", vf, pf, len(vfs))
	}
	return vfs[vf]
}

// Netdev is the name of a PCI function's netdev as the host's sysfs shows it; "" while it is in another namespace.
func Netdev(pci string) string { return only("/sys/bus/pci/devices/" + pci + "/net") }

// IBDev is the name of a PCI function's RDMA device as the host's sysfs shows it; "" if it has none or while it is away.
func IBDev(pci string) string { return only("/sys/bus/pci/devices/" + pci + "/infiniband") }

// only is the first entry of a folder.
func only(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return ""
	}
	return entries[0].Name()
}

// Run runs a command in this thread's namespace and returns what it printed; its failure is the test's.
func Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := Try(name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Try runs a command and returns its trimmed output; the error holds the command and what it said on stderr.
func Try(name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// Wait waits until ok, and fails the test when it does not come.
func Wait(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("still not after %v: %s", Patience, what)
		}
	}
}

// RDMADevice is an RDMA device as `rdma dev` shows it in one namespace.
type RDMADevice struct {
	Index int    `json:"ifindex"`
	Name  string `json:"ifname"`
	GUID  string `json:"node_guid"` // as sysfs writes it: 5054:00ff:fe00:0101
}

// RDMA are the RDMA devices of a namespace; nil is the host's.
func RDMA(t testing.TB, ns *NS) []RDMADevice {
	t.Helper()
	var devs []RDMADevice
	if err := json.Unmarshal([]byte(ns.Run(t, "rdma", "-j", "dev")), &devs); err != nil {
		t.Fatalf("read rdma -j dev: %v", err)
	}
	return devs
}

// GIDs are the entries of port 1 of an RDMA device, by index, as its namespace (nil: the host's) sees them: "type gid". Empty
// slots are absent.
func GIDs(t testing.TB, ns *NS, ibdev string) map[int]string {
	t.Helper()
	const script = `cd /sys/class/infiniband/"$1"/ports/1 && for f in gids/*; do
		i=${f#gids/}; type=$(cat gid_attrs/types/$i 2>/dev/null) && echo "$i $type $(cat $f)"; done; true`
	gids := map[int]string{}
	for line := range strings.Lines(ns.Run(t, "bash", "-c", script, "gids", ibdev)) {
		var i int
		line = strings.TrimSpace(line)
		index, rest, _ := strings.Cut(line, " ")
		if _, err := fmt.Sscan(index, &i); err != nil {
			t.Fatalf("read a GID from %q: %v", line, err)
		}
		gids[i] = rest
	}
	return gids
}

// HasGID tells whether a RoCE v2 entry of the table is this GID, as sysfs writes it.
func HasGID(gids map[int]string, gid string) bool {
	for _, entry := range gids {
		if entry == "RoCE v2 "+gid {
			return true
		}
	}
	return false
}

// Rebind takes the driver off a PCI function and gives it back, which makes a new netdev and a new RDMA device; it returns when
// the netdev is there.
func Rebind(t testing.TB, pci string) {
	t.Helper()
	driver, err := filepath.EvalSymlinks("/sys/bus/pci/devices/" + pci + "/driver")
	if err != nil {
		t.Fatalf("rebind %s: %v", pci, err)
	}
	Write(t, filepath.Join(driver, "unbind"), pci)
	Write(t, filepath.Join(driver, "bind"), pci)
	Wait(t, "a netdev on "+pci, func() bool { return Netdev(pci) != "" })
}

// SetSim sets a parameter of rdmasim; most hold for devices made from then on. The old value comes back after the test.
func SetSim(t testing.TB, parameter, value string) {
	t.Helper()
	file := "/sys/module/rdmasim/parameters/" + parameter
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("set %s: %v", parameter, err)
	}
	Write(t, file, value+"\n")
	t.Cleanup(func() { Write(t, file, string(old)) })
}

// Write writes to a file that exists, as those of sysfs and procfs do.
func Write(t testing.TB, file, text string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		t.Fatalf("write %q to %s: %v", text, file, err)
	}
}
