// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"github.com/podfabric/podfabric/netconf"
)

// settingRefusals are of VFs whose PF is asked for something, and of those that a program drives.
func settingRefusals() []kindRefusal {
	const free = "nothing that needs an interface"
	return []kindRefusal{
		{asking, refusal{
			"PF away", func(_ changeConf, _ changeNode, f changeFact) { f.Function.PFLink, f.Function.PFMTU, f.VF = "", 0, nil },
			netconf.CodeTryLater, "bring the PF's netdev home", "PF 0000:3b:00.0 of 0000:3b:10.0", "no netdev in the node's network namespace",
			"its netdev at home",
		}},
		{asking, refusal{
			"switchdev", func(_ changeConf, _ changeNode, f changeFact) { f.Function.ESwitch = "switchdev" },
			netconf.CodeDevice, "set the PF's embedded switch to legacy mode", "PF 0000:3b:00.0 of 0000:3b:10.0", "eswitch mode switchdev",
			"devlink dev eswitch set pci/0000:3b:00.0 mode legacy",
		}},
		{asking, refusal{
			"the PF says nothing of the VF", func(_ changeConf, _ changeNode, f changeFact) { f.VF = nil },
			netconf.CodeDevice, "remove the VF settings, or update the PF's driver", "PF 0000:3b:00.0 of 0000:3b:10.0", "no VF 4 on ens1f0", "",
		}},
		{asking, refusal{
			"a MAC that a sibling has", func(c changeConf, _ changeNode, _ changeFact) { c.MAC = "02:00:00:00:CC:03" },
			netconf.CodeInvalid, "give each virtual function of a PF a MAC of its own", "mac",
			"02:00:00:00:CC:03, which VF 3 of ens1f0 has too", "",
		}},
		{asking, refusal{
			"a MAC of its own that a sibling has", func(_ changeConf, _ changeNode, f changeFact) { f.Siblings[1] = f.Link.MAC },
			netconf.CodeInvalid, "give each virtual function of a PF a MAC of its own", "MAC of 0000:3b:10.0",
			"02:54:00:3b:10:00, which VF 1 of ens1f0 has too", "",
		}},
		{asking, refusal{
			"no reset", func(c changeConf, _ changeNode, f changeFact) { c.VF.FLR, f.Function.Resets = true, false },
			netconf.CodeDevice, "remove vf.flr", "vf.flr", "true for 0000:3b:10.0", "a file reset",
		}},
		{program, refusal{
			"an MTU for a program", func(c changeConf, _ changeNode, _ changeFact) { c.MTU.Bytes = 1500 },
			netconf.CodeDevice, "remove mtu, or bind the virtual function to its network driver", "mtu",
			"1500 for 0000:3b:10.0, which is bound to vfio-pci", free,
		}},
		{program, refusal{
			"the PF's MTU for a program", func(c changeConf, _ changeNode, _ changeFact) { c.MTU.FromPF = true },
			netconf.CodeDevice, "remove mtu, or bind", "mtu", `"pf" for 0000:3b:10.0, which is bound to vfio-pci`, free,
		}},
		{program, refusal{
			"soft RoCE for a program", func(c changeConf, _ changeNode, _ changeFact) { c.RDMA.SoftRoCE = true },
			netconf.CodeDevice, "remove rdma.softRoCE, or bind", "rdma.softRoCE", "true for 0000:3b:10.0, which is bound to vfio-pci", free,
		}},
		{program, refusal{
			"moving RDMA for a program", func(c changeConf, _ changeNode, _ changeFact) { c.RDMA.Mode = netconf.RDMAMove },
			netconf.CodeDevice, "remove rdma.mode, or bind", "rdma.mode", `"move" for 0000:3b:10.0, which is bound to vfio-pci`, free,
		}},
		{program, refusal{
			"sharing RDMA for a program", func(c changeConf, _ changeNode, _ changeFact) { c.RDMA.Mode = netconf.RDMAShare },
			netconf.CodeDevice, "remove rdma.mode, or bind", "rdma.mode", `"share" for 0000:3b:10.0, which is bound to vfio-pci`, free,
		}},
		{program, refusal{
			"requiring RDMA for a program", func(c changeConf, _ changeNode, f changeFact) {
				c.RDMA.Require, f.Function.Driver = netconf.RequireGID, "uio_pci_generic"
			},
			netconf.CodeDevice, "remove rdma.require, or bind", "rdma.require", `"gid" for 0000:3b:10.0, which is bound to uio_pci_generic`, free,
		}},
		{program, refusal{
			"PF of a program's VF away", func(_ changeConf, _ changeNode, f changeFact) { f.Function.PFLink = "" },
			netconf.CodeTryLater, "bring the PF's netdev home", "PF 0000:3b:00.0 of 0000:3b:10.0", "no netdev in the node's network namespace",
			"its netdev at home",
		}},
		{program, refusal{
			"administrative MAC of a program's VF that a sibling has", func(_ changeConf, _ changeNode, f changeFact) { f.VF.MAC = f.Siblings[3] },
			netconf.CodeInvalid, "give each virtual function of a PF a MAC of its own", "MAC of 0000:3b:10.0",
			"02:00:00:00:cc:03, which VF 3 of ens1f0 has too", "",
		}},
	}
}
