// SPDX-License-Identifier: Apache-2.0

package netconf_test

import (
	"encoding/json"
	"strings"
	"testing"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
)

// Results as the plugins of containernetworking print them in each version (CNI specification 0.3.0 to 1.1.0, section
// "Result"): before 1.0.0 each address has the version of IP beside it, from 1.1.0 on interfaces have more keys.
func TestParsePrevious(t *testing.T) {
	t.Parallel()
	const (
		links = `"interfaces":[{"name":"ens1","mac":"02:00:00:00:00:aa"},` +
			`{"name":"net1","mac":"02:00:00:00:00:09","sandbox":"/run/netns/a"}]`
		rest = `"routes":[{"dst":"10.2.0.0/16","gw":"10.1.0.1"}],"dns":{"domain":"d"}`
		old  = `"ips":[{"version":"4","interface":1,"address":"10.1.0.7/24","gateway":"10.1.0.1"},{"version":"6","interface":1,"address":"fd00::7/64"}],` + rest
		now  = `"ips":[{"interface":1,"address":"10.1.0.7/24","gateway":"10.1.0.1"},{"interface":1,"address":"fd00::7/64"}],` + rest
		want = `{"cniVersion":"1.1.0",` + links + `,` + now + `}`
	)
	for _, tt := range []struct{ version, result string }{
		{"0.3.0", `{"cniVersion":"0.3.0",` + links + `,` + old + `}`},
		{"0.3.1", `{"cniVersion":"0.3.1",` + links + `,` + old + `}`},
		{"0.3.1", `{` + links + `,` + old + `}`},
		{"0.4.0", `{"cniVersion":"0.4.0",` + links + `,` + old + `}`},
		{"0.4.0", `{` + links + `,` + old + `,"cniVersion":""}`},
		{"0.4.0", `{"cniVersion":null,` + links + `,` + old + `}`},
		{"1.0.0", `{"cniVersion":"1.0.0",` + links + `,` + now + `}`},
		{"1.0.0", `{` + links + `,` + now + ` }`},
		{"1.1.0", `{"cniVersion":"1.1.0",` + links + `,` + now + `}`},
		{"1.1.0", `{"cniVersion":"1.0.0",` + links + `,` + now + `}`},
	} {
		t.Run(tt.version, func(t *testing.T) {
			t.Parallel()
			c, err := netconf.Parse(raw(`{"cniVersion":"`+tt.version+`","name":"rail0","type":"podfabric","prevResult":`+tt.result+`}`), netconf.Node{})
			if err != nil {
				t.Fatal(err)
			}
			if c.Kind != netconf.KindChained || c.CNIVersion != tt.version || len(c.Warnings) > 0 {
				t.Errorf("kind %s, version %s, warnings %q", c.Kind, c.CNIVersion, c.Warnings)
			}
			if diff := cmp.Diff(tree(t, want), tree(t, encoded(t, c.Previous))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func encoded(t *testing.T, r *types100.Result) string {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func tree(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return v
}

// The keys of interfaces and routes that came with 1.1.0 are passed on.
func TestParsePreviousKeeps(t *testing.T) {
	t.Parallel()
	const text = `{"cniVersion":"1.1.0","interfaces":[{"name":"net1","sandbox":"/run/netns/a","mtu":9000,"pciID":"0000:3b:00.2"}],` +
		`"routes":[{"dst":"10.2.0.0/16","mtu":9000}]}`
	c, err := netconf.Parse(raw(network(`,"prevResult":`+text)), netconf.Node{})
	if err != nil {
		t.Fatal(err)
	}
	if i := c.Previous.Interfaces[0]; i.Mtu != 9000 || i.PciID != "0000:3b:00.2" || c.Previous.Routes[0].MTU != 9000 {
		t.Errorf("%s", encoded(t, c.Previous))
	}
}

// Who asks for a GID gets the warning only where there is no address.
func TestParsePreviousWithoutAddress(t *testing.T) {
	t.Parallel()
	const bare = `{"cniVersion":"1.1.0","interfaces":[{"name":"net1","sandbox":"/run/netns/a"}]}`
	for result, want := range map[string]int{previous: 0, bare: 1} {
		c, err := netconf.Parse(raw(network(`,"rdma":{"require":"gid"},"prevResult":`+result)), netconf.Node{})
		if err != nil || len(c.Warnings) != want {
			t.Errorf("%s: %v, %q; want %d warnings", result, err, c.Warnings, want)
		}
	}
}

func TestParseRefusesPrevious(t *testing.T) {
	t.Parallel()
	behind := func(result string) string { return network(`,"prevResult":` + result) }
	const (
		put  = `put podfabric in "plugins" behind the plugin that makes interface net1`
		read = "correct the plugin before podfabric: its result cannot be read"
		objs = "correct the plugin before podfabric: its result holds something else than objects"
		bad  = "correct the plugin before podfabric: its result cannot be right"
		net1 = `"interfaces":[{"name":"net1","sandbox":"/run/netns/a"}]`
	)
	refuses(t, []refusal{
		{"none", network(`,"link":"chained"`), 7, `put podfabric in "plugins" behind the plugin that makes the interface`, "prevResult"},
		{"null", network(`,"link":"chained","prevResult":null`), 7, `put podfabric in "plugins" behind the plugin`, "prevResult"},
		{"a list", behind(`[]`), 7, `write "prevResult" as an object`, "prevResult"},
		{"empty", behind(`{}`), 7, put, "prevResult.interfaces"},
		{"another interface", behind(`{"interfaces":[{"name":"eth0","sandbox":"/run/netns/a"}]}`), 7, put, "prevResult.interfaces"},
		{"not in a pod", behind(`{"interfaces":[{"name":"net1"}]}`), 7, put, "prevResult.interfaces"},
		{"interfaces of null", behind(`{"interfaces":[null]}`), 7, objs, "prevResult.interfaces[0]"},
		{"interfaces of null, in other letters", behind(`{"INTERFACES":[null]}`), 7, objs, "prevResult.INTERFACES[0]"},
		{"ips of numbers", behind(`{` + net1 + `,"ips":[{"address":"10.1.0.7/24"},7]}`), 7, objs, "prevResult.ips[1]"},
		{"routes of null", behind(`{` + net1 + `,"routes":[null]}`), 7, objs, "prevResult.routes[0]"},
		{"interfaces as a word", behind(`{"interfaces":"net1"}`), 7, read, "prevResult"},
		{"of a newer version", behind(`{"cniVersion":"9.0.0",` + net1 + `}`), 7, read, "prevResult"},
		{"of an older version", behind(`{"cniVersion":"0.4.0",` + net1 + `}`), 7, read, "prevResult"},
		{"version as a number", behind(`{"cniVersion":1,` + net1 + `}`), 7, read, "prevResult"},
		{"an address that is none, with an escape", behind(`{` + net1 + `,"ips":[{"address":"\u001b[31m\n"}]}`), 7, read, "prevResult"},
		{"an address missing", behind(`{` + net1 + `,"ips":[{"interface":0}]}`), 7, bad, "prevResult.ips[0].address"},
		{"an address of no interface", behind(`{` + net1 + `,"ips":[{"interface":1,"address":"10.1.0.7/24"}]}`), 7, bad, "prevResult.ips[0].interface"},
		{"an address of an interface below zero", behind(`{` + net1 + `,"ips":[{"interface":-1,"address":"10.1.0.7/24"}]}`), 7, bad, "prevResult.ips[0].interface"},
	})
}

// The refusal names what there is, so that a wrong order of plugins and a wrong name can be told apart.
func TestParseRefusesPreviousByName(t *testing.T) {
	t.Parallel()
	const result = `{"interfaces":[{"name":"ens1"},{"name":"eth0","sandbox":"/run/netns/a"},{"name":"e\n","sandbox":"/run/netns/a"}]}`
	_, err := netconf.Parse(raw(network(`,"prevResult":`+result)), netconf.Node{})
	const want = `put podfabric in "plugins" behind the plugin that makes interface net1: prevResult.interfaces, ` +
		`found "eth0", "e\n", right is net1 with its sandbox`
	if got := problem(t, err).Error(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// The result of the plugin before is input like any other.
func FuzzPrevious(f *testing.F) {
	for _, s := range []string{
		`{}`, previous, `{"INTERFACES":[null]}`, `{"ips":[{}]}`, `{"ip4":{"ip":"10.1.0.7/24"}}`, `{"routes":[{"dst":"x"}]}`, `{"dns":[]}`,
		`{"interfaces":[{"name":"net1","sandbox":"a"}],"ips":[{"version":"4","address":"10.1.0.7/24","interface":7}]}`,
	} {
		for _, version := range netconf.Versions() {
			f.Add(version, s)
		}
	}
	f.Fuzz(func(t *testing.T, version, result string) {
		if strings.ContainsAny(version, `"\`) {
			return
		}
		c, err := netconf.Parse(raw(`{"cniVersion":"`+version+`","name":"n","link":"chained","prevResult":`+result+`}`), netconf.Node{})
		if err != nil {
			if p := problem(t, err); p.Field == "" {
				t.Errorf("refusal without a field: %v", p)
			}
			return
		}
		found := false
		for _, i := range c.Previous.Interfaces {
			found = found || i.Name == "net1" && i.Sandbox != ""
		}
		for _, ip := range c.Previous.IPs {
			if ip.Address.IP == nil || ip.Interface != nil && *ip.Interface >= len(c.Previous.Interfaces) {
				t.Errorf("address %v", ip)
			}
		}
		if !found || c.Previous.CNIVersion != "1.1.0" {
			t.Errorf("accepted %s", result)
		}
	})
}
