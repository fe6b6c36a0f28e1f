// SPDX-License-Identifier: GPL-2.0
// A network card for the tests: a real PCI driver (of QEMU's "edu" device) with one network interface for each function,
// devlink health reporters and devlink reload. It carries no data.
//
// How broken it is stands in /sys/bus/pci/devices/<bdf>/broken; only the remedy of that number or a harder one heals it:
//   1 the interface is set up   2 devlink health recover (fw_fatal)   3 devlink dev reload   4 the driver is loaded anew
// Below zero the same, but it keeps its link: its firmware has died, which the driver says in the kernel log as mlx5 does.
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/etherdevice.h>
#include <linux/pci.h>
#include <net/devlink.h>

enum { HEALTHY, NEEDS_LINK, NEEDS_HEALTH, NEEDS_RELOAD, NEEDS_DRIVER };

struct card {
	struct pci_dev *pdev;
	struct net_device *netdev;
	struct devlink_port port;
	struct devlink_health_reporter *fatal, *tx;
	int broken;
	bool keeps_link; // broken, and the link does not show it
};

struct port {
	struct card *card;
};

static void carrier(struct card *card)
{
	if (!card->netdev)
		return;
	if (card->broken && !card->keeps_link)
		netif_carrier_off(card->netdev);
	else
		netif_carrier_on(card->netdev);
}

static void healed_by(struct card *card, int remedy)
{
	if (card->broken <= remedy) {
		card->broken = HEALTHY;
		if (card->fatal)
			devlink_health_reporter_state_update(card->fatal, DEVLINK_HEALTH_REPORTER_STATE_HEALTHY);
		if (card->tx)
			devlink_health_reporter_state_update(card->tx, DEVLINK_HEALTH_REPORTER_STATE_HEALTHY);
	}
	carrier(card);
}

static int card_open(struct net_device *netdev)
{
	struct port *port = netdev_priv(netdev);

	healed_by(port->card, NEEDS_LINK);
	return 0;
}

static int card_stop(struct net_device *netdev)
{
	netif_carrier_off(netdev);
	return 0;
}

static netdev_tx_t card_xmit(struct sk_buff *skb, struct net_device *netdev)
{
	dev_kfree_skb(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops card_netdev_ops = {
	.ndo_open = card_open,
	.ndo_stop = card_stop,
	.ndo_start_xmit = card_xmit,
};

static int card_netdev_add(struct card *card)
{
	struct net_device *netdev = alloc_etherdev(sizeof(struct port));
	struct port *port;
	int err;

	if (!netdev)
		return -ENOMEM;
	port = netdev_priv(netdev);
	port->card = card;
	strscpy(netdev->name, "card%d", IFNAMSIZ);
	netdev->netdev_ops = &card_netdev_ops;
	netdev->max_mtu = 9000;
	SET_NETDEV_DEV(netdev, &card->pdev->dev);
	eth_hw_addr_random(netdev);
	netif_carrier_off(netdev);
	err = register_netdev(netdev);
	if (err) {
		free_netdev(netdev);
		return err;
	}
	card->netdev = netdev;
	return 0;
}

static void card_netdev_del(struct card *card)
{
	struct net_device *netdev = card->netdev;

	if (!netdev)
		return;
	card->netdev = NULL;
	unregister_netdev(netdev);
	free_netdev(netdev);
}

static int card_recover(struct devlink_health_reporter *reporter, void *ctx, struct netlink_ext_ack *extack)
{
	struct card *card = devlink_health_reporter_priv(reporter);

	if (ctx) // by itself it never recovers
		return -EIO;
	if (card->broken > NEEDS_HEALTH) {
		NL_SET_ERR_MSG_MOD(extack, "the firmware does not answer");
		return -EIO;
	}
	healed_by(card, NEEDS_HEALTH);
	return 0;
}

static const struct devlink_health_reporter_ops fatal_ops = { .name = "fw_fatal", .recover = card_recover };
static const struct devlink_health_reporter_ops tx_ops = { .name = "tx", .recover = card_recover };

static int card_reload_down(struct devlink *devlink, bool netns_change, enum devlink_reload_action action,
			    enum devlink_reload_limit limit, struct netlink_ext_ack *extack)
{
	card_netdev_del(devlink_priv(devlink));
	return 0;
}

static int card_reload_up(struct devlink *devlink, enum devlink_reload_action action,
			  enum devlink_reload_limit limit, u32 *performed, struct netlink_ext_ack *extack)
{
	struct card *card = devlink_priv(devlink);

	*performed = BIT(action);
	healed_by(card, NEEDS_RELOAD);
	return card_netdev_add(card);
}

static const struct devlink_ops card_devlink_ops = {
	.reload_actions = BIT(DEVLINK_RELOAD_ACTION_DRIVER_REINIT),
	.reload_down = card_reload_down,
	.reload_up = card_reload_up,
};

static ssize_t broken_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct card *card = dev_get_drvdata(dev);

	return sysfs_emit(buf, "%d\n", card->broken);
}

static ssize_t broken_store(struct device *dev, struct device_attribute *attr, const char *buf, size_t count)
{
	struct card *card = dev_get_drvdata(dev);
	int number, err = kstrtoint(buf, 10, &number);

	if (err)
		return err;
	card->broken = abs(number);
	card->keeps_link = number < 0;
	if (card->keeps_link)
		pr_err("mlx5_core %s: poll_health:776:(pid 0): device's health compromised - reached miss count\n",
		       pci_name(card->pdev));
	if (card->broken >= NEEDS_HEALTH) {
		devlink_health_report(card->fatal, "broken on purpose", card);
		devlink_health_report(card->tx, "broken on purpose", card);
	}
	carrier(card);
	return count;
}
static DEVICE_ATTR_RW(broken);

static int card_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct devlink *devlink = devlink_alloc(&card_devlink_ops, sizeof(struct card), &pdev->dev);
	struct card *card;
	int err;

	if (!devlink)
		return -ENOMEM;
	card = devlink_priv(devlink);
	card->pdev = pdev;
	pci_set_drvdata(pdev, card);
	err = card_netdev_add(card);
	if (err) {
		devlink_free(devlink);
		return err;
	}
	card->fatal = devlink_health_reporter_create(devlink, &fatal_ops, 0, card);
	err = devlink_port_register(devlink, &card->port, 1);
	if (!err) // as mlx5 has it: what watches the queues belongs to the port
		card->tx = devlink_port_health_reporter_create(&card->port, &tx_ops, 0, card);
	devlink_set_features(devlink, DEVLINK_F_RELOAD);
	err = err ?: device_create_file(&pdev->dev, &dev_attr_broken);
	devlink_register(devlink);
	return err;
}

static void card_remove(struct pci_dev *pdev)
{
	struct card *card = pci_get_drvdata(pdev);
	struct devlink *devlink = priv_to_devlink(card);

	device_remove_file(&pdev->dev, &dev_attr_broken);
	devlink_unregister(devlink);
	devlink_port_health_reporter_destroy(card->tx);
	devlink_port_unregister(&card->port);
	devlink_health_reporter_destroy(card->fatal);
	card_netdev_del(card);
	devlink_free(devlink);
}

static const struct pci_device_id card_ids[] = { { PCI_DEVICE(0x1234, 0x11e8) }, {} };
MODULE_DEVICE_TABLE(pci, card_ids);

static struct pci_driver card_driver = {
	.name = "gwcard",
	.id_table = card_ids,
	.probe = card_probe,
	.remove = card_remove,
};
module_pci_driver(card_driver);

MODULE_DESCRIPTION("A network card that can be broken on purpose");
MODULE_LICENSE("GPL");
