// SPDX-License-Identifier: Apache-2.0

//go:build lab

package master_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// The peers' order of precedence: the configuration, above it CNI_ARGS, above that runtimeConfig; without any, one that is the
// same for the same attachment every time.
func TestMAC(t *testing.T) {
	netdev, _ := pf(t, 1)
	const mine, args, runtime = `,"mac":"02:00:00:00:00:01"`, "MAC=02:00:00:00:00:02", `,"runtimeConfig":{"mac":"02:00:00:00:00:03"}`
	const may = `,"capabilities":{"mac":true}`
	sum := sha256.Sum256([]byte("mac/net1"))
	pod := node.NewNS(t)
	before := cni.Look(t)
	for _, tt := range []struct{ name, more, args, want string }{
		{"none", "", "", fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", sum[0], sum[1], sum[2], sum[3], sum[4])},
		{"configuration", mine, "", "02:00:00:00:00:01"},
		{"CNI_ARGS", mine + may, args, "02:00:00:00:00:02"},
		{"runtimeConfig", mine + may + runtime, args, "02:00:00:00:00:03"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := cni.Call{Conf: macvlan(netdev, "10.9.0.1/24", tt.more), ContainerID: "mac", NetNS: pod.Path, Args: tt.args}
			r := c.Add(t)
			if got := pod.Run(t, "cat", "/sys/class/net/net1/address"); got != tt.want || r.Interfaces[0].Mac != tt.want {
				t.Errorf("MAC %s in the pod, %s in the result, wanted %s", got, r.Interfaces[0].Mac, tt.want)
			}
			c.Del(t)
		})
	}
	c := cni.Call{Conf: macvlan(netdev, "10.9.0.1/24"), ContainerID: "mac", NetNS: pod.Path, Args: args}
	c.Refused(t, 7, "capabilities", "MAC")
	c = cni.Call{Conf: macvlan(netdev, "10.9.0.1/24", `,"mac":"`+show(t, nil, netdev).MAC+`"`), ContainerID: "mac", NetNS: pod.Path}
	c.Refused(t, 103, "MAC")
	before.Unchanged(t)
}

func TestMTU(t *testing.T) {
	netdev, _ := pf(t, 1)
	pod := node.NewNS(t)
	before := cni.Look(t)
	for more, want := range map[string]int{"": 1500, `,"mtu":0`: 1500, `,"mtu":"pf"`: 1500, `,"mtu":1400`: 1400} {
		c := cni.Call{Conf: macvlan(netdev, "10.9.0.1/24", more), ContainerID: "mtu", NetNS: pod.Path}
		r := c.Add(t)
		doc, _ := c.Hint(t)
		if got := show(t, pod, "net1").MTU; got != want || r.Interfaces[0].Mtu != want || doc.Rails[0].MTU != want {
			t.Errorf("%s: MTU %d in the pod, %d in the result, %d in the hint, wanted %d", more, got, r.Interfaces[0].Mtu, doc.Rails[0].MTU, want)
		}
		c.Del(t)
	}
	before.Unchanged(t)
}

func TestModes(t *testing.T) {
	netdev, ib := pf(t, 1)
	pod := node.NewNS(t)
	before := cni.Look(t)
	for mode, want := range map[string]string{
		"": "bridge", `,"mode":"bridge","bcqueuelen":2000`: "bridge", `,"mode":"private"`: "private", `,"mode":"vepa"`: "vepa",
		`,"mode":"passthru"`: "passthru",
	} {
		c := cni.Call{Conf: macvlan(netdev, "10.9.0.1/24", mode), ContainerID: "mode", NetNS: pod.Path}
		c.Add(t)
		got := show(t, pod, "net1")
		if got.Detail.Data.Mode != want {
			t.Errorf("%s: ip shows mode %q, wanted %s", mode, got.Detail.Data.Mode, want)
		}
		if strings.Contains(mode, "2000") && got.Detail.Data.Queue != 2000 {
			t.Errorf("bcqueuelen is %d", got.Detail.Data.Queue)
		}
		if host := show(t, nil, netdev).MAC; want == "passthru" && got.MAC != host {
			t.Errorf("passthru has MAC %s, its master %s", got.MAC, host)
		}
		ofPod(t, c, ib, netdev, 1)
		if f := c.Check(t); f != nil {
			t.Errorf("%s: CHECK: %s", mode, f.Text())
		}
		c.Del(t)
	}
	before.Unchanged(t)
}

// In mode passthru a master is one pod's alone.
func TestPassthruIsAlone(t *testing.T) {
	netdev, _ := pf(t, 1)
	pod, other := node.NewNS(t), node.NewNS(t)
	before := cni.Look(t)
	c := cni.Call{Conf: macvlan(netdev, "10.9.0.1/24", `,"mode":"passthru"`), ContainerID: "alone", NetNS: pod.Path}
	c.Add(t)
	second := cni.Call{Conf: macvlan(netdev, "10.9.0.2/24", `,"mode":"passthru"`), ContainerID: "second", NetNS: other.Path}
	with := cni.Look(t)
	second.Refused(t, 103, netdev, "passthru")
	second.Conf = macvlan(netdev, "10.9.0.2/24")
	second.Refused(t, 7, netdev, "passthru")
	second.Conf = on("ipvlan", strconv.Quote(netdev), "10.9.0.2/24")
	second.Refused(t, 103, "links of another kind")
	with.Unchanged(t)
	c.Del(t)
	mac := cni.Call{Conf: macvlan(netdev, "10.9.0.1/24", `,"mode":"passthru","mac":"02:00:00:00:00:01"`), ContainerID: "mac", NetNS: pod.Path}
	mac.Refused(t, 7, "mac", "passthru")
	before.Unchanged(t)
}

// An interface without IPv6 addresses of its own takes no slots for a link-local one.
func TestGIDsOfFamilies(t *testing.T) {
	netdev, ib := pf(t, 1)
	const four = `{"address":"10.9.0.1/24"}`
	const six = `{"address":"2001:db8::1/64"}`
	ipam := func(list string) string { return `,"ipam":{"type":"static","addresses":[` + list + `]}` }
	pod := node.NewNS(t)
	before := cni.Look(t)
	for _, tt := range []struct {
		name, addresses, generate string
		gids                      int // of the pod
		settings                  []string
	}{
		{"IPv4", four, "1", 2, []string{"NCCL_IB_ADDR_RANGE=10.9.0.1/32"}},
		{"IPv6", six, "0", 4, []string{"NCCL_IB_ADDR_RANGE=2001:db8::1/128", "NCCL_IB_ADDR_FAMILY=AF_INET6"}},
		{"both", four + "," + six, "0", 6, []string{"NCCL_IB_ADDR_RANGE=10.9.0.1/32"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			hostAt3(t, netdev, ib)
			own := len(table(t, ib))
			c := cni.Call{Conf: macvlan(netdev, "", ipam(tt.addresses)), ContainerID: "family", NetNS: pod.Path}
			c.Add(t)
			if got := pod.Run(t, "cat", "/proc/sys/net/ipv6/conf/net1/addr_gen_mode"); got != tt.generate {
				t.Errorf("addr_gen_mode is %s, wanted %s", got, tt.generate)
			}
			node.Wait(t, "the pod's GIDs", func() bool { return len(table(t, ib)) >= own+tt.gids })
			gids := table(t, ib)
			if len(gids) != own+tt.gids {
				t.Errorf("%d entries are the pod's, wanted %d: %v", len(gids)-own, tt.gids, gids)
			}
			doc, settings := c.Hint(t)
			if want := append([]string{"NCCL_IB_HCA==" + ib + ":1"}, tt.settings...); !slices.Equal(settings, want) {
				t.Errorf("nccl.conf sets %q, wanted %q", settings, want)
			}
			want := "RoCE v2 0000:0000:0000:0000:0000:ffff:0a09:0001"
			if tt.name == "IPv6" {
				want = "RoCE v2 2001:0db8:0000:0000:0000:0000:0000:0001"
			}
			if got := gids[*doc.Rails[0].RDMA.GIDIndex]; got != want {
				t.Errorf("the hint's index holds %q, wanted %q", got, want)
			}
			if f := c.Check(t); f != nil {
				t.Errorf("CHECK: %s", f.Text())
			}
			c.Del(t)
		})
	}
	before.Unchanged(t)
}
