// SPDX-License-Identifier: Apache-2.0

package rdmans_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/rdmans"
)

// TestScanNamesWhatHolds has one holder of each kind, and nothing else, keep a namespace alive: a process inside, one with a
// descriptor, one whose mount namespace alone has a mount of it, one in a namespace made inside the pod's. A shallow scan finds
// the first and the last.
func TestScanNamesWhatHolds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		attr    *syscall.SysProcAttr
		script  string // $1 is the namespace, $2 a file to mount on
		inside  bool   // the process is started in the namespace
		nested  bool   // what it holds is another namespace than the pod's
		by      string
		shallow bool
	}{
		{name: "a process", script: `exec sleep 60`, inside: true, shallow: true},
		{name: "a descriptor", script: `exec 7< "$1"; exec sleep 60`, by: "descriptor 7"},
		{
			name: "a mount of another mount namespace", attr: &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS},
			script: `mount --bind "$1" "$2" && umount "$1" && exec sleep 60`, by: "mount ",
		},
		{
			name: "a namespace made in the pod", attr: &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNET},
			script: `exec sleep 60`, inside: true, nested: true, shallow: true,
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir, path := bound(t)
			n, err := rdmans.OpenNS(path)
			must(t, err)
			id := n.ID()
			file := filepath.Join(dir, "copy")
			must(t, os.WriteFile(file, nil, 0o600))
			cmd := exec.CommandContext(t.Context(), "sh", "-c", tc.script, "sh", path, file)
			cmd.SysProcAttr = tc.attr
			if tc.inside {
				must(t, n.Do(cmd.Start))
			} else {
				must(t, cmd.Start())
			}
			must(t, n.Close())
			pid := cmd.Process.Pid
			wait(t, "the process to sleep", func() bool {
				comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
				return string(comm) == "sleep\n"
			})
			must(t, unix.Unmount(path, unix.MNT_DETACH))

			find := func(deep bool) (rdmans.Namespace, bool) {
				all, scanErr := rdmans.Scan{Proc: "/proc", Run: dir, Deep: deep}.Namespaces(t.Context())
				must(t, scanErr)
				i := slices.IndexFunc(all, func(n rdmans.Namespace) bool {
					return (n.ID == id) != tc.nested && slices.ContainsFunc(n.Holders, func(h rdmans.Holder) bool { return h.PID == pid })
				})
				if i < 0 {
					return rdmans.Namespace{}, false
				}
				// A test beside this one may have copied its mounts.
				all[i].Holders = slices.DeleteFunc(all[i].Holders, func(h rdmans.Holder) bool { return h.PID != pid })
				return all[i], true
			}
			if _, found := find(false); found != tc.shallow {
				t.Errorf("a shallow scan found it: %t", found)
			}
			got, found := find(true)
			if !found || len(got.Holders) != 1 {
				t.Fatalf("a deep scan found %t: %+v", found, got)
			}
			by := tc.by
			if by == "mount " {
				by += file
			}
			want := fmt.Sprintf("sleep (pid %d)", pid)
			if by != "" {
				want = fmt.Sprintf("sleep (pid %d, %s)", pid, by)
			}
			if text := got.Holders[0].String(); text != want {
				t.Errorf("holder is %q, want %q", text, want)
			}
			again, err := got.Open()
			must(t, err)
			must(t, again.Close())
			must(t, cmd.Process.Kill())
			_ = cmd.Wait()
			if got, found := find(true); found {
				t.Errorf("after its end: %+v", got)
			}
		})
	}
}

// TestScanFindsSockets: a socket that was opened in a namespace keeps it, though no process is there and no path leads there.
func TestScanFindsSockets(t *testing.T) {
	t.Parallel()
	dir, path := bound(t)
	n, err := rdmans.OpenNS(path)
	must(t, err)
	id := n.ID()
	var socket int
	must(t, n.Do(func() error {
		var openErr error
		socket, openErr = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		return openErr
	}))
	must(t, n.Close())
	must(t, unix.Unmount(path, unix.MNT_DETACH))
	find := func(deep bool) *rdmans.Namespace {
		all, scanErr := rdmans.Scan{Proc: "/proc", Run: dir, Deep: deep}.Namespaces(t.Context())
		must(t, scanErr)
		if i := slices.IndexFunc(all, func(n rdmans.Namespace) bool { return n.ID == id }); i >= 0 {
			return &all[i]
		}
		return nil
	}
	if got := find(false); got != nil {
		t.Errorf("a shallow scan found %+v", got)
	}
	got := find(true)
	if got == nil || len(got.Holders) != 1 {
		t.Fatalf("a deep scan found %+v", got)
	}
	if text, want := got.Holders[0].String(), fmt.Sprintf("(pid %d, socket %d)", os.Getpid(), socket); !strings.HasSuffix(text, want) {
		t.Errorf("holder is %q, want %q at its end", text, want)
	}
	again, err := got.Open()
	must(t, err)
	if again.ID() != id {
		t.Errorf("opened %v, want %v", again.ID(), id)
	}
	must(t, again.Close())
	must(t, unix.Close(socket))
	if got := find(true); got != nil {
		t.Errorf("after its end: %+v", got)
	}
}

func wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
