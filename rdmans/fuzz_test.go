// SPDX-License-Identifier: Apache-2.0

package rdmans_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/podfabric/podfabric/rdmans"
)

// selfProc makes a proc file system of files in which this process is the only one that has a namespace.
func selfProc(t testing.TB) string {
	t.Helper()
	proc := t.TempDir()
	for _, dir := range []string{"self/ns", "71/ns", "71/fd", "71/task/72/ns"} {
		if err := os.MkdirAll(filepath.Join(proc, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, link := range []string{"self/ns/net", "71/ns/net", "71/task/72/ns/net"} {
		if err := os.Symlink("/proc/self/ns/net", filepath.Join(proc, link)); err != nil {
			t.Fatal(err)
		}
	}
	return proc
}

// FuzzScan: whatever mount tables, names of processes and descriptors say, nothing is found that is no network namespace of its own,
// nothing hangs, and fifos that stand where a namespace is looked for are not opened.
func FuzzScan(f *testing.F) {
	for _, table := range []string{
		"", "\n", "net:[", "1 2 3 net:[4] /tmp", "31 1 0:4 net:[1] /proc/self/ns/net rw\n", `31 1 0:4 net:[1] /run/\040\011\012\134 rw`, `1 1 1 net:[ \0 x`,
		"31 1 0:4 net:[1] /proc/self/root/proc/self/ns/mnt rw", "31 1 0:4 net:[1] FIFO rw\n", strings.Repeat("31 1 0:4 net:[1] /a rw\n", 100), "\x00\xff net:[ \x1b[2J",
	} {
		f.Add(table, "nginx\n", "Name:\tnginx\nTgid:\t71\n", "socket:[1]")
		f.Add(table, "\x1b[2J\x00", "Tgid:\nTgid:\t-99999999999999999999\n", "FIFO")
	}
	proc := selfProc(f)
	fifo := filepath.Join(proc, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, table, comm, status, descriptor string) {
		fd := filepath.Join(proc, "71/fd/3")
		_ = os.Remove(fd)
		_ = os.Symlink(strings.ReplaceAll(descriptor, "FIFO", fifo), fd)
		table = strings.ReplaceAll(table, "FIFO", fifo)
		for name, text := range map[string]string{"self/mountinfo": table, "71/mountinfo": table, "71/comm": comm, "71/status": status} {
			if err := os.WriteFile(filepath.Join(proc, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		alarm := time.AfterFunc(3*time.Minute, func() { panic("the scan hangs") })
		defer alarm.Stop()
		found, err := rdmans.Scan{Proc: proc, Run: proc, Deep: true}.Namespaces(t.Context())
		if err != nil {
			t.Errorf("%v", err)
		}
		for _, n := range found {
			// A path of a table may lead to a namespace of this machine; then it is one.
			if ns, openErr := n.Open(); openErr != nil {
				t.Errorf("found %+v, which is none: %v", n, openErr)
			} else if closeErr := ns.Close(); closeErr != nil {
				t.Error(closeErr)
			}
		}
		if user, alive := rdmans.Process(proc, 71); alive && (len(user.Comm) > len(comm) || user.PID != 71 && !strings.Contains(status, "Tgid:")) {
			t.Errorf("process %+v", user)
		}
	})
}

// FuzzOpenNS: a path is that of a network namespace, or there is none there: in time, and in words that Multus does not take for
// "already gone".
func FuzzOpenNS(f *testing.F) {
	dir := f.TempDir()
	for _, err := range []error{
		syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600), os.WriteFile(filepath.Join(dir, "file"), nil, 0o600), os.Symlink("loop", filepath.Join(dir, "loop")),
		os.Symlink("fifo", filepath.Join(dir, "to-fifo")), os.Symlink("/proc/self/ns/mnt", filepath.Join(dir, "mnt")),
	} {
		if err != nil {
			f.Fatal(err)
		}
	}
	for _, path := range []string{
		"", "/", "..", "fifo", "file", "loop", "to-fifo", "mnt", "a\x00b", "a\nb\x1b[2J", "/proc/self/ns/net", "/proc/self/ns/pid", "/proc/thread-self/fd/0", "/dev/stdin",
		"/proc/0/ns/net", "/proc/self/root/proc/self/ns/net", strings.Repeat("a/", 3000), strings.Repeat("x", 300),
	} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if !strings.HasPrefix(path, "/proc/") {
			path = dir + "/" + path
		}
		alarm := time.AfterFunc(3*time.Minute, func() { panic("the open hangs") })
		defer alarm.Stop()
		n, err := rdmans.OpenNS(path)
		if err != nil {
			if n != nil || strings.Contains(err.Error(), syscall.ENOENT.Error()) {
				t.Errorf("%q: %v, %v", path, n, err)
			}
			return
		}
		alive, aliveErr := rdmans.Alive(path, n.ID())
		if !alive || aliveErr != nil || n.ID().Ino == 0 {
			t.Errorf("%q: %+v, alive %v, %v", path, n.ID(), alive, aliveErr)
		}
		if err := n.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	})
}
