// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"

	"github.com/podfabric/podfabric/netconf"
)

// asDelegate answers a verb when this process was started, perhaps by way of others, as the IPAM plugin of another podfabric: a copy of the
// program under another name, which netconf cannot tell by the name. It would call itself with the same section, and that one itself again,
// until the node has no memory left. ADD can hand out nothing, so that nothing is owed, and DEL, GC and STATUS of the network go on.
func asDelegate(verb string) func(context.Context, netconf.Raw) error {
	return func(context.Context, netconf.Raw) error {
		if verb != "ADD" && verb != "CHECK" {
			return nil
		}
		return &netconf.Problem{
			Code: netconf.CodeInvalid, Remedy: `use "range", "static" or another IPAM plugin: the one that is named is podfabric, which would call itself for ever`,
			Field: "ipam.type", Right: `"range", "static" or the name of an IPAM plugin`,
		}
	}
}
