// SPDX-License-Identifier: Apache-2.0

package delegate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// outputMax is more than any result needs; a delegate that prints without end is stopped there.
	outputMax = 1 << 20
	// pipeWait is how long, after the delegate has ended, its children may keep its output open.
	pipeWait = time.Second
	// busyWait is how long to wait before a plugin that is being replaced on disk (ETXTBSY) is tried again.
	busyWait = 50 * time.Millisecond
)

// run runs one verb and gives what the delegate printed.
func (c Caller) run(ctx context.Context, verb string, call Call) ([]byte, error) {
	what := fmt.Sprintf("call IPAM plugin %s %s", call.Plugin, verb)
	path, err := find(call.Plugin, filepath.SplitList(call.Path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	for {
		out, errText, err := c.start(ctx, path, call.Config, c.environ(verb, call))
		if errors.Is(err, syscall.ETXTBSY) {
			select {
			case <-ctx.Done():
				err = ctx.Err()
			case <-time.After(busyWait):
				continue
			}
		}
		if ctx.Err() != nil && err != nil {
			return nil, fmt.Errorf("%s: %w: %w%s", what, ErrTimeout, ctx.Err(), said(errText))
		}
		// A delegate that prints an error and exits with 0 has failed all the same.
		if e := decodeError(call.Plugin, verb, out); e != nil {
			return nil, e
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w%s", what, failure(out, err), said(errText))
		}
		return out, nil
	}
}

// failure words the end of a delegate that printed no CNI error.
func failure(out []byte, err error) error {
	var exit *exec.ExitError
	var errno syscall.Errno
	switch {
	case errors.Is(err, errTooLong):
		return fmt.Errorf("it printed more than %d bytes: %w", outputMax, ErrOutput)
	case errors.As(err, &exit) && len(bytes.TrimSpace(out)) == 0:
		return fmt.Errorf("it printed nothing: %w: %w", ErrOutput, exit)
	case errors.As(err, &exit):
		return fmt.Errorf("it printed %s: %w: %w", quote(out), ErrOutput, exit)
	case errors.As(err, &errno) && errno == syscall.ENOENT:
		return fmt.Errorf("the file or its interpreter is missing: %w", ErrNotFound)
	case errors.As(err, &errno):
		return fmt.Errorf("start it: %w", errno)
	}
	return fmt.Errorf("run it: %w", err)
}

// said repeats the delegate's standard error when there is some.
func said(errText []byte) string {
	if text := clean(string(errText)); text != "" {
		return fmt.Sprintf(", its standard error: %q", text)
	}
	return ""
}

// start runs the delegate in a process group of its own, which is killed when ctx ends: a shell script's children too. The
// kernel kills the delegate as well when this process dies, since the DEL that follows must not meet an ADD still running.
func (c Caller) start(ctx context.Context, path string, conf []byte, environ []string) ([]byte, []byte, error) {
	// Pdeathsig means the death of the thread that started the child, so that thread stays this goroutine's.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	stdout, stderr := limited{stop: true}, limited{}
	cmd := exec.CommandContext(ctx, path)
	cmd.Env = environ
	cmd.Stdin = bytes.NewReader(conf)
	cmd.Stdout = &stdout
	cmd.Stderr = &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = pipeWait
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it ended well and left a child behind that keeps its output open
	}
	if c.Stderr != nil && stderr.kept.Len() > 0 {
		_, _ = io.Copy(c.Stderr, bytes.NewReader(stderr.kept.Bytes()))
	}
	return stdout.kept.Bytes(), stderr.kept.Bytes(), err
}

// Mark is a variable that every delegate and all that it starts have in their environment, and nobody else. By it a podfabric under
// another name knows that it was called by way of itself.
const Mark = "PODFABRIC_DELEGATE"

// environ is what CNI passes to a plugin (specification, section "Parameters"), and Mark.
func (c Caller) environ(verb string, r Call) []string {
	inherited := c.Environ
	if inherited == nil {
		inherited = os.Environ()
	}
	set := []string{
		"CNI_COMMAND=" + verb,
		"CNI_CONTAINERID=" + r.ContainerID,
		"CNI_NETNS=" + r.NetNS,
		"CNI_IFNAME=" + r.IfName,
		"CNI_ARGS=" + r.Args,
		"CNI_PATH=" + r.Path,
		Mark + "=1",
	}
	kept := slices.DeleteFunc(slices.Clone(inherited), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.ContainsFunc(set, func(s string) bool { return strings.HasPrefix(s, name+"=") })
	})
	return append(kept, set...)
}

// find looks for the plugin in the folders of CNI_PATH, in their order.
func find(plugin string, folders []string) (string, error) {
	if plugin == "" || plugin == "." || plugin == ".." || strings.ContainsAny(plugin, "/\x00") {
		return "", fmt.Errorf("find plugin: %q is not the name of a plugin: %w", plugin, ErrNotFound)
	}
	seen := ""
	for _, folder := range folders {
		path := filepath.Join(folder, plugin)
		stat, err := os.Stat(path)
		if err != nil || folder == "" {
			continue
		}
		if stat.Mode().IsRegular() && stat.Mode()&0o111 != 0 {
			return path, nil
		}
		seen = path
	}
	if seen != "" {
		return "", fmt.Errorf("find plugin: %s is not an executable file: %w", seen, ErrNotFound)
	}
	if len(folders) == 0 {
		return "", fmt.Errorf("find plugin: CNI_PATH names no folder: %w", ErrNotFound)
	}
	return "", fmt.Errorf("find plugin: in no folder of CNI_PATH (%s): %w", strings.Join(folders, ", "), ErrNotFound)
}

// errTooLong stops a delegate that prints without end.
var errTooLong = errors.New("too much output")

// limited keeps the first outputMax bytes. With stop it fails beyond them, which closes the pipe; else it drops the rest. The
// buffer is not embedded: io.Copy would find its ReadFrom, which knows no limit.
type limited struct {
	kept bytes.Buffer
	stop bool
}

// Write keeps what fits.
func (l *limited) Write(p []byte) (int, error) {
	room := outputMax - l.kept.Len()
	if len(p) <= room {
		return l.kept.Write(p) //nolint:wrapcheck // never fails
	}
	_, _ = l.kept.Write(p[:room])
	if l.stop {
		return room, errTooLong
	}
	return len(p), nil
}
