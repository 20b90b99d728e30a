// SPDX-License-Identifier: Apache-2.0

package kernel_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/plugin/attach"
)

// TestInterfaces: a link of another namespace is listed with its MAC and its addresses, and with the mount that keeps the namespace; the
// loopback is not.
func TestInterfaces(t *testing.T) {
	p := newPod(t)
	p.ip(t, "link", "add", "pfseen0", "address", "02:11:22:33:44:77", "type", "veth", "peer", "name", "pfseen1")
	p.ip(t, "addr", "add", "10.77.0.9/24", "dev", "pfseen0")
	p.ip(t, "addr", "add", "fd77::9/64", "dev", "pfseen0", "nodad")
	all, err := p.kernel.Interfaces(t.Context())
	must(t, err)
	at := slices.IndexFunc(all, func(i attach.Interface) bool { return i.Held.What == "interface pfseen0" })
	if at < 0 {
		t.Fatalf("found %+v", all)
	}
	i := all[at]
	for _, a := range []string{"10.77.0.9", "fd77::9"} {
		if !slices.Contains(i.Addrs, netip.MustParseAddr(a)) {
			t.Errorf("addresses are %v, want %s among them", i.Addrs, a)
		}
	}
	if i.MAC != "02:11:22:33:44:77" || !strings.Contains(i.Held.String(), "held by mount "+p.path) {
		t.Errorf("found %+v", i)
	}
	if slices.ContainsFunc(all, func(i attach.Interface) bool { return i.Held.What == "interface lo" }) {
		t.Errorf("the loopback is among %+v", all)
	}
}
