// SPDX-License-Identifier: Apache-2.0

//go:build lab

package reboot_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// TestCallerGoneInAdd: the runtime dies in the middle of ADD and reads nothing any more. It cannot know of an attachment, so there
// is none.
func TestCallerGoneInAdd(t *testing.T) {
	vf := node.VF(t, 1, 0)
	before := cni.Look(t)
	for _, next := range afterwards() {
		if next.name == "GC" || next.name == "DEL" {
			continue // they find as much as the others, nothing
		}
		t.Run(next.name, func(t *testing.T) {
			a := newAttachment(t, "gone40", vf, slow)
			goOn := hang(t)
			s := start(t, a.Call, "ADD")
			asked(t, a.Call)
			_ = errors.Join(s.stdout.Close(), s.stderr.Close())
			goOn()
			if status := s.end(t); status.Signaled() || status.ExitStatus() == 0 {
				t.Errorf("ADD whose result nobody read: %+v", status)
			}
			freed(t, "after an ADD whose result nobody read")
			before.Unchanged(t)
			next.do(t, a)
			freed(t, "after "+next.name)
			before.Unchanged(t)
		})
	}
}

// TestCallerGoneInDel: the runtime dies before DEL has said anything. The DEL is done all the same, and so is another.
func TestCallerGoneInDel(t *testing.T) {
	before := cni.Look(t)
	a := newAttachment(t, "gone41", node.VF(t, 1, 0), ranges)
	a.Add(t)
	s := start(t, a.Call, "DEL")
	_ = errors.Join(s.stdout.Close(), s.stderr.Close())
	if status := s.end(t); status.Signaled() || status.ExitStatus() != 0 {
		t.Errorf("DEL: %+v", status)
	}
	before.Unchanged(t)
	a.Del(t)
}

// TestParentKilled: the runtime's process is killed, and all that reads from its plugins with it.
func TestParentKilled(t *testing.T) {
	before := cni.Look(t)
	a := newAttachment(t, "gone42", node.VF(t, 1, 0), slow)
	goOn := hang(t)
	plugin := a.Command("ADD")
	parent := exec.CommandContext(t.Context(), "bash", "-c", `podfabric 2>&1 | cat; true`)
	parent.Env, parent.Stdin = plugin.Env, plugin.Stdin
	parent.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	asked(t, a.Call)
	group := fmt.Sprint(parent.Process.Pid)
	node.Run(t, "pkill", "-KILL", "-g", group, "-x", "bash|cat")
	_ = parent.Wait()
	goOn()
	node.Wait(t, "the plugin ends", func() bool {
		_, err := node.Try("pgrep", "-g", group)
		return err != nil
	})
	freed(t, "after the parent was killed")
	before.Unchanged(t)
	a.Del(t)
}

// TestSignalsInAdd: a signal ends ADD where it is. Whatever comes next takes back what was done.
func TestSignalsInAdd(t *testing.T) {
	vf := node.VF(t, 1, 0)
	before := cni.Look(t)
	for i, next := range afterwards() {
		signal := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT}[i%2]
		t.Run(fmt.Sprintf("%s/%s", unix.SignalName(signal), next.name), func(t *testing.T) {
			a := newAttachment(t, "signal43", vf, slow)
			goOn := hang(t)
			s := start(t, a.Call, "ADD")
			asked(t, a.Call)
			if err := s.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			status := s.end(t)
			if !status.Signaled() || status.Signal() != signal {
				t.Errorf("ADD ended with %+v", status)
			}
			goOn()
			node.Wait(t, "the IPAM plugin ends", func() bool {
				_, err := node.Try("pgrep", "-x", "fakeipam")
				return err != nil
			})
			next.do(t, a)
			freed(t, "after "+next.name)
			before.Unchanged(t)
		})
	}
}

// TestClosedFromTheStart: a caller that gives no standard output, log or input at all.
func TestClosedFromTheStart(t *testing.T) {
	before := cni.Look(t)
	for _, closed := range []string{">&-", "2>&-", ">&- 2>&-"} {
		t.Run(closed, func(t *testing.T) {
			a := newAttachment(t, "closed44", node.VF(t, 1, 0), ranges)
			plugin := a.Command("ADD")
			cmd := exec.CommandContext(t.Context(), "bash", "-c", "exec podfabric "+closed)
			cmd.Env, cmd.Stdin = plugin.Env, plugin.Stdin
			var out bytes.Buffer
			cmd.Stdout = &out
			if err := cmd.Run(); err != nil {
				t.Errorf("ADD: %v: %s", err, out.Bytes())
			}
			// Nothing that was to be printed went into a file that was opened instead.
			if failure := a.Check(t); failure != nil {
				t.Errorf("CHECK: %s", failure.Text())
			}
			a.Del(t)
		})
	}
	a := newAttachment(t, "closed45", node.VF(t, 1, 0), ranges)
	plugin := a.Command("ADD")
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "exec podfabric <&-")
	cmd.Env = plugin.Env
	out, err := cmd.Output()
	if err == nil || !strings.Contains(string(out), `"code"`) {
		t.Errorf("ADD without input: %v: %s", err, out)
	}
	before.Unchanged(t)
}

// TestFullPipe: a caller that does not read keeps nothing from anybody. Its DEL takes the attachment back, and its namespace can end.
func TestFullPipe(t *testing.T) {
	before := cni.Look(t)
	a := newAttachment(t, "full46", node.VF(t, 1, 0), ranges)
	s := &started{Cmd: a.Command("ADD")}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	size, err := unix.FcntlInt(w.Fd(), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = w.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	s.Stdout = w
	if err = s.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	record := filepath.Join(cni.StateDir, "attachments", a.ContainerID, "net1.json")
	node.Wait(t, "ADD is done but for its result", func() bool {
		text, _ := os.ReadFile(record)
		return strings.Contains(string(text), `"done"`)
	})
	a.Del(t)
	before.Unchanged(t)

	// The next pod has the device when the caller gives up at last: the attachment that nobody heard of is not its.
	next := newAttachment(t, "full47", a.vf, ranges)
	next.Add(t)
	_ = r.Close()
	if status := s.end(t); status.Signaled() || status.ExitStatus() == 0 {
		t.Errorf("ADD whose result nobody read: %+v", status)
	}
	if failure := next.Check(t); failure != nil {
		t.Errorf("CHECK of the next pod: %s", failure.Text())
	}
	next.Del(t)
	before.Unchanged(t)
}
