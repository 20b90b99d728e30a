// SPDX-License-Identifier: Apache-2.0

package rdmans_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/rdmans"
)

// TestScanOfSilentMount: a container has a namespace mounted below a file system that does not answer. Whoever looks for holders
// must not wait for it for ever, and finds the others.
func TestScanOfSilentMount(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("run this test as root: it makes mounts")
	}
	path, end, err := rdmans.Scratch()
	must(t, err)
	defer end()
	dir := t.TempDir()
	fuse, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	must(t, err)
	// The bind mount lies in a folder that the silent file system then covers, in a mount namespace of the container's own.
	script := fmt.Sprintf(`mkdir %[1]s/a && touch %[1]s/a/ns && mount --bind %[2]s %[1]s/a/ns &&
		mount -i -t fuse silent %[1]s/a -o fd=3,rootmode=40755,user_id=0,group_id=0 && echo ready && read -r line`, dir, path)
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c", script)
	cmd.ExtraFiles = []*os.File{fuse}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	defer func() {
		_ = stdin.Close()
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
	}()
	if line, readErr := bufio.NewReader(stdout).ReadString('\n'); readErr != nil || line != "ready\n" {
		t.Fatalf("the container says %q, %v", line, readErr)
	}
	var table []byte
	table, err = os.ReadFile(filepath.Join("/proc", fmt.Sprint(cmd.Process.Pid), "mountinfo"))
	must(t, err)
	t.Logf("%d bytes of mount table", len(table))
	done := make(chan []rdmans.Namespace, 1)
	go func() {
		found, _ := rdmans.Scan{Proc: "/proc", Run: "/run/netns", Deep: true}.Namespaces(t.Context())
		done <- found
	}()
	select {
	case found := <-done:
		if len(found) == 0 {
			t.Error("nothing was found")
		}
	case <-time.After(20 * time.Second):
		t.Error("the scan hangs")
	}
	must(t, fuse.Close()) // and with it the last server: whoever waits gets ENOTCONN
	_ = unix.Unmount(dir+"/a", unix.MNT_DETACH)
}
