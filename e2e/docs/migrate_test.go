// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/nad"
	"github.com/podfabric/podfabric/peer"
)

// block is one configuration of docs/migrate.md: ```json before nvidia.com/rail0.
type block struct {
	part     string // "before", "converted", "today"
	resource string // what the definition asks for; empty: nothing
	conf     string
}

func blocks(t *testing.T) []block {
	t.Helper()
	var list []block
	for _, m := range regexp.MustCompile("(?s)\n```json (\\w+) ?(\\S*)\n(.*?)```").FindAllStringSubmatch(read(t, "docs/migrate.md"), -1) {
		list = append(list, block{m[1], m[2], m[3]})
	}
	if len(list) < 20 {
		t.Fatalf("docs/migrate.md has %d configurations", len(list))
	}
	return list
}

// What podfabric is to read it reads, on the example's node. An ipam of host-local earns its warning here as in the text.
func TestMigratedConfigurationsParse(t *testing.T) {
	t.Parallel()
	for _, b := range blocks(t) {
		switch b.part {
		case "converted", "today":
			c := parse(t, b.conf, device(b.resource))
			for _, w := range c.Warnings {
				if !regexp.MustCompile("^ipam host-local knows only its own node").MatchString(w) {
					t.Errorf("%s\nearns a warning: %s", b.conf, w)
				}
			}
		case "before":
		default:
			t.Errorf("a configuration that is %q", b.part)
		}
	}
}

// The page promises that "converted" is what `podfabricctl validate --convert` prints for "before", and that the other plugin takes
// "before".
func TestConvertedIsWhatConvertPrints(t *testing.T) {
	t.Parallel()
	list := blocks(t)
	pairs := 0
	for i, b := range list {
		if b.part != "before" {
			continue
		}
		if i+1 == len(list) || list[i+1].part != "converted" || list[i+1].resource != b.resource {
			t.Fatalf("no conversion behind\n%s", b.conf)
		}
		pairs++
		n := network(t, b)
		for _, f := range peer.Judge(n).Findings {
			if f.Level == peer.Reject {
				t.Errorf("%s\nis no configuration of its plugin: %s", b.conf, f.Text)
			}
		}
		got, err := peer.Convert(n)
		if err != nil {
			t.Errorf("%v\n%s", err, b.conf)
			continue
		}
		if diff := cmp.Diff(value(t, list[i+1].conf), value(t, string(nad.Encode(got.Config)))); diff != "" {
			t.Errorf("conversion (-page +code) of\n%s\n%s", b.conf, diff)
		}
	}
	if pairs < 8 {
		t.Errorf("%d conversions", pairs)
	}
}

// network is a block as a definition would have it.
func network(t *testing.T, b block) peer.Network {
	t.Helper()
	docs := nad.Read("migrate.json", []byte(b.conf))
	if len(docs) != 1 || docs[0].Config == nil || docs[0].Config.Root == nil {
		t.Fatalf("not one configuration:\n%s", b.conf)
	}
	n := peer.Network{Config: docs[0].Config.Root}
	if b.resource != "" {
		n.Definition, n.Annotations = true, []nad.Annotation{{Key: nad.ResourceName, Value: b.resource}}
	}
	return n
}

func value(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return v
}
