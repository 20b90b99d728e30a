// SPDX-License-Identifier: Apache-2.0

//go:build lab

// Package master_test proves attachments that share a NIC on a real kernel: macvlan and ipvlan on a PF, a VLAN or a bond, by
// podfabric alone and behind the plugins of others. The RDMA device stays at home at every moment, and each pod learns which GID
// of the common table is its own. An IPoIB link as a master cannot be made here: rdmasim's InfiniBand ports have no queue pairs.
package master_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// There are no VFs, because an igb PF that goes down, as a port of a bond must, resets those that it has.
//
//lab:boot pfs=3 vfs=0 mode=shared rdmasim=all seconds=600 peers=plugins/macvlan,plugins/ipvlan,plugins/static,libcni

func init() { node.Main() }

func TestMain(m *testing.M) { cni.Main(m) }

// on is a configuration of a kind on a master, which is JSON; more are further keys, each beginning with a comma.
func on(kind, master, address string, more ...string) string {
	keys := strings.Join(more, "")
	if !strings.Contains(keys, `"rdma"`) {
		keys += `,"rdma":{"wait":"30s"}`
	}
	if address != "" {
		keys += fmt.Sprintf(`,"ipam":{"type":"static","addresses":[{"address":%q}]}`, address)
	}
	return fmt.Sprintf(`{"cniVersion":"1.1.0","name":"rail0","type":"podfabric","link":%q,"master":%s%s}`, kind, master, keys)
}

// macvlan is one on a link that is named.
func macvlan(master, address string, more ...string) string {
	return on("macvlan", strconv.Quote(master), address, more...)
}

// pf gives the netdev and the RDMA device of a PF.
func pf(t *testing.T, n int) (string, string) {
	t.Helper()
	netdev, ib := node.Netdev(node.PF(t, n)), node.IBDev(node.PF(t, n))
	if netdev == "" || ib == "" {
		t.Fatalf("PF %d has netdev %q and RDMA device %q", n, netdev, ib)
	}
	return netdev, ib
}

// table is the GID table of port 1 of a device, as the kernel shows it to the node: "RoCE v2 ADDRESS" by index. In shared mode it
// is every pod's.
func table(t testing.TB, ib string) map[int]string {
	t.Helper()
	port := filepath.Join("/sys/class/infiniband", ib, "ports/1")
	entries, err := os.ReadDir(filepath.Join(port, "gids"))
	if err != nil {
		t.Fatal(err)
	}
	gids := map[int]string{}
	for _, e := range entries {
		gid, err := os.ReadFile(filepath.Join(port, "gids", e.Name()))
		if err != nil || strings.HasPrefix(string(gid), "0000:0000:0000:0000:0000:0000") {
			continue // an empty slot
		}
		kind, err := os.ReadFile(filepath.Join(port, "gid_attrs/types", e.Name()))
		if err != nil {
			continue
		}
		index, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		gids[index] = strings.TrimSpace(string(kind)) + " " + strings.TrimSpace(string(gid))
	}
	return gids
}

// indices are where 10.9.0.last is in a table, as RoCE v2.
func indices(gids map[int]string, last byte) []int {
	want := fmt.Sprintf("RoCE v2 0000:0000:0000:0000:0000:ffff:0a09:00%02x", last)
	var at []int
	for i, entry := range gids {
		if entry == want {
			at = append(at, i)
		}
	}
	slices.Sort(at)
	return at
}

// only is the one index of 10.9.0.last.
func only(t *testing.T, ib string, last byte) int {
	t.Helper()
	at := indices(table(t, ib), last)
	if len(at) != 1 {
		t.Fatalf("the kernel has 10.9.0.%d at %v of %s, wanted one place", last, at, ib)
	}
	return at[0]
}

// hostAt3 gives a PF an address, as a node has one, whose GID then is at index 3: what people copy as NCCL_IB_GID_INDEX=3.
func hostAt3(t *testing.T, netdev, ib string) {
	t.Helper()
	node.Wait(t, "the pods before gone from the table", func() bool { return len(table(t, ib)) == 2 })
	node.Run(t, "ip", "addr", "add", "10.9.0.250/24", "dev", netdev)
	t.Cleanup(func() {
		node.Run(t, "ip", "addr", "del", "10.9.0.250/24", "dev", netdev)
		node.Wait(t, "the table of the node alone", func() bool { return len(table(t, ib)) == 2 })
	})
	node.Wait(t, "the node's GID", func() bool { return len(indices(table(t, ib), 250)) == 1 })
	if at := only(t, ib, 250); at != 3 {
		t.Fatalf("the node's own GID is at %d; this test wants it at 3", at)
	}
}

// watch looks all the time whether the RDMA device of a function is at home under its name. The returned function ends it and
// compares what rdma(8) says.
func watch(t *testing.T, pci string) func() {
	t.Helper()
	listed := func() string { return node.Run(t, "rdma", "dev") + "\n" + node.Run(t, "rdma", "link") }
	name, before := node.IBDev(pci), listed()
	stop, seen := make(chan struct{}), make(chan string, 1)
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				seen <- name
				return
			case <-tick.C:
				if now := node.IBDev(pci); now != name {
					seen <- now
					return
				}
			}
		}
	}()
	return func() {
		t.Helper()
		close(stop)
		if now := <-seen; now != name {
			t.Errorf("the RDMA device of %s was seen as %q, not at home as %s", pci, now, name)
		}
		if after := listed(); after != before {
			t.Errorf("RDMA devices: before\n%s\nafter\n%s", before, after)
		}
	}
}

// shown is what ip -d -j link says of a link.
type shown struct {
	MTU    int    `json:"mtu"`
	MAC    string `json:"address"`
	State  string `json:"operstate"`
	Detail struct {
		Kind string `json:"info_kind"`
		Data struct {
			Mode  string `json:"mode"`
			Queue int    `json:"bcqueuelen"`
		} `json:"info_data"`
	} `json:"linkinfo"`
}

// show asks ip(8); nil is the node's own namespace.
func show(t *testing.T, ns *node.NS, name string) shown {
	t.Helper()
	var list []shown
	out := ns.Run(t, "ip", "-d", "-j", "link", "show", "dev", name)
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 {
		t.Fatalf("ip says %s: %v", out, err)
	}
	return list[0]
}

// has tells whether a pod has an interface net1.
func has(pod *node.NS) bool {
	_, err := pod.Try("ip", "link", "show", "dev", "net1")
	return err == nil
}

// link makes a link at home that goes with the test.
func link(t *testing.T, name, args string) string {
	t.Helper()
	node.Run(t, "ip", append([]string{"link", "add"}, strings.Fields(args)...)...)
	t.Cleanup(func() { node.Run(t, "ip", "link", "del", name) })
	node.Run(t, "ip", "link", "set", name, "up")
	return name
}

// ctl runs podfabricctl and gives its output and status.
func ctl(t *testing.T, args ...string) (string, string) {
	t.Helper()
	out := node.Run(t, "sh", append([]string{"-c", `podfabricctl "$@" 2>&1; echo "status $?"`, "ctl"}, args...)...)
	i := strings.LastIndex(out, "status ")
	return out[:i], out[i:]
}
