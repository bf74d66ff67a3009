/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Names, texts, kinds and counters of the verdicts, made from the one list.
 */
#include "rcd_verdict.h"

#include "rcd_check.h"

static const struct {
	const char *name;
	const char *text;
	enum rcd_verdict_class class;
	enum rcd_counter counter;
} verdict_info[RCD_VERDICT_COUNT] = {
#define RCD_VERDICT(symbol, kind, count, words)                                                    \
	[RCD_VERDICT_##symbol] = {                                                                 \
		.name = #symbol,                                                                   \
		.text = words,                                                                     \
		.class = RCD_VERDICT_CLASS_##kind,                                                 \
		.counter = RCD_COUNTER_##count,                                                    \
	},
#include "rcd_verdict.def"
#undef RCD_VERDICT
};

const char *
rcd_verdict_name(enum rcd_verdict verdict)
{
	RCD_CHECK(verdict < RCD_VERDICT_COUNT);
	return verdict_info[verdict].name;
}

const char *
rcd_verdict_text(enum rcd_verdict verdict)
{
	RCD_CHECK(verdict < RCD_VERDICT_COUNT);
	return verdict_info[verdict].text;
}

enum rcd_verdict_class
rcd_verdict_class(enum rcd_verdict verdict)
{
	RCD_CHECK(verdict < RCD_VERDICT_COUNT);
	return verdict_info[verdict].class;
}

enum rcd_counter
rcd_verdict_counter(enum rcd_verdict verdict)
{
	RCD_CHECK(verdict < RCD_VERDICT_COUNT);
	return verdict_info[verdict].counter;
}
