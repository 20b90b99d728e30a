// SPDX-License-Identifier: Apache-2.0

package netconf_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
)

// samples gives each key of the table a value that is right where the key is taken at all.
func samples() map[string]string {
	return map[string]string{
		"cniVersion": `"1.1.0"`, "name": `"rail0"`, "type": `"podfabric"`, "link": `"vf"`, "capabilities": `{"mac":true}`,
		"runtimeConfig": `{}`, "args": `{}`, "prevResult": previous, "ipam": `{"type":"range","subnet":"10.1.0.0/16","scope":"node"}`,
		"dns": `{"domain":"d"}`, "logLevel": `"debug"`, "logFile": `"/var/log/x"`, "deviceID": `"0000:3b:00.2"`,
		"pciBusID": `"0000:3b:00.2"`, "mtu": `9000`, "rail": `0`, "rdma": `{"mode":"auto"}`, "hint": `{"role":"compute"}`,
		"routing": `{"arp":"strict"}`, "vlan": `100`, "vlanQoS": `3`, "vlanProto": `"802.1q"`, "mac": `"02:00:00:00:00:01"`,
		"spoofchk": `"off"`, "trust": `"on"`, "link_state": `"auto"`, "min_tx_rate": `0`, "max_tx_rate": `0`,
		"vf": `{"baseline":"reset"}`, "master": `"ens1"`, "mode": `"bridge"`, "linkInContainer": `false`, "bcqueuelen": `1000`,
		"device": `"ens1"`, "hwaddr": `"02:00:00:00:00:01"`, "kernelpath": `"/sys/devices/x"`, "pkey": `"0x5"`,
		"guid": `"02:00:00:00:00:00:00:01"`, "ibKubernetesEnabled": `false`, "rdmaIsolation": `true`, "vfioPciMode": `true`,

		"rdma.mode": `"move"`, "rdma.require": `"gid"`, "rdma.softRoCE": `true`, "rdma.wait": `"2s"`,
		"routing.sourceRules": `true`, "routing.arp": `"strict"`, "routing.probe": `true`, "vf.baseline": `"keep"`, "vf.flr": `true`,
		"master.rail": `0`, "master.pci": `"0000:3b:00.0"`, "master.rdma": `"mlx5_0"`, "master.pfNames": `["ens1f*"]`,
		"hint.role": `"other"`, "hint.volume": `"fabric"`, "hint.require": `true`, "hint.nccl": `">=2.21"`, "hint.noRight": `"fail"`,
		"hint.failClosed": `true`, "hint.trafficClass": `106`,
		"dns.nameservers": `["10.0.0.53"]`, "dns.domain": `"d"`, "dns.search": `["s"]`, "dns.options": `["o"]`, "args.cni": `{}`,

		"ipam (range).type": `"range"`, "ipam (range).ranges": `[[{"subnet":"10.2.0.0/16","scope":"node"}]]`,
		"ipam (range).subnet": `"10.1.0.0/16"`, "ipam (range).rangeStart": `"10.1.0.9"`, "ipam (range).rangeEnd": `"10.1.9.9"`,
		"ipam (range).gateway": `"10.1.0.1"`, "ipam (range).exclude": `["10.1.0.2"]`, "ipam (range).perNode": `26`,
		"ipam (range).scope": `"node"`, "ipam (range).from": `"rail"`, "ipam (range).routes": `[]`, "ipam (range).dns": `{}`,
		"ipam (range).defaultRoute": `true`, "ipam (range).dataDir": `"/x"`, "ipam (range).resolvConf": `"/etc/resolv.conf"`,
		"ipam (range).addresses":  `[]`,
		"ipam (static).addresses": `[{"address":"10.1.0.7/24"}]`, "ipam (static).type": `"static"`, "ipam (static).routes": `[]`,
		"ipam (static).dns": `{}`, "ipam (static).defaultRoute": `true`, "ipam (static).ranges": `[]`,
		"ipam (static).subnet": `"10.1.0.0/16"`,

		"ipam.ranges[][].subnet": `"10.1.0.0/16"`, "ipam.ranges[][].rangeStart": `"10.1.0.9"`, "ipam.ranges[][].rangeEnd": `"10.1.9.9"`,
		"ipam.ranges[][].gateway": `"10.1.0.1"`, "ipam.ranges[][].exclude": `["10.1.0.2"]`, "ipam.ranges[][].perNode": `26`,
		"ipam.ranges[][].scope": `"node"`, "ipam.ranges[][].from": `"rail"`,
		"ipam.addresses[].address": `"10.1.0.7/24"`, "ipam.addresses[].gateway": `"10.1.0.1"`,
		"ipam.routes[].dst": `"10.2.0.0/16"`, "ipam.routes[].gw": `"10.1.0.1"`, "ipam.routes[].mtu": `9000`,
		"ipam.routes[].advmss": `1400`, "ipam.routes[].priority": `10`, "ipam.routes[].table": `100`, "ipam.routes[].scope": `0`,
	}
}

// previous is the result of a plugin that made the interface of raw.
const previous = `{"cniVersion":"1.1.0","interfaces":[{"name":"net1","mac":"02:00:00:00:00:09","sandbox":"/run/netns/a"}],` +
	`"ips":[{"interface":0,"address":"10.1.0.7/24"}]}`

// around is what a configuration of a kind needs beside the key that is looked at.
func around(kind netconf.Kind, in, name string) map[string]string {
	top := map[string]string{"cniVersion": `"1.1.0"`, "name": `"rail0"`, "type": `"podfabric"`, "link": `"` + string(kind) + `"`}
	switch kind {
	case netconf.KindVF:
		top["deviceID"] = `"0000:3b:00.2"`
	case netconf.KindDevice:
		if !slices.Contains([]string{"device", "hwaddr", "kernelpath"}, name) {
			top["deviceID"] = `"0000:3b:00.2"`
		}
	case netconf.KindMacvlan, netconf.KindIPVlan:
		top["master"] = `"ens1"`
	case netconf.KindChained:
		top["prevResult"] = previous
	}
	if kind == netconf.KindVF && (name == "vlanQoS" || name == "vlanProto") {
		top["vlan"] = "100"
	}
	if strings.HasPrefix(in, "ipam") || in == "master" {
		top["rail"] = "0"
	}
	return top
}

// document is a configuration with one key set, and around it what the key needs to be judged by itself.
func document(kind netconf.Kind, in, name, sample string) string {
	set := fmt.Sprintf("%q:%s", name, sample)
	top := around(kind, in, name)
	switch in {
	case "":
		top[name] = sample
	case "ipam (range)":
		if name == "type" {
			name, set = "scope", `"scope":"node"`
		}
		top["ipam"] = `{"type":"range",` + span(name, set) + `}`
	case "ipam (static)":
		if name == "addresses" || name == "type" {
			top["ipam"] = `{"type":"static","addresses":[{"address":"10.1.0.7/24"}]}`
			break
		}
		top["ipam"] = `{"type":"static","addresses":[{"address":"10.1.0.7/24"}],` + set + `}`
	case "ipam.ranges[][]":
		top["ipam"] = `{"type":"range","ranges":[[{` + span(name, set) + `}]]}`
	case "ipam.addresses[]":
		if name == "gateway" {
			set = `"address":"10.1.0.7/24",` + set
		}
		top["ipam"] = `{"type":"static","addresses":[{` + set + `}]}`
	case "ipam.routes[]":
		if name != "dst" {
			set = `"dst":"10.2.0.0/16",` + set
		}
		top["ipam"] = `{"type":"static","addresses":[{"address":"10.1.0.7/24"}],"routes":[{` + set + `}]}`
	default:
		top[in] = "{" + set + "}"
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(top)) {
		parts = append(parts, fmt.Sprintf("%q:%s", key, top[key]))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// span puts a key of a range beside one of the ways to cut a subnet, which exclude each other.
func span(name, set string) string {
	switch name {
	case "subnet":
		return set + `,"scope":"node"`
	case "perNode", "scope":
		return `"subnet":"10.1.0.0/16",` + set
	case "from":
		return set
	}
	return `"subnet":"10.1.0.0/16","scope":"node",` + set
}

// outcome says in words what Parse made of a key.
func outcome(r netconf.Raw, n netconf.Node) string {
	c, err := netconf.Parse(r, n)
	var p *netconf.Problem
	switch {
	case errors.As(err, &p):
		return fmt.Sprintf("refused (%d)\t%s", p.Code, p)
	case err != nil:
		return "error\t" + err.Error()
	case len(c.Warnings) > 0:
		return "ignored\t" + strings.Join(c.Warnings, "; ")
	}
	return "accepted\t"
}

// golden compares with testdata/name; UPDATE=1 writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got); UPDATE=1 writes it anew\n%s", path, diff)
	}
}

func railNode(t *testing.T) netconf.Node {
	t.Helper()
	return node(t, `{"index":17,"rails":{"0":{"pci":"0000:3b:00.0","subnet":"10.8.0.0/24"}}}`)
}

// firstKind is the first kind that takes a key; vf if none does.
func firstKind(k [2]string) netconf.Kind {
	for _, key := range netconf.Keys() {
		if key.Section == k[0] && key.Name == k[1] && len(key.Kinds) > 0 {
			return key.Kinds[0]
		}
	}
	return netconf.KindVF
}

// TestSourcesGolden is review [17]: every key from every source, and what becomes of it. Who reads the golden file sees the
// whole policy; a change of it cannot hide.
func TestSourcesGolden(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	line := func(source, key, outcome string) { fmt.Fprintf(w, "%s\t%s\t%s\n", source, key, outcome) }
	n, all := railNode(t), samples()
	names := []string{}
	for _, k := range netconf.TableKeys() {
		full := strings.TrimPrefix(k[0]+"."+k[1], ".")
		sample, ok := all[full]
		if !ok {
			t.Fatalf("key %s has no sample", full)
		}
		kind, with := firstKind(k), ""
		if kind != netconf.KindVF {
			with = " (" + string(kind) + ")"
		}
		line("configuration", full+with, outcome(raw(document(kind, k[0], k[1], sample)), n))
		if k[0] == "" {
			names = append(names, k[1])
		}
	}
	// Beside our own keys: what other plugins take from a pod, and the spelling that encoding/json would fold.
	names = append(names, "debug", "ips", "IP", "MAC", "infinibandGUID", "ipRanges", "portMappings", "bandwidth", "aliases",
		"CNIDeviceInfoFile", "routes", "gateway", "labels", "mellanox.infiniband.app", "softRoCE", "Debug", "DeviceID", "unheard")
	other := map[string]string{"debug": "true", "ips": `["10.1.0.9"]`, "deviceID": `"0000:3b:00.5"`, "IP": `"10.1.0.9"`,
		"MAC": `"02:00:00:00:00:01"`, "CNIDeviceInfoFile": `"/var/run/k8s.cni.cncf.io/devinfo/cni/rail0-net1"`}
	optIns := []struct{ name, keys string }{
		{"", ""}, {", opt-in", `,"capabilities":{"deviceID":true,"mac":true,"ips":true,"infinibandGUID":true,"ipRanges":true}`},
	}
	for _, opt := range optIns {
		ipam := opt.keys + `,"ipam":{"type":"range","subnet":"10.1.0.0/16","scope":"node"}`
		for _, name := range names {
			sample, ok := other[name]
			if !ok {
				if sample, ok = all[name]; !ok {
					sample = `"x"`
				}
			}
			line("runtimeConfig"+opt.name, name, outcome(raw(vf(fmt.Sprintf(`%s,"runtimeConfig":{%q:%s}`, ipam, name, sample))), n))
			line("args.cni"+opt.name, name, outcome(raw(vf(fmt.Sprintf(`%s,"args":{"cni":{%q:%s}}`, ipam, name, sample))), n))
			r := raw(vf(ipam))
			r.Args = name + "=" + strings.Trim(sample, `"`)
			line("CNI_ARGS"+opt.name, name, outcome(r, n))
		}
	}
	for _, arg := range []string{
		"IgnoreUnknown=1", "K8S_POD_NAME=job-0", "K8S_POD_NAMESPACE=team-a", "K8S_POD_INFRA_CONTAINER_ID=c0ffee",
		"K8S_POD_UID=0b3e7c1a-4f51-4a64-9d0e-3d7f4c2b1a00", "K8S_POD_UID=../../etc", "IgnoreUnknown=1;unheard=1",
		"IgnoreUnknown=1;MAC=02:00:00:00:00:01", "IgnoreUnknown=1;IP=10.1.0.9",
	} {
		r := raw(vf(""))
		r.Args = arg
		line("CNI_ARGS", arg, outcome(r, n))
	}
	for _, kind := range netconf.KindNames() {
		for _, opt := range []string{"", `{"mac":true}`} {
			for _, from := range []string{"runtimeConfig", "CNI_ARGS"} {
				doc := document(kind, "", "capabilities", "{"+strings.Trim(opt, "{}")+"}")
				r := raw(doc)
				if from == "CNI_ARGS" {
					r.Args = "MAC=02:00:00:00:00:01"
				} else {
					r.Stdin = []byte(strings.TrimSuffix(doc, "}") + `,"runtimeConfig":{"mac":"02:00:00:00:00:01"}}`)
				}
				line(from+map[bool]string{true: ", opt-in"}[opt != ""], fmt.Sprintf("mac (%s)", kind), outcome(r, n))
			}
		}
	}
	for _, ifname := range []string{"net1", "a$b", "a;b", "a`b", `a"b`, "a'b", "a/b", "a:b", "a b", "..", "lo", "abcdefghijklmnop"} {
		r := raw(vf(""))
		r.IfName = ifname
		line("CNI_IFNAME", ifname, outcome(r, n))
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	golden(t, "sources.golden", trimmed(out.Bytes()))
}

// trimmed takes the blanks away that tabwriter leaves at line ends.
func trimmed(text []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		out.Write(bytes.TrimRight(line, " \n"))
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// TestKindsGolden is review [24]: every key with every kind.
func TestKindsGolden(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "key")
	for _, kind := range netconf.KindNames() {
		fmt.Fprintf(w, "\t%s", kind)
	}
	fmt.Fprintln(w)
	n, all := railNode(t), samples()
	for _, k := range netconf.TableKeys() {
		if k[0] != "" || k[1] == "link" {
			continue
		}
		fmt.Fprint(w, k[1])
		for _, kind := range netconf.KindNames() {
			sample := all[k[1]]
			if k[1] == "mode" && kind == netconf.KindIPVlan {
				sample = `"l2"`
			}
			c, err := netconf.Parse(raw(document(kind, "", k[1], sample)), n)
			fmt.Fprintf(w, "\t%s", verdict(t, c, err, k[1]))
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	golden(t, "kinds.golden", trimmed(out.Bytes()))
}

func verdict(t *testing.T, c netconf.Conf, err error, name string) string {
	t.Helper()
	switch {
	case err == nil && len(c.Warnings) > 0:
		return "ignored"
	case err == nil:
		return "yes"
	}
	p := problem(t, err)
	switch {
	case p.Field == name && strings.Contains(p.Remedy, "not built yet"):
		return "later"
	case p.Field == name:
		return "refused"
	}
	return p.Error()
}
