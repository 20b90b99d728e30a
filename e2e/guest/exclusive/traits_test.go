// SPDX-License-Identifier: Apache-2.0

//go:build lab

package exclusive_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/e2e/guest/cni"
	"github.com/podfabric/podfabric/e2e/guest/node"
)

// spoil does to net1 what a pod with CAP_NET_ADMIN can do: first what the kernel keeps over the move home, then what it does not.
func spoil(t *testing.T, pod *node.NS) {
	t.Helper()
	for line := range strings.Lines(`ip link set dev net1 down
		ip link set dev net1 promisc on
		ip link set dev net1 allmulticast on multicast off arp off
		ip link set dev net1 dynamic on
		ip link set dev net1 alias mine
		ip link set dev net1 txqueuelen 7
		ip link set dev net1 group 42
		ip link set dev net1 mode dormant
		ip link set dev net1 broadcast 01:02:03:04:05:06
		ip link set dev net1 gso_max_size 4096 gso_max_segs 3
		ip link set dev net1 gro_max_size 4097
		ip link set dev net1 gso_ipv4_max_size 4098
		ip link set dev net1 gro_ipv4_max_size 4099
		ip link set dev net1 addrgenmode none
		ip link set dev net1 mtu 900 address 02:00:00:00:00:99
		ip link set dev net1 up
		ip address add 10.77.0.1/24 dev net1
		ip route add 10.78.0.0/16 dev net1
		ip neigh add 10.77.0.2 lladdr 02:00:00:00:00:05 dev net1
		ip maddress add 01:00:5e:01:02:03 dev net1
		bridge fdb add 02:11:22:33:44:55 dev net1 self
		ip link add link net1 name net1.5 type vlan id 5
		ip link set dev net1.5 up
		ip link add link net1 name mv0 type macvlan mode bridge
		ip link set dev mv0 up promisc on
		tc qdisc add dev net1 root tbf rate 1mbit burst 10k latency 10ms
		tc qdisc add dev net1 clsact
		tc filter add dev net1 ingress protocol ip prio 1 matchall action drop
		sysctl -q -w net.ipv4.conf.net1.rp_filter=2 net.ipv4.neigh.net1.gc_stale_time=77`) {
		command := strings.Fields(line)
		pod.Run(t, command[0], command[1:]...)
	}
}

// says gives the kernel's own account of a link, in its namespace, without its index, its name and its state. igbvf calls whatever MAC it
// has when it comes up permanent, and the count of promiscuity at home keeps what further MACs needed until the link comes up.
func says(t *testing.T, ns *node.NS, ifname string) string {
	t.Helper()
	for _, command := range []string{"ip maddress show dev ", "bridge fdb show dev "} {
		out := ns.Run(t, "sh", "-c", command+ifname)
		if strings.Contains(out, "01:00:5e:01:02:03") || strings.Contains(out, "02:11:22:33:44:55") {
			t.Errorf("a MAC of the last pod:\n%s", out)
		}
	}
	volatile := `^\d+: \S+ |,?(NO-CARRIER|LOWER_UP|UP)\b|qdisc \S+|state \S+|parentdev.*|altname .*|permaddr \S+ `
	if ns == nil {
		volatile += `|promiscuity \d+ `
	}
	return regexp.MustCompile(volatile).ReplaceAllString(ns.Run(t, "ip", "-d", "link", "show", "dev", ifname), "")
}

// What a pod did to its VF is not the next pod's: neither after a DEL, nor when the pod's namespace dies first, nor when no DEL
// comes at all.
func TestNextPodHasNothingOfTheLast(t *testing.T) {
	vf := node.VF(t, 1, 2)
	home := node.Netdev(vf)
	before, account := cni.Look(t), says(t, nil, home)
	for _, ending := range []string{"DEL", "dies, DEL", "dies, no DEL"} {
		t.Run(ending, func(t *testing.T) {
			pod := node.NewNS(t)
			c := cni.Call{Conf: network("rail0", vf, "10.66.0.1/24"), ContainerID: "traits", NetNS: pod.Path}
			c.Add(t)
			fresh := says(t, pod, "net1")
			spoil(t, pod)
			if ending != "DEL" {
				pod.Kill(t)
				node.Wait(t, "the netdev home", func() bool { return node.Netdev(vf) != "" })
				c.NetNS = ""
			}
			if ending != "dies, no DEL" {
				c.Del(t)
				before.Unchanged(t)
				// A macvlan of the last pod's would be on the next pod's VF: seen here, it reached through that one's whatever it could.
				if out, err := pod.Try("ip", "-br", "link", "show", "up"); ending == "DEL" && (err != nil || strings.Contains(out, "mv0") || strings.Contains(out, "net1.5")) {
					t.Errorf("the last pod still has, on its VF: %v\n%s", err, out)
				}
				if diff := cmp.Diff(account, says(t, nil, home)); diff != "" {
					t.Errorf("the kernel says (-before +after):\n%s", diff)
				}
			}
			next := node.NewNS(t)
			c2 := cni.Call{Conf: network("rail0", vf, "10.66.0.1/24"), ContainerID: "next", NetNS: next.Path}
			c2.Add(t)
			if diff := cmp.Diff(fresh, says(t, next, "net1")); diff != "" {
				t.Errorf("the next pod's link (-as the first pod's was +now):\n%s", diff)
			}
			if got := next.Run(t, "sysctl", "-n", "net.ipv6.conf.net1.accept_dad"); got != "1" {
				t.Errorf("accept_dad in the next pod: %s", got)
			}
			c2.Del(t)
			before.Unchanged(t)
		})
	}
}

// What the node's owner has set on a VF is put back, not what the kernel makes of a new one.
func TestTraitsOfTheNodesOwner(t *testing.T) {
	vf := node.VF(t, 1, 2)
	home := node.Netdev(vf)
	node.Run(t, "ip", "link", "set", "dev", home, "alias", "rail 3", "group", "7", "txqueuelen", "5000", "allmulticast", "on")
	t.Cleanup(func() {
		node.Run(t, "ip", "link", "set", "dev", home, "alias", "", "group", "0", "txqueuelen", "1000", "allmulticast", "off")
	})
	before := cni.Look(t)
	pod := node.NewNS(t)
	c := cni.Call{Conf: network("rail0", vf, "10.66.0.1/24"), ContainerID: "owner", NetNS: pod.Path}
	c.Add(t)
	spoil(t, pod)
	c.Del(t)
	before.Unchanged(t)
}

// An XDP program sees what a netdev receives before the pod does, and goes with it from pod to pod. One that nobody holds is taken away; one
// that a BPF link holds keeps the VF from the next pod until it is let go.
func TestXDPProgramIsHeld(t *testing.T) {
	vf := node.VF(t, 1, 2)
	before := cni.Look(t)
	pod, next := node.NewNS(t), node.NewNS(t)
	c := cni.Call{Conf: network("rail0", vf, "10.66.0.1/24"), ContainerID: "xdp", NetNS: pod.Path}
	c.Add(t)
	letGo := attachXDP(t, pod, "net1")
	pod.Run(t, "ip", "link", "set", "dev", "net1", "promisc", "on")
	c.Del(t)
	if out := node.Run(t, "ip", "-d", "link", "show", "dev", node.Netdev(vf)); !strings.Contains(out, "xdpgeneric") || strings.Contains(out, "PROMISC") {
		t.Errorf("this test wants a program that is held and nothing else left:\n%s", out)
	}
	c2 := cni.Call{Conf: network("rail0", vf, "10.66.0.1/24"), ContainerID: "next", NetNS: next.Path}
	c2.Refused(t, 11, "XDP")
	letGo()
	c2.Add(t)
	if out := next.Run(t, "ip", "-d", "link", "show", "dev", "net1"); strings.Contains(out, "xdp") {
		t.Errorf("the next pod's link has a program:\n%s", out)
	}
	c2.Del(t)
	before.Unchanged(t)
}

// A pod may still run while its interface is unplugged, and change it until the moment it leaves.
func TestPodThatFightsDel(t *testing.T) {
	vf := node.VF(t, 1, 2)
	before := cni.Look(t)
	pod := node.NewNS(t)
	c := cni.Call{Conf: network("rail0", vf, "10.66.0.1/24"), ContainerID: "fights", NetNS: pod.Path}
	c.Add(t)
	stop := t.TempDir() + "/stop"
	const fight = `n=0; until [ -e "$1" ]; do
		for i in net1 mine; do
			ip link add link $i name mv$n type macvlan mode bridge && ip link set mv$n up
			ip link set dev $i promisc on alias mine group 42 arp off
			ip link set dev $i down; ip link set dev $i name mine; ip link set dev $i address 02:00:00:00:00:99; ip link set dev $i up
			n=$((n+1))
		done
	done 2>/dev/null`
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = pod.Try("sh", "-c", fight, "fight", stop)
	}()
	node.Wait(t, "the pod's first blow", func() bool {
		out, err := pod.Try("ip", "-br", "link")
		return err == nil && strings.Contains(out, "mv1@")
	})
	c.Del(t)
	node.Run(t, "touch", stop)
	<-ended
	if out := pod.Run(t, "ip", "-br", "link", "show", "type", "macvlan"); out != "" {
		t.Errorf("the last pod still has, on its VF:\n%s", out)
	}
	before.Unchanged(t)
}
