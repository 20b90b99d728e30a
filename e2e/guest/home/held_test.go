// SPDX-License-Identifier: Apache-2.0

//go:build lab

// Package home_test proves the way home on a real kernel: devices that something keeps away are named with who keeps them and
// waited for, functions that vanish or come back as others are taken for what they are, and repair puts right what nobody else will.
package home_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// The first VF of NIC 1 has no RDMA device, all other functions have one. NIC 2 is given whole.
//
//lab:boot pfs=2 vfs=4 mode=exclusive seconds=900 rdmasim=0000:01:00.0,0000:01:10.2,0000:01:10.4,0000:01:10.6,0000:02:00.0

func init() { node.Main() }

func TestMain(m *testing.M) { cni.Main(m) }

// network is a configuration for a device; more are further keys, each beginning with a comma.
func network(dev, address string, more ...string) string {
	return fmt.Sprintf(`{"cniVersion":"1.1.0","name":"rail0","type":"podfabric","deviceID":%q,
		"ipam":{"type":"static","addresses":[{"address":%q}]},"rdma":{"wait":"30s"}%s}`, dev, address, strings.Join(more, ""))
}

// ctl runs podfabricctl and gives its output and status.
func ctl(t *testing.T, args ...string) (string, string) {
	t.Helper()
	out := node.Run(t, "sh", append([]string{"-c", `podfabricctl "$@" 2>&1; echo "status $?"`, "ctl"}, args...)...)
	i := strings.LastIndex(out, "status ")
	return out[:i], out[i:]
}

// says fails the test unless podfabricctl ends with that status and prints the texts.
func says(t *testing.T, status, verb string, texts ...string) {
	t.Helper()
	out, got := ctl(t, strings.Fields(verb)...)
	if got != "status "+status {
		t.Errorf("%s: %s, want %s:\n%s", verb, got, status, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("%s lacks %q:\n%s", verb, text, out)
		}
	}
}

// process starts a command that ends in exec sleep, waits until it sleeps, and gives its pid and what ends it.
func process(t *testing.T, args ...string) (int, func()) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(stop)
	node.Wait(t, "the process to sleep", func() bool {
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid))
		return string(comm) == "sleep\n"
	})
	return cmd.Process.Pid, stop
}

// keepers keep a pod's devices after the pod: each gives the words by which it is named, and what lets go.
func keepers() map[string]func(t *testing.T, pod *node.NS, dev string) (string, func()) {
	return map[string]func(t *testing.T, pod *node.NS, dev string) (string, func()){
		"a process": func(t *testing.T, pod *node.NS, _ string) (string, func()) {
			t.Helper()
			pid, stop := process(t, "ip", "netns", "exec", pod.Name, "sleep", "600")
			return fmt.Sprintf("sleep (pid %d)", pid), stop
		},
		"a descriptor": func(t *testing.T, pod *node.NS, _ string) (string, func()) {
			t.Helper()
			pid, stop := process(t, "sh", "-c", `exec 7< "$1"; exec sleep 600`, "sh", pod.Path)
			return fmt.Sprintf("sleep (pid %d, descriptor 7)", pid), stop
		},
		"a socket": func(t *testing.T, pod *node.NS, _ string) (string, func()) {
			t.Helper()
			var socket int
			pod.Do(t, func() error {
				var err error
				socket, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
				return err
			})
			return fmt.Sprintf("(pid %d, socket %d)", os.Getpid(), socket), func() { _ = unix.Close(socket) }
		},
		"a mount": func(t *testing.T, pod *node.NS, _ string) (string, func()) {
			t.Helper()
			file := filepath.Join(t.TempDir(), "kept")
			node.Run(t, "touch", file)
			node.Run(t, "mount", "--bind", pod.Path, file)
			return "mount " + file, func() { node.Run(t, "umount", file) }
		},
		"a mount in a mount namespace": func(t *testing.T, pod *node.NS, _ string) (string, func()) {
			t.Helper()
			file := filepath.Join(t.TempDir(), "kept")
			node.Run(t, "touch", file)
			pid, stop := process(t, "unshare", "-m", "--propagation", "private", "sh", "-c",
				`mount --bind "$1" "$2" && umount "$1" && exec sleep 600`, "sh", pod.Path, file)
			return fmt.Sprintf("sleep (pid %d, mount %s)", pid, file), stop
		},
		// A pod that runs containers of its own gives them its devices.
		"a namespace within": func(t *testing.T, pod *node.NS, _ string) (string, func()) {
			t.Helper()
			pid, stop := process(t, "ip", "netns", "exec", pod.Name, "unshare", "-n", "sleep", "600")
			const within = "within"
			node.Run(t, "ip", "netns", "attach", within, fmt.Sprint(pid))
			for _, d := range node.RDMA(t, pod) {
				pod.Run(t, "rdma", "dev", "set", d.Name, "netns", within)
			}
			pod.Run(t, "ip", "link", "set", "net1", "netns", within)
			node.Run(t, "ip", "netns", "del", within)
			return fmt.Sprintf("sleep (pid %d)", pid), stop
		},
	}
}

func TestHeld(t *testing.T) {
	for name, keep := range keepers() {
		for n, vf := range map[string]string{name: node.VF(t, 1, 1), name + ", no RDMA device": node.VF(t, 1, 0)} {
			if n != name && !strings.HasPrefix(n, "a process") {
				continue // where the netdev is tells the same of all
			}
			t.Run(n, func(t *testing.T) {
				before := cni.Look(t)
				pod, other := node.NewNS(t), node.NewNS(t)
				old := cni.Call{Conf: network(vf, "10.9.0.7/24"), ContainerID: "old", NetNS: pod.Path}
				next := cni.Call{Conf: network(vf, "10.9.0.8/24"), ContainerID: "next", NetNS: other.Path}
				old.Add(t)
				by, let := keep(t, pod, vf)
				pod.Kill(t)
				old.Del(t)
				next.Refused(t, 11, "end what keeps", by, "tests/old", vf)
				next.Del(t)
				says(t, "0", "show", strings.TrimPrefix(by, "mount "))
				says(t, "1", "repair", by, "still away")
				addWhile(t, next, let)
				next.Del(t)
				before.Unchanged(t)
			})
		}
	}
}

// addWhile calls ADD, which has to wait for its device, lets go of that, and wants ADD to go on.
func addWhile(t *testing.T, c cni.Call, let func()) {
	t.Helper()
	done := make(chan *cni.Failure, 1)
	go func() {
		_, failure := c.Run(t, "ADD")
		done <- failure
	}()
	node.Wait(t, "ADD to wait for the device", func() bool {
		text, _ := os.ReadFile(filepath.Join(cni.StateDir, "attachments/old/net1.json"))
		return strings.Contains(string(text), `"state": "deleting"`)
	})
	let()
	began := time.Now()
	failure := <-done
	if failure != nil && failure.Code == 11 && time.Since(began) > 4*time.Second {
		// The kernel of a machine that has more to do takes longer than ADD waits; the runtime tries again.
		_, failure = c.Run(t, "ADD")
	}
	if failure != nil {
		t.Fatalf("ADD after its device was let go: %s", failure.Text())
	}
}
