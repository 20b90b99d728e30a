// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
)

// inodeUsedAgain are two pods of one path and one inode, of which the first ended without a DEL.
func inodeUsedAgain(t *testing.T, r request) (*machine, netconf.Raw, netconf.Raw) {
	t.Helper()
	m := newMachine(t, attach.Shared)
	m.pod("pod1")
	dead := r.raw()
	living := r.raw()
	living.ContainerID = "cid-next"
	if _, err := m.plugin.Add(t.Context(), dead); err != nil {
		t.Fatal(err)
	}
	m.RenewNetNS(netnsOf("pod1"))
	if _, err := m.plugin.Add(t.Context(), living); err != nil {
		t.Fatal(err)
	}
	return m, dead, living
}

// TestInodeUsedAgain: a runtime uses a path again, and the kernel the inode. What comes late for the pod that was there takes nothing from
// the one that is.
func TestInodeUsedAgain(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]request{
		"macvlan": {pod: "pod1", of: otherPF(), keys: `"link":"macvlan","master":"ens2f0"`},
		"ipvlan":  {pod: "pod1", of: otherPF(), keys: `"link":"ipvlan","master":"ens2f0"`},
	} {
		for _, verb := range []string{"DEL", "GC", "repair"} {
			t.Run(name+"/"+verb, func(t *testing.T) {
				t.Parallel()
				m, dead, living := inodeUsedAgain(t, r)
				switch verb {
				case "DEL":
					must(t, m.plugin.Del(t.Context(), dead))
				case "GC":
					raw := gcOf()
					raw.Stdin = []byte(strings.Replace(string(raw.Stdin), `cid-bystander`, `cid-next`, 1))
					must(t, m.plugin.GC(t.Context(), raw))
				default:
					m.repair(t)
				}
				must(t, m.plugin.Check(t.Context(), living))
				if _, err := m.plugin.Records.Load(attach.Owner{ContainerID: "cid-pod1", IfName: "net1"}); err == nil {
					t.Error("the record of the pod that is gone stays")
				}
			})
		}
	}
}

// TestInodeUsedAgainCheck: CHECK of the pod that is gone does not take the new one's interface for its own.
func TestInodeUsedAgainCheck(t *testing.T) {
	t.Parallel()
	m, dead, _ := inodeUsedAgain(t, request{pod: "pod1", of: otherPF(), keys: `"link":"macvlan","master":"ens2f0"`})
	err := m.plugin.Check(t.Context(), dead)
	if err == nil || !strings.Contains(err.Error(), "leads to another one now") {
		t.Errorf("CHECK: %v", err)
	}
}

// TestRecordWithoutACookie: a record of a program, or a kernel, that knew no cookie means the namespace of its inode.
func TestRecordWithoutACookie(t *testing.T) {
	t.Parallel()
	m := newMachine(t, attach.Shared)
	m.pod("pod1")
	r := request{pod: "pod1", of: otherPF(), keys: `"link":"macvlan","master":"ens2f0"`}
	m.mustAdd(t, r)
	file := m.recordOf(r)
	text, err := os.ReadFile(file)
	must(t, err)
	var fields map[string]any
	must(t, json.Unmarshal(text, &fields))
	ns, _ := fields["netns"].(map[string]any)
	if ns["cookie"] == nil {
		t.Fatalf("no cookie in %v", ns)
	}
	delete(ns, "cookie")
	text, err = json.Marshal(fields)
	must(t, err)
	must(t, os.WriteFile(file, text, 0o600))
	must(t, m.plugin.Check(t.Context(), r.raw()))
	m.mustDel(t, r)
	if _, err := m.plugin.Records.Load(r.owner()); err == nil {
		t.Error("the record stays")
	}
	if dump := m.Dump(); strings.Contains(dump, "pod1/net1") {
		t.Errorf("DEL left the link:\n%s", dump)
	}
}
