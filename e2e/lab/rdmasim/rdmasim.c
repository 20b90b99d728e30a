// SPDX-License-Identifier: GPL-2.0
/*
 * rdmasim: a control-path RDMA device for PCI network functions, so that the
 * life of an RDMA device can be tested without an RDMA NIC.
 *
 * What it models, through the kernel's own ib_core: the device below its PCI
 * function in sysfs (<bdf>/infiniband, <bdf>/infiniband_verbs), a RoCE port
 * whose GID table holds RoCE v1 and v2 entries that follow the addresses of the
 * netdev and its uppers in any netns, port state that follows the carrier, the
 * uverbs node, moves between network namespaces in exclusive mode and the
 * return when a namespace dies. It survives the netdev's own move, as hardware
 * does and rxe does not.
 *
 * What it does not model: queue pairs. Use rdma_rxe where bytes must flow.
 *
 * Locking
 * -------
 * Netdev events come under RTNL, and registering or unregistering an RDMA
 * device takes RTNL itself. So devices are made and freed only by jobs on one
 * ordered work queue, which alone changes the list of devices. The notifier
 * only looks a device up, under a spinlock, and holds ib_core's registration
 * reference while it uses it: unregistering waits for that reference, and the
 * holder waits for nothing.
 */
#include <linux/module.h>
#include <linux/if_vlan.h>
#include <linux/netdevice.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_verbs.h>

#define RDMASIM_GIDS	128
#define RDMASIM_PORTS	2

static char *drivers = "igb,igbvf";
module_param(drivers, charp, 0444);
MODULE_PARM_DESC(drivers, "comma list of PCI net drivers whose functions get an RDMA device");

static char *functions = "";
module_param(functions, charp, 0644);
MODULE_PARM_DESC(functions, "comma list of PCI addresses to serve, exactly as sysfs writes them; empty: every function of drivers");

static char *prefix = "sim_";
module_param(prefix, charp, 0444);
MODULE_PARM_DESC(prefix, "device names are <prefix>N");

/*
 * The parameters below hold for devices made from then on; a device keeps what
 * it was born with. Unbind and bind a function's driver to get a new device.
 */
static char *link_layer = "ethernet";
module_param(link_layer, charp, 0644);
MODULE_PARM_DESC(link_layer, "ethernet, or infiniband: the ports say so and have one GID; new devices");

static uint ports = 1;
module_param(ports, uint, 0644);
MODULE_PARM_DESC(ports, "1 or 2; the second port never has a netdev; new devices");

static bool zero_guid;
module_param(zero_guid, bool, 0644);
MODULE_PARM_DESC(zero_guid, "all-zero node GUID, as a VF without an admin MAC has; new devices");

static bool disassociate = true;
module_param(disassociate, bool, 0644);
MODULE_PARM_DESC(disassociate, "whether the device can let go of its users; ib_core refuses to move one that cannot; new devices");

/* One per PCI function. ib must be first: ib_core frees the whole by it. */
struct sim {
	struct ib_device ib;
	struct pci_dev *pdev;
	bool infiniband;
	struct list_head node;
};

struct sim_ucontext {
	struct ib_ucontext base;
};

struct sim_pd {
	struct ib_pd base;
};

struct job {
	struct work_struct work;
	struct net_device *ndev;
	netdevice_tracker tracker;
	struct pci_dev *pdev;
	bool add;
};

static LIST_HEAD(sims);
static DEFINE_SPINLOCK(sims_lock);
static struct workqueue_struct *queue;

static struct sim *to_sim(struct ib_device *dev)
{
	return container_of(dev, struct sim, ib);
}

/* The device's operations, as ib_core calls them. */

static int sim_query_device(struct ib_device *dev, struct ib_device_attr *attr,
			    struct ib_udata *udata)
{
	memset(attr, 0, sizeof(*attr));
	attr->sys_image_guid = dev->node_guid;
	attr->max_pkeys = 1;
	attr->max_pd = 64;
	return 0;
}

static int sim_gid_slots(struct ib_device *dev)
{
	return to_sim(dev)->infiniband ? 1 : RDMASIM_GIDS;
}

static bool carries(struct net_device *ndev)
{
	return netif_running(ndev) && netif_carrier_ok(ndev);
}

static int sim_query_port(struct ib_device *dev, u32 port, struct ib_port_attr *attr)
{
	struct net_device *ndev = ib_device_get_netdev(dev, port);
	bool up = ndev && carries(ndev);

	attr->gid_tbl_len = sim_gid_slots(dev);
	attr->pkey_tbl_len = 1;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = ndev ? iboe_get_mtu(ndev->mtu) : IB_MTU_256;
	attr->max_msg_sz = 1 << 20;
	attr->active_width = IB_WIDTH_4X;	/* 400 Gb/s: 4 lanes of NDR */
	attr->active_speed = IB_SPEED_NDR;
	attr->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED;
	dev_put(ndev);
	return 0;
}

static int sim_port_immutable(struct ib_device *dev, u32 port, struct ib_port_immutable *im)
{
	im->gid_tbl_len = sim_gid_slots(dev);
	im->pkey_tbl_len = 1;
	/*
	 * An InfiniBand port here has neither MADs nor a subnet manager: the
	 * flags for those would make ib_mad create queue pairs.
	 */
	im->core_cap_flags = to_sim(dev)->infiniband ?
		RDMA_CORE_CAP_PROT_IB :
		RDMA_CORE_CAP_PROT_ROCE | RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP;
	return 0;
}

static enum rdma_link_layer sim_link_layer(struct ib_device *dev, u32 port)
{
	return to_sim(dev)->infiniband ? IB_LINK_LAYER_INFINIBAND : IB_LINK_LAYER_ETHERNET;
}

/* Asked of InfiniBand ports only; ib_core fills a RoCE port's table itself. */
static int sim_query_gid(struct ib_device *dev, u32 port, int index, union ib_gid *gid)
{
	gid->global.subnet_prefix = cpu_to_be64(0xfe80000000000000ULL);
	gid->global.interface_id = dev->node_guid;
	return index ? -EINVAL : 0;
}

static int sim_gid_changed(const struct ib_gid_attr *attr, void **context)
{
	return 0;
}

static int sim_query_pkey(struct ib_device *dev, u32 port, u16 index, u16 *pkey)
{
	*pkey = 0xffff;
	return index ? -EINVAL : 0;
}

static int sim_alloc_ucontext(struct ib_ucontext *uc, struct ib_udata *udata)
{
	return 0;
}

static void sim_dealloc_ucontext(struct ib_ucontext *uc)
{
}

static void sim_disassociate_ucontext(struct ib_ucontext *uc)
{
}

static int sim_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int sim_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static void sim_fw(struct ib_device *dev, char *str)
{
	snprintf(str, IB_FW_VERSION_NAME_MAX, "rdmasim");
}

static const struct ib_device_ops sim_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = 1,
	.add_gid = sim_gid_changed,
	.alloc_pd = sim_alloc_pd,
	.alloc_ucontext = sim_alloc_ucontext,
	.dealloc_pd = sim_dealloc_pd,
	.dealloc_ucontext = sim_dealloc_ucontext,
	.del_gid = sim_gid_changed,
	.get_dev_fw_str = sim_fw,
	.get_link_layer = sim_link_layer,
	.get_port_immutable = sim_port_immutable,
	.query_device = sim_query_device,
	.query_gid = sim_query_gid,
	.query_pkey = sim_query_pkey,
	.query_port = sim_query_port,
	INIT_RDMA_OBJ_SIZE(ib_pd, sim_pd, base),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, sim_ucontext, base),
};

/* Apart, because its mere presence is what makes ib_core allow a move. */
static const struct ib_device_ops sim_disassociate_ops = {
	.disassociate_ucontext = sim_disassociate_ucontext,
};

/* The list of devices, and the jobs that change it. */

/* Call with sims_lock held, or from a job: jobs alone change the list. */
static struct sim *sim_of(struct pci_dev *pdev)
{
	struct sim *s;

	list_for_each_entry(s, &sims, node)
		if (s->pdev == pdev)
			return s;
	return NULL;
}

/* The registered device of pdev, kept registered until ib_device_put(). */
static struct sim *sim_get(struct pci_dev *pdev)
{
	struct sim *s;

	spin_lock(&sims_lock);
	s = sim_of(pdev);
	if (s && !ib_device_try_get(&s->ib))
		s = NULL;
	spin_unlock(&sims_lock);
	return s;
}

static void sim_free(struct sim *s)
{
	spin_lock(&sims_lock);
	list_del(&s->node);
	spin_unlock(&sims_lock);
	ib_unregister_device(&s->ib);
	pci_dev_put(s->pdev);
	ib_dealloc_device(&s->ib);
}

static void sim_configure(struct sim *s, struct net_device *ndev)
{
	s->ib.node_type = RDMA_NODE_IB_CA;
	s->ib.phys_port_cnt = clamp(READ_ONCE(ports), 1, RDMASIM_PORTS);
	s->ib.num_comp_vectors = 1;
	s->ib.dev.parent = &s->pdev->dev;
	if (!READ_ONCE(zero_guid))
		addrconf_addr_eui48((u8 *)&s->ib.node_guid, ndev->dev_addr);
	kernel_param_lock(THIS_MODULE);
	s->infiniband = sysfs_streq(link_layer, "infiniband");
	kernel_param_unlock(THIS_MODULE);
	ib_set_device_ops(&s->ib, &sim_ops);
	if (READ_ONCE(disassociate))
		ib_set_device_ops(&s->ib, &sim_disassociate_ops);
}

static void sim_add(struct pci_dev *pdev, struct net_device *ndev)
{
	struct sim *s = sim_of(pdev);
	char name[IB_DEVICE_NAME_MAX];

	if (s) {	/* the netdev arrived elsewhere while its device was being made */
		ib_device_set_netdev(&s->ib, ndev, 1);
		return;
	}
	s = ib_alloc_device(sim, ib);
	if (!s)
		return;
	s->pdev = pci_dev_get(pdev);
	sim_configure(s, ndev);
	snprintf(name, sizeof(name), "%s%%d", prefix);
	if (ib_device_set_netdev(&s->ib, ndev, 1) || ib_register_device(&s->ib, name, NULL)) {
		pr_err("rdmasim: no RDMA device for %s\n", pci_name(pdev));
		pci_dev_put(s->pdev);
		ib_dealloc_device(&s->ib);
		return;
	}
	spin_lock(&sims_lock);
	list_add(&s->node, &sims);
	spin_unlock(&sims_lock);
}

static void job_run(struct work_struct *work)
{
	struct job *j = container_of(work, struct job, work);
	struct sim *s;

	if (j->add) {
		sim_add(j->pdev, j->ndev);
	} else {
		s = sim_of(j->pdev);
		if (s)
			sim_free(s);
	}
	/*
	 * Only now may the netdev, and with it its PCI function, go on to
	 * disappear: the RDMA device below the function has gone first.
	 */
	netdev_put(j->ndev, &j->tracker);
	pci_dev_put(j->pdev);
	kfree(j);
}

static void job_queue(struct net_device *ndev, bool add)
{
	struct job *j = kzalloc(sizeof(*j), GFP_KERNEL);

	if (!j)
		return;
	INIT_WORK(&j->work, job_run);
	j->ndev = ndev;
	j->pdev = pci_dev_get(to_pci_dev(ndev->dev.parent));
	j->add = add;
	netdev_hold(ndev, &j->tracker, GFP_KERNEL);
	queue_work(queue, &j->work);
}

/* Which netdevs are ours, and what happens to them. */

/* Whether a comma list has this word; "igb" is not in "igbvf". */
static bool has_word(const char *list, const char *word)
{
	size_t want = strlen(word), len;

	for (;; list += len + 1) {
		len = strcspn(list, ",\n");
		if (len == want && !strncmp(list, word, len))
			return true;
		if (!list[len])
			return false;
	}
}

static bool ours(struct net_device *ndev)
{
	struct device *parent = ndev->dev.parent;
	bool served;

	if (!parent || !dev_is_pci(parent) || !parent->driver || is_vlan_dev(ndev))
		return false;
	if (!has_word(drivers, parent->driver->name))
		return false;
	kernel_param_lock(THIS_MODULE);
	served = !*functions || *functions == '\n' || has_word(functions, dev_name(parent));
	kernel_param_unlock(THIS_MODULE);
	return served;
}

static void sim_port_event(struct sim *s, struct net_device *ndev)
{
	struct ib_event e = {
		.device = &s->ib,
		.element.port_num = 1,
		.event = carries(ndev) ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR,
	};

	ib_dispatch_event(&e);
}

static int sim_netdev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct net_device *ndev = netdev_notifier_info_to_dev(ptr);
	struct device *parent = ndev->dev.parent;
	struct sim *s;

	if (!parent || !dev_is_pci(parent) || is_vlan_dev(ndev))
		return NOTIFY_DONE;
	/* A served function stays so for the life of its device, whatever functions= says later. */
	s = sim_get(to_pci_dev(parent));
	switch (event) {
	case NETDEV_REGISTER:		/* new, or arrived in this namespace */
		if (s)
			ib_device_set_netdev(&s->ib, ndev, 1);
		else if (ours(ndev))
			job_queue(ndev, true);
		break;
	case NETDEV_UNREGISTER:		/* leaving this namespace, or gone */
		if (s)
			ib_device_set_netdev(&s->ib, NULL, 1);
		/* Not "if (s)": the job that makes the device may still be queued. */
		if (ndev->reg_state == NETREG_UNREGISTERING)
			job_queue(ndev, false);
		break;
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		if (s)
			sim_port_event(s, ndev);
		break;
	}
	if (s)
		ib_device_put(&s->ib);
	return NOTIFY_DONE;
}

static struct notifier_block sim_nb = { .notifier_call = sim_netdev_event };

static int __init sim_init(void)
{
	int err;

	queue = alloc_ordered_workqueue("rdmasim", 0);
	if (!queue)
		return -ENOMEM;
	/* Replays the registration of every netdev that is there already. */
	err = register_netdevice_notifier(&sim_nb);
	if (err)
		destroy_workqueue(queue);
	return err;
}

static void __exit sim_exit(void)
{
	struct sim *s, *next;

	unregister_netdevice_notifier(&sim_nb);
	destroy_workqueue(queue);
	list_for_each_entry_safe(s, next, &sims, node)
		sim_free(s);
}

module_init(sim_init);
module_exit(sim_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("control-path RDMA devices for tests");
