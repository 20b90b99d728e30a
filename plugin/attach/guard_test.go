// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// good are facts that nothing can be said against.
func good() attach.Facts {
	return attach.Facts{
		Mode: attach.Exclusive,
		Function: attach.Function{
			ID: vf(), Exists: true, Driver: "mlx5_core", VF: true, Number: 4, PF: pf(), PFLink: "ens1f0", PFMTU: 4200,
		},
		Link: &attach.Link{Place: attach.Place{NS: attach.Host, Name: "ens1f0v4"}, Type: "ether", MAC: "02:54:00:3b:10:00", MTU: 1500},
		RDMA: &attach.RDMA{
			Index: 4, Name: "mlx5_4", NS: attach.Host, NodeGUID: "0254:00ff:fe3b:1000", Ports: 1, LinkLayer: "Ethernet", Uverbs: 2,
		},
		Uverbs: []int{0, 1, 2, 3}, PodLinks: []string{"eth0", "lo"},
	}
}

// refusal is one row: what is changed about a good attachment, and what is answered.
type refusal struct {
	name   string
	change func(*netconf.Conf, *netconf.Node, *attach.Facts)
	code   uint
	remedy string // its beginning
	field  string
	found  string
	right  string // a part
}

func refusals() []refusal {
	type (
		C = netconf.Conf
		N = netconf.Node
		F = attach.Facts
	)
	return []refusal{
		{
			"kind not allowed", func(_ *C, n *N, _ *F) { n.Allow.Kinds = []netconf.Kind{netconf.KindMacvlan} },
			netconf.CodeInvalid, "use a kind of attachment that allow.kinds of /etc/podfabric/node.json lists", "link", `"vf"`, "",
		},
		{
			"no such function", func(_ *C, _ *N, f *F) { *f = F{Function: attach.Function{ID: vf()}} },
			netconf.CodeTryLater, "create the virtual function, or ask for one that exists", "deviceID", "0000:3b:10.0, which does not exist",
			"/sys/bus/pci/devices",
		},
		{
			"a PF", func(_ *C, _ *N, f *F) { f.Function.VF, f.Function.PF = false, pci.Addr{} },
			netconf.CodeDevice, "give the address of a virtual function in deviceID", "deviceID",
			"0000:3b:10.0, which is no virtual function but a whole device, perhaps a PF", "virtfn",
		},
		{
			"PF not allowed", func(_ *C, n *N, _ *F) { n.Allow.PFs = []pci.Addr{{Bus: 9}} },
			netconf.CodeDevice, "use a device of a PF that allow.pfs of /etc/podfabric/node.json lists", "deviceID",
			"0000:3b:10.0, a virtual function of 0000:3b:00.0", "",
		},
		{
			"no driver", func(_ *C, _ *N, f *F) { f.Function.Driver, f.Link, f.RDMA = "", nil, nil },
			netconf.CodeTryLater, "bind the virtual function to its network driver; if the node has just booted", "driver of 0000:3b:10.0",
			"none bound", "mlx5_core",
		},
		{
			"pci-stub", func(_ *C, _ *N, f *F) { f.Function.Driver, f.Link, f.RDMA = "pci-stub", nil, nil },
			netconf.CodeDevice, "bind the virtual function to its network driver: one bound to pci-stub", "driver of 0000:3b:10.0",
			"pci-stub", "mlx5_core",
		},
		{
			"InfiniBand by its netdev", func(_ *C, _ *N, f *F) { f.Link.Type = "infiniband" },
			netconf.CodeDevice, "use ib-sriov-cni for InfiniBand", "link layer of 0000:3b:10.0", "InfiniBand", "Ethernet",
		},
		{
			"InfiniBand by its RDMA device", func(_ *C, _ *N, f *F) { f.Link, f.RDMA.LinkLayer = nil, "InfiniBand" },
			netconf.CodeDevice, "use ib-sriov-cni for InfiniBand", "link layer of 0000:3b:10.0", "InfiniBand", "Ethernet",
		},
		{
			"no netdev", func(_ *C, _ *N, f *F) { f.Link = nil },
			netconf.CodeTryLater, "wait for the device's netdev", "netdev of 0000:3b:10.0", "none in any namespace that can be seen", "at home",
		},
		{
			"netdev elsewhere", func(_ *C, _ *N, f *F) { f.Link.Place = attach.Place{NS: attach.Elsewhere, Name: "net1"} },
			netconf.CodeTryLater, "wait for the device to come home", "netdev of 0000:3b:10.0", "net1 in another network namespace", "at home",
		},
		{
			"netdev in this pod", func(_ *C, _ *N, f *F) { f.Link.Place = attach.Place{NS: attach.Pod, Name: "net2"} },
			netconf.CodeTryLater, "delete the pod that has the device already", "netdev of 0000:3b:10.0", "net2 in this very pod", "at home",
		},
		{
			"used by the node", func(_ *C, _ *N, f *F) {
				f.Link.InUse = []string{"it carries the default route", "it is a port of bridge br0"}
			},
			netconf.CodeInUse, "use a device that the node itself does not use", "netdev ens1f0v4 of 0000:3b:10.0",
			"it carries the default route, it is a port of bridge br0", "idle",
		},
		{
			"no RDMA subsystem", func(_ *C, _ *N, f *F) { f.Mode, f.RDMA = attach.NoRDMA, nil },
			netconf.CodeNoRDMA, "load ib_core", "rdma.mode", `"auto" on a node without an RDMA subsystem`, "",
		},
		{
			"move in a shared node", func(c *C, _ *N, f *F) { c.RDMA.Mode, f.Mode = netconf.RDMAMove, attach.Shared },
			netconf.CodeMode, "run podfabricctl mode set exclusive", "rdma.mode", `"move" on a node in shared mode`, "exclusive mode",
		},
		{
			"share in an exclusive node", func(c *C, _ *N, _ *F) { c.RDMA.Mode = netconf.RDMAShare },
			netconf.CodeMode, "set rdma.mode to auto or move", "rdma.mode", `"share" on a node in exclusive mode`, "shared mode",
		},
		{
			"soft RoCE in a shared node", func(c *C, _ *N, f *F) { c.RDMA.SoftRoCE, f.Mode, f.RDMA = true, attach.Shared, nil },
			netconf.CodeMode, "run podfabricctl mode set exclusive", "rdma.softRoCE", "true on a node in shared mode", "exclusive mode",
		},
		{
			"soft RoCE beside a device", func(c *C, _ *N, _ *F) { c.RDMA.SoftRoCE = true },
			netconf.CodeDevice, "remove rdma.softRoCE: the function has an RDMA device of its own, mlx5_4", "rdma.softRoCE",
			"true for 0000:3b:10.0", "",
		},
		{
			"move without an RDMA device", func(c *C, _ *N, f *F) { c.RDMA.Mode, f.RDMA = netconf.RDMAMove, nil },
			netconf.CodeDevice, "load the RDMA driver of the device", "rdma.mode", `"move" for 0000:3b:10.0, which has no RDMA device`, "",
		},
		{
			"require without an RDMA device", func(c *C, _ *N, f *F) { c.RDMA.Require, f.RDMA = netconf.RequireGID, nil },
			netconf.CodeDevice, "load the RDMA driver of the device", "rdma.require", `"gid" for 0000:3b:10.0, which has no RDMA device`, "",
		},
		{
			"RDMA device elsewhere", func(_ *C, _ *N, f *F) { f.RDMA.NS, f.RDMA.NodeGUID = attach.Elsewhere, "" },
			netconf.CodeTryLater, "wait for the RDMA device to come home", "RDMA device mlx5_4 of 0000:3b:10.0",
			"in another network namespace", "at home",
		},
		{
			"RDMA device in this pod", func(_ *C, _ *N, f *F) { f.RDMA.NS = attach.Pod },
			netconf.CodeTryLater, "wait for the RDMA device to come home", "RDMA device mlx5_4 of 0000:3b:10.0", "in this very pod", "at home",
		},
		{
			"two RDMA devices", func(_ *C, _ *N, f *F) { f.RDMA.Beside = []string{"mlx5_7"} },
			netconf.CodeDevice, "use a device with one RDMA device", "RDMA device mlx5_4 of 0000:3b:10.0", "beside it mlx5_7", "1",
		},
		{
			"two ports", func(_ *C, _ *N, f *F) { f.RDMA.Ports = 2 },
			netconf.CodeDevice, "use a device with one RDMA port", "RDMA device mlx5_4 of 0000:3b:10.0", "2 ports", "1",
		},
		{
			"zero node GUID", func(_ *C, _ *N, f *F) { f.RDMA.NodeGUID = "0000:0000:0000:0000" },
			netconf.CodeDevice, "give the virtual function an administrative MAC on its PF, then unbind and bind its driver",
			"RDMA device mlx5_4 of 0000:3b:10.0", "node GUID 0000:0000:0000:0000", "ip link set ens1f0 vf 4 mac",
		},
		{
			"open RDMA users", func(_ *C, _ *N, f *F) { f.RDMA.Users = []string{"ib_write_bw (pid 71)", "nvme (pid 9)"} },
			netconf.CodeInUse, "end the processes that have the RDMA device open", "RDMA device mlx5_4 of 0000:3b:10.0",
			"open in ib_write_bw (pid 71), nvme (pid 9)", "nobody",
		},
		{
			"uverbs would shift", func(_ *C, _ *N, f *F) { f.Uverbs = []int{0, 2, 3} },
			netconf.CodeUverbs, "delete the pod, then run podfabricctl repair", "RDMA device mlx5_4 of 0000:3b:10.0",
			"uverbs2, which would become uverbs1 while the container was given /dev/infiniband/uverbs2", "free number below",
		},
		{
			"MTU above the PF's", func(c *C, _ *N, _ *F) { c.MTU.Bytes = 9000 },
			netconf.CodeInvalid, "raise the MTU of PF ens1f0 on the node, or lower mtu", "mtu", "9000", "at most 4200",
		},
		{
			"MTU of a PF that is away", func(c *C, _ *N, f *F) { c.MTU.FromPF, f.Function.PFMTU, f.Function.PFLink = true, 0, "" },
			netconf.CodeInvalid, "give mtu as a number", "mtu", `"pf", and the netdev of PF 0000:3b:00.0 is not in the node's network namespace`, "",
		},
		{
			"interface name taken", func(_ *C, _ *N, f *F) { f.PodLinks = []string{"eth0", "lo", "net1"} },
			netconf.CodeNameTaken, "give this attachment another interface name", "CNI_IFNAME", "net1, which the pod has already", "eth0, lo, net1",
		},
	}
}

func TestGuardRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range refusals() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, n, f := conf(), netconf.Node{}, good()
			tt.change(&c, &n, &f)
			p := problem(t, attach.Guard(c, n, "net1", f))
			type answer struct {
				Code         uint
				Field, Found string
			}
			if diff := cmp.Diff(answer{tt.code, tt.field, tt.found}, answer{p.Code, p.Field, p.Found}); diff != "" {
				t.Errorf("problem (-want +got):\n%s", diff)
			}
			if !strings.HasPrefix(p.Error(), tt.remedy) {
				t.Errorf("text %q does not begin with %q", p.Error(), tt.remedy)
			}
			if !strings.Contains(p.Right, tt.right) || (tt.right == "") != (p.Right == "") {
				t.Errorf("right is %q, want %q in it", p.Right, tt.right)
			}
			if strings.Contains(p.Error(), "no such file or directory") {
				t.Error("Multus would take it as done")
			}
		})
	}
}

func problem(t *testing.T, err error) *netconf.Problem {
	t.Helper()
	p := (*netconf.Problem)(nil)
	if !errors.As(err, &p) {
		t.Fatalf("error %v is no problem", err)
	}
	return p
}

// Of several refusals the one is given that comes first in the table: it is the one the others depend on.
func TestGuardGivesTheMostFundamentalOfTwo(t *testing.T) {
	t.Parallel()
	rows, pairs := refusals(), 0
	for i, a := range rows {
		for _, b := range rows[i+1:] {
			c, n, f := conf(), netconf.Node{}, good()
			first := refuse(t, a, &c, &n, &f)
			// The changes of b on top may undo a's, replace it, or be impossible on it; only where both hold is there a choice.
			if clash(a, b) {
				continue
			}
			pairs++
			b.change(&c, &n, &f)
			p := problem(t, attach.Guard(c, n, "net1", f))
			if p.Code != first.Code || p.Field != first.Field {
				t.Errorf("%s and %s: got %q, want %q", a.name, b.name, p.Error(), first.Error())
			}
		}
	}
	if pairs < 200 {
		t.Errorf("only %d pairs were tried", pairs)
	}
}

func refuse(t *testing.T, r refusal, c *netconf.Conf, n *netconf.Node, f *attach.Facts) *netconf.Problem {
	t.Helper()
	r.change(c, n, f)
	return problem(t, attach.Guard(*c, *n, "net1", *f))
}

// clash tells whether b cannot be put on top of a: one needs a part of the facts that the other takes away.
func clash(a, b refusal) (yes bool) { //nolint:nonamedreturns // a deferred function sets it
	defer func() { yes = recover() != nil || yes }()
	c, n, f := conf(), netconf.Node{}, good()
	a.change(&c, &n, &f)
	link, dev, mode, soft, driver := f.Link != nil, f.RDMA != nil, f.Mode, c.RDMA, f.Function.Driver
	b.change(&c, &n, &f)
	return f.Link != nil && !link || f.RDMA != nil && !dev || dev && f.RDMA == nil || link && f.Link == nil ||
		f.Mode != mode || c.RDMA != soft && soft != conf().RDMA || f.Function.Driver != driver || !f.Function.Exists && driver != ""
}

// review.md lab 3: 15 became 6, and 6 became 3, while a lower number was free; without one the number stayed.
