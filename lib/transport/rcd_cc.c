/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The congestion control that does nothing.
 */
#include "rcd_cc.h"

static void
cc_none_init(struct rcd_cc *cc, uint64_t now_ns)
{
	(void)cc;
	(void)now_ns;
}

static void
cc_none_on_cnp(struct rcd_cc *cc, uint64_t now_ns)
{
	(void)cc;
	(void)now_ns;
}

static void
cc_none_on_ack(struct rcd_cc *cc, uint32_t packets, uint64_t rtt_ns, uint64_t now_ns)
{
	(void)cc;
	(void)packets;
	(void)rtt_ns;
	(void)now_ns;
}

static void
cc_none_on_loss(struct rcd_cc *cc, uint64_t now_ns)
{
	(void)cc;
	(void)now_ns;
}

static uint64_t
cc_none_send_at(struct rcd_cc *cc, uint32_t bytes, uint64_t now_ns)
{
	(void)cc;
	(void)bytes;
	(void)now_ns;
	return 0;
}

const struct rcd_cc_ops rcd_cc_none = {
	.name = "none",
	.init = cc_none_init,
	.on_cnp = cc_none_on_cnp,
	.on_ack = cc_none_on_ack,
	.on_loss = cc_none_on_loss,
	.send_at = cc_none_send_at,
};
