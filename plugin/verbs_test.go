// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/plugin/attach/attachtest"
	"github.com/podfabric/podfabric/plugin/record"
)

// TestGC: what the list leaves out goes, if it is of this network and no living namespace holds its device.
func TestGC(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	start := m.state(t)
	r := map[string]request{
		"listed":   {pod: "listed", dev: 3},
		"living":   {pod: "living", dev: upVF},
		"dead":     {pod: "dead", dev: 6, ipam: delegated},
		"other":    {pod: "other", dev: 7, network: "rail1"},
		"softdead": {pod: "softdead", dev: softVF, more: softOn},
	}
	for name, request := range r {
		m.pod(name)
		m.mustAdd(t, request)
	}
	for _, name := range []string{"listed", "dead", "other", "softdead"} {
		m.KillNetNS(netnsOf(name)) // also one that is listed: the list says so, and it is the runtime's to know
	}
	before := m.state(t)
	for _, list := range []string{``, `,"cni.dev/valid-attachments":null`, `,"cni.dev/valid-attachments":[{"containerID":"x"}]`, `,"cni.dev/attachments":7`} {
		raw := netconf.Raw{Stdin: []byte(`{"cniVersion":"1.1.0","name":"rail0","type":"podfabric"` + list + `}`)}
		must(t, m.plugin.GC(t.Context(), raw))
		m.same(t, "GC without a list"+list, before)
	}
	must(t, m.gc(t, r["listed"]))
	for name, gone := range map[string]bool{"listed": false, "living": false, "dead": true, "other": false, "softdead": true} {
		if got := m.stateOf(t, r[name]) == ""; got != gone {
			t.Errorf("attachment of %s is gone: %t, want %t", name, got, gone)
		}
	}
	if at := m.where(upVF)[0]; at != netnsOf("living")+"/net1" {
		t.Errorf("the living pod's netdev is at %s", at)
	}
	for _, request := range r {
		m.mustDel(t, request)
	}
	m.same(t, "all DELs", start)
}

// TestGCGoesOn: one attachment that cannot be cleared keeps no other.
func TestGCGoesOn(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	for _, r := range []request{{pod: "a", dev: 3, ipam: delegated}, {pod: "b", dev: 6}} {
		m.pod(r.pod)
		m.mustAdd(t, r)
		m.KillNetNS(netnsOf(r.pod))
	}
	must(t, os.MkdirAll(filepath.Join(m.dir, "run/attachments/c"), 0o700))
	must(t, os.WriteFile(filepath.Join(m.dir, "run/attachments/c/net1.json"), []byte("{"), 0o600))
	m.ipam.set(nil, func(context.Context) error { return errors.New("its daemon is down") })
	err := m.gc(t)
	for _, words := range []string{"cid-a/net1", "its daemon is down", "attachments/c/net1.json"} {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("error is %v, want %q in it", err, words)
		}
	}
	if m.stateOf(t, request{pod: "b"}) != "" {
		t.Error("the second attachment was not cleared")
	}
	m.ipam.set(nil, nil)
	must(t, os.RemoveAll(filepath.Join(m.dir, "run/attachments/c")))
	must(t, m.gc(t))
}

func TestStatus(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		setup func(t *testing.T, m *machine)
		words []string // nil: it is fine
	}{
		{"as ever", func(*testing.T, *machine) {}, nil},
		{"just booted", func(t *testing.T, m *machine) { t.Helper(); must(t, os.RemoveAll(filepath.Join(m.dir, "run"))) }, nil},
		{"all devices are taken", func(t *testing.T, m *machine) {
			t.Helper()
			for n, dev := range vfs() {
				m.pod(string(rune('a' + n)))
				m.mustAdd(t, request{pod: string(rune('a' + n)), dev: int(dev.PCI.Function)})
			}
		}, nil},
		{"no RDMA", func(_ *testing.T, m *machine) { m.SetMode(attach.NoRDMA) }, nil},
		{"the state folder is a file", func(t *testing.T, m *machine) {
			t.Helper()
			must(t, os.RemoveAll(filepath.Join(m.dir, "run")))
			must(t, os.WriteFile(filepath.Join(m.dir, "run"), nil, 0o600))
		}, []string{"remove what stands there", "/run"}},
		{"no place for the state folder", func(t *testing.T, m *machine) {
			t.Helper()
			must(t, os.RemoveAll(m.dir))
		}, []string{"make the folder", "it is missing"}},
		{"the node's settings are broken", func(_ *testing.T, m *machine) { m.plugin = m.process(`"rails":{"x":1}`) }, []string{"rails.x"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			tc.setup(t, m)
			err := m.plugin.Status(t.Context(), netconf.Raw{Stdin: []byte(`{"cniVersion":"1.1.0","name":"rail0"}`)})
			if tc.words == nil {
				must(t, err)
				return
			}
			answered(t, err, 50, tc.words...)
		})
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	const clean = "nothing" // neither lost nor worth a warning
	tests := []struct {
		name   string
		kind   string
		damage func(t *testing.T, m *machine, r request)
		code   uint   // 0: no error
		words  string // of the error, or else of a warning
	}{
		{"all there", "moved", func(*testing.T, *machine, request) {}, 0, clean},
		{"all there, soft", "soft", func(*testing.T, *machine, request) {}, 0, clean},
		{"all there, shared", "shared", func(*testing.T, *machine, request) {}, 0, clean},
		{"all there, off", "off", func(*testing.T, *machine, request) {}, 0, clean},
		{"never added", "moved", func(t *testing.T, m *machine, r request) { t.Helper(); m.mustDel(t, r) }, 7, "nothing is recorded"},
		{"never finished", "moved", func(t *testing.T, m *machine, r request) {
			t.Helper()
			m.change(t, r, func(rec *record.Record) { rec.State, rec.Addresses, rec.GIDs = record.Intent, nil, nil })
		}, 102, "intent"},
		{"being deleted", "moved", func(t *testing.T, m *machine, r request) {
			t.Helper()
			m.change(t, r, func(rec *record.Record) { rec.State = record.Deleting })
		}, 102, "deleting"},
		{"record torn", "moved", func(t *testing.T, m *machine, _ request) {
			t.Helper()
			must(t, os.WriteFile(filepath.Join(m.dir, "run/attachments/cid-pod1/net1.json"), []byte("{"), 0o600))
		}, 5, "net1.json"},
		{"address gone", "moved", func(_ *testing.T, m *machine, r request) { m.FlushAddrs(vfAddr(r.dev)) }, 102, "address 10.1.0."},
		{"netdev taken home", "off", func(_ *testing.T, m *machine, _ request) { m.KillNetNS(netnsOf("pod1")); m.pod("pod1") }, 102, "another one"},
		{"namespace gone", "moved", func(_ *testing.T, m *machine, _ request) { m.KillNetNS(netnsOf("pod1")) }, 102, "namespace is gone"},
		{"interface renamed", "moved", func(_ *testing.T, m *machine, r request) { m.RenameLink(vfAddr(r.dev), "fast0") }, 102, "fast0"},
		{"function gone", "moved", func(_ *testing.T, m *machine, r request) { m.RemoveFunction(vfAddr(r.dev)) }, 102, "is gone"},
		{"driver bound again", "shared", func(_ *testing.T, m *machine, r request) { m.Rebind(vfAddr(r.dev), "") }, 102, "not in the pod"},
		{"RDMA device gone", "moved", func(_ *testing.T, m *machine, _ request) { m.RemoveRDMA("mlx5_3") }, 102, "RDMA device of"},
		{"soft device gone", "soft", func(_ *testing.T, m *machine, r request) { m.RemoveRDMA(attach.SoftName(r.owner())) }, 102, "soft RDMA device"},
		{"GID gone", "shared", func(_ *testing.T, m *machine, _ request) { m.FillGIDs("mlx5_3", 4, 4) }, 102, "GID of 10.1.0.77"},
		{"GID at another index", "moved", func(_ *testing.T, m *machine, _ request) { m.FillGIDs("mlx5_3", 3, 64) }, 0, "is at index"},
		{"port down", "moved", func(_ *testing.T, m *machine, r request) { m.SetCarrier(vfAddr(r.dev), false) }, 0, "DOWN"},
		{"MAC changed", "moved", func(_ *testing.T, m *machine, r request) { m.SetLink(vfAddr(r.dev), "02:00:00:00:00:99", 0, true) }, 0, "02:00:00:00:00:99"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			k := some(tc.kind)[0]
			m := newMachine(t, k.mode)
			m.pod("pod1")
			m.mustAdd(t, k.request)
			tc.damage(t, m, k.request)
			m.log.reset()
			before := m.state(t)
			raw := k.raw()
			// As libcni calls it, with the result of ADD.
			raw.Stdin = []byte(strings.TrimSuffix(string(raw.Stdin), "}") + `,"prevResult":{"cniVersion":"1.0.0","interfaces":[]}}`)
			err := m.plugin.Check(t.Context(), raw)
			m.same(t, "CHECK", before)
			if tc.code != 0 {
				answered(t, err, tc.code, tc.words)
				return
			}
			must(t, err)
			if tc.words == clean && m.log.has("WARN", "") {
				t.Errorf("warnings: %s", m.log.text.String())
			}
			if tc.words != clean && !m.log.has("WARN", tc.words) {
				t.Errorf("no warning of %q", tc.words)
			}
		})
	}
}

// TestFuncs: what a verb fails with leaves skel's functions as a CNI error, and the log says so once.
func TestFuncs(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	f := m.plugin.Funcs(time.Now())
	args := &skel.CmdArgs{ContainerID: "cid", IfName: "net1", Netns: "/run/netns/none", StdinData: []byte(`{"cniVersion":"1.1.0"}`)}
	for name, do := range map[string]func(*skel.CmdArgs) error{"ADD": f.Add, "DEL": f.Del, "CHECK": f.Check, "GC": f.GC} {
		err := do(args)
		cni := (*types.Error)(nil)
		if !errors.As(err, &cni) || cni.Code != 7 || cni.Msg == "" {
			t.Errorf("%s: error is %#v", name, err)
		}
		if text, err := json.Marshal(cni); err != nil || !strings.Contains(string(text), `"msg":"add a \"name\" to the network"`) {
			t.Errorf("%s: %s, %v", name, text, err)
		}
		if !m.log.has("ERROR", "verb="+name) {
			t.Errorf("%s is not in the log", name)
		}
	}
	args.StdinData = []byte(`{"cniVersion":"1.1.0","name":"rail0"}`)
	if err := f.Status(args); err != nil {
		t.Errorf("STATUS: %v", err)
	}
}

// TestDeadline: a verb that began long ago has no time left, and says so with a code that the runtime tries again by.
func TestDeadline(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	m.pod("pod1")
	before := m.state(t)
	r := request{pod: "pod1", dev: 3}.raw()
	args := &skel.CmdArgs{ContainerID: r.ContainerID, Netns: r.NetNS, IfName: r.IfName, Args: r.Args, Path: r.Path, StdinData: r.Stdin}
	cni := (*types.Error)(nil)
	if err := m.plugin.Funcs(time.Now().Add(-time.Hour)).Add(args); !errors.As(err, &cni) || cni.Code != 11 || !strings.Contains(cni.Msg, "deadline") {
		t.Errorf("error is %v", err)
	}
	m.same(t, "ADD", before)
}

// TestLockHeld: a lock that somebody holds until the deadline costs ADD code 11 and nothing else; it names the holder.
func TestLockHeld(t *testing.T) {
	t.Parallel()
	for _, lock := range []string{"attachment cid-pod1/net1", "device " + vfAddr(3).String(), "rdma-move", "pool", "hint-" + uidOf("pod1")} {
		t.Run(lock, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, attach.Exclusive)
			m.pod("pod1")
			r := request{pod: "pod1", dev: 3}
			before := m.state(t)
			release, err := m.plugin.Locks.Acquire(t.Context(), lock, "DEL team-a/somebody")
			must(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			freed := make(chan struct{})
			if lock == "pool" || strings.HasPrefix(lock, "hint-") {
				// ADD undoes itself, for which it needs the lock too.
				time.AfterFunc(300*time.Millisecond, func() { release(); close(freed) })
			} else {
				defer release()
			}
			begin := time.Now()
			_, err = m.plugin.Add(ctx, r.raw())
			answered(t, err, 11, "DEL team-a/somebody")
			if took := time.Since(begin); took > 5*time.Second {
				t.Errorf("ADD with a deadline of 100 ms took %s", took)
			}
			if lock == "pool" || strings.HasPrefix(lock, "hint-") {
				<-freed
			} else {
				release()
			}
			m.same(t, "ADD", before)
		})
	}
}

// reset forgets what was logged.
func (o *output) reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Reset()
}

// TestSkelLeavesNetNSAlone: skel opens CNI_NETNS after the verb unless it is told not to, and would wait for ever for a fifo's writer.
func TestSkelLeavesNetNSAlone(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Exclusive)
	f := m.plugin.Funcs(time.Now())
	r := request{pod: "pod1", dev: 3}.raw()
	for name, do := range map[string]func(*skel.CmdArgs) error{"ADD": f.Add, "DEL": f.Del} {
		args := &skel.CmdArgs{ContainerID: r.ContainerID, Netns: r.NetNS, IfName: r.IfName, Args: r.Args, Path: r.Path, StdinData: r.Stdin}
		_ = do(args)
		if args.NetnsOverride != "1" {
			t.Errorf("%s: skel would look at CNI_NETNS", name)
		}
		args.Netns = attachtest.OwnNetNS
		cni := (*types.Error)(nil)
		if err := do(args); !errors.As(err, &cni) || cni.Code != 8 {
			t.Errorf("%s in our own namespace: %v", name, err)
		}
	}
}
