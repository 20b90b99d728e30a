// SPDX-License-Identifier: Apache-2.0

//go:build lab

package kill_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/e2e/guest/node"
)

// pod is a network namespace and the container that the runtime has for it.
type pod struct {
	name, path string
	id         string // container
	alive      bool
}

const netnsDir = "/run/netns"

// newPod makes a namespace in this process: ip(8), started three times, would take most of a combination's time.
func newPod(t *testing.T, name string) *pod {
	t.Helper()
	p := &pod{name: name, path: filepath.Join(netnsDir, name), alive: true}
	made := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		made <- p.make()
	}()
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *pod) make() error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("make a namespace: %w", err)
	}
	err := errors.Join(os.MkdirAll(netnsDir, 0o755), os.WriteFile(p.path, nil, 0o600))
	return errors.Join(err, unix.Mount("/proc/thread-self/ns/net", p.path, "", unix.MS_BIND, ""))
}

// dies takes the namespace's name away, as a runtime does; the kernel does the rest.
func (p *pod) dies(t *testing.T) {
	t.Helper()
	if !p.alive {
		return
	}
	p.alive = false
	if err := errors.Join(unix.Unmount(p.path, unix.MNT_DETACH), os.Remove(p.path)); err != nil {
		t.Fatal(err)
	}
}

// run runs a command in the namespace, with its own /sys.
func (p *pod) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	return (&node.NS{Name: p.name, Path: p.path}).Run(t, name, args...)
}
