// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// newVerbs are GC and STATUS, which version 1.1.0 brought: below it libcni does not call the plugin, and the plugin refuses.
func newVerbs(t *testing.T, v version) {
	t.Helper()
	p := newPod(t, "gc")
	before := look(t, p)
	c := call{network: network(v), id: "gc", netns: p.path}
	if !v.new {
		judge(t, "GC", c.bare(t, "GC").failure(t), 1, []string{"set cniVersion"})
		judge(t, "STATUS", c.bare(t, "STATUS").failure(t), 1, []string{"set cniVersion"})
		// What is left then is libcni's own: it ends by DEL what it has cached and the caller does not name.
		c.ok(t, "ADD")
		c.ok(t, "GC")
		c.ok(t, "STATUS")
		before.unchanged(t, p)
		return
	}
	quiet(t, c.bare(t, "STATUS"))
	c.ok(t, "STATUS")
	t.Run("GC", func(t *testing.T) { collect(t, v) })
	t.Run("STATUS of a node that is broken", func(t *testing.T) { broken(t, c) })
	before.unchanged(t, p)
}

// recorded tells whether the plugin has a record of an attachment.
func recorded(t *testing.T, c call) bool {
	t.Helper()
	return slices.Contains(files(t), "attachments/"+c.id+"/"+c.name()+".json")
}

// collect is GC of attachments that the runtime has forgotten: one of a dead pod and one of a living.
func collect(t *testing.T, v version) {
	t.Helper()
	living := newPod(t, "living")
	before := look(t, living)
	alive := call{network: network(v), id: "living", netns: living.path}
	alive.ok(t, "ADD")
	others := object{"containerID": "other", "ifname": "net1"}
	for name, tt := range map[string]struct {
		valid   []object // what the runtime lists; mine stands for the dead pod's
		mine    bool
		noList  bool
		network string   // empty: the same
		cache   string   // of libcni; empty: one without the attachment
		bare    []string // keys to call the plugin with, without libcni; the first has valid and mine, the others valid alone
		gone    bool
	}{
		"no list":                          {noList: true},
		"in the list":                      {valid: []object{others}, mine: true},
		"another interface in the list":    {valid: []object{{"containerID": "dead", "ifname": "net2"}}, gone: true},
		"empty list":                       {valid: []object{}, gone: true},
		"another network":                  {valid: []object{others}, network: "rail1"},
		"the runtime's own cache":          {valid: []object{{"containerID": "living", "ifname": "net1"}}, cache: "/run/cache", gone: true},
		"bare, the specification's key":    {valid: []object{others}, bare: []string{"cni.dev/valid-attachments"}, gone: true},
		"bare, the older key":              {valid: []object{others}, bare: []string{"cni.dev/attachments"}, gone: true},
		"bare, the two disagree":           {valid: []object{others}, mine: true, bare: []string{"cni.dev/valid-attachments", "cni.dev/attachments"}},
		"bare, a list that cannot be read": {valid: []object{others, {"ifname": "net1"}}, bare: []string{"cni.dev/valid-attachments"}},
	} {
		t.Run(name, func(t *testing.T) {
			// A MAC of its own: the kernel ends a namespace, and the macvlan in it, in its own time.
			p := newPod(t, "dead")
			c := call{network: with(network(v), object{"mac": nil}), id: fmt.Sprintf("dead%x", name), netns: p.path}
			c.ok(t, "ADD")
			p.kill(t)

			gc := c
			gc.noList, gc.valid = tt.noList, tt.valid
			if tt.mine {
				gc.valid = append(gc.valid, object{"containerID": c.id, "ifname": "net1"})
			}
			if tt.network != "" {
				gc.network = with(c.network, object{"name": tt.network})
			}
			for i, key := range tt.bare {
				gc.network = with(gc.network, object{key: [][]object{gc.valid, tt.valid}[i]})
			}
			if tt.bare != nil {
				quiet(t, gc.bare(t, "GC"))
			} else {
				gc.from(cmp.Or(tt.cache, "/run/forgot")).ok(t, "GC")
			}
			if got := recorded(t, c); got == tt.gone {
				t.Errorf("a record of the dead pod: %t", got)
			}
			if !recorded(t, alive) {
				t.Error("no record of the living pod, whose interface it has")
			}
			alive.ok(t, "CHECK")
			c.ok(t, "DEL")
		})
	}
	alive.ok(t, "DEL")
	before.unchanged(t, living)
}

// broken is a node whose settings cannot be read: no ADD can work, and every DEL must.
func broken(t *testing.T, c call) {
	t.Helper()
	c.ok(t, "ADD")
	if err := os.MkdirAll("/etc/podfabric", 0o755); err != nil {
		t.Fatal(err)
	}
	const file = "/etc/podfabric/node.json"
	if err := os.WriteFile(file, []byte(`{"version":1,`), 0o600); err != nil {
		t.Fatal(err)
	}
	c.refused(t, "STATUS", 50, file)
	judge(t, "STATUS", c.bare(t, "STATUS").failure(t), 50, []string{file})
	other := c
	other.ifname = "net2"
	other.refused(t, "ADD", 7, file)
	c.ok(t, "DEL")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	c.ok(t, "STATUS")
}

func TestVersionVerb(t *testing.T) {
	got := call{network: object{"cniVersion": "1.1.0"}, id: "version"}.bare(t, "VERSION")
	if got.code != 0 || !strings.Contains(got.stdout, `"supportedVersions":["0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]`) {
		t.Errorf("VERSION: exit code %d: %s", got.code, got.stdout)
	}
}

// What a caller gets wrong is refused with the codes of the specification, and changes nothing.
func TestWrongCalls(t *testing.T) {
	p := newPod(t, "wrong")
	before := look(t, p)
	good := call{network: network(versions()[4]), id: "wrong", netns: p.path}
	for name, tt := range map[string]struct {
		network object
		verb    string
		env     []string
		code    uint
		texts   []string
	}{
		"unknown version, ADD":       {network: object{"cniVersion": "2.0.0"}, verb: "ADD", code: 1, texts: []string{"set cniVersion to one of 0.3.0", "2.0.0"}},
		"unknown version, DEL":       {network: object{"cniVersion": "2.0.0"}, verb: "DEL", code: 1, texts: []string{"set cniVersion"}},
		"unknown version, CHECK":     {network: object{"cniVersion": "2.0.0"}, verb: "CHECK", code: 1, texts: []string{"set cniVersion"}},
		"unknown version, GC":        {network: object{"cniVersion": "2.0.0"}, verb: "GC", code: 1, texts: []string{"set cniVersion"}},
		"unknown version, STATUS":    {network: object{"cniVersion": "2.0.0"}, verb: "STATUS", code: 1, texts: []string{"set cniVersion"}},
		"version before 0.3.0":       {network: object{"cniVersion": "0.2.0"}, verb: "ADD", code: 1, texts: []string{"set cniVersion"}},
		"no version":                 {network: object{"cniVersion": nil}, verb: "ADD", code: 1, texts: []string{"set cniVersion"}},
		"no name":                    {network: object{"name": nil}, verb: "ADD", code: 7, texts: []string{"name"}},
		"no container":               {verb: "ADD", env: []string{"CNI_CONTAINERID"}, code: 4, texts: []string{"CNI_CONTAINERID"}},
		"no interface":               {verb: "ADD", env: []string{"CNI_IFNAME"}, code: 4, texts: []string{"CNI_IFNAME"}},
		"no namespace":               {verb: "ADD", env: []string{"CNI_NETNS"}, code: 4, texts: []string{"CNI_NETNS"}},
		"no folder of plugins":       {verb: "ADD", env: []string{"CNI_PATH"}, code: 4, texts: []string{"CNI_PATH"}},
		"unknown verb":               {verb: "RENAME", code: 4, texts: []string{"RENAME"}},
		"namespace gone":             {verb: "ADD", env: []string{"CNI_NETNS=/run/netns/gone"}, code: 8, texts: []string{"CNI_NETNS"}},
		"the plugin's own":           {verb: "ADD", env: []string{"CNI_NETNS=/proc/self/ns/net"}, code: 8, texts: []string{"CNI_NETNS", "own"}},
		"a descriptor of the caller": {verb: "ADD", env: []string{"CNI_NETNS=/proc/self/fd/3"}, code: 4, texts: []string{"CNI_NETNS"}},
		"name too long":              {verb: "ADD", env: []string{"CNI_IFNAME=a-name-of-16-byt"}, code: 4, texts: []string{"interface name is too long"}},
		"arguments that are none":    {verb: "ADD", env: []string{"CNI_ARGS=K8S_POD_NAME"}, code: 4, texts: []string{"CNI_ARGS"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := good.by(with(good.network, tt.network))
			judge(t, tt.verb, c.bare(t, tt.verb, tt.env...).failure(t), tt.code, tt.texts)
			before.unchanged(t, p)
		})
	}
}
