// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLargeNetworks: a network as large as the API server stores one (1.5 MB) is refused at once, or ADD makes what DEL can read and
// take back. Everything in a network is a tenant's: keys that nobody knows, lists in lists, addresses and routes without end.
func TestLargeNetworks(t *testing.T) {
	nested := func(depth, n int) any {
		list := make([]any, n)
		for i := range list {
			list[i] = []any{}
		}
		var v any = list
		for range depth {
			v = []any{v}
		}
		return v
	}
	many := func(n int, f func(i int) any) []any {
		list := make([]any, n)
		for i := range list {
			list[i] = f(i)
		}
		return list
	}
	leases := t.TempDir()
	unknown := object{}
	for i := range 50_000 {
		unknown[fmt.Sprintf("key%d", i)] = i
	}
	for name, network := range map[string]object{
		"unknown keys":    leased(unknown),
		"lists in a list": with(hostLocal(versions()[4], leases), object{"mac": nil, "strange": nested(90, 200_000)}),
		"angle brackets":  with(hostLocal(versions()[4], leases), object{"mac": nil, "strange": strings.Repeat("<", 250_000)}),
		"a long text":     with(hostLocal(versions()[4], leases), object{"mac": nil, "strange": strings.Repeat("\u2028", 400_000)}),
		"addresses":       leased(object{"ipam": object{"type": "static", "addresses": many(5_000, func(i int) any { return object{"address": fmt.Sprintf("10.%d.%d.1/24", i/256, i%256)} })}}),
		"routes":          leased(object{"ipam": object{"type": "static", "addresses": []object{{"address": "10.0.0.1/24"}}, "routes": many(1_000, func(i int) any { return object{"dst": fmt.Sprintf("11.%d.%d.0/24", i/256, i%256)} })}}),
		"ranges": leased(object{"ipam": object{"type": "range", "ranges": many(5_000, func(i int) any {
			return []object{{"subnet": fmt.Sprintf("10.%d.%d.0/24", i/256, i%256), "scope": "node"}}
		})}}),
		"args.cni":                leased(object{"args": object{"cni": unknown}}),
		"capabilities":            leased(object{"capabilities": unknown}),
		"runtimeConfig":           leased(object{"runtimeConfig": unknown}),
		"an interface's settings": leased(object{"hint": object{"volume": strings.Repeat("v", 1_000_000)}}),
	} {
		t.Run(name, func(t *testing.T) {
			programs(t)
			p := newPod(t, "large")
			before := look(t, p)
			c := call{network: network, id: "large", netns: p.path}
			for _, verb := range []string{"ADD", "DEL"} {
				begun := time.Now()
				got, _ := c.quiet(t, verb, nil)
				f := got.failure(t)
				if took := time.Since(begun); took > 25*time.Second {
					t.Errorf("%s took %v", verb, took)
				}
				if len(got.stdout)+len(got.stderr) > 1<<20 {
					t.Errorf("%s prints %d and %d bytes", verb, len(got.stdout), len(got.stderr))
				}
				if f != nil {
					t.Logf("%s: code %d: %.300s", verb, f.Code, f.text())
				}
				if verb == "DEL" && f != nil {
					t.Errorf("DEL: code %d: %.300s", f.Code, f.text())
				}
				files, err := filepath.Glob("/run/podfabric/*/*/*")
				must(t, err)
				for _, file := range files {
					if info, err := os.Lstat(file); err == nil && info.Size() > 4<<20 {
						t.Errorf("after %s %s has %d bytes", verb, file, info.Size())
					}
				}
			}
			before.unchanged(t, p)
		})
	}
}
