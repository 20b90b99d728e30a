// SPDX-License-Identifier: Apache-2.0

package attach_test

import (
	"github.com/podfabric/podfabric/netconf"
	"github.com/podfabric/podfabric/plugin/attach"
	"github.com/podfabric/podfabric/rdmans/pci"
)

// deviceRefusals are of PFs, sub-functions and other whole devices.
func deviceRefusals() []kindRefusal {
	const right = "the vendor's network driver, such as mlx5_core"
	return []kindRefusal{
		{whole, refusal{
			"no such device", func(_ changeConf, _ changeNode, f changeFact) { f.Function.Exists, f.Link, f.RDMA = false, nil, nil },
			netconf.CodeTryLater, "create the device, or ask for one that exists", "deviceID", "0000:3b:00.0, which does not exist",
			"a function below /sys/bus/pci/devices",
		}},
		{sub, refusal{
			"no such sub-function", func(_ changeConf, _ changeNode, f changeFact) { f.Function.Exists, f.Link, f.RDMA = false, nil, nil },
			netconf.CodeTryLater, "create the sub-function, or ask for one that exists", "deviceID", "mlx5_core.sf.4, which does not exist",
			"a sub-function below /sys/bus/auxiliary/devices",
		}},
		{whole, refusal{
			"device not allowed", func(_ changeConf, n changeNode, _ changeFact) { n.Allow.PFs = []pci.Addr{{Bus: 9}} },
			netconf.CodeDevice, "use a device of a PF that allow.pfs of /etc/podfabric/node.json lists", "deviceID", "0000:3b:00.0, a whole device", "",
		}},
		{sub, refusal{
			"PF of the sub-function not allowed", func(_ changeConf, n changeNode, _ changeFact) { n.Allow.PFs = []pci.Addr{{Bus: 9}} },
			netconf.CodeDevice, "use a device of a PF that allow.pfs of /etc/podfabric/node.json lists", "deviceID",
			"mlx5_core.sf.4, a sub-function of 0000:3b:00.0", "",
		}},
		{whole, refusal{
			"a device for a program", func(_ changeConf, _ changeNode, f changeFact) {
				f.Function.Driver, f.Link, f.RDMA = "vfio-pci", nil, nil
			},
			netconf.CodeDevice, "bind the device to its network driver: one bound to vfio-pci has no interface", "driver of 0000:3b:00.0",
			"vfio-pci", right,
		}},
		{whole, refusal{
			"a device without a driver", func(_ changeConf, _ changeNode, f changeFact) { f.Function.Driver, f.Link, f.RDMA = "", nil, nil },
			netconf.CodeTryLater, "bind the device to its network driver", "driver of 0000:3b:00.0", "none bound", right,
		}},
		{whole, refusal{
			"an InfiniBand device", func(_ changeConf, _ changeNode, f changeFact) { f.Link.Type = "infiniband" },
			netconf.CodeDevice, "use ib-sriov-cni for InfiniBand", "link layer of 0000:3b:00.0", "InfiniBand", "Ethernet",
		}},
		{whole, refusal{
			"the node's own card", func(_ changeConf, _ changeNode, f changeFact) {
				f.Link.InUse = []string{"it carries the default route"}
			},
			netconf.CodeInUse, "use a device that the node itself does not use", "netdev ens1f0 of 0000:3b:00.0", "it carries the default route", "idle",
		}},
		{whole, refusal{
			"a PF with VFs", func(_ changeConf, _ changeNode, f changeFact) { f.Function.NumVFs = 8 },
			netconf.CodeInUse, "use one of its virtual functions, or remove them", "VFs of 0000:3b:00.0", "8", "0",
		}},
		{whole, refusal{
			"open users of a device", func(_ changeConf, _ changeNode, f changeFact) { f.RDMA.Users = []string{"nvme (pid 9)"} },
			netconf.CodeInUse, "end the processes that have the RDMA device open", "RDMA device mlx5_0 of 0000:3b:00.0", "open in nvme (pid 9)",
			"opened by nobody",
		}},
		{sub, refusal{
			"no node GUID", func(_ changeConf, _ changeNode, f changeFact) { f.RDMA.NodeGUID = attach.ZeroGUID },
			netconf.CodeDevice, "give the device a MAC, then unbind and bind its driver", "RDMA device mlx5_0 of mlx5_core.sf.4",
			"node GUID 0000:0000:0000:0000", "",
		}},
		{whole, refusal{
			"a name that the pod has", func(_ changeConf, _ changeNode, f changeFact) { f.PodLinks = []string{"eth0", "lo", "net1"} },
			netconf.CodeNameTaken, "give this attachment another interface name", "CNI_IFNAME", "net1, which the pod has already", "eth0, lo, net1",
		}},
	}
}
