/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Identifiers for people, in the words of iproute2's rdma.
 */
#include "rcd_cma_client.h"
#include "rcd_thread.h"

static const char *
cma_list_space_name(uint16_t space)
{
	switch (space) {
	case RCD_CMA_SPACE_TCP:
		return "TCP";
	case RCD_CMA_SPACE_UDP:
		return "UDP";
	case RCD_CMA_SPACE_IPOIB:
		return "IPoIB";
	default:
		return "IB";
	}
}

void
rcd_cma_list(const struct rcd_cma *cma, void (*fn)(void *arg, const struct rcd_cma_listed *listed),
	void *arg)
{
	static const char *const types[RCD_QP_TYPE_COUNT] = {
		[RCD_QP_RC] = "RC",
		[RCD_QP_UC] = "UC",
		[RCD_QP_UD] = "UD",
		[RCD_QP_XRC_SEND] = "XRC_INI",
		[RCD_QP_XRC_RECV] = "XRC_TGT",
	};
	const struct rcd_cmid *id;
	struct rcd_cma_dev dev;

	RCD_ON_CONTROL();
	LIST_FOREACH(id, &cma->ids, all_link) {
		bool has_dev = rcd_cma_dev(cma, id->dev, &dev);
		struct rcd_cma_listed listed = {
			.ifname = has_dev ? dev.name : NULL,
			.handle = id->handle,
			.state = rcd_cma_state_name((enum rcd_cma_state)id->state),
			.space = cma_list_space_name(id->space),
			.qp_type = types[id->qp_type],
			.qpn = id->qpn,
			.src = &id->src,
			.dst = &id->dst,
		};

		listed.pid = cma->ops->name(id->client->owner, &listed.comm);
		fn(arg, &listed);
	}
}
