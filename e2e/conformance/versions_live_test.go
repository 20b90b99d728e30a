// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// version is a version of the CNI specification and what a plugin owes it.
type version struct {
	name   string
	family bool // an address of a result says its family, "version" (up to 0.4.0)
	check  bool // CHECK (from 0.4.0)
	mtu    bool // an interface of a result says its MTU (new in 1.1.0; the library has one form for 1.0.0 and 1.1.0)
	new    bool // GC and STATUS (from 1.1.0)
}

func versions() []version {
	return []version{
		{name: "0.3.0", family: true},
		{name: "0.3.1", family: true},
		{name: "0.4.0", family: true, check: true},
		{name: "1.0.0", check: true, mtu: true},
		{name: "1.1.0", check: true, mtu: true, new: true},
	}
}

// mac is that of the interface in every network here.
const mac = "02:00:5e:00:53:07"

// network is podfabric alone, with everything that a result can tell.
func network(v version) object {
	return object{
		"cniVersion": v.name, "name": "rail0", "type": "podfabric", "link": "macvlan", "master": "m0", "mac": mac, "mtu": 1400,
		"rdma": object{"mode": "off"},
		"ipam": object{
			"type":      "static",
			"addresses": []object{{"address": "192.0.2.7/24", "gateway": "192.0.2.1"}, {"address": "2001:db8::7/64"}},
			"routes":    []object{{"dst": "198.51.100.0/24"}, {"dst": "203.0.113.0/24", "gw": "192.0.2.9"}},
			"dns":       object{"nameservers": []string{"192.0.2.53"}, "domain": "rail.example", "search": []string{"example"}},
		},
	}
}

// interfaces are those of a result with the one interface.
func interfaces(v version, p pod, mtu float64) []any {
	i := object{"name": "net1", "mac": mac, "sandbox": p.path}
	if v.mtu {
		i["mtu"] = mtu
	}
	return []any{i}
}

// ips are addresses of interface 0 of a result.
func ips(v version, addresses ...object) []any {
	var out []any
	for _, a := range addresses {
		family := "4"
		if strings.Contains(fmt.Sprint(a["address"]), ":") {
			family = "6"
		}
		a = with(a, object{"interface": 0.})
		if v.family {
			a["version"] = family
		}
		out = append(out, a)
	}
	return out
}

// result is the whole result of network, written by hand from the specification.
func result(v version, p pod) any {
	return object{
		"cniVersion": v.name,
		"interfaces": interfaces(v, p, 1400),
		"ips":        ips(v, object{"address": "192.0.2.7/24", "gateway": "192.0.2.1"}, object{"address": "2001:db8::7/64"}),
		"routes":     []any{object{"dst": "198.51.100.0/24", "gw": "192.0.2.1"}, object{"dst": "203.0.113.0/24", "gw": "192.0.2.9"}},
		"dns":        object{"nameservers": []any{"192.0.2.53"}, "domain": "rail.example", "search": []any{"example"}},
	}
}

func TestEveryVersionAndVerb(t *testing.T) {
	for _, v := range versions() {
		t.Run(v.name, func(t *testing.T) {
			t.Run("bare", func(t *testing.T) { bareVerbs(t, v) })
			t.Run("libcni", func(t *testing.T) { libcniVerbs(t, v) })
			t.Run("DEL", func(t *testing.T) { everyDel(t, v) })
			t.Run("GC and STATUS", func(t *testing.T) { newVerbs(t, v) })
		})
	}
}

// bareVerbs is the protocol without a library between: what is printed, and the exit code.
func bareVerbs(t *testing.T, v version) {
	t.Helper()
	p := newPod(t, "bare")
	before := look(t, p)
	c := call{network: network(v), id: "bare", netns: p.path}

	added := c.bare(t, "ADD")
	var got any
	dec := json.NewDecoder(strings.NewReader(added.stdout))
	if err := dec.Decode(&got); err != nil || dec.More() || added.code != 0 {
		t.Fatalf("ADD printed more or less than a result: exit code %d, %v: %q", added.code, err, added.stdout)
	}
	if diff := cmp.Diff(result(v, p), got); diff != "" {
		t.Errorf("result (-specification +ours):\n%s", diff)
	}
	if !strings.Contains(added.stderr, "verb=ADD") {
		t.Errorf("the log on standard error: %q", added.stderr)
	}

	again := c.bare(t, "ADD").failure(t)
	judge(t, "ADD again", again, 7, []string{"DEL"})
	if again != nil && again.CNIVersion != v.name && again.CNIVersion != "" {
		t.Errorf("the error is of version %q", again.CNIVersion)
	}
	if v.check {
		quiet(t, c.bare(t, "CHECK"))
	} else {
		judge(t, "CHECK", c.bare(t, "CHECK").failure(t), 1, []string{"set cniVersion"})
	}
	quiet(t, c.bare(t, "DEL"))
	quiet(t, c.bare(t, "DEL"))
	before.unchanged(t, p)
}

// quiet wants success and nothing on standard output.
func quiet(t *testing.T, p printed) {
	t.Helper()
	if p.code != 0 || p.stdout != "" {
		t.Errorf("exit code %d and %q; wanted 0 and nothing", p.code, p.stdout)
	}
}

// libcniVerbs is one attachment as a runtime makes, checks and ends it.
func libcniVerbs(t *testing.T, v version) {
	t.Helper()
	p := newPod(t, "libcni")
	before := look(t, p)
	c := call{
		network: with(network(v), object{"capabilities": object{"mac": true, "ips": true, "portMappings": false}}), id: "libcni", netns: p.path,
	}

	if diff := cmp.Diff(result(v, p), c.ok(t, "ADD")); diff != "" {
		t.Errorf("result (-specification +ours):\n%s", diff)
	}
	made := look(t, p)
	c.refused(t, "ADD", 7, "DEL", "libcni/net1")
	made.unchanged(t, p)
	if v.check {
		c.ok(t, "CHECK")
		p.ip(t, "addr", "del", "192.0.2.7/24", "dev", "net1")
		c.refused(t, "CHECK", 102, "192.0.2.7/24")
		p.ip(t, "link", "del", "net1")
		c.refused(t, "CHECK", 102, "gone from the pod")
	} else {
		c.refused(t, "CHECK", 0, "does not support the CHECK command")
	}
	c.ok(t, "DEL")
	if v.check {
		// Of a cache without a result libcni itself makes an error; nothing of ours is there either.
		judge(t, "CHECK", c.bare(t, "CHECK").failure(t), 7, []string{"nothing is recorded"})
	}
	before.unchanged(t, p)
	sorted := cmpopts.SortSlices(func(a, b any) bool { return fmt.Sprint(a) < fmt.Sprint(b) })
	if diff := cmp.Diff(any([]any{"ips", "mac"}), c.ok(t, "VALIDATE"), sorted); diff != "" {
		t.Errorf("capabilities by VALIDATE (-want +got):\n%s", diff)
	}
}

// everyDel ends attachments in every way that runtimes have.
func everyDel(t *testing.T, v version) {
	t.Helper()
	p := newPod(t, "del")
	before := look(t, p)
	c := call{network: network(v), id: "del", netns: p.path}
	for name, end := range map[string]call{
		"with prevResult":                c,
		"without prevResult":             c.from("/run/empty"),
		"with an empty namespace":        c.in(""),
		"with a path that leads nowhere": c.in("/run/netns/nowhere"),
		"with nothing but name and type": c.by(object{"cniVersion": v.name, "name": "rail0", "type": "podfabric"}),
		"with keys that ADD refuses":     c.by(with(c.network, object{"vlan": 9, "max-tx-rate": 7, "mtu": "large", "link": "tap"})),
	} {
		t.Run(name, func(t *testing.T) {
			c.ok(t, "ADD")
			end.ok(t, "DEL")
			before.unchanged(t, p)
			end.ok(t, "DEL")
			before.unchanged(t, p)
		})
	}
	t.Run("of a dead pod", func(t *testing.T) {
		dead := newPod(t, "dead")
		c := call{network: with(network(v), object{"mac": nil}), id: "dead" + v.name, netns: dead.path}
		c.ok(t, "ADD")
		dead.kill(t)
		c.ok(t, "DEL")
		before.unchanged(t, p)
	})
	t.Run("of what never was", func(t *testing.T) {
		call{network: network(v), id: "never", netns: p.path}.ok(t, "DEL")
		before.unchanged(t, p)
	})
}
