// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/plugin/kernel"
	"github.com/podfabric/podfabric/plugin/link"
	"github.com/podfabric/podfabric/rdmans"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

func full() kernel.Snapshot {
	return kernel.Snapshot{
		Mode: "exclusive",
		NetNS: map[string]kernel.NetNSState{"host": {
			Links: map[string]kernel.LinkState{"eth2": {
				AltNames: []string{"enp1s0f0v0"}, Type: "ether", Kind: "device", MAC: "02:00:00:00:00:01", MTU: 1500, Up: true, Master: "br0",
				Lower: "eth0", Parent: bus.PCI(pci.Addr{Bus: 1, Device: 16}), Addrs: []string{"10.0.0.1/24 scope 0 dynamic false"},
				VFs: []link.VF{{
					Number: 1, MAC: "02:00:00:00:00:02", VLAN: 3, QoS: 1, Proto: "802.1q", Spoofchk: true, Trust: true, LinkState: "enable", MinTxRate: 10,
					MaxTxRate: 100,
				}},
				Traits: link.Traits{
					Flags: "multicast promisc", Alias: "rail 0", Group: 1, TxQueue: 1000, LinkMode: "default", Broadcast: "ff:ff:ff:ff:ff:ff", GSO: 65536,
					GSOSegs: 65535, GRO: 65537, GSOIPv4: 65538, GROIPv4: 65539, XDP: "generic",
				},
			}},
			RDMA:    map[string]rdmans.Device{"mlx5_3": {Index: 7, Name: "mlx5_3", NodeGUID: "0254:00ff:fe12:3456", Ports: 1}},
			Routes:  []string{"table 254 default"},
			Rules:   []string{"priority 0"},
			Sysctls: map[string]string{"net/ipv6/conf/eth2/accept_ra": "1"},
		}},
		Functions: map[string]kernel.FunctionState{"0000:01:10.0": {Driver: "igbvf", PF: pci.Addr{Bus: 1}, NumVFs: 4}},
		Uverbs:    map[string]string{"uverbs3": "mlx5_3"},
	}
}

// change walks a JSON value and calls f once with each leaf changed, and with each member of a map or list gone.
func change(v any, path string, set func(any), f func(path string)) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			change(value, path+"."+key, func(n any) { v[key] = n }, f)
		}
		for key, value := range v {
			delete(v, key)
			f(path + " without " + key)
			v[key] = value
		}
	case []any:
		for i, value := range v {
			change(value, fmt.Sprintf("%s[%d]", path, i), func(n any) { v[i] = n }, f)
		}
		set([]any{})
		f(path + " emptied")
		set(v)
	case string:
		other := v + "x"
		if _, err := pci.Parse(v); err == nil {
			other = "0000:ff:1f.7"
		}
		set(other)
		f(path)
		set(v)
	case float64:
		set(v + 1)
		f(path)
		set(v)
	case bool:
		set(!v)
		f(path)
		set(v)
	default:
		panic(fmt.Sprintf("%s: nothing to change in %v: the full snapshot must fill every field", path, v))
	}
}

func TestEveryFieldOfASnapshotCounts(t *testing.T) {
	t.Parallel()
	if diff := kernel.Diff(full(), full()); len(diff) != 0 {
		t.Fatalf("equal ones differ: %v", diff)
	}
	text, err := json.Marshal(full())
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	changes := 0
	change(tree, "", func(any) {}, func(path string) {
		changes++
		text, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		var changed kernel.Snapshot
		if err := json.Unmarshal(text, &changed); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		// A field that is not there is its zero value, which no field of the full snapshot has but these.
		if diff := kernel.Diff(full(), changed); len(diff) == 0 {
			t.Errorf("%s: the change is not seen", path)
		}
	})
	if changes < 80 {
		t.Errorf("only %d changes tried", changes)
	}
}

func TestDiffNamesWhatDiffers(t *testing.T) {
	t.Parallel()
	after := full()
	after.Uverbs = map[string]string{"uverbs4": "mlx5_3"}
	got := kernel.Diff(full(), after)
	want := []string{"- uverbs.uverbs3 = mlx5_3", "+ uverbs.uverbs4 = mlx5_3"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if text := full().String(); text != full().String() || !strings.HasSuffix(text, "\n") || !slices.IsSorted(full().Lines()) {
		t.Errorf("the text is not stable:\n%s", text)
	}
}
