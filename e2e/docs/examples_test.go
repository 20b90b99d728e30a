// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/netconf"
)

// exampleNode is the node that every example of deploy/examples and of the pages is for.
func exampleNode(t *testing.T) netconf.Node {
	t.Helper()
	node, err := netconf.ParseNode([]byte(read(t, "deploy/examples/node.json")))
	if err != nil {
		t.Fatalf("node.json: %v", err)
	}
	return node
}

// What Multus writes as deviceID for a resource of the SR-IOV device plugin and of the RDMA shared device plugin, and what a network
// without a resource gets.
const (
	someVF = "0000:3b:00.2"
	somePF = "0000:3b:00.0"
	someN  = "17"
)

// device is what kubelet would have chosen for a resource of the examples.
func device(resource string) string {
	switch {
	case strings.HasPrefix(resource, "rdma/"):
		return someN
	case strings.HasSuffix(resource, "/hostdev"):
		return somePF
	case resource != "":
		return someVF
	}
	return ""
}

// entries gives the documents that a runtime hands to the plugins of a configuration or conflist, in their order: name and version
// of the list, the device in each, and from the second on the result of the one before.
func entries(t *testing.T, conf, deviceID string) []map[string]any {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal([]byte(conf), &doc); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, conf)
	}
	list := []map[string]any{doc}
	if plugins, ok := doc["plugins"].([]any); ok {
		list = nil
		for i, p := range plugins {
			entry, ok := p.(map[string]any)
			if !ok {
				t.Fatalf("a plugin that is no object in\n%s", conf)
			}
			entry["name"], entry["cniVersion"] = doc["name"], doc["cniVersion"]
			if i > 0 {
				entry["prevResult"] = map[string]any{
					"cniVersion": doc["cniVersion"],
					"interfaces": []any{map[string]any{"name": "net1", "mac": "02:00:00:00:00:01", "sandbox": "/run/netns/c"}},
					"ips":        []any{map[string]any{"version": "4", "address": "10.1.4.65/16", "interface": 0}},
				}
			}
			list = append(list, entry)
		}
	}
	for _, entry := range list {
		if _, own := entry["deviceID"]; !own && deviceID != "" {
			entry["deviceID"], entry["pciBusID"] = deviceID, deviceID
		}
	}
	return list
}

// parse reads what of a configuration is podfabric's, and gives the last of it.
func parse(t *testing.T, conf, deviceID string) netconf.Conf {
	t.Helper()
	node := exampleNode(t)
	var got []netconf.Conf
	for _, entry := range entries(t, conf, deviceID) {
		if entry["type"] != "podfabric" {
			continue
		}
		text, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		c, err := netconf.Parse(netconf.Raw{Stdin: text, ContainerID: "c", NetNS: "/run/netns/c", IfName: "net1"}, node)
		if err != nil {
			t.Fatalf("%v\n%s", err, conf)
		}
		got = append(got, c)
	}
	if len(got) == 0 {
		t.Fatalf("no podfabric in\n%s", conf)
	}
	return got[len(got)-1]
}

// definition takes a NetworkAttachmentDefinition of ours apart: the block below "config: |" and its resource.
func definition(t *testing.T, yaml string) (conf, resource string) { //nolint:nonamedreturns // tells them apart
	t.Helper()
	_, conf, ok := strings.Cut(yaml, "config: |\n")
	if !ok {
		t.Fatalf("no configuration in\n%s", yaml)
	}
	if m := regexp.MustCompile(`resourceName: (\S+)`).FindStringSubmatch(yaml); m != nil {
		resource = m[1]
	}
	return conf, resource
}

// exampleKinds are the files of deploy/examples that are networks, and what each of them is an example of.
func exampleKinds() map[string]netconf.Kind {
	return map[string]netconf.Kind{
		"rail0.yaml": netconf.KindVF, "vf-settings.yaml": netconf.KindVF, "storage.json": netconf.KindVF, "soft-roce.json": netconf.KindVF,
		"macvlan.yaml": netconf.KindMacvlan, "macvlan-vlan.yaml": netconf.KindMacvlan, "ipvlan.yaml": netconf.KindIPVlan,
		"device.yaml": netconf.KindDevice, "sf.json": netconf.KindDevice,
		"behind-sriov.yaml": netconf.KindChained, "behind-host-device.yaml": netconf.KindChained,
	}
}

func TestExamplesParse(t *testing.T) {
	t.Parallel()
	kinds := exampleKinds()
	files, err := filepath.Glob(filepath.Join(top, "deploy/examples/*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if name == "node.json" || name == "pod.yaml" {
			continue // the first is parsed for every other, the second is Kubernetes'
		}
		if _, listed := kinds[name]; !listed {
			t.Errorf("deploy/examples/%s is in no test", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conf, resource := read(t, "deploy/examples/"+name), ""
			if strings.HasSuffix(name, ".yaml") {
				conf, resource = definition(t, conf)
			}
			c := parse(t, conf, device(resource))
			if c.Kind != kinds[name] {
				t.Errorf("kind %q, want %q", c.Kind, kinds[name])
			}
			if len(c.Warnings) > 0 {
				t.Errorf("an example that earns warnings: %q", c.Warnings)
			}
		})
	}
}

// shown is the text of an example without its comments at the head.
func shown(t *testing.T, name string) string {
	t.Helper()
	text := read(t, "deploy/examples/"+name)
	for strings.HasPrefix(text, "#") {
		_, text, _ = strings.Cut(text, "\n")
	}
	return text
}

// The pages show what deploy/examples holds, so that what is read is what is tested.
func TestPagesShowTheExamples(t *testing.T) {
	t.Parallel()
	readme := read(t, "README.md")
	for _, name := range []string{"rail0.yaml", "pod.yaml", "node.json"} {
		if !strings.Contains(readme, shown(t, name)) {
			t.Errorf("README.md does not show deploy/examples/%s as it is", name)
		}
	}
	page := read(t, "docs/configuration.md")
	for name := range exampleKinds() {
		text := shown(t, name)
		if strings.HasSuffix(name, ".yaml") {
			text, _ = definition(t, text)
			text = strings.ReplaceAll(strings.TrimPrefix(text, "    "), "\n    ", "\n")
		}
		switch name {
		case "rail0.yaml": // in the README
		case "storage.json", "soft-roce.json": // of the page on addresses, and to try things out
		default:
			if !strings.Contains(page, "```json\n"+text+"```") {
				t.Errorf("docs/configuration.md does not show the configuration of deploy/examples/%s as it is", name)
			}
		}
		if name != "storage.json" && name != "soft-roce.json" && !strings.Contains(page, "deploy/examples/"+name) {
			t.Errorf("docs/configuration.md does not name deploy/examples/%s", name)
		}
	}
}

// Every short configuration in the README is whole and right.
func TestConfigurationsOfTheReadme(t *testing.T) {
	t.Parallel()
	kinds := map[netconf.Kind]bool{}
	for _, m := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(read(t, "README.md"), -1) {
		if !strings.Contains(m[1], `"podfabric"`) {
			continue // node.json
		}
		for line := range strings.Lines(m[1]) {
			if strings.TrimSpace(line) == "" {
				continue
			}
			c := parse(t, line, "")
			if len(c.Warnings) > 0 {
				t.Errorf("%s earns warnings: %q", line, c.Warnings)
			}
			kinds[c.Kind] = true
		}
	}
	if len(kinds) != 5 {
		t.Errorf("the README has configurations of %d kinds: %v", len(kinds), kinds)
	}
}
