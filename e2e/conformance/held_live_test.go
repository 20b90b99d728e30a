// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"testing"
	"time"
)

// onlyAddress is a macvlan network of one address, so that two pods cannot both have one.
func onlyAddress() object {
	return object{
		"cniVersion": "1.1.0", "name": "rail0", "type": "podfabric", "link": "macvlan", "master": "m0", "rdma": object{"mode": "off"},
		"ipam": object{"type": "range", "ranges": []any{
			[]object{{"subnet": "192.0.2.0/24", "rangeStart": "192.0.2.5", "rangeEnd": "192.0.2.5", "scope": "node"}},
		}},
	}
}

// TestInodeOfANamespaceUsedAgain: the kernel gives the inode of a namespace that ended to the next one, at the same path. A late DEL takes
// nothing from the pod that is there by then.
func TestInodeOfANamespaceUsedAgain(t *testing.T) {
	p := newPod(t, "renewed")
	network := with(onlyAddress(), object{"ipam": object{}})
	dead := call{network: network, id: "dead", netns: p.path}
	dead.ok(t, "ADD")
	inode := shell(t, "stat", "-L", "-c", "%i", p.path)
	for end := time.Now().Add(20 * time.Second); ; {
		p.kill(t)
		newPod(t, "renewed")
		if shell(t, "stat", "-L", "-c", "%i", p.path) == inode {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the kernel does not use the inode again")
		}
	}
	next := call{network: network, id: "next", netns: p.path}
	next.ok(t, "ADD")
	dead.ok(t, "DEL")
	next.ok(t, "CHECK")
	next.ok(t, "DEL")
}

// TestDelByThePluginsOwnNamespace: by the time of DEL the pod's path leads to the node's own namespace.
func TestDelByThePluginsOwnNamespace(t *testing.T) {
	p, before := newPod(t, "ownnow"), look(t)
	c := call{network: onlyAddress(), id: "ownnow", netns: p.path}
	c.ok(t, "ADD")
	shell(t, "umount", p.path)
	shell(t, "mount", "--bind", "/proc/self/ns/net", p.path)
	c.ok(t, "DEL")
	before.unchanged(t)
}
