// SPDX-License-Identifier: Apache-2.0

// Package strace runs a program under strace(1), to see which system calls it makes on files and to let single ones of them fail.
// Only the program's first thread is looked at: podfabric does all that it does with files there (cmd/podfabric locks it), so that
// the nth call of a kind is the same one each time, and what other threads ask of the kernel is not disturbed.
package strace

import (
	"context"
	"fmt"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Call is one system call on a file.
type Call struct {
	Name  string // "openat"
	Nth   int    // which of the calls of that name it is, from 1
	Path  string // of the file; of a call that names two, the one that it makes
	Write bool   // it changes something, or opens a file to do so
}

// String is "openat 17 /run/podfabric/claims".
func (c Call) String() string { return fmt.Sprintf("%s %d %s", c.Name, c.Nth, c.Path) }

// Below tells whether the call is about a folder or something in it.
func (c Call) Below(folder string) bool {
	return c.Path == folder || strings.HasPrefix(c.Path, folder+"/")
}

// names are the calls that are looked at; of those that are not here, podfabric's first thread makes none on a file of its own but
// close, fcntl and epoll_ctl.
func names() []string {
	return append(writing(), "openat", "read", "getdents64", "newfstatat", "fstat", "readlinkat")
}

func writing() []string {
	return []string{
		"mkdirat", "fchmod", "fchmodat", "fsync", "renameat", "renameat2", "symlinkat", "linkat", "unlinkat", "write", "pwrite64", "ftruncate", "flock",
	}
}

// Command runs a program under strace, which writes its trace to the file out. The call fails of which errno ("ENOSPC") is given;
// with none, all are only written down.
func Command(ctx context.Context, out string, fails *Call, errno string, program ...string) *exec.Cmd {
	args := []string{"-qq", "-y", "-o", out, "-e", "trace=" + strings.Join(names(), ",")}
	if fails != nil {
		args[len(args)-1] = "trace=" + fails.Name
		args = append(args, fmt.Sprintf("--inject=%s:error=%s:when=%d", fails.Name, errno, fails.Nth))
	}
	return exec.CommandContext(ctx, "strace", append(append(args, "--"), program...)...)
}

// Kill runs a program that is killed before it makes a call.
func Kill(ctx context.Context, out string, at Call, program ...string) *exec.Cmd {
	args := []string{
		"-qq", "-o", out, "-e", "trace=" + at.Name, fmt.Sprintf("--inject=%s:signal=KILL:error=EINTR:when=%d", at.Name, at.Nth), "--",
	}
	return exec.CommandContext(ctx, "strace", append(args, program...)...)
}

var (
	line   = regexp.MustCompile(`^(\w+)\((.*)\) += `)
	folder = regexp.MustCompile(`^(?:AT_FDCWD|\d+)<([^>]*)>(?:\(deleted\))?`)
	quoted = regexp.MustCompile(`^"((?:[^"\\]|\\.)*)"`)
)

// Parse reads a trace. Calls on what is no file are counted and left out.
func Parse(trace string) []Call {
	var calls []Call
	for _, c := range parse(trace) {
		if path.IsAbs(c.Path) {
			calls = append(calls, c.Call)
		}
	}
	return calls
}

// parsed is a call and its line.
type parsed struct {
	Call
	text string
}

func parse(trace string) []parsed {
	var calls []parsed
	count := map[string]int{}
	for text := range strings.Lines(trace) {
		m := line.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		name, args := m[1], m[2]
		count[name]++
		c := Call{Name: name, Nth: count[name], Path: pathOf(name, args)}
		c.Write = slices.Contains(writing(), name) || name == "openat" && strings.Contains(args, "O_CREAT")
		calls = append(calls, parsed{c, text})
	}
	return calls
}

// pathOf finds the file in the arguments: a folder's descriptor and a name, or a descriptor alone.
func pathOf(name, args string) string {
	switch name {
	case "symlinkat": // the text of the link first
		if m := quoted.FindString(args); m != "" {
			args = strings.TrimPrefix(args[len(m):], ", ")
		}
	case "renameat", "renameat2", "linkat": // the old name first
		if _, rest, ok := strings.Cut(args, `", `); ok {
			args = rest
		}
	}
	m := folder.FindStringSubmatch(args)
	if m == nil {
		return ""
	}
	if !strings.HasSuffix(name, "at") && name != "renameat2" {
		return m[1]
	}
	q := quoted.FindStringSubmatch(strings.TrimPrefix(args[len(m[0]):], ", "))
	switch {
	case q == nil || q[1] == "":
		return m[1]
	case path.IsAbs(q[1]):
		return q[1]
	}
	return path.Join(m[1], q[1])
}

// Failed gives the call that a trace says was made to fail. Its number is right if the trace has all calls of its name.
func Failed(trace string) (Call, bool) {
	for _, c := range parse(trace) {
		if strings.Contains(c.text, "(INJECTED)") {
			return c.Call, true
		}
	}
	return Call{}, false
}
