// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestInterfacesOfACrowd: a pod may have as many links and addresses as it likes, and the look at it takes one dump of each, not one of all
// addresses for each link: four times as many of both cost about four times the memory, and not sixteen times.
func TestInterfacesOfACrowd(t *testing.T) {
	const each = 10
	cost := func(t *testing.T, links int) uint64 {
		t.Helper()
		p := newPod(t)
		var batch strings.Builder
		for i := range links {
			fmt.Fprintf(&batch, "link add pfcrowd%d type veth peer name pfpeer%d\n", i, i)
			for j := range each {
				fmt.Fprintf(&batch, "addr add 10.%d.%d.%d/32 dev pfcrowd%d\n", 100+i/200, i%200, j+1, i)
			}
		}
		file := filepath.Join(t.TempDir(), "batch")
		must(t, os.WriteFile(file, []byte(batch.String()), 0o600))
		p.ip(t, "-batch", file)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		all, err := p.kernel.Interfaces(t.Context())
		runtime.ReadMemStats(&after)
		must(t, err)
		addrs := 0
		for _, i := range all {
			if strings.HasPrefix(i.Held.What, "interface pfcrowd") {
				addrs += len(i.Addrs)
			}
		}
		if addrs != links*each {
			t.Errorf("%d links have %d addresses, want %d", links, addrs, links*each)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	var few, many uint64
	t.Run("few", func(t *testing.T) { few = cost(t, 100) })
	t.Run("many", func(t *testing.T) { many = cost(t, 400) })
	t.Logf("%d bytes, and %d for four times as many", few, many)
	if many > 8*few {
		t.Errorf("the look at four times as many links and addresses took %d times the memory", many/few)
	}
}
