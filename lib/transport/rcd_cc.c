/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * The algorithms by name, their parameters, and the one that does nothing.
 */
#include "rcd_cc.h"

#include <stddef.h>
#include <string.h>

#include "rcd_ip.h"
#include "rcd_text.h"

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
cc_none_on_cnp(struct rcd_cc *cc, uint64_t now_ns)
{
	(void)cc;
	(void)now_ns;
}

static void
cc_none_on_loss(struct rcd_cc *cc, bool heavy, uint64_t now_ns)
{
	(void)cc;
	(void)heavy;
	(void)now_ns;
}

static void
cc_none_on_ack(struct rcd_cc *cc, const struct rcd_cc_ack *ack)
{
	(void)cc;
	(void)ack;
}

static void
cc_none_undo(struct rcd_cc *cc, const struct rcd_cc *before)
{
	(void)cc;
	(void)before;
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

static uint32_t
cc_none_rate(const struct rcd_cc *cc)
{
	(void)cc;
	return 0;
}

const struct rcd_cc_ops rcd_cc_none = {
	.name = "none",
	.init = cc_none_init,
	.on_cnp = cc_none_on_cnp,
	.on_ack = cc_none_on_ack,
	.on_loss = cc_none_on_loss,
	.undo = cc_none_undo,
	.send_at = cc_none_send_at,
	.window = cc_none_window,
	.rate = cc_none_rate,
};

static const struct rcd_cc_ops *const algorithms[] = { &rcd_cc_none, &rcd_cc_swift, &rcd_cc_dcqcn };

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

static const struct cc_param {
	const char *algorithm, *name, *wrong;
	size_t offset;
	uint32_t least, most;
} cc_params[] = {
#define RCD_CC_PARAM(alg, param, field, low, high, start, what)                                    \
	{ .algorithm = #alg,                                                                       \
		.name = #param,                                                                    \
		.wrong = #param " is from " #low " to " #high,                                     \
		.offset = offsetof(struct rcd_cc_params, field),                                   \
		.least = low,                                                                      \
		.most = high },
#include "rcd_cc_param.def"
};

/* One parameter. @return NULL, or what is wrong */
static const char *
cc_take(const struct rcd_cc_ops *ops, struct rcd_cc_params *params, const char *text, size_t len)
{
	size_t name_len = strcspn(text, "=");
	uint64_t val = 0;

	if (name_len + 1 >= len)
		return "parameters are NAME=NUMBER";
	for (size_t i = name_len + 1; i < len; i++) {
		if (text[i] < '0' || text[i] > '9' || val > UINT32_MAX)
			return "a parameter is no number that fits";
		val = val * 10 + (uint64_t)(text[i] - '0');
	}
	for (size_t i = 0; i < sizeof(cc_params) / sizeof(cc_params[0]); i++) {
		const struct cc_param *param = &cc_params[i];

		if (strcmp(ops->name, param->algorithm) != 0 || strlen(param->name) != name_len ||
			memcmp(text, param->name, name_len) != 0)
			continue;
		if (val < param->least || val > param->most)
			return param->wrong;
		*(uint32_t *)(void *)((uint8_t *)params + param->offset) = (uint32_t)val;
		return NULL;
	}
	return "the algorithm has no such parameter";
}

const char *
rcd_cc_parse(const char *text, const struct rcd_cc_ops **ops, struct rcd_cc_params *params)
{
	size_t len = strcspn(text, ",");
	const struct rcd_cc_ops *found;
	struct rcd_cc_params taken;
	const char *wrong;
	char name[16];

	if (len >= sizeof(name))
		return "no such algorithm";
	memcpy(name, text, len);
	name[len] = '\0';
	found = rcd_cc_by_name(name);
	if (found == NULL)
		return "no such algorithm";
	rcd_cc_params_init(&taken);
	for (text += len; *text == ','; text += len) {
		text++;
		len = strcspn(text, ",");
		wrong = cc_take(found, &taken, text, len);
		if (wrong != NULL)
			return wrong;
	}
	*ops = found;
	*params = taken;
	return NULL;
}

const char *
rcd_cc_of_class(const char *text, uint8_t dscp, const struct rcd_cc_ops **ops)
{
	uint64_t seen = 0;
	uint32_t class;

	while (*text != '\0') {
		char name[RCD_TEXT_VALUE_LEN];
		const struct rcd_cc_ops *found = NULL;

		if (rcd_text_pair(&text, RCD_DSCP_MAX, &class, name))
			found = rcd_cc_by_name(name);
		if (found == NULL)
			return "a list of DSCP:ALGORITHM, as 26:dcqcn,46:none";
		if (seen & (UINT64_C(1) << class))
			return "each DSCP once";
		seen |= UINT64_C(1) << class;
		if (ops != NULL && class == dscp)
			*ops = found;
	}
	return NULL;
}
