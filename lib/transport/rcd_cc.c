/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The algorithms by name, their parameters, and the one that does nothing.
 */
#include "rcd_cc.h"

#include <stddef.h>
#include <string.h>

static void
cc_none_init(struct rcd_cc *cc, const struct rcd_cc_params *params, uint32_t packet_bytes,
	uint64_t now_ns)
{
	(void)cc;
	(void)params;
	(void)packet_bytes;
	(void)now_ns;
}

static void
cc_none_note(struct rcd_cc *cc, uint64_t now_ns)
{
	(void)cc;
	(void)now_ns;
}

static void
cc_none_on_ack(struct rcd_cc *cc, const struct rcd_cc_ack *ack)
{
	(void)cc;
	(void)ack;
}

static uint64_t
cc_none_send_at(struct rcd_cc *cc, uint32_t bytes, uint64_t now_ns)
{
	(void)cc;
	(void)bytes;
	return now_ns;
}

static uint32_t
cc_none_window(const struct rcd_cc *cc)
{
	(void)cc;
	return RCD_CC_NO_WINDOW;
}

const struct rcd_cc_ops rcd_cc_none = {
	.name = "none",
	.init = cc_none_init,
	.on_cnp = cc_none_note,
	.on_ack = cc_none_on_ack,
	.on_loss = cc_none_note,
	.send_at = cc_none_send_at,
	.window = cc_none_window,
};

static const struct rcd_cc_ops *const algorithms[] = { &rcd_cc_none };

void
rcd_cc_params_init(struct rcd_cc_params *params)
{
	*params = (struct rcd_cc_params){
#define RCD_CC_PARAM(algorithm, name, field, least, most, start, what) .field = start,
#include "rcd_cc_param.def"
	};
}

const struct rcd_cc_ops *
rcd_cc_by_name(const char *name)
{
	for (size_t i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++) {
		if (strcmp(algorithms[i]->name, name) == 0)
			return algorithms[i];
	}
	return NULL;
}
