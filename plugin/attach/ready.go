// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"net/netip"

	"github.com/podfabric/podfabric/netconf"
)

// Ready tells.
func Ready(c netconf.Conf, before Facts, addrs []netip.Prefix, ports []Port) (missing string, ok bool) {
	return "", true
}
