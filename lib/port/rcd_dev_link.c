/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The link of a device: whether it is up, for clients and for the kernel, and how fast.
 */
#include "rcd_counter.h"
#include "rcd_dev.h"
#include "rcd_log.h"
#include "rcd_port.h"
#include "rcd_thread.h"
#include "rcd_tuntap.h"
#include "rcd_wr.h"

void
rcd_dev_check_link(struct rcd_dev *dev)
{
	bool up;

	RCD_ON_CONTROL();
	up = dev->conf.attach == RCD_ATTACH_NETDEV ? dev->link_up : rcd_port_up(dev->lport.port_id);
	if (dev->tuntap != NULL) {
		rcd_tuntap_set_carrier(dev, up && !dev->admin_down);
		up = up && dev->link_up;
	}
	if (dev->peer != NULL)
		up = up && !dev->peer->admin_down;
	up = up && !dev->admin_down;
	if (up == dev->up)
		return;
	dev->up = up;
	RCD_LOG(NOTICE, "%s: link %s", dev->conf.name, up ? "up" : "down");
	if (!up)
		rcd_counter_add(
			rcd_lport_control_counters(&dev->lport), RCD_COUNTER_LINK_DOWNED, 1);
	rcd_dev_event(dev, up ? RCD_EVENT_PORT_ACTIVE : RCD_EVENT_PORT_ERR);
}

uint32_t
rcd_dev_speed_mbps(const struct rcd_dev *dev)
{
	RCD_ON_CONTROL();
	/* What the drivers of wires and netdevs say is made up. */
	return dev->conf.attach == RCD_ATTACH_PORT ? rcd_port_speed_mbps(dev->lport.port_id) : 0;
}
