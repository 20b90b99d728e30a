// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"golang.org/x/sys/unix"

	"github.com/podfabric/podfabric/plugin"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/record"
)

// pipe makes a pipe the standard output until the test ends.
func pipe(t *testing.T) (*os.File, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	must(t, err)
	stdout := os.Stdout
	os.Stdout = w
	t.Cleanup(func() {
		os.Stdout = stdout
		_ = errors.Join(r.Close(), w.Close())
	})
	return r, w
}

// served is an ADD as skel calls it, with the result printed.
func served(p *plugin.Plugin, r request) error {
	raw := r.raw()
	return p.Funcs(time.Now()).Add(&skel.CmdArgs{
		ContainerID: raw.ContainerID, Netns: raw.NetNS, IfName: raw.IfName, Args: raw.Args, Path: raw.Path, StdinData: raw.Stdin,
	})
}

// unheard wants the answer of an ADD whose result could not be printed, and no word of anything left.
func unheard(t *testing.T, err error) {
	t.Helper()
	cni := (*types.Error)(nil)
	if !errors.As(err, &cni) || cni.Code != 5 || !strings.Contains(cni.Msg, "taken back") || !strings.Contains(cni.Details, "standard output") ||
		strings.Contains(cni.Details, "repair") {
		t.Errorf("error is %#v, wanted code 5", err)
	}
}

// TestUnheardIsUndone: an attachment whose result nobody could be told is none.
func TestUnheardIsUndone(t *testing.T) { //nolint:paralleltest // standard output is the process's
	for name, r := range map[string]request{
		"vf": {pod: "pod1", dev: 3}, "delegate": {pod: "pod1", dev: 6, ipam: delegated}, "softRoCE": {pod: "pod1", dev: softVF, more: softOn},
		"macvlan": {pod: "pod1", keys: `"link":"macvlan","master":"ens2f0"`, more: rdmaOff},
	} {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // as above
			m := newMachine(t, attach.Exclusive)
			m.pod("pod1")
			m.volume(t, "pod1")
			before := m.state(t)
			reader, _ := pipe(t)
			must(t, reader.Close())
			unheard(t, served(m.plugin, r))
			m.same(t, "an ADD whose result nobody read", before)
			m.mustDel(t, r)
			m.same(t, "its DEL", before)
		})
	}
}

// TestUnheardAndDeleted: the runtime gave up on ADD and called DEL while the result waited for a reader. What the next pod has by
// then is not the first one's to take back.
func TestUnheardAndDeleted(t *testing.T) { //nolint:paralleltest // standard output is the process's
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	m.pod("pod2")
	start := m.state(t)
	reader, writer := pipe(t)
	size, err := unix.FcntlInt(writer.Fd(), unix.F_GETPIPE_SZ, 0)
	must(t, err)
	must(t, syscall.SetNonblock(int(writer.Fd()), true)) // Fd made it blocking
	_, err = writer.Write(make([]byte, size))
	must(t, err)
	r, next := request{pod: "pod1", dev: 3}, request{pod: "pod2", dev: 3}
	ended := make(chan error, 1)
	go func() { ended <- served(m.trapped(&trap{at: -1, kernel: m.Kernel}), r) }()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if rec, err := m.plugin.Records.Load(r.owner()); err == nil && rec.State == record.Done {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("ADD did not come as far as its result")
		}
	}
	m.mustDel(t, r)
	m.same(t, "DEL of an attachment whose result nobody read", start)
	m.mustAdd(t, next)
	has := m.state(t)
	must(t, reader.Close())
	unheard(t, <-ended)
	m.same(t, "ADD of the first pod, at last", has)
	m.mustDel(t, next)
	m.same(t, "DEL of the next pod", start)
}
