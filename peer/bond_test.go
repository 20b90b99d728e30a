// SPDX-License-Identifier: Apache-2.0

package peer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/podfabric/podfabric/nad"
	"github.com/podfabric/podfabric/peer"
)

// bondRows are of bond-cni's bond/bond.go.
func bondRows() [][4]string {
	const two = `"links":[{"name":"net1"},{"name":"net2"}],`
	conf := func(keys string) string { return head + `"type":"bond",` + keys + pool + "}" }
	return [][4]string{
		{conf(`"mode":"active-backup","linksInContainer":true,"miimon":"100",` + two), "a"},
		{conf(`"mode":"active-backup","ifname":"bond0","failOverMac":2,"miimon":"100",` + two), "a"},
		{conf(`"mode":"802.3ad","miimon":"100",` + two), "w", "mode", "LACP"},
		{conf(`"mode":"lacp","miimon":"100",` + two), "r", "mode", "unknown bond mode"},
		{conf(`"miimon":"100",` + two), "r", "mode", "has no default"},
		{conf(`"mode":"active-backup","miimon":"100","links":[],`), "r", "links", "at least two links"},
		{conf(`"mode":"active-backup","miimon":"100","links":[{"name":"net1"}],`), "r", "links", "found 1"},
		{conf(`"mode":"active-backup","miimon":"100",`), "r", "links", "at least two links"},
		{conf(`"mode":"active-backup","miimon":"100","links":[{"name":"net1"},{}],`), "r", "links[1]", "failed to find link name"},
		{conf(`"mode":"active-backup","miimon":"100","links":["net1","net2"],`), "r", "links[0]", "failed to find link name"},
		{conf(`"mode":"active-backup",` + two), "r", "miimon", "found nothing"},
		{conf(`"mode":"active-backup","miimon":"100ms",` + two), "r", "miimon", "bondMiimon"},
		{conf(`"mode":"active-backup","miimon":100,` + two), "r", "miimon", `the string "100"`},
		{conf(`"mode":"active-backup","miimon":"100","failOverMac":3,` + two), "r", "failOverMac", "0 to 2"},
	}
}

// TestNoDeviceOfSuchAResource: a resource that no pod can ask for takes no address's place.
func TestNoDeviceOfSuchAResource(t *testing.T) {
	t.Parallel()
	d := nad.Read("a.json", []byte(head+`"type":"host-device","pciBusID":"0000:06:00.0",`+pool+"}"))[0]
	for resource, want := range map[string]string{
		"devices": "written for all nodes", "/devices": "written for all nodes", "example.com/devices": "has no effect: Multus puts the resource's device",
	} {
		r := peer.Judge(peer.Network{Definition: true, Name: "a", Config: d.Config.Root, Annotations: []nad.Annotation{{Key: nad.ResourceName, Value: resource}}})
		if !slices.ContainsFunc(r.Findings, func(f peer.Finding) bool { return strings.Contains(f.Text, want) }) {
			t.Errorf("%s: no %q in %+v", resource, want, r.Findings)
		}
	}
}

// TestLarge: work grows with the text, not with its square.
func TestLarge(t *testing.T) {
	t.Parallel()
	many := func(format string) string {
		var all []string
		for i := range 20000 {
			all = append(all, fmt.Sprintf(format, i, i/250%250, i%250))
		}
		return strings.Join(all, ",")
	}
	for _, conf := range []string{
		macvlan(`"master":"ens1",` + many(`"key%[1]d":1`) + ","),
		ipam(`"type":"whereabouts","range":"10.0.0.0/8","routes":[` + many(`{"dst":"10.%[2]d.%[3]d.0/24","gw":"11.0.0.1"}`) + "]"),
		ipam(`"type":"host-local","ranges":[` + many(`[{"subnet":"10.%[2]d.%[3]d.0/24"}]`) + "]"),
		list(many(`{"type":"other-%[1]d"}`)),
	} {
		begin := time.Now()
		judged(t, conf, true)
		if took := time.Since(begin); took > time.Minute {
			t.Errorf("%.60s took %s", conf, took)
		}
	}
}
