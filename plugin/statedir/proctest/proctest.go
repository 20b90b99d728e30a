// SPDX-License-Identifier: Apache-2.0

// Package proctest runs functions of a test in processes of their own, which are the test binary once more: to let them race,
// to give them a mount namespace, and to kill them in the middle. It is for tests only.
package proctest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// The environment of such a process.
const (
	nameVar = "PROCTEST_NAME"
	argsVar = "PROCTEST_ARGS"
)

// Main is for TestMain: in a process that Command or Cut started it runs that function instead of the tests. The status
// is 0 when the function returned nil; its error goes to standard error.
func Main(m *testing.M, functions map[string]func(args []string) error) int {
	f, ok := functions[os.Getenv(nameVar)]
	if !ok {
		return m.Run()
	}
	var args []string
	if err := json.Unmarshal([]byte(os.Getenv(argsVar)), &args); err != nil {
		fmt.Fprintln(os.Stderr, "read arguments:", err)
		return 1
	}
	mark()
	err := f(args)
	mark()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// Command gives the process that runs the function of that name, not started yet.
func Command(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), executable(t))
	cmd.Env = environ(t, name, args)
	return cmd
}

// Run runs the function and gives what it printed to standard output. Any failure ends the test.
func Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	return output(t, Command(t, name, args...))
}

// RunInMounts is Run in a mount namespace of its own, so that what the function mounts goes away with it. It needs root.
func RunInMounts(t testing.TB, name string, args ...string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test mounts a file system and must run as root")
	}
	cmd := Command(t, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	return output(t, cmd)
}

func output(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // os/exec returns it as it is
		t.Fatalf("%s: %v\n%s", cmd.Env[len(cmd.Env)-2:], err, exit.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func executable(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func environ(t testing.TB, name string, args []string) []string {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return append(os.Environ(), nameVar+"="+name, argsVar+"="+string(text))
}
