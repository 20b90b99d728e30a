// SPDX-License-Identifier: Apache-2.0

package hint_test

import (
	"encoding/json"
	"testing"

	"github.com/podfabric/podfabric/plugin/hint"
)

// The kernel takes 96 bytes of headers off (iboe_get_mtu); 1500 giving 1024 and 4200 giving 4096 are NVIDIA's own figures.
func TestRDMAMTU(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	for netdev, want := range map[int]int{
		0: 0, 351: 0, 352: 256, 1500: 1024, 2143: 1024, 2144: 2048, 4191: 2048, 4192: 4096, 4200: 4096, 9000: 4096, 65535: 4096,
	} {
		f := attachment(1, "10.1.0.5/24")
		f.MTU = netdev
		n.put(t, f)
		var d hint.Document
		if err := json.Unmarshal(n.host(t, "fabric.json"), &d); err != nil {
			t.Fatal(err)
		}
		if got := d.Rails[0].RDMA.MTU; got != want {
			t.Errorf("netdev MTU %d: RDMA MTU %d, want %d", netdev, got, want)
		}
	}
}
