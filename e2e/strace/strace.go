// SPDX-License-Identifier: Apache-2.0

// Package strace runs a program under strace(1), to see which system calls it makes on files and to let single ones of them fail.
// It is the program's first thread that is looked at: podfabric does all that it does with files of its own there (cmd/podfabric locks
// it), so that the nth call of a kind is the same one each time.
package strace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Call is one system call on a file.
type Call struct {
	Name  string // "openat"
	Nth   int    // which of the calls of that name it is, from 1
	Path  string // of the file; of a call that names two, the one that it makes
	Write bool   // it changes something, or opens a file to do so
	// By is what strace's -P knows the call by: the folder that it begins at, or the path that it names; and Among which of the calls
	// of that name by it this is. It is right where Nth is not, since another number of calls elsewhere came before.
	By    string
	Among int
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

// Command runs a program under strace, whose trace Read finds under the path out. The call fails of which errno ("ENOSPC") is given;
// with none, all are only written down. Other threads and processes are followed, since only so strace leaves alone what it does
// not look at; a call of theirs that has the name and the number fails, too.
func Command(ctx context.Context, out string, fails *Call, errno string, program ...string) *exec.Cmd {
	args := []string{"-ff", "--seccomp-bpf", "-qq", "-y", "-o", out}
	switch {
	case fails == nil:
		args = append(args, "-e", "trace="+strings.Join(names(), ","))
	case temporary.MatchString(fails.By): // there is no such path this time
		args = append(args, "-e", "trace="+fails.Name, fmt.Sprintf("--inject=%s:error=%s:when=%d", fails.Name, errno, fails.Nth))
	default:
		args = append(args, "-P", fails.By, "-e", "trace="+fails.Name,
			fmt.Sprintf("--inject=%s:error=%s:when=%d", fails.Name, errno, fails.Among))
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

// Read gives what the first thread of a program did that Command ran, and whether a call of another thread or process failed, too.
func Read(out string) (trace string, beside bool, err error) { //nolint:nonamedreturns // tells them apart
	files, err := filepath.Glob(out + ".*")
	if err != nil || len(files) == 0 {
		return "", false, fmt.Errorf("look for the trace %s: %w", out, errors.Join(err, os.ErrNotExist))
	}
	pid := func(file string) int {
		n, _ := strconv.Atoi(strings.TrimPrefix(file, out+"."))
		return n
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Compare(pid(a), pid(b)) })
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", false, fmt.Errorf("read the trace: %w", err)
		}
		if i == 0 {
			trace = string(text)
		} else if _, failed := Failed(string(text)); failed {
			beside = true
		}
	}
	return trace, beside, nil
}

var (
	line   = regexp.MustCompile(`^(\w+)\((.*)\) += `)
	folder = regexp.MustCompile(`^(?:AT_FDCWD|\d+)<([^>]*)>(?:\(deleted\))?`)
	// temporary is a file that is named another way each time.
	temporary = regexp.MustCompile(`/\.[^/]*[0-9]{6,}$`)
	quoted    = regexp.MustCompile(`^"((?:[^"\\]|\\.)*)"`)
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
	count, among := map[string]int{}, map[[2]string]int{}
	for text := range strings.Lines(trace) {
		m := line.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		name, args := m[1], m[2]
		count[name]++
		c := Call{Name: name, Nth: count[name]}
		c.Path, c.By = pathOf(name, args)
		c.Write = slices.Contains(writing(), name) || name == "openat" && strings.Contains(args, "O_CREAT")
		among[[2]string{name, c.By}]++
		c.Among = among[[2]string{name, c.By}]
		calls = append(calls, parsed{c, text})
	}
	return calls
}

// pathOf finds the file in the arguments, and what the call is known by: a folder's descriptor and a name, or a descriptor alone.
func pathOf(name, args string) (file, by string) { //nolint:nonamedreturns // tells them apart
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
		return "", ""
	}
	if !strings.HasSuffix(name, "at") && name != "renameat2" {
		return m[1], m[1]
	}
	q := quoted.FindStringSubmatch(strings.TrimPrefix(args[len(m[0]):], ", "))
	switch {
	case q == nil || q[1] == "":
		return m[1], m[1]
	case path.IsAbs(q[1]):
		return q[1], q[1]
	}
	return path.Join(m[1], q[1]), m[1]
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
