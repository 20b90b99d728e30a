// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestInterfacesOfACrowd: a pod may have as many links and addresses as it likes, and the look at it takes one dump of each, not one of all
// addresses for every link.
func TestInterfacesOfACrowd(t *testing.T) {
	const links, each = 400, 10
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
	begin := time.Now()
	all, err := p.kernel.Interfaces(t.Context())
	must(t, err)
	took := time.Since(begin)
	addrs := 0
	for _, i := range all {
		if strings.HasPrefix(i.Held.What, "interface pfcrowd") {
			addrs += len(i.Addrs)
		}
	}
	t.Logf("%d links with %d addresses took %s", links, addrs, took)
	if addrs != links*each || took > 5*time.Second {
		t.Errorf("%d addresses in %s", addrs, took)
	}
}
