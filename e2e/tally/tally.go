// SPDX-License-Identifier: Apache-2.0

// Package tally counts what a kernel and its file systems hold, so that tests can compare before and after: what one attachment
// leaves behind, many leave many times.
package tally

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Tally is how many there are of each kind of thing.
type Tally map[string]int

// Own counts what belongs to the machine of the test alone, in which one too many is a leak.
func Own(t testing.TB) Tally {
	t.Helper()
	return Tally{
		"links":                     ip(t, "-o", "link"),
		"addresses":                 ip(t, "-o", "addr"),
		"routes of IPv4":            ip(t, "-4", "route", "show", "table", "all"),
		"routes of IPv6":            ip(t, "-6", "route", "show", "table", "all"),
		"rules":                     ip(t, "rule") + ip(t, "-6", "rule"),
		"neighbours":                ip(t, "neigh"),
		"sysctl entries":            below(t, "/proc/sys/net"),
		"entries of /sys/class/net": len(List(t, "/sys/class/net")),
		"mounts":                    lines(t, "/proc/self/mountinfo"),
		"named network namespaces":  len(List(t, "/run/netns")),
		"processes":                 processes(t),
		"descriptors of the test":   len(List(t, "/proc/self/fd")),
		"leases of the delegate":    len(List(t, "/var/lib/fakeipam")),
		"files of podfabric":        below(t, "/run/podfabric"),
		"file locks":                lines(t, "/proc/locks"),
		"entries of /proc/net":      len(List(t, "/proc/net")),
		"sockets of the network":    sockets(t),
		"temporary files":           len(List(t, os.TempDir())),
	}
}

// Slabs are kernel objects, of everybody on this computer: active ones by cache. Those of caches that only ever grow until memory is
// short, of files and names, say nothing. On a kernel that merges caches one of them may be missing, or hold others' objects.
func Slabs(t testing.TB) Tally {
	t.Helper()
	out := Tally{}
	for _, name := range []string{
		"net_namespace", "sock_inode_cache", "mnt_cache", "task_struct", "signal_cache", "nsproxy", "pid", "ip_fib_alias",
		"kmalloc-4k", "kmalloc-cg-4k", "kmalloc-8k", "file_lock_cache",
	} {
		out[name] = 0
	}
	for line := range strings.SplitSeq(read(t, "/proc/slabinfo"), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		if _, wanted := out[fields[0]]; wanted {
			out[fields[0]] = number(t, fields[1])
		}
	}
	if out["net_namespace"] == 0 || out["task_struct"] == 0 {
		t.Fatalf("/proc/slabinfo counts neither namespaces nor threads: %v", out)
	}
	out["open files"] = number(t, strings.Fields(read(t, "/proc/sys/fs/file-nr"))[0])
	return out
}

// Held is what the test's own process holds: goroutines, and descriptors by what they lead to.
func Held(t testing.TB) Tally {
	t.Helper()
	out := Tally{"goroutines": runtime.NumGoroutine()}
	const dir = "/proc/self/fd"
	for _, name := range List(t, dir) {
		to, err := os.Readlink(filepath.Join(dir, name))
		if err != nil {
			continue // that of the list itself
		}
		kind, _, _ := strings.Cut(to, ":") // "socket", "net", "anon_inode", or a path
		out["descriptors: "+kind]++
	}
	return out
}

// Grown lists what there is more of than before, or less, by more than the tolerance.
func (before Tally) Grown(now Tally, tolerance int) string {
	var out []string
	for what, n := range now {
		if n-before[what] > tolerance || tolerance == 0 && n != before[what] {
			out = append(out, fmt.Sprintf("%s: %d, before %d", what, n, before[what]))
		}
	}
	return strings.Join(out, "\n")
}

// Settles waits until look finds nothing: the kernel ends namespaces, and what is in them, in its own time.
func Settles(t testing.TB, look func() string) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); ; <-tick.C {
		found := look()
		if found == "" {
			return
		}
		if time.Now().After(end) {
			t.Errorf("left behind:\n%s", found)
			return
		}
	}
}

func read(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func number(t testing.TB, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// ip counts the lines that ip(8) prints.
func ip(t testing.TB, args ...string) int {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ip", args...).Output()
	if err != nil {
		t.Fatalf("ip %v: %v", args, err)
	}
	return strings.Count(string(out), "\n")
}

func lines(t testing.TB, file string) int {
	t.Helper()
	return strings.Count(read(t, file), "\n")
}

// List is what is in a folder; one that is not there is empty.
func List(t testing.TB, dir string) []string {
	t.Helper()
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// below counts all below a folder. Which address comes next outlives an attachment.
func below(t testing.TB, dir string) int {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if of := filepath.Base(filepath.Dir(path)); of != "cursor" && of != "freed" {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// processes counts those of the machine, dead ones that nobody waited for included. The kernel's own come and go with its work.
func processes(t testing.TB) int {
	t.Helper()
	const kernelThread = 0x00200000 // PF_KTHREAD of include/linux/sched.h
	n := 0
	for _, name := range List(t, "/proc") {
		if _, err := strconv.Atoi(name); err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", name, "stat"))
		_, after, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(after) // from the state on, which is the third: proc_pid_stat(5)
		if err != nil || len(fields) < 7 {
			continue // it has ended
		}
		if number(t, fields[6])&kernelThread == 0 {
			n++
		}
	}
	return n
}

// sockets counts those of the machine's own network namespace, by protocol: netlink, packet, raw, unix.
func sockets(t testing.TB) int {
	t.Helper()
	n := 0
	for _, file := range []string{"netlink", "packet", "raw", "raw6", "icmp", "icmp6", "unix", "udp", "udp6"} {
		f, err := os.Open("/proc/net/" + file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for s := bufio.NewScanner(f); s.Scan(); {
			n++
		}
		_ = f.Close()
	}
	return n
}
