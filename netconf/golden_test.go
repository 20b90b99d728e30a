// SPDX-License-Identifier: Apache-2.0

package netconf_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
)

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
	other := map[string]string{
		"debug": "true", "ips": `["10.1.0.9"]`, "deviceID": `"0000:3b:00.5"`, "IP": `"10.1.0.9"`,
		"MAC": `"02:00:00:00:00:01"`, "CNIDeviceInfoFile": `"/var/run/k8s.cni.cncf.io/devinfo/cni/rail0-net1"`,
	}
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
