/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What an engine is without a word about it.
 */
#include "rcd_ctrl.h"
#include "rcd_engine.h"

void
rcd_engine_conf_init(struct rcd_engine_conf *conf)
{
	*conf = (struct rcd_engine_conf){
		.socket = RCD_CTRL_SOCKET,
		.socket_mode = 0660,
		.socket_gid = -1,
		.admin_uid = -1,
		.admin_gid = -1,
		.clients = 1024,
		.idle = RCD_IDLE_AUTO,
		.netns_fd = -1,
	};
	rcd_quota_init(&conf->quota);
}
