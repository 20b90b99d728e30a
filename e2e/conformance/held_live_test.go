// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// onlyAddress is a macvlan network of one address, so that two pods cannot both have one.
func onlyAddress() object {
	return object{
		"cniVersion": "1.1.0", "name": "rail0", "type": "podfabric", "link": "macvlan", "master": "m0", "rdma": object{"mode": "off"},
		"ipam": object{"type": "range", "ranges": []any{
			[]object{{"subnet": "192.0.2.0/24", "rangeStart": "192.0.2.5", "rangeEnd": "192.0.2.5", "scope": "node"}},
		}},
	}
}

// TestInodeOfANamespaceUsedAgain: the kernel gives the inode of a namespace that ended to the next one, at the same path. A late DEL takes
// nothing from the pod that is there by then.
func TestInodeOfANamespaceUsedAgain(t *testing.T) {
	p := newPod(t, "renewed")
	network := with(onlyAddress(), object{"ipam": object{}})
	dead := call{network: network, id: "dead", netns: p.path}
	dead.ok(t, "ADD")
	inode := shell(t, "stat", "-L", "-c", "%i", p.path)
	for end := time.Now().Add(20 * time.Second); ; {
		p.kill(t)
		newPod(t, "renewed")
		if shell(t, "stat", "-L", "-c", "%i", p.path) == inode {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the kernel does not use the inode again")
		}
	}
	next := call{network: network, id: "next", netns: p.path}
	next.ok(t, "ADD")
	dead.ok(t, "DEL")
	next.ok(t, "CHECK")
	next.ok(t, "DEL")
}

// TestDelByThePluginsOwnNamespace: by the time of DEL the pod's path leads to the node's own namespace.
func TestDelByThePluginsOwnNamespace(t *testing.T) {
	p, before := newPod(t, "ownnow"), look(t)
	c := call{network: onlyAddress(), id: "ownnow", netns: p.path}
	c.ok(t, "ADD")
	shell(t, "umount", p.path)
	shell(t, "mount", "--bind", "/proc/self/ns/net", p.path)
	c.ok(t, "DEL")
	before.unchanged(t)
}

// sleeps starts a command that comes to a sleep, and gives its PID.
func sleeps(t *testing.T, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], append(command[1:], "sleep", "300")...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for late := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid))
		if string(comm) == "sleep\n" {
			return strconv.Itoa(cmd.Process.Pid)
		}
		if err != nil || time.Now().After(late) {
			t.Fatalf("%v does not sleep: %v", command, err)
		}
	}
}

// outlives puts a process into a pod's namespace and takes its path away.
func outlives(t *testing.T, p pod) string {
	t.Helper()
	pid := sleeps(t, "nsenter", "--net="+p.path)
	p.kill(t)
	return pid
}

// TestAddressOfALivingLink: no address is given again while a macvlan answers to it, wherever its pod has it by the time of DEL.
func TestAddressOfALivingLink(t *testing.T) {
	for name, tt := range map[string]struct {
		hide func(t *testing.T, p pod) string // gives the PID of a process where the link is then
		verb string
	}{
		"a process holds the namespace": {outlives, "DEL"},
		"a process holds it, and GC":    {outlives, "GC"},
		"its path leads to another": {func(t *testing.T, p pod) string {
			t.Helper()
			pid := outlives(t, p)
			newPod(t, p.name)
			return pid
		}, "DEL"},
		"a namespace that the pod made": {func(t *testing.T, p pod) string {
			t.Helper()
			pid := sleeps(t, "nsenter", "--net="+p.path, "unshare", "--net")
			p.ip(t, "link", "set", "net1", "netns", pid)
			shell(t, "nsenter", "--net", "--target", pid, "ip", "link", "set", "net1", "up")
			return pid
		}, "DEL"},
	} {
		t.Run(name, func(t *testing.T) {
			before := look(t)
			p, other := newPod(t, "first"), newPod(t, "second")
			c := call{network: onlyAddress(), id: "first", netns: p.path}
			c.ok(t, "ADD")
			pid := tt.hide(t, p)
			next := call{network: onlyAddress(), id: "second", netns: other.path}
			next.refused(t, "ADD", 106)
			if tt.verb == "GC" {
				quiet(t, c.by(with(c.network, object{"cni.dev/valid-attachments": []object{}})).bare(t, "GC"))
			} else {
				c.ok(t, "DEL")
			}
			if links := shell(t, "nsenter", "--net", "--target", pid, "ip", "-br", "link", "show", "type", "macvlan"); links != "" {
				t.Errorf("the process still has %s", links)
			}
			next.ok(t, "ADD")
			next.ok(t, "DEL")
			before.unchanged(t)
		})
	}
}
