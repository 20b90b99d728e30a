// SPDX-License-Identifier: Apache-2.0

package netconf_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/podfabric/podfabric/netconf"
)

// TestCorpus reads configurations that people really wrote, as if their plugins were podfabric: each gives a Conf or a
// refusal that begins with a remedy. It does not judge which of the two.
func TestCorpus(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("PODFABRIC_CASES")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "cases")
	}
	files, err := filepath.Glob(filepath.Join(dir, "nads", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no cases below %s: set PODFABRIC_CASES", dir)
		}
		t.Logf("no cases below %s: nothing compared", dir)
		return
	}
	judged := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, stdin := range configurations(text) {
			judged++
			c, err := netconf.Parse(raw(string(stdin)), netconf.Node{})
			if err == nil {
				t.Logf("%s: accepted as %s, warnings %q", filepath.Base(file), c.Kind, c.Warnings)
				continue
			}
			t.Logf("%s: %v", filepath.Base(file), problem(t, err))
		}
	}
	t.Logf("%d configurations from %d files", judged, len(files))
}

// configurations takes the plugins' configurations out of a NetworkAttachmentDefinition, a list or a bare configuration, as
// libcni hands them to a plugin. What is not JSON comes as it is.
func configurations(text []byte) [][]byte {
	var object map[string]any
	if json.Unmarshal(text, &object) != nil {
		return [][]byte{text}
	}
	if spec, ok := object["spec"].(map[string]any); ok {
		config, _ := spec["config"].(string)
		return configurations([]byte(config))
	}
	plugins, ok := object["plugins"].([]any)
	if !ok {
		object["type"] = "podfabric"
		return [][]byte{encode(object)}
	}
	var all [][]byte
	for _, p := range plugins {
		plugin, ok := p.(map[string]any)
		if !ok {
			continue
		}
		plugin["type"], plugin["name"], plugin["cniVersion"] = "podfabric", object["name"], object["cniVersion"]
		all = append(all, encode(plugin))
	}
	return all
}

func encode(object map[string]any) []byte {
	var out bytes.Buffer
	if json.NewEncoder(&out).Encode(object) != nil {
		return nil
	}
	return out.Bytes()
}
