/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Settings of the impairment driver, from text.
 */
#include "impair_args.h"

#include <errno.h>
#include <rte_common.h>
#include <rte_ether.h>
#include <rte_kvargs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const impair_kind_names[IMPAIR_KINDS] = { "drop", "corrupt", "ecn", "duplicate",
	"reorder", "delay" };

/* As many as a driver holds back for good measure. */
#define GAP_MAX      64
#define DELAY_US_MAX 1000000
#define QUEUES_MAX   16   /* as impair_steer.h has places for */
#define SEGMENT_MIN  32   /* below that no header of a link is in one piece */
#define GROUPS_MAX   256  /* as impair_filter.h has places for */
#define RATE_MIN     1000 /* less is no network, and what it holds back nobody waits for */

static const char *const lost_names[IMPAIR_LOST_KINDS] = { "missed", "buffer", "error" };
static const char *const dist_names[IMPAIR_DISTS] = { "constant", "uniform", "normal", "pareto" };

enum side {
	SIDE_TX,
	SIDE_RX,
	SIDE_BOTH
};
static const char *const side_names[] = { "tx", "rx", "both" };

struct parse {
	struct impair_args *args;
	char *error;
	size_t error_len;
};

void
impair_args_init(struct impair_args *args)
{
	*args = (struct impair_args){ .gap = 3,
		.delay_us = 100,
		.delay_max_us = DELAY_US_MAX,
		.ge_bad = IMPAIR_ALWAYS,
		.queue_packets = IMPAIR_QUEUE_PACKETS,
		.seed = 1,
		.flow = 1,
		.link = true,
		.promiscuous = true,
		.tx = true };
}

void
impair_args_again(struct impair_args *args, const struct impair_args *now)
{
	impair_args_init(args);
	memcpy(args->port, now->port, sizeof(args->port));
	args->queues = now->queues;
	args->flow = now->flow;
	args->groups = now->groups;
	args->vlans = now->vlans;
	args->vlans_off = now->vlans_off;
	args->promiscuous = now->promiscuous;
	args->pause = now->pause;
	args->csum = now->csum;
	args->lost = now->lost;
}

bool
impair_args_same(const struct impair_args *args, const struct impair_args *other)
{
	return strcmp(args->port, other->port) == 0 && args->queues == other->queues &&
		args->flow == other->flow && args->groups == other->groups &&
		args->vlans == other->vlans && args->vlans_off == other->vlans_off &&
		args->promiscuous == other->promiscuous && args->pause == other->pause &&
		args->csum == other->csum && args->lost == other->lost;
}

__attribute__((format(printf, 2, 3))) static int
impair_args_refuse(struct parse *parse, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(parse->error, parse->error_len, format, list);
	va_end(list);
	return -EINVAL;
}

static int
impair_args_take_probability(
	const char *key, const char *val, uint64_t *threshold, struct parse *parse)
{
	char *end;
	double p = strtod(val, &end);

	if (*end == '%') {
		p /= 100;
		end++;
	}
	if (end == val || *end != '\0' || !(p >= 0 && p <= 1))
		return impair_args_refuse(
			parse, "%s=%s: a probability is 0 to 1, or 0%% to 100%%", key, val);
	*threshold = (uint64_t)(p * (double)IMPAIR_ALWAYS);
	return 0;
}

static int
impair_args_take_number(const char *key, const char *val, struct parse *parse)
{
	struct impair_args *args = parse->args;
	const struct {
		const char *key;
		uint64_t least, most;
		uint32_t *to;
		bool *flag;
		uint64_t *wide;
	} numbers[] = {
		{ "gap", 1, GAP_MAX, .to = &args->gap },
		{ "delay_us", 0, DELAY_US_MAX, .to = &args->delay_us },
		{ "jitter_us", 0, DELAY_US_MAX, .to = &args->jitter_us },
		{ "delay_min_us", 0, DELAY_US_MAX, .to = &args->delay_min_us },
		{ "delay_max_us", 0, DELAY_US_MAX, .to = &args->delay_max_us },
		{ "ge_max", 1, UINT16_MAX, .to = &args->ge_max },
		{ "rate", RATE_MIN, UINT64_C(1) << 40, .wide = &args->rate },
		{ "queue", 1, UINT32_MAX, .wide = &args->queue },
		{ "queue_packets", 1, IMPAIR_QUEUE_PACKETS, .to = &args->queue_packets },
		{ "mark", 1, UINT32_MAX, .wide = &args->mark },
		{ "burst", 0, UINT16_MAX, .to = &args->burst },
		{ "ring", 0, UINT16_MAX, .to = &args->ring },
		{ "queues", 2, QUEUES_MAX, .to = &args->queues },
		{ "flow", 0, 2, .to = &args->flow },
		{ "fewer", 0, QUEUES_MAX - 1, .to = &args->fewer },
		{ "busy", 0, 1, .flag = &args->busy },
		{ "reset", 0, 1000, .to = &args->reset },
		{ "remove", 0, 1, .flag = &args->remove },
		{ "link", 0, 1, .flag = &args->link },
		{ "segment", 0, UINT16_MAX, .to = &args->segment },
		{ "strip", 0, 1, .flag = &args->strip },
		{ "groups", 0, GROUPS_MAX, .to = &args->groups },
		{ "vlans", 0, RTE_ETHER_MAX_VLAN_ID, .to = &args->vlans },
		{ "vlans_off", 0, 1, .flag = &args->vlans_off },
		{ "promiscuous", 0, 1, .flag = &args->promiscuous },
		{ "pause", 0, 1, .flag = &args->pause },
		{ "csum", 0, 1, .flag = &args->csum },
		{ "unsum", 0, 1, .flag = &args->unsum },
		{ "seed", 0, UINT64_MAX, .wide = &args->seed },
	};
	unsigned long long number;
	size_t i = 0;
	char *end;

	while (strcmp(key, numbers[i].key) != 0)
		i++;

	errno = 0;
	number = strtoull(val, &end, 0);
	if (end == val || *end != '\0' || errno != 0 || val[0] == '-' || number > numbers[i].most ||
		number < numbers[i].least)
		return impair_args_refuse(parse, "%s=%s: a whole number, %llu to %llu", key, val,
			(unsigned long long)numbers[i].least, (unsigned long long)numbers[i].most);
	if (numbers[i].to == &args->segment && number != 0 && number < SEGMENT_MIN)
		return impair_args_refuse(parse, "segment=%s: %u bytes and more, or 0", val,
			(unsigned int)SEGMENT_MIN);
	if (numbers[i].to != NULL)
		*numbers[i].to = (uint32_t)number;
	else if (numbers[i].flag != NULL)
		*numbers[i].flag = number != 0;
	else
		*numbers[i].wide = number;
	return 0;
}

/* One of some names. @return which; -EINVAL */
static int
impair_args_take_name(
	const char *key, const char *val, const char *const *names, int count, struct parse *parse)
{
	char list[64] = "";

	for (int i = 0; i < count; i++) {
		if (strcmp(val, names[i]) == 0)
			return i;
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
			i > 0 ? ", " : "", names[i]);
	}
	return impair_args_refuse(parse, "%s=%s: one of %s", key, val, list);
}

static int
impair_args_take(const char *key, const char *val, void *opaque)
{
	struct parse *parse = opaque;
	const struct {
		const char *key;
		uint64_t *threshold;
	} bursts[] = {
		{ "ge_p", &parse->args->ge_p },
		{ "ge_r", &parse->args->ge_r },
		{ "ge_bad", &parse->args->ge_bad },
		{ "ge_good", &parse->args->ge_good },
	};
	int err;

	if (strcmp(key, "port") == 0) {
		if (strlen(val) >= sizeof(parse->args->port))
			return impair_args_refuse(parse, "port=%s: too long a name", val);
		snprintf(parse->args->port, sizeof(parse->args->port), "%s", val);
		return 0;
	}
	if (strcmp(key, "side") == 0) {
		err = impair_args_take_name(key, val, side_names, RTE_DIM(side_names), parse);
		if (err < 0)
			return err;
		parse->args->tx = err != SIDE_RX;
		parse->args->rx = err != SIDE_TX;
		return 0;
	}
	if (strcmp(key, "lost") == 0) {
		err = impair_args_take_name(key, val, lost_names, IMPAIR_LOST_KINDS, parse);
		if (err >= 0)
			parse->args->lost = (enum impair_lost)err;
		return RTE_MIN(err, 0);
	}
	if (strcmp(key, "delay_dist") == 0) {
		err = impair_args_take_name(key, val, dist_names, IMPAIR_DISTS, parse);
		if (err >= 0)
			parse->args->delay_dist = (enum impair_dist)err;
		return RTE_MIN(err, 0);
	}
	for (int i = 0; i < IMPAIR_KINDS; i++)
		if (strcmp(key, impair_kind_names[i]) == 0)
			return impair_args_take_probability(
				key, val, &parse->args->threshold[i], parse);
	for (size_t i = 0; i < RTE_DIM(bursts); i++)
		if (strcmp(key, bursts[i].key) == 0)
			return impair_args_take_probability(key, val, bursts[i].threshold, parse);
	return impair_args_take_number(key, val, parse);
}

/* What goes together, or not. */
static int
impair_args_check(const struct impair_args *args, struct parse *parse)
{
	bool bursts = args->ge_p != 0;

	if (!bursts &&
		(args->ge_r != 0 || args->ge_good != 0 || args->ge_max != 0 ||
			args->ge_bad != IMPAIR_ALWAYS))
		return impair_args_refuse(
			parse, "ge_r, ge_max, ge_bad, ge_good: ge_p says how often a burst begins");
	if (bursts && args->ge_r == 0)
		return impair_args_refuse(parse, "ge_p: ge_r says how a burst ends, and is not 0");
	if (args->delay_min_us > args->delay_us || args->delay_us > args->delay_max_us)
		return impair_args_refuse(parse,
			"delay_us=%u: not from delay_min_us to delay_max_us", args->delay_us);
	if (args->delay_dist == IMPAIR_DIST_CONSTANT && args->jitter_us != 0)
		return impair_args_refuse(
			parse, "jitter_us: a delay that is constant has none (delay_dist)");
	if (args->rate == 0 &&
		(args->queue != 0 || args->mark != 0 ||
			args->queue_packets != IMPAIR_QUEUE_PACKETS))
		return impair_args_refuse(
			parse, "queue, queue_packets, mark: rate says what the queue is before");
	if (args->queue != 0 && args->mark >= args->queue)
		return impair_args_refuse(parse, "mark: less than queue, or nothing is marked");
	return 0;
}

int
impair_args_parse(struct impair_args *args, const char *text, char *error, size_t error_len)
{
	static const char *const keys[] = { "port", "side", "gap", "delay_us", "seed", "drop",
		"corrupt", "ecn", "duplicate", "reorder", "delay", "burst", "ring", "busy", "reset",
		"queues", "flow", "fewer", "remove", "link", "segment", "strip", "groups", "vlans",
		"vlans_off", "promiscuous", "pause", "csum", "unsum", "lost", "delay_dist",
		"jitter_us", "delay_min_us", "delay_max_us", "ge_p", "ge_r", "ge_bad", "ge_good",
		"ge_max", "rate", "queue", "queue_packets", "mark", NULL };
	struct impair_args copy = *args;
	struct parse parse = { .args = &copy, .error = error, .error_len = error_len };
	struct rte_kvargs *list = rte_kvargs_parse(text, keys);
	int err = 0;

	if (list == NULL)
		return impair_args_refuse(
			&parse, "%s: not a list of KEY=VALUE with keys of this driver", text);
	/* Since 24.11 it is not for the function below to say. */
	for (unsigned int i = 0; err == 0 && i < list->count; i++)
		if (list->pairs[i].value == NULL)
			err = impair_args_refuse(&parse, "%s needs a value", list->pairs[i].key);
	if (err == 0)
		err = rte_kvargs_process(list, NULL, impair_args_take, &parse);
	if (err == 0)
		err = impair_args_check(&copy, &parse);
	rte_kvargs_free(list);
	if (err != 0)
		return -EINVAL;
	*args = copy;
	return 0;
}
