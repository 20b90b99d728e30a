// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/kernel"
)

// inside tells the second run of the test binary that it is one.
const inside = "PODFABRIC_KERNEL_TEST_HOME"

// TestMain runs the tests once more, as a process whose own network namespace is new: its links are the home of these tests, and
// nobody else's. Without root there is only the first run, in which the tests that need root fail.
func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		os.Exit(m.Run())
	}
	if os.Getenv(inside) != "" {
		if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
			fmt.Fprintln(os.Stderr, "mount a view of the new namespace:", err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "run the tests in a new namespace:", err)
		os.Exit(1)
	}
}

// home runs ip(8) at home, and again with undo when the test ends.
func home(t *testing.T, do, undo string) {
	t.Helper()
	run := func(args string) {
		if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Errorf("ip %s: %s", args, out)
		}
	}
	run(do)
	if undo != "" {
		t.Cleanup(func() { run(undo) })
	}
}

// master makes a link at home that goes with the test. It is a veth, and no dummy, because that is what every kernel has that
// runs containers. Tests of what sits on VLANs and bonds, and of ipvlan, are in e2e/guest/kernel.
func master(t *testing.T, name string) attach.Lower {
	t.Helper()
	home(t, "link add "+name+" type veth peer name "+name+"p", "link del "+name)
	home(t, "link set "+name+"p up", "")
	return lower(t, name)
}

// lower names a link at home as steps do.
func lower(t *testing.T, name string) attach.Lower {
	t.Helper()
	l, found := shown(t, nil)[name]
	if !found {
		t.Fatalf("no link %s at home", name)
	}
	return attach.Lower{Name: name, Index: l.Index}
}

// ipLink is what ip -d -j link show says of one link.
type ipLink struct {
	Index  int    `json:"ifindex"`
	Name   string `json:"ifname"`
	MTU    int    `json:"mtu"`
	MAC    string `json:"address"`
	Detail struct {
		Kind string `json:"info_kind"`
		Data struct {
			Mode       string `json:"mode"`
			BCQueueLen int    `json:"bcqueuelen"`
		} `json:"info_data"`
	} `json:"linkinfo"`
	LowerIndex int    `json:"link_index"`
	Lower      string `json:"link"`
	AddrGen    string `json:"inet6_addr_gen_mode"`
}

// shown is what ip(8) shows of a pod's links, or of those at home, by name.
func shown(t *testing.T, p *pod) map[string]ipLink {
	t.Helper()
	var text []byte
	look := func() error {
		var err error
		text, err = exec.CommandContext(t.Context(), "ip", "-d", "-j", "link", "show").Output()
		return err
	}
	if p == nil {
		must(t, look())
	} else {
		must(t, p.do(look))
	}
	var list []ipLink
	must(t, json.Unmarshal(text, &list))
	byName := map[string]ipLink{}
	for _, l := range list {
		byName[l.Name] = l
	}
	return byName
}

// homeLines is the part of a snapshot that is home.
func homeLines(t *testing.T) string {
	t.Helper()
	snap, err := kernel.New().Snapshot(t.Context())
	must(t, err)
	return kernel.Snapshot{NetNS: map[string]kernel.NetNSState{kernel.HostNS: snap.NetNS[kernel.HostNS]}}.String()
}
