// SPDX-License-Identifier: Apache-2.0

package netconf_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
)

// Every key has one description, and no description is of a key that is not there.
func TestKeys(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, k := range netconf.Keys() {
		name := k.Section + " " + k.Name
		if seen[name] {
			t.Errorf("%s stands there twice", name)
		}
		seen[name] = true
		if k.Shape == "" || k.What == "" || !strings.HasSuffix(k.What, ".") {
			t.Errorf("%s: shape %q, sentence %q", name, k.Shape, k.What)
		}
		node := strings.HasPrefix(k.Section, "node.json")
		switch {
		case k.Refused != "":
			if k.Kinds != nil || k.Since != "" {
				t.Errorf("%s is refused (%s), and since %q with %v", name, k.Refused, k.Since, k.Kinds)
			}
		case k.Since != "0.1.0" && k.Since != "0.2.0", (k.Kinds == nil) != node:
			t.Errorf("%s: since %q, kinds %v", name, k.Since, k.Kinds)
		case k.Default == "" && k.Section != "master":
			t.Errorf("%s: what does its absence mean?", name)
		}
	}
	if described := netconf.Described(); len(described) != len(seen) {
		for _, d := range described {
			if !seen[d[0]+" "+d[1]] {
				t.Errorf("%q describes no key", d)
			}
		}
		t.Errorf("%d keys, %d descriptions", len(seen), len(described))
	}
}

// A few lines by hand, so that a slip in the table does not agree with itself.
func TestKeysByHand(t *testing.T) {
	t.Parallel()
	for _, want := range []netconf.Key{
		{
			Name: "vlan", Shape: "a number", Kinds: []netconf.Kind{"vf"}, Default: "as it is", Since: "0.2.0",
			What: "VLAN of the VF, 1 to 4094; 0 takes it away.",
		},
		{
			Section: "master", Name: "pfNames", Shape: "a list", Kinds: []netconf.Kind{"macvlan", "ipvlan"}, Since: "0.2.0",
			What: "The one link whose name fits one of these patterns, with *, ? and [a-c].",
		},
		{
			Name: "pkey", Shape: "a number or a string", What: "Partition of ib-sriov-cni.",
			Refused: "InfiniBand is not supported; for InfiniBand use ib-sriov-cni",
		},
		{
			Section: "node.json rails", Name: "gateway", Shape: "a string", Default: "none", Since: "0.1.0",
			What: "Gateway in that subnet.",
		},
		{
			Section: "routing", Name: "probe", Shape: "true or false", What: "Ask the network for the address before it is used.",
			Refused: "it is not built yet in this version of podfabric",
		},
	} {
		i := slices.IndexFunc(netconf.Keys(), func(k netconf.Key) bool { return k.Section == want.Section && k.Name == want.Name })
		if i < 0 {
			t.Errorf("no key %s %s", want.Section, want.Name)
			continue
		}
		if diff := cmp.Diff(want, netconf.Keys()[i]); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}
