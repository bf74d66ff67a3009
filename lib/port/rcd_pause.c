/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * PAUSE frames are set by what the driver says of them: its marks and times stay.
 */
#include "rcd_pause.h"

#include <errno.h>
#include <rte_ethdev.h>

#include "rcd_dev.h"
#include "rcd_thread.h"

static const enum rte_eth_fc_mode modes[] = {
	[RCD_PAUSE_OFF] = RTE_ETH_FC_NONE,
	[RCD_PAUSE_RX] = RTE_ETH_FC_RX_PAUSE,
	[RCD_PAUSE_TX] = RTE_ETH_FC_TX_PAUSE,
	[RCD_PAUSE_BOTH] = RTE_ETH_FC_FULL,
};

int
rcd_pause_tell(struct rcd_dev *dev, enum rcd_pause pause)
{
	struct rte_eth_fc_conf conf = { .mode = RTE_ETH_FC_NONE };
	uint16_t port_id = dev->lport.port_id;
	int err = -ENOTSUP;

	RCD_ON_CONTROL();
	dev->pause = RCD_PAUSE_KEEP;
	if (dev->conf.attach == RCD_ATTACH_PORT)
		err = rte_eth_dev_flow_ctrl_get(port_id, &conf);
	if (err == 0 && pause != RCD_PAUSE_KEEP && conf.mode != modes[pause]) {
		conf.mode = modes[pause];
		err = rte_eth_dev_flow_ctrl_set(port_id, &conf);
		if (rte_eth_dev_flow_ctrl_get(port_id, &conf) != 0)
			return err;
	} else if (err != 0) {
		return pause == RCD_PAUSE_KEEP ? 0 : err;
	}
	for (int i = RCD_PAUSE_OFF; i < RCD_PAUSE_COUNT; i++)
		if (modes[i] == conf.mode)
			dev->pause = (enum rcd_pause)i;
	return err;
}
