/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Names, units and descriptions of the counters, made from the one list.
 */
#include "rcd_counter.h"

#include "rcd_check.h"

static const struct {
	const char *name;
	const char *unit;
	const char *description;
} counter_info[RCD_COUNTER_COUNT] = {
#define RCD_COUNTER(symbol, name, unit, description)                                               \
	[RCD_COUNTER_##symbol] = { #name, #unit, description },
#include "rcd_counter.def"
#undef RCD_COUNTER
};

const char *
rcd_counter_name(enum rcd_counter id)
{
	RCD_CHECK(id < RCD_COUNTER_COUNT);
	return counter_info[id].name;
}

const char *
rcd_counter_unit(enum rcd_counter id)
{
	RCD_CHECK(id < RCD_COUNTER_COUNT);
	return counter_info[id].unit;
}

const char *
rcd_counter_description(enum rcd_counter id)
{
	RCD_CHECK(id < RCD_COUNTER_COUNT);
	return counter_info[id].description;
}
