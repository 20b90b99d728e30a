// SPDX-License-Identifier: Apache-2.0

//go:build lab

package reboot_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// TestRuntimeGone: all namespaces are dead and no DEL came; /run is as it was. Each that comes next clears up alone.
func TestRuntimeGone(t *testing.T) {
	before := cni.Look(t)
	tests := []struct {
		name  string
		clear func(t *testing.T, dead []attachment)
	}{
		{"GC", func(t *testing.T, dead []attachment) {
			t.Helper()
			gc := dead[0]
			gc.Conf = strings.TrimSuffix(gc.Conf, "}") + noList + "}"
			if _, failure := gc.Run(t, "GC"); failure != nil {
				t.Errorf("GC: %s", failure.Text())
			}
		}},
		{"repair", func(t *testing.T, _ []attachment) {
			t.Helper()
			if found := repair(t); len(found) == 0 {
				t.Error("repair found nothing")
			}
		}},
		{"the next pods", func(t *testing.T, dead []attachment) {
			t.Helper()
			for i, d := range dead {
				next := newAttachment(t, "next1"+string(rune('0'+i)), d.vf, delegate)
				next.Add(t)
				next.Del(t)
			}
		}},
		{"DEL", func(t *testing.T, dead []attachment) {
			t.Helper()
			for _, d := range dead {
				d.NetNS = ""
				d.Del(t)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var dead []attachment
			for i, vf := range []string{node.VF(t, 1, 0), node.VF(t, 2, 1)} {
				a := newAttachment(t, "dead2"+string(rune('0'+i)), vf, delegate)
				a.Add(t)
				dead = append(dead, a)
			}
			for _, a := range dead {
				a.die(t)
			}
			tt.clear(t, dead)
			wantLeased(t, "after "+tt.name)
			before.Unchanged(t)
			if found := repair(t, "--dry-run"); len(found) > 0 {
				t.Errorf("repair would have more to do: %+v", found)
			}
		})
	}
}

// finding is as much of repair's as is asked for.
type finding struct{ Kind, Object, Why, Action, Outcome, Detail string }

// repair runs podfabricctl repair.
func repair(t *testing.T, args ...string) []finding {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "podfabricctl", append([]string{"repair", "--json"}, args...)...).Output()
	var found struct{ Findings []finding }
	if jsonErr := json.Unmarshal(out, &found.Findings); jsonErr != nil {
		if jsonErr = json.Unmarshal(out, &found); jsonErr != nil {
			t.Fatalf("repair %v: %v: %q", args, err, out)
		}
	}
	t.Logf("repair %v: %v: %s", args, err, out)
	return found.Findings
}

// TestStateLostUnderPods: somebody emptied the state folder while a pod runs.
func TestStateLostUnderPods(t *testing.T) {
	before := cni.Look(t)
	vf := node.VF(t, 1, 1)
	netdev := node.Netdev(vf)
	a := newAttachment(t, "runs30", vf, delegate)
	a.Add(t)
	if err := os.RemoveAll(cni.StateDir); err != nil {
		t.Fatal(err)
	}

	// Nobody can tell whose it is but by where it is: that is said, and nothing is done.
	var told bool
	for _, f := range repair(t) {
		told = told || f.Kind == "device" && f.Outcome == "noted" && strings.Contains(f.Object, vf) && strings.Contains(f.Why+f.Detail, a.ns.Name)
	}
	if !told {
		t.Error("repair does not report the device in the pod")
	}
	if link := a.ns.Run(t, "ip", "-br", "link", "show", "net1"); !strings.Contains(link, "UP") {
		t.Errorf("in the pod: %s", link)
	}
	other := newAttachment(t, "other31", vf, delegate)
	other.Refused(t, 11, vf, a.ns.Name)
	other.Del(t)
	if link := a.ns.Run(t, "ip", "-br", "link", "show", "net1"); !strings.Contains(link, "UP") {
		t.Errorf("after another's ADD and DEL, in the pod: %s", link)
	}
	wantLeased(t, "while the pod runs", "runs30")

	a.Del(t)
	wantLeased(t, "after DEL")
	if got := node.Netdev(vf); got != netdev {
		// What it was called before is lost with the state folder. The node's own tools name it, as after a boot.
		node.Run(t, "ip", "link", "set", got, "down")
		node.Run(t, "ip", "link", "set", got, "name", netdev)
	}
	before.Unchanged(t)
}
