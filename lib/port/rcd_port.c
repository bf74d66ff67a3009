/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Questions to a port. Nothing is changed here.
 */
#include "rcd_port.h"

#include <rte_ethdev.h>

#include "rcd_thread.h"

bool
rcd_port_up(uint16_t port_id)
{
	struct rte_eth_link link = { .link_status = 0 };

	RCD_ON_CONTROL();
	return rte_eth_link_get_nowait(port_id, &link) == 0 && link.link_status;
}

uint32_t
rcd_port_speed_mbps(uint16_t port_id)
{
	struct rte_eth_link link = { .link_status = 0 };

	RCD_ON_CONTROL();
	if (rte_eth_link_get_nowait(port_id, &link) != 0 ||
		link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN)
		return 0;
	return link.link_speed;
}

int
rcd_port_mtu_max(uint16_t port_id, uint32_t *mtu)
{
	struct rte_eth_dev_info info;
	int err;

	RCD_ON_CONTROL();
	err = rte_eth_dev_info_get(port_id, &info);
	if (err == 0)
		*mtu = info.max_mtu;
	return err;
}
