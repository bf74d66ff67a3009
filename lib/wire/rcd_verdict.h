/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * Verdicts: what a received packet is, or what was wrong with it. One list
 * (rcd_verdict.def) makes the enum, the names and the counter of each.
 */
#ifndef RCD_VERDICT_H
#define RCD_VERDICT_H

#include "rcd_counter.h"

/** Outcome of a parse. RCD_VERDICT_OK is 0; every other value says why not. */
enum rcd_verdict {
#define RCD_VERDICT(symbol, class, counter, text) RCD_VERDICT_##symbol,
#include "rcd_verdict.def"
#undef RCD_VERDICT
	RCD_VERDICT_COUNT
};

/** Kinds of verdict, for totals. */
enum rcd_verdict_class {
	RCD_VERDICT_CLASS_ROCE,      /**< well-formed RoCEv2 */
	RCD_VERDICT_CLASS_OTHER,     /**< not for the transport; no error */
	RCD_VERDICT_CLASS_MALFORMED, /**< cut, damaged or against the specification */
	RCD_VERDICT_CLASS_BAD_ICRC,  /**< well-formed, but the ICRC is wrong */
};

/** Symbol without its prefix, for example "UDP_LENGTH". @return static string, never NULL */
const char *
rcd_verdict_name(enum rcd_verdict verdict);

/** One line for a person. @return static string, never NULL */
const char *
rcd_verdict_text(enum rcd_verdict verdict);

/** The kind of a verdict. */
enum rcd_verdict_class
rcd_verdict_class(enum rcd_verdict verdict);

/** The counter that a packet with this verdict adds to. */
enum rcd_counter
rcd_verdict_counter(enum rcd_verdict verdict);

/**
 * Count a packet whose fate is known. Called by the owner of @p set, once per packet and with the
 * last word on it: a packet parsed OK whose ICRC turns out wrong counts as RCD_VERDICT_ICRC alone.
 *
 * @param frame_bytes  length of the frame, Ethernet header included
 */
static inline void
rcd_verdict_count(struct rcd_counters *set, enum rcd_verdict verdict, uint32_t frame_bytes)
{
	rcd_counter_add(set, RCD_COUNTER_RX_PACKETS, 1);
	rcd_counter_add(set, RCD_COUNTER_RX_BYTES, frame_bytes);
	rcd_counter_add(set, rcd_verdict_counter(verdict), 1);
}

/** The same for many with the verdict OK. @param bytes of their frames together */
static inline void
rcd_verdict_count_fine(struct rcd_counters *set, uint32_t packets, uint64_t bytes)
{
	if (packets == 0)
		return;
	rcd_counter_add(set, RCD_COUNTER_RX_PACKETS, packets);
	rcd_counter_add(set, RCD_COUNTER_RX_BYTES, bytes);
	rcd_counter_add(set, RCD_COUNTER_RX_ROCE, packets);
}

#endif /* RCD_VERDICT_H */
