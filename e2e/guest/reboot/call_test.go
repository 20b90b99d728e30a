// SPDX-License-Identifier: Apache-2.0

//go:build lab

package reboot_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

const fakeipam = "/var/lib/fakeipam"

// started is a call under way whose caller's ends of the pipes are ours.
type started struct {
	*exec.Cmd
	stdin, stdout, stderr *os.File
}

// start calls a verb as a runtime does, and goes on.
func start(t *testing.T, c cni.Call, verb string) *started {
	t.Helper()
	s := &started{Cmd: c.Command(verb)}
	pipe := func() (*os.File, *os.File) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = errors.Join(r.Close(), w.Close()) })
		return r, w
	}
	in, stdin := pipe()
	stdout, out := pipe()
	stderr, log := pipe()
	s.stdin, s.stdout, s.stderr = stdin, stdout, stderr
	s.Stdin, s.Stdout, s.Stderr = in, out, log
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	_ = errors.Join(in.Close(), out.Close(), log.Close())
	if _, err := s.stdin.WriteString(c.Conf); err != nil {
		t.Fatal(err)
	}
	_ = s.stdin.Close()
	return s
}

// hang makes the IPAM plugin hang until the returned function is called, or the test ends.
func hang(t *testing.T) func() {
	t.Helper()
	file := filepath.Join(fakeipam, "hang")
	if err := errors.Join(os.MkdirAll(fakeipam, 0o755), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	free := func() { _ = os.Remove(file) }
	t.Cleanup(free)
	return free
}

// asked waits until the IPAM plugin has been asked for the address of an attachment.
func asked(t *testing.T, c cni.Call) {
	t.Helper()
	node.Wait(t, "the IPAM plugin is asked", func() bool {
		_, err := os.Stat(filepath.Join(fakeipam, c.ContainerID+"-net1"))
		return err == nil
	})
}

// freed wants the IPAM plugin to hold no address.
func freed(t *testing.T, when string) {
	t.Helper()
	if left, err := filepath.Glob(fakeipam + "/*-net1"); err != nil || len(left) > 0 {
		t.Errorf("%s: the IPAM plugin holds %v", when, left)
	}
}

// afterwards is what may come after a call whose caller died.
func afterwards() []after {
	return []after{
		{"DEL", func(t *testing.T, a attachment) { t.Helper(); a.Del(t) }},
		{"DEL without a path", func(t *testing.T, a attachment) {
			t.Helper()
			a.NetNS = ""
			a.Del(t)
		}},
		{"GC", func(t *testing.T, a attachment) {
			t.Helper()
			a.die(t) // what a living pod has, GC leaves alone
			a.Conf = strings.TrimSuffix(a.Conf, "}") + noList + "}"
			if _, failure := a.Run(t, "GC"); failure != nil {
				t.Errorf("GC: %s", failure.Text())
			}
		}},
		{"the next pod", func(t *testing.T, a attachment) {
			t.Helper()
			a.die(t)
			next := newAttachment(t, "next49", a.vf, slow)
			next.Add(t)
			next.Del(t)
		}},
	}
}

type after struct {
	name string
	do   func(t *testing.T, a attachment)
}

// end wants a call to end by itself, and gives how.
func (s *started) end(t *testing.T) syscall.WaitStatus {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		_ = s.Wait()
		close(ended)
	}()
	node.Wait(t, "the call ends", func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
	status, ok := s.ProcessState.Sys().(syscall.WaitStatus)
	if !ok {
		t.Fatalf("it ended with %v", s.ProcessState)
	}
	return status
}
