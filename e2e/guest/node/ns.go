// SPDX-License-Identifier: Apache-2.0

//go:build lab

package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// NS is a network namespace with a name, as `ip netns` makes them. A nil NS stands for the host's.
type NS struct {
	Name string
	Path string // what a runtime passes as CNI_NETNS
}

var made atomic.Int64

// NewNS makes a network namespace, as a runtime does for a pod. It is gone after the test, if the test did not kill it before.
func NewNS(t testing.TB) *NS {
	t.Helper()
	ns := &NS{Name: fmt.Sprintf("pod%d", made.Add(1))}
	ns.Path = filepath.Join("/run/netns", ns.Name)
	Run(t, "ip", "netns", "add", ns.Name)
	Run(t, "ip", "-n", ns.Name, "link", "set", "lo", "up")
	t.Cleanup(func() {
		if _, err := os.Stat(ns.Path); err == nil {
			ns.Kill(t)
		}
	})
	return ns
}

// Kill takes the namespace's name away. With no process in it the kernel destroys it, some time later, and sends its devices
// home.
func (ns *NS) Kill(t testing.TB) {
	t.Helper()
	Run(t, "ip", "netns", "del", ns.Name)
}

// Run is [Run] in the namespace.
func (ns *NS) Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := ns.Try(name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Try is [Try] in the namespace, with the namespace's own /sys.
func (ns *NS) Try(name string, args ...string) (string, error) {
	if ns == nil {
		return Try(name, args...)
	}
	return Try("ip", append([]string{"netns", "exec", ns.Name, name}, args...)...)
}

// Do runs f on a thread in the namespace; see the package's words on threads. /sys stays the host's.
func (ns *NS) Do(t testing.TB, f func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		done <- func() error {
			if ns == nil {
				return f()
			}
			fd, err := os.Open(ns.Path)
			if err != nil {
				return fmt.Errorf("enter %s: %w", ns.Name, err)
			}
			err = unix.Setns(int(fd.Fd()), unix.CLONE_NEWNET)
			// Not deferred: an open descriptor would keep the namespace alive if f kills it.
			if err = errors.Join(err, fd.Close()); err != nil {
				return fmt.Errorf("enter %s: %w", ns.Name, err)
			}
			return f()
		}()
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
