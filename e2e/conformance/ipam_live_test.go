// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hostLocal is a network with the addresses of the real host-local.
func hostLocal(v version, leases string) object {
	return with(network(v), object{"ipam": object{
		"type": "host-local", "dataDir": leases, "ranges": [][]object{{{"subnet": "192.0.2.0/24", "rangeStart": "192.0.2.7"}}},
		"routes": []object{{"dst": "198.51.100.0/24"}},
	}})
}

// held are the addresses that host-local has handed out.
func held(t *testing.T, leases string) []string {
	t.Helper()
	got, err := filepath.Glob(leases + "/rail0/192.0.2.*")
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestDelegateHostLocal(t *testing.T) {
	for _, v := range versions() {
		t.Run(v.name, func(t *testing.T) {
			leases, p := t.TempDir(), newPod(t, "delegate")
			before := look(t, p)
			c := call{network: hostLocal(v, leases), id: "delegate", netns: p.path}
			want := object{
				"cniVersion": v.name, "interfaces": interfaces(v, p, 1400), "ips": ips(v, object{"address": "192.0.2.7/24", "gateway": "192.0.2.1"}),
				"routes": []any{object{"dst": "198.51.100.0/24", "gw": "192.0.2.1"}},
			}
			if v.family {
				want["dns"] = object{}
			}
			if diff := cmp.Diff(any(want), c.ok(t, "ADD")); diff != "" {
				t.Errorf("result (-specification +ours):\n%s", diff)
			}
			if v.check {
				c.ok(t, "CHECK")
			}
			if v.new {
				c.valid = []object{{"containerID": c.id, "ifname": "net1"}}
				c.ok(t, "GC")
				c.ok(t, "STATUS")
			}
			if got := held(t, leases); len(got) != 1 {
				t.Errorf("leases: %v", got)
			}
			// A name that is taken fails ADD after the delegate was asked: its address goes back.
			other := newPod(t, "taken")
			other.ip(t, "link", "add", "net1", "type", "veth", "peer", "name", "peer")
			c2 := call{network: with(c.network, object{"mac": nil}), id: "taken", netns: other.path}
			c2.refused(t, "ADD", 107, "net1")
			if got := held(t, leases); len(got) != 1 {
				t.Errorf("leases after a failed ADD: %v", got)
			}
			c2.ok(t, "DEL")
			c.in("").ok(t, "DEL")
			if got := held(t, leases); len(got) != 0 {
				t.Errorf("leases after DEL: %v", got)
			}
			before.unchanged(t, p)
		})
	}
}

// The network is edited while the pod runs: host-local's lease is where it was at ADD.
func TestDelegateOfAnEditedNetwork(t *testing.T) {
	v := versions()[4]
	leases, p := t.TempDir(), newPod(t, "edited")
	before := look(t, p)
	c := call{network: hostLocal(v, leases), id: "edited", netns: p.path}
	if got := c.bare(t, "ADD"); got.code != 0 {
		t.Fatalf("ADD: %s", got.stdout)
	}
	c.network = with(hostLocal(v, t.TempDir()), object{"prevResult": object{"cniVersion": v.name, "ips": []object{{"address": "192.0.2.7/24"}}}})
	for _, verb := range []string{"CHECK", "DEL"} {
		if got := c.bare(t, verb); got.code != 0 {
			t.Errorf("%s: %s", verb, got.stdout)
		}
	}
	if got := held(t, leases); len(got) != 0 {
		t.Errorf("leases after DEL: %v", got)
	}
	before.unchanged(t, p)
}

// GC of ours asks the delegate too, which forgets what the runtime does not name.
func TestGCAsksTheDelegate(t *testing.T) {
	v := versions()[4]
	leases, p := t.TempDir(), newPod(t, "forgotten")
	before := look(t)
	c := call{network: with(hostLocal(v, leases), object{"mac": nil}), id: "forgotten", netns: p.path, valid: []object{}}
	c.ok(t, "ADD")
	p.kill(t)
	// Of the record nothing is left either, as after a reboot.
	shell(t, "rm", "-r", "/run/podfabric")
	c.from("/run/forgot").ok(t, "GC")
	if got := held(t, leases); len(got) != 0 {
		t.Errorf("leases after GC: %v", got)
	}
	before.unchanged(t)
}

func TestDelegateThatIsNotThere(t *testing.T) {
	p := newPod(t, "absent")
	before := look(t, p)
	c := call{network: with(network(versions()[4]), object{"ipam": object{"type": "host-locale"}}), id: "absent", netns: p.path}
	c.refused(t, "ADD", 109, "host-locale")
	before.unchanged(t, p)
	c.ok(t, "DEL")
	before.unchanged(t, p)
}

// The IPAM plugin of a network may be the plugin itself under another name, by way of others too. It must not call itself until the node
// has no memory left, and DEL must not be owed anything.
func TestDelegateThatIsPodfabricAgain(t *testing.T) {
	bin, p := programs(t), newPod(t, "again")
	for name, script := range map[string]string{
		"podfabric-old": "", "podfabric-by-way": "#!/bin/sh\nexec \"${0%-by-way}-old\"\n",
	} {
		file := filepath.Join(bin, name)
		t.Cleanup(func() { shell(t, "rm", "-f", file) })
		if script == "" {
			shell(t, "cp", filepath.Join(bin, "podfabric"), file)
		} else if err := os.WriteFile(file, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"podfabric-old", "podfabric-by-way"} {
		t.Run(name, func(t *testing.T) {
			before := look(t, p)
			c := call{
				network: with(network(versions()[4]), object{"ipam": object{"type": name}}), id: "again", netns: p.path, valid: []object{},
			}
			c.refused(t, "ADD", 7, "ipam.type", "is podfabric", name)
			before.unchanged(t, p)
			c.ok(t, "DEL")
			c.ok(t, "STATUS")
			c.ok(t, "GC")
			before.unchanged(t, p)
		})
	}
}

// Called by its like, podfabric does nothing, whatever it is called with; what nobody marked is not hindered.
func TestCalledByPodfabric(t *testing.T) {
	p := newPod(t, "marked")
	c := call{network: network(versions()[4]), id: "marked", netns: p.path}
	const mark = "PODFABRIC_DELEGATE=1"
	if got := c.bare(t, "ADD"); got.code != 0 {
		t.Fatalf("ADD: %s", got.stdout)
	}
	before := look(t, p)
	for _, verb := range []string{"ADD", "CHECK"} {
		got := c.bare(t, verb, mark)
		if got.code != 1 || !strings.Contains(got.stdout, `"code": 7`) || !strings.Contains(got.stdout, "ipam.type") {
			t.Errorf("%s: exit code %d: %s", verb, got.code, got.stdout)
		}
	}
	for _, verb := range []string{"DEL", "GC", "STATUS"} {
		if got := c.bare(t, verb, mark); got.code != 0 || got.stdout != "" {
			t.Errorf("%s: exit code %d: %s", verb, got.code, got.stdout)
		}
	}
	before.unchanged(t, p)
	if got := c.bare(t, "CHECK"); got.code != 0 {
		t.Errorf("CHECK without the mark: %s", got.stdout)
	}
	if got := c.bare(t, "DEL"); got.code != 0 {
		t.Errorf("DEL without the mark: %s", got.stdout)
	}
}

// Kubelet starts one pod's networks one after the other; other callers do not.
func TestTwoInterfacesOfAPodAtOnce(t *testing.T) {
	v := versions()[4]
	p := newPod(t, "both")
	before := look(t, p)
	calls := []call{
		{network: leased(object{"name": "rail0", "rail": 0}), id: "both", netns: p.path, args: multus()},
		{network: leased(object{"name": "rail1", "rail": 1}), id: "both", netns: p.path, args: multus(), ifname: "net2"},
	}
	for range 5 {
		for _, verb := range []string{"ADD", "CHECK", "DEL"} {
			var all sync.WaitGroup
			for _, c := range calls {
				all.Go(func() {
					if _, failed := c.libcni(t, verb); failed != nil {
						t.Errorf("%s of %s: code %d: %s", verb, c.name(), failed.Code, failed.text())
					}
				})
			}
			all.Wait()
			if verb != "ADD" {
				continue
			}
			if n := len(strings.Fields(p.ip(t, "-4", "-o", "addr", "show", "to", "192.0.2.0/28"))); n == 0 {
				t.Error("no addresses")
			}
			hint := shell(t, "cat", "/run/podfabric/pods/"+uid+"/fabric.json")
			if !strings.Contains(hint, `"net1"`) || !strings.Contains(hint, `"net2"`) {
				t.Errorf("version %s: the hint lacks a rail: %s", v.name, hint)
			}
		}
		before.unchanged(t, p)
	}
}
