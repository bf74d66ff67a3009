/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Address vectors as clients give them: checked, and the way found.
 */
#include "rcd_resolve.h"

#include <errno.h>

#include "rcd_attr.h"
#include "rcd_conn.h"
#include "rcd_contexts.h"
#include "rcd_ctrl.h"
#include "rcd_dev.h"
#include "rcd_gid.h"
#include "rcd_gid_table.h"
#include "rcd_hop.h"
#include "rcd_ip.h"
#include "rcd_ports.h"
#include "rcd_qp.h"
#include "rcd_request.h"
#include "rcd_route.h"
#include "rcd_sl_dscp.h"
#include "rcd_thread.h"

/* What its device has for the service level, where the program has not chosen. */
static void
resolve_tclass(const struct rcd_dev *dev, struct rcd_av *av)
{
	uint8_t dscp = 0;

	if (av->tclass != 0)
		return;
	rcd_dscp_of_sl(dev->conf.sl_dscp, av->sl, &dscp);
	av->tclass = (uint8_t)(dscp << RCD_DSCP_SHIFT);
}

int
rcd_resolve_av(struct rcd_context *context, struct rcd_conn *conn, const struct rcd_ctrl_av *from,
	struct rcd_av *av)
{
	struct rcd_dev *dev = context->dev;
	const struct rcd_gid_table *gids = dev->gids;
	struct rcd_route_query query = {
		.sgid_index = from->sgid_index,
		.dgid = &av->dgid,
		.quota = &context->quota,
		.waiter = &conn->waiter,
	};
	int err;

	RCD_ON_CONTROL();
	if (from->sgid_index >= gids->count || !gids->entries[from->sgid_index].used)
		return -EINVAL;
	rcd_attr_take_av(from, av);
	resolve_tclass(dev, av);
	av->sgid = gids->entries[from->sgid_index].gid;
	/* Both ends of a packet speak the same IP. */
	if (rcd_gid_is_ipv4(&av->sgid) != rcd_gid_is_ipv4(&av->dgid))
		return -EINVAL;
	err = rcd_route_resolve(dev, &query, av->dmac, &av->hop);
	if (err == 0)
		rcd_hop_get(context->all->conf.ports->hops, av->hop);
	/* The connection's waiter is told when the neighbour has answered, or has not. */
	return err == -EAGAIN ? RCD_REQUEST_WAITS : err;
}
