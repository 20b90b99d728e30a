// SPDX-License-Identifier: Apache-2.0

package netconf_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/rdmans/bus"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// network wraps keys, each with a comma before it, into a configuration that says nothing of a device.
func network(keys string) string {
	return `{"cniVersion":"1.1.0","name":"rail0","type":"podfabric"` + keys + `}`
}

// kind is the Conf of a configuration of another kind than base's.
func kind(k netconf.Kind) netconf.Conf {
	c := base()
	c.Kind, c.Inferred, c.Device, c.VF = k, false, bus.ID{}, netconf.VFSettings{}
	if k == netconf.KindMacvlan {
		c.Macvlan.Mode = netconf.MacvlanBridge
	}
	return c
}

// onEns1 is the Conf of a macvlan or ipvlan on ens1.
func onEns1(k netconf.Kind) netconf.Conf {
	c := kind(k)
	c.Master = netconf.Selector{Key: "master", Name: "ens1"}
	return c
}

const twoRails = `{"rails":{"0":{"pci":"0000:3b:00.0"},"1":{"pci":"0000:5e:00.0"},"2":{"subnet":"10.0.17.0/27"}},"index":17}`

// accept is a configuration and what Parse makes of it.
type accept struct {
	name  string
	stdin string
	args  string
	want  netconf.Conf
	set   func(*netconf.Conf) // what differs from want
}

func accepts(t *testing.T, tests []accept) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := raw(tt.stdin)
			r.Args = tt.args
			got, err := netconf.Parse(r, node(t, twoRails))
			if err != nil {
				t.Fatal(err)
			}
			want := tt.want
			want.Request.Args = tt.args
			if tt.set != nil {
				tt.set(&want)
			}
			want.Previous = got.Previous // previous_test.go
			if diff := cmp.Diff(want, got, values()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestParseMasters(t *testing.T) {
	t.Parallel()
	master := func(k netconf.Kind, s netconf.Selector) netconf.Conf {
		c := kind(k)
		c.Master = s
		return c
	}
	pf := pci.Addr{Bus: 0x3b}
	accepts(t, []accept{
		{name: "a name means macvlan", stdin: network(`,"master":"ens1"`), want: onEns1("macvlan")},
		{name: "link said", stdin: network(`,"master":"ens1","link":"macvlan"`), want: onEns1("macvlan")},
		{name: "ipvlan", stdin: network(`,"master":"ens1","link":"ipvlan"`), want: onEns1("ipvlan")},
		{
			name: "a VLAN", stdin: network(`,"master":"bond0.100"`),
			want: master("macvlan", netconf.Selector{Key: "master", Name: "bond0.100"}),
		},
		{
			name: "a long alternative name", stdin: network(`,"master":"enp59s0f0np0_uplink_of_rail_0"`),
			want: master("macvlan", netconf.Selector{Key: "master", Name: "enp59s0f0np0_uplink_of_rail_0"}),
		},
		{name: "rail", stdin: network(`,"master":{"rail":0}`), want: master("macvlan", netconf.Selector{Key: "master.rail", PCI: pf})},
		{
			name: "rail said twice", stdin: network(`,"master":{"rail":1},"rail":1`),
			want: master("macvlan", netconf.Selector{Key: "master.rail", PCI: pci.Addr{Bus: 0x5e}}),
			set:  func(c *netconf.Conf) { c.Rail = new(1) },
		},
		{
			name: "pci, upper case", stdin: network(`,"master":{"pci":"0000:3B:00.0"},"link":"ipvlan"`),
			want: master("ipvlan", netconf.Selector{Key: "master.pci", PCI: pf}),
		},
		{
			name: "rdma", stdin: network(`,"master":{"rdma":"rocep59s0f0","rail":null}`),
			want: master("macvlan", netconf.Selector{Key: "master.rdma", RDMA: "rocep59s0f0"}),
		},
		{
			name: "pfNames", stdin: network(`,"master":{"pfNames":["ens[12]f*","eth?"]}`),
			want: master("macvlan", netconf.Selector{Key: "master.pfNames", PFNames: []string{"ens[12]f*", "eth?"}}),
		},
		{
			name: "an unknown key beside is warned of", stdin: network(`,"master":{"rdma":"mlx5_0","port":1}`),
			want: master("macvlan", netconf.Selector{Key: "master.rdma", RDMA: "mlx5_0"}),
			set: func(c *netconf.Conf) {
				c.Warnings = []string{"master.port is not a key of podfabric and has no effect"}
			},
		},
		{
			name: "a number of the shared device plugin, in both keys as Multus writes it",
			stdin: network(`,"master":"ens1","deviceID":"17","pciBusID":"17","runtimeConfig":{"deviceID":"17"},` +
				`"capabilities":{"deviceID":true}`),
			want: onEns1("macvlan"),
		},
		{
			name: "a VF of the pod's has no effect", stdin: network(`,"link":"ipvlan","master":"ens1","deviceID":"0000:3b:00.2","pciBusID":"0000:3b:00.2"`),
			want: onEns1("ipvlan"), set: func(c *netconf.Conf) {
				c.Warnings = []string{`deviceID has no effect: with "link": "ipvlan" the device is the master's`}
			},
		},
		{
			name: "macvlan, everything", stdin: network(`,"master":"ens1","mode":"vepa","mtu":9000,"mac":"02-00-5E-10-00-01","bcqueuelen":0,` +
				`"linkInContainer":false,"rdma":{"mode":"share"}`),
			want: onEns1("macvlan"), set: func(c *netconf.Conf) {
				c.Macvlan = netconf.Macvlan{Mode: netconf.MacvlanVEPA, BCQueueLen: new(0)}
				c.MTU.Bytes, c.MAC, c.RDMA.Mode = 9000, "02:00:5e:10:00:01", netconf.RDMAShare
			},
		},
		{
			name: "passthru", stdin: network(`,"master":"ens1","mode":"passthru","mac":""`), want: onEns1("macvlan"),
			set: func(c *netconf.Conf) { c.Macvlan.Mode = netconf.MacvlanPassthru },
		},
		{
			name: "private, mtu inherited", stdin: network(`,"master":"ens1","mode":"private","mtu":0`), want: onEns1("macvlan"),
			set: func(c *netconf.Conf) { c.Macvlan.Mode = netconf.MacvlanPrivate },
		},
		{
			name: "mtu of the master", stdin: network(`,"master":"ens1","link":"ipvlan","mode":"l2","mtu":"pf"`), want: onEns1("ipvlan"),
			set: func(c *netconf.Conf) { c.MTU.FromPF = true },
		},
		{
			name: "an empty mode, as network-operator's template may leave it", stdin: network(`,"master":"ens1","mode":""`),
			want: onEns1("macvlan"),
		},
		{
			name: "soft RoCE, for the facts to judge", stdin: network(`,"master":"ens1","rdma":{"softRoCE":true}`),
			want: onEns1("macvlan"), set: func(c *netconf.Conf) { c.RDMA.SoftRoCE = true },
		},
	})
}

func TestParseDevices(t *testing.T) {
	t.Parallel()
	by := func(s netconf.Selector) netconf.Conf {
		c := kind(netconf.KindDevice)
		c.By = s
		return c
	}
	device := func(id bus.ID) netconf.Conf {
		c := kind(netconf.KindDevice)
		c.Device = id
		return c
	}
	sf, pf := bus.ID{Aux: "mlx5_core.sf.4"}, bus.PCI(pci.Addr{Bus: 0x3b})
	accepts(t, []accept{
		{name: "a sub-function means device", stdin: network(`,"deviceID":"mlx5_core.sf.4","pciBusID":"mlx5_core.sf.4"`), want: device(sf)},
		{name: "a sub-function, link said", stdin: network(`,"deviceID":"mlx5_core.sf.4","link":"device"`), want: device(sf)},
		{name: "a PF", stdin: network(`,"pciBusID":"0000:3b:00.0","link":"device","mtu":9000`), want: device(pf), set: func(c *netconf.Conf) {
			c.MTU.Bytes = 9000
		}},
		{name: "device", stdin: network(`,"device":"ens1"`), want: by(netconf.Selector{Key: "device", Name: "ens1"})},
		{name: "device, link said", stdin: network(`,"device":"ens1","link":"device"`), want: by(netconf.Selector{Key: "device", Name: "ens1"})},
		{
			name: "hwaddr", stdin: network(`,"hwaddr":"0200.5E10.0001","device":""`),
			want: by(netconf.Selector{Key: "hwaddr", MAC: "02:00:5e:10:00:01"}),
		},
		{
			name: "kernelpath", stdin: network(`,"kernelpath":"/sys/devices/pci0000:00/0000:00:1f.6/"`),
			want: by(netconf.Selector{Key: "kernelpath", Path: "/sys/devices/pci0000:00/0000:00:1f.6"}),
		},
		{
			name: "with a MAC", stdin: network(`,"device":"ens1","mac":"02:00:5e:10:00:01"`),
			want: by(netconf.Selector{Key: "device", Name: "ens1"}), set: func(c *netconf.Conf) { c.MAC = "02:00:5e:10:00:01" },
		},
	})
}

func TestParseChained(t *testing.T) {
	t.Parallel()
	with := func(keys string) string { return network(`,"prevResult":` + previous + keys) }
	vf := bus.PCI(pci.Addr{Bus: 0x3b, Function: 2})
	accepts(t, []accept{
		{name: "a result means chained", stdin: with(""), want: kind("chained")},
		{name: "link said", stdin: with(`,"link":"chained"`), want: kind("chained")},
		{
			name: "the device that has to be behind it", stdin: with(`,"deviceID":"0000:3b:00.2","pciBusID":"0000:3b:00.2"`),
			want: kind("chained"), set: func(c *netconf.Conf) { c.Device = vf },
		},
		{
			name: "a sub-function behind it", stdin: with(`,"deviceID":"mlx5_core.sf.4"`),
			want: kind("chained"), set: func(c *netconf.Conf) { c.Device.Aux = "mlx5_core.sf.4" },
		},
		{name: "a number says nothing", stdin: with(`,"deviceID":"17","pciBusID":"17"`), want: kind("chained")},
		{
			name: "its own keys", stdin: with(`,"rail":3,"rdma":{"mode":"move","require":"gid","softRoCE":true},"hint":{"role":"other"},` +
				`"dns":{"domain":"d"},"logLevel":"info"`),
			want: kind("chained"), set: func(c *netconf.Conf) {
				c.Rail, c.Hint.Role, c.IPAM.DNS.Domain = new(3), netconf.RoleOther, "d"
				c.RDMA.Mode, c.RDMA.Require, c.RDMA.SoftRoCE = netconf.RDMAMove, netconf.RequireGID, true
				c.Warnings = []string{"logLevel has no effect: where podfabric logs is set in /etc/podfabric/node.json"}
			},
		},
		{
			name: "CNI_ARGS are for the plugin before too", stdin: with(""), want: kind("chained"),
			args: "IgnoreUnknown=1;MAC=x;IP=y",
		},
		{
			name: "what the runtime sets is the plugin's before", stdin: with(`,"runtimeConfig":{"mac":7,"ips":"x"}`), want: kind("chained"),
			set: func(c *netconf.Conf) {
				c.Warnings = []string{
					"runtimeConfig.mac has no effect: the plugin before podfabric gives the interface its addresses",
					"runtimeConfig.ips has no effect: the plugin before podfabric gives the interface its addresses",
				}
			},
		},
	})
}
