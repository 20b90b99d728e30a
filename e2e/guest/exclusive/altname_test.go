// SPDX-License-Identifier: Apache-2.0

//go:build lab

package exclusive_test

import (
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// TestAltNames: the kernel refuses to bring home a link with an alternative name that another one has, and to give a link a name
// that is its own alternative one already. A pod with NET_ADMIN may set either.
func TestAltNames(t *testing.T) {
	vf := node.VF(t, 1, 2)
	home, other := node.Netdev(vf), node.Netdev(node.PF(t, 1))
	for _, name := range []string{other, home, "net1"} {
		t.Run(name, func(t *testing.T) {
			before := cni.Look(t)
			pod, next := node.NewNS(t), node.NewNS(t)
			c := cni.Call{Conf: network("rail0", vf, "10.66.0.1/24"), ContainerID: "alt", NetNS: pod.Path}
			c.Add(t)
			pod.Run(t, "ip", "link", "set", "net1", "down")
			pod.Run(t, "ip", "link", "set", "net1", "name", "mine")
			pod.Run(t, "ip", "link", "property", "add", "dev", "mine", "altname", name)
			c.Del(t)
			before.Unchanged(t)
			c.ContainerID, c.NetNS = "next", next.Path
			c.Add(t)
			c.Del(t)
			before.Unchanged(t)
		})
	}
}
