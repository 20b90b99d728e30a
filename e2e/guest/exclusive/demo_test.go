// SPDX-License-Identifier: Apache-2.0

//go:build lab

package exclusive_test

import (
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/node"
)

// The demo's last line is worth something only if it can be another one.
func TestDemoSeesAMissingDevice(t *testing.T) {
	devices := func(verb string) string {
		return node.Run(t, "sh", "-c", "devices "+verb+" /tmp/devices.json; echo status $?")
	}
	devices("save")
	if out := devices("compare"); !strings.Contains(out, "devices home: all\nstatus 0") {
		t.Errorf("nothing changed, and it says\n%s", out)
	}
	ib := node.IBDev(node.VF(t, 2, 3))
	node.Run(t, "rdma", "dev", "set", ib, "name", "strayed")
	out := devices("compare")
	node.Run(t, "rdma", "dev", "set", "strayed", "name", ib)
	if !strings.Contains(out, "devices home: 1 missing\nstatus 1") {
		t.Errorf("an RDMA device was renamed, and it says\n%s", out)
	}
}
